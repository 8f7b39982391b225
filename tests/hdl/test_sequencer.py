"""Sequencer between windows that take their time, a router that may be full, and probes that end
whenever they like."""

from __future__ import annotations

import dataclasses
from collections import Counter, deque

import cocotb
import pytest

from hdl.config import CONFIGURATIONS
from hdl.layouts import CONTEXTS
from hdl.sequencer import Sequencer
from tests.hdl.bench import PACES, Bench, Driver, Scoreboard, simulate

_N = 3
CASES = {
    "three streams": lambda: Sequencer(dataclasses.replace(CONFIGURATIONS["tiny"], streams=_N))
}


@pytest.mark.parametrize("case", CASES)
def test_sequencer(case: str) -> None:
    simulate(__name__, CASES, case)


@cocotb.test()
async def one_after_the_other(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance = bench.chance
    seen: Counter = Counter()
    for number, (idle, pressure) in enumerate(PACES * 2):
        groups = [[0, 1, 2], [0, 0, 2], [0, 0, 0]][number % 3]
        stores = [True, number % 2 == 0, True]
        places = [chance.randrange(16) for _ in range(_N)]
        destinations = [{"areas": each & 7, "output": each >> 3} for each in places]
        await bench.reset(
            groups=groups,
            stores=sum(bit << s for s, bit in enumerate(stores)),
            destinations=destinations,
            settled=7,
            storing=7,
        )
        arriving = Driver(bench, "selected", idle)
        now = 0
        for _ in range(60):
            now += chance.randrange(3)
            filler = chance.random() < 0.1
            admit = not filler and chance.random() < 0.8
            arriving.queue.append(
                {
                    "raw": {
                        "stream": chance.randrange(_N),
                        "admit": admit,
                        "filler": filler,
                        "timestamp": now,
                        "sequence": chance.getrandbits(16),
                        "attributes": [chance.getrandbits(16) for _ in range(4)],
                    },
                    "bits": chance.getrandbits(16),
                    "admitted": admit and chance.random() < 0.7,
                }
            )
        events, emitted = Scoreboard("events"), Scoreboard("emitted")
        stored = wanted = 0
        counters = [0] * _N
        flight: dict[int, int] = {}  # of each context, in order, how much is on its way
        settling, indexing = (
            [0] * _N,
            [0] * _N,
        )  # cycles until windows, and their indexes, are ready
        current: dict | None = None
        checked = snapped = False
        late: deque[tuple[int, int]] = deque()

        def taken(item: dict, counters: list = counters, groups: list = groups,
                  events: Scoreboard = events) -> None:  # fmt: skip
            nonlocal current, checked, snapped
            raw = item["raw"]
            events.expect(
                (
                    int(not raw["filler"]),
                    int(not raw["filler"] and not raw["admit"]),
                    int(raw["admit"] and not item["admitted"]),
                )
            )
            for s in range(_N):
                if groups[s] == groups[raw["stream"]]:
                    counters[s] = raw["sequence"]
            current, checked, snapped = item, False, False

        arriving.taken = taken
        for _ in range(20_000):
            # Of what is in flight some ends; some is sent on, and counted before its probe ends.
            alive = [c for c, count in flight.items() if count]
            sent = 0
            bench.set("sent", 0)
            if late:
                context, sent = late.popleft()
                bench.set("sent", sent)
                bench.set("sent_context", context)
            elif alive and chance.random() < 0.1:
                context, sent = chance.choice(alive), chance.randrange(1, _N + 2)
                bench.set("sent", sent)
                bench.set("sent_context", context)
                flight[context] += sent
            done, whose = 0, [chance.randrange(CONTEXTS) for _ in range(_N + 1)]
            for i in range(_N + 1):
                if alive and not sent and chance.random() >= max(pressure, 0.2):
                    context = chance.choice(alive)
                    if flight[context] > (context in (c for c, _ in late)):
                        flight[context] -= 1
                        done |= 1 << i
                        whose[i] = context
            bench.set("done", done)
            bench.set("done_contexts", whose)
            bench.set("settled", sum((not each) << s for s, each in enumerate(settling)))
            bench.set("storing", sum((not each) << s for s, each in enumerate(indexing)))
            bench.set("stored", 0)
            bench.set("granted", 0)
            just = len(arriving.sent)
            await bench.settle()
            was_settling, settling = settling, [max(each - 1, 0) for each in settling]
            was_indexing, indexing = indexing, [max(each - 1, 0) for each in indexing]
            if bench.bits("check"):
                assert len(arriving.sent) == just + 1
                events.came(tuple(bench.bits(name) for name in ("taken", "tick", "dropped")))
                # A window needs a cycle at least.
                settling = [chance.randrange(1, 5) for _ in range(_N)]
                seen["check"] += 1
            else:
                assert not any(bench.bits(name) for name in ("taken", "tick", "dropped"))
                assert len(arriving.sent) == just, "taken, but no window is told"
            if current is not None and len(arriving.sent) == just:
                raw = current["raw"]
                assert bench.bits("now") == raw["timestamp"]
                assert bench.get("counters") == counters
                assert bench.bits("taker") == raw["stream"]
                assert bench.bits("taken_by") == raw["sequence"]
            store = bench.bits("store")
            if store:
                assert not any(was_settling), "stored before all windows have dropped their dead"
                raw = current["raw"]
                assert current["admitted"]
                assert stores[raw["stream"]]
                assert store == 1 << raw["stream"]
                assert not any(was_indexing), "stored while an index is busy"
                part = {name: raw[name] for name in ("timestamp", "sequence", "attributes")}
                assert bench.get("tuple") == part
                assert bench.bits("bits") == current["bits"]
                assert not checked, "stored twice"
                if chance.random() >= pressure:
                    bench.set("stored", store)
                    checked = True
                    stored += 1
                    indexing = [chance.randrange(5) for _ in range(_N)]
            if bench.bits("snapshot"):
                raw = current["raw"]
                assert current["admitted"]
                assert checked or not stores[raw["stream"]], "a view without the tuple itself"
                context = bench.bits("context")
                assert not flight.get(context), "this context is still in flight"
                kept = bench.get("raw")
                assert kept["stream"] == raw["stream"]
                assert kept["bits"] == current["bits"]
                assert kept["counters"] == counters
                assert kept["component"]["sequence"] == raw["sequence"]
                assert (
                    all(queue[0] != context for queue in emitted.waiting.get(None, ())) or snapped
                )
                if not snapped and places[raw["stream"]]:
                    where = destinations[raw["stream"]]
                    emitted.expect((context, raw["stream"], 1 << raw["stream"], where))
                snapped = True
            if bench.bits("emit"):
                offered = bench.get("emitted")
                where = bench.get("destination")
                if chance.random() >= pressure:
                    bench.set("granted", 1)
                    emitted.came((offered["context"], offered["tag"], offered["carries"], where))
                    count = where["areas"].bit_count() + where["output"]
                    late.append((offered["context"], count))
                    flight.pop(offered["context"], None)
                    flight[offered["context"]] = count
                    seen["emitted"] += 1
            on_its_way = [c for c, count in flight.items() if count]
            if on_its_way:
                assert bench.bits("busy")
                # The oldest may be called busy longer than it is, never shorter.
                first, head = bench.bits("oldest"), on_its_way[0]
                newest = list(flight)[-1]
                assert (head - first) % CONTEXTS <= (newest - first) % CONTEXTS
                assert not bench.bits("idle")
            if len(arriving.sent) > just:
                item = arriving.sent[-1]
                wanted += bool(item["admitted"] and stores[item["raw"]["stream"]])
            await bench.clock()
            if not arriving.queue and not on_its_way and not late and bench.bits("idle"):
                break
        else:
            raise AssertionError("never idle")
        assert emitted.empty
        assert events.empty
        assert stored == wanted
        seen["stored"] += stored
        await bench.settle()
        assert bench.bits("idle")
        assert not bench.bits("busy")
        await bench.clock()
        bench.set("clear", 1)
        await bench.tick()
        bench.set("clear", 0)
        await bench.settle()
        assert bench.bits("now") == 0
        assert bench.get("counters") == [0] * _N
        await bench.clock()
    assert seen["stored"] > 100
    assert seen["emitted"] > 100
