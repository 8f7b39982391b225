"""Sequencer between windows that take their time, a router that may be full, and probes that end
whenever they like."""

from __future__ import annotations

import dataclasses
from collections import Counter, deque

import cocotb
import pytest

from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.layouts import CONTEXTS, OFFERS
from seustream.hdl.sequencer import Sequencer
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
        events, emitted = Scoreboard("events"), Scoreboard("emitted", lambda item: item[0])
        stored = wanted = snapped = led = 0
        counters = [0] * _N
        flight: dict[int, int] = {}  # of each context, in order, how much is on its way
        late: deque[tuple[int, int, int]] = deque()  # when what is sent is counted
        uncounted: Counter = Counter()  # by context
        settling = was_settling = [0] * _N  # cycles until windows are ready
        shown: deque[tuple] = deque(maxlen=2)  # to the windows, in the last two cycles
        checked = 0
        look = next_look = 0
        coming: deque[dict] = deque()  # taken at the door
        current: dict | None = None  # dealt with
        finished = True  # it went to the windows, or nowhere
        turns = 0  # which offers the router took
        offered: list[tuple | None] = [
            None
        ] * OFFERS  # what was emitted a cycle ago, not granted yet

        def taken(item: dict, events: Scoreboard = events, coming: deque = coming) -> None:
            raw = item["raw"]
            events.expect(
                (
                    int(not raw["filler"]),
                    int(not raw["filler"] and not raw["admit"]),
                    int(raw["admit"] and not item["admitted"]),
                )
            )
            coming.append(item)

        arriving.taken = taken
        for cycle in range(20_000):
            # Of what is in flight some ends; some is sent on, and counted a cycle later, while its
            # probe may end.
            alive = [c for c, count in flight.items() if count > uncounted[c]]
            bench.set("sent", 0)
            bench.set("sent_context", chance.randrange(CONTEXTS))
            if late and late[0][0] <= cycle:
                _, context, sent = late.popleft()
                bench.set("sent", sent)
                bench.set("sent_context", context)
                uncounted[context] -= sent
            if not late and alive and chance.random() < 0.1:
                context, more = chance.choice(alive), chance.randrange(1, _N + 2)
                late.append((cycle + 1, context, more))
                flight[context] += more
                uncounted[context] += more
            done, whose = 0, [chance.randrange(CONTEXTS) for _ in range(_N + 1)]
            for i in range(_N + 1):
                if alive and chance.random() >= max(pressure, 0.2):
                    context = chance.choice(alive)
                    if flight[context] > uncounted[context]:
                        flight[context] -= 1
                        done |= 1 << i
                        whose[i] = context
            bench.set("done", done)
            bench.set("done_contexts", whose)
            bench.set("settled", sum((not each) << s for s, each in enumerate(settling)))
            bench.set("granted", turns)
            await bench.settle()
            # A window hears of it in the cycle after.
            look, next_look = next_look, bench.bits("check")
            if look:
                # A window may be settled at once.
                settling = [chance.choice([0, 0, 1, 2, 3]) for _ in range(_N)]
                bench.set("settled", sum((not each) << s for s, each in enumerate(settling)))
            settling_now, settling = settling, [max(each - 1, 0) for each in settling]
            happened = tuple(bench.bits(name) for name in ("taken", "tick", "dropped"))
            # Who goes to the windows may do so while they look for the next one.
            store, snapshot = bench.bits("store"), bench.bits("snapshot")
            if store or snapshot:
                assert not finished, "twice, or where it should not be"
                finished = True
                raw = current["raw"]
                leads = bool(places[raw["stream"]])
                assert not any(was_settling), "stored before all windows have dropped their dead"
                seen["stored two later"] += cycle == checked + 2
                assert store == stores[raw["stream"]] << raw["stream"]
                assert snapshot == leads, "a view is taken with the store"
                part = {name: raw[name] for name in ("timestamp", "sequence", "attributes")}
                assert bench.get("tuple") == part
                assert bench.bits("bits") == current["bits"]
                assert not bench.bits("idle")
                seen["with the next"] += look
                stored += bool(store)
            if snapshot:
                snapped += 1
                context = bench.bits("context")
                assert not flight.get(context), "this context is still in flight"
                kept = bench.get("raw")
                assert kept["stream"] == raw["stream"]
                assert kept["bits"] == current["bits"]
                assert kept["counters"] == counters
                assert kept["component"] == part
                where = destinations[raw["stream"]]
                emitted.expect((context, raw["stream"], 1 << raw["stream"], where))
                flight.pop(context, None)
                flight[context] = where["areas"].bit_count() + where["output"]
                uncounted[context] = flight[context]
                assert bench.bits("emit").bit_count() == 1 + sum(
                    each is not None for each in offered
                )
            if look:
                assert finished, "the next one is dealt with, but this one went nowhere"
                current = coming.popleft()
                events.came(happened)
                checked = cycle
                seen["check"] += 1
                raw = current["raw"]
                for s in range(_N):
                    if groups[s] == groups[raw["stream"]]:
                        counters[s] = raw["sequence"]
                of = raw["stream"]
                finished = not (current["admitted"] and (stores[of] or places[of]))
                wanted += bool(current["admitted"] and stores[of])
                led += bool(current["admitted"] and places[of])
            else:
                assert not any(happened)
            if current is not None:
                raw = current["raw"]
                assert bench.bits("taker") == raw["stream"]
                assert bench.bits("taken_by") == raw["sequence"]
            if look:
                keeps = bool(current["admitted"] and stores[raw["stream"]])
                its = (raw["timestamp"], counters, keeps << raw["stream"])
                assert list(shown) == [its, its], "the windows did not know of it"
            shown.append((bench.bits("now"), bench.get("counters"), bench.bits("wanted")))
            was_settling = settling_now
            emits: list[tuple | None] = [None] * OFFERS
            for i in range(OFFERS):
                if not bench.bits("emit") >> i & 1:
                    assert offered[i] is None, "taken back"
                    continue
                reference, where = bench.get("emitted")[i], bench.get("destinations_of")[i]
                it = (reference["context"], reference["tag"], reference["carries"], where)
                emits[i] = it
                assert offered[i] in (None, it), "what is emitted stays"
                assert offered[i] or snapshot
                assert not bench.bits("idle")
                if turns >> i & 1:
                    emitted.came(it)
                    uncounted[it[0]] = 0
                    seen["emitted"] += 1
                    emits[i] = None
            turns = sum(
                (each is not None and chance.random() >= pressure) << i
                for i, each in enumerate(emits)
            )
            bench.set("taking", turns)
            offered = emits
            assert finished or not bench.bits("idle")
            on_its_way = [c for c, count in flight.items() if count]
            if on_its_way:
                assert bench.bits("busy")
                # The oldest may be called busy longer than it is, never shorter.
                first, head = bench.bits("oldest"), on_its_way[0]
                newest = list(flight)[-1]
                assert (head - first) % CONTEXTS <= (newest - first) % CONTEXTS
                assert not bench.bits("idle")
            assert not coming or not bench.bits("idle")
            await bench.clock()
            if (
                not arriving.queue
                and not coming
                and not on_its_way
                and not late
                and bench.bits("idle")
            ):
                break
        else:
            raise AssertionError("never idle")
        assert emitted.empty
        assert events.empty
        assert stored == wanted
        assert snapped == led
        seen["stored"] += stored
        await bench.settle()
        assert bench.bits("idle")
        assert not bench.bits("busy")
        await bench.clock()
        bench.set("clear", 1)
        await bench.tick()
        bench.set("clear", 0)
        await bench.clock()
    assert seen["stored"] > 100
    assert seen["emitted"] > 100
    assert seen["with the next"] > 100
    assert seen["stored two later"] > 20
