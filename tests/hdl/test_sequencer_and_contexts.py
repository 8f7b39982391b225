"""Tests Sequencer between windows that take their time, or are calm, areas and a router that may be
full, and probes that end at any time."""

from __future__ import annotations

import dataclasses
from collections import Counter, deque

import cocotb
import pytest

from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.layouts import CONTEXTS, OFFERS
from seustream.hdl.probe_fifo import IN_FLIGHT
from seustream.hdl.sequencer import Sequencer
from tests.hdl.bench import PACES, Bench, Driver, Scoreboard, simulate

_N = 3
_PLACES = 3
"""Places for probes in an area: it reports room while fewer wait."""
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
    # The raw tuple before, and the highest bits of each stream's last number. A reset leaves them,
    # because nothing is stored then.
    before, lasts = {"timestamp": 0}, [0] * _N
    for number, (idle, pressure) in enumerate(PACES * 4):
        # Windows that are never calm, mostly calm, or calm now and then.
        calm_rate, drains = (0, 0.97, 0.5, 0.9)[number % 4], (0.1, 0.9, 0.3)[number % 3]
        groups = [[0, 1, 2], [0, 0, 2], [0, 0, 0]][number % 3]
        stores = [True, number % 2 == 0, True]
        places = [chance.randrange(16) for _ in range(_N)]
        destinations = [{"areas": each & 7, "output": each >> 3} for each in places]
        await bench.reset(
            groups=groups,
            stores=sum(bit << s for s, bit in enumerate(stores)),
            destinations=destinations,
            **{f"windows.{s}.rests": 1 for s in range(_N)},
        )
        arriving = Driver(bench, "selected", idle)
        now, numbers = 0, [0] * _N
        for _ in range(60):
            # Mostly near the one before, at times far from it.
            now += chance.choice([0, 0, 1, 1, 2, 1 << 20 if chance.random() < 0.2 else 1])
            stream = chance.randrange(_N)
            numbers[stream] += chance.choice([1, 1, 1, 1 << 12 if chance.random() < 0.2 else 1])
            filler = chance.random() < 0.1
            admit = not filler and chance.random() < 0.8
            arriving.queue.append(
                {
                    "raw": {
                        "stream": stream,
                        "admit": admit,
                        "filler": filler,
                        "timestamp": now & 0xFFFFFF,
                        "sequence": numbers[stream] & 0xFFFF,
                        "attributes": [chance.getrandbits(16) for _ in range(4)],
                    },
                    "bits": chance.getrandbits(16),
                    "admitted": admit and chance.random() < 0.7,
                }
            )
        events, emitted = Scoreboard("events"), Scoreboard("emitted", lambda item: item[0])
        stored = wanted = snapped = led = 0
        counters = [0] * _N
        flight: dict[int, int] = {}  # by context, in order: how much is in flight
        late: deque[tuple[int, int, int]] = deque()  # when sent tuples are counted
        uncounted: Counter = Counter()  # by context
        settling = was_settling = [0] * _N  # cycles until windows are ready
        shown: deque[tuple] = deque(maxlen=3)  # to the windows, in the last three cycles
        checked = 0
        look = next_look = 0
        flowed, was_flow = False, False  # whether the one dealt with flows; the next one
        coming: deque[tuple[int, dict]] = deque()  # taken at the door, and when
        current: dict | None = None  # dealt with
        finished = True  # it went to the windows, or nowhere
        turns = 0  # which offers the router took
        flew = False  # something was in flight a cycle ago
        offered: list[tuple | None] = [
            None
        ] * OFFERS  # what was emitted a cycle ago, not granted yet
        waiting = [0] * _N  # probes in each area
        were_calm: deque[bool] = deque([False] * 3)
        owes = False  # what flowed has yet to be followed by a check

        def taken(item: dict, events: Scoreboard = events, coming: deque = coming) -> None:
            raw = item["raw"]
            events.expect(
                (
                    int(not raw["filler"]),
                    int(not raw["filler"] and not raw["admit"]),
                    int(raw["admit"] and not item["admitted"]),
                )
            )
            coming.append((bench.cycle, item))

        def show(settling: list[int], unheard: int) -> None:
            """Shows which windows are settled, each in one of the two ways; the `unheard` ones rest
            as they did before a check."""
            settled, one_way = (
                sum((not each) << s for s, each in enumerate(settling)),
                chance.randrange(8),
            )
            bench.set_each("windows", "rests", (settled & one_way) | unheard)
            bench.set_each("windows", "passes", settled & ~(0 if unheard else one_way))

        arriving.taken = taken
        for cycle in range(20_000):
            # Some of what is in flight ends; some is sent on, and counted a cycle later, while its
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
            bench.set_each("done", "commit", done)
            bench.set_each("done", "context", whose)
            show(settling, 0)
            bench.set("offers.granted", turns)
            calm = chance.random() < calm_rate
            bench.set_each("windows", "calm", 7 if calm else chance.choice([0, 3, 6]))
            were_calm.append(calm)
            were_calm.popleft()
            waiting = [each - bool(each and chance.random() < drains) for each in waiting]
            bench.set_each("probes", "room", [each < _PLACES for each in waiting])
            await bench.settle()
            # A window sees it in the next cycle.
            look, next_look = next_look, bench.get_same("windows", "check")
            if look:
                # A window may be settled at once.
                settling = [chance.choice([0, 0, 1, 2, 3]) for _ in range(_N)]
                show(settling, 7)
            settling_now, settling = settling, [max(each - 1, 0) for each in settling]
            happened = tuple(bench.bits(name) for name in ("taken", "tick", "dropped"))
            # A tuple may go to the windows while they check for the next one.
            store, snapshot = bench.bits_each("windows", "store"), bench.bits("snapshot")
            assert bench.get_same("windows", "snapshot") == snapshot
            if store or snapshot:
                assert not finished, "twice, or where it should not be"
                finished = True
                raw = current["raw"]
                leads = bool(places[raw["stream"]])
                assert flowed or not any(was_settling), "stored before all windows have settled"
                seen["stored two later"] += cycle == checked + 2 and not flowed
                seen["a cycle after"] += cycle == checked + 1
                assert store == stores[raw["stream"]] << raw["stream"]
                assert snapshot == leads, "a view is taken with the store"
                part = {name: raw[name] for name in ("timestamp", "sequence", "attributes")}
                assert bench.get_same("windows", "tuple") == part
                assert bench.get_same("windows", "bits") == current["bits"]
                assert not bench.bits("idle")
                seen["with the next"] += look
                stored += bool(store)
            if snapshot:
                snapped += 1
                context = bench.bits("context")
                assert bench.get_same("windows", "context") == context
                assert not flight.get(context), "this context is still in flight"
                kept = bench.get("raw")
                assert kept["stream"] == raw["stream"]
                assert kept["bits"] == current["bits"]
                assert kept["counters"] == counters
                assert kept["component"] == part
                where = destinations[raw["stream"]]
                assert bench.bits_each("probes", "push") == where["areas"]
                brings = {"bits": current["bits"], "attributes": part["attributes"]}
                assert bench.get_same("probes", "pushed") == {
                    "context": context,
                    "stream": raw["stream"],
                    "brought": brings,
                }
                for area in range(_N):
                    waiting[area] += where["areas"] >> area & 1
                    assert waiting[area] < _PLACES + IN_FLIGHT, "more probes than there is room for"
                    seen["no room"] += waiting[area] > _PLACES
                if where["output"]:
                    emitted.expect((context, raw["stream"], raw["stream"], 1 << raw["stream"]))
                flight.pop(context, None)
                flight[context] = where["areas"].bit_count() + where["output"]
                uncounted[context] = where["output"]  # until the router has it
                assert bench.bits("offers.emit").bit_count() == where["output"] + sum(
                    each is not None for each in offered
                )
            else:
                assert not bench.bits_each("probes", "push")
            # A check of what flowed, or one for the next tuple.
            closes = look and not (coming and coming[0][0] <= bench.cycle - 2)
            if closes:
                assert owes, "nothing to look for"
                assert finished
                assert not any(was_settling)
                assert not any(happened)
                owes, flowed = False, False
                its = (before["timestamp"], counters, 0)
                assert list(shown) == [its] * 3
                seen["closes"] += 1
            elif look:
                assert finished, "the next one is dealt with, but this one went nowhere"
                current = coming.popleft()[1]
                events.came(happened)
                checked = cycle
                seen["check"] += 1
                raw = current["raw"]
                flowed = was_flow
                if flowed:
                    assert were_calm[0], "flows, though some window was not calm"
                    assert not raw["filler"]
                    assert raw["timestamp"] >> 19 == before["timestamp"] >> 19, "flows from afar"
                    assert lasts[raw["stream"]] == raw["sequence"] >> 11, "flows from afar"
                    seen["flow"] += 1
                else:
                    assert not any(was_settling), "checked before all windows have settled"
                owes, before = flowed, raw
                for s in range(_N):
                    if groups[s] == groups[raw["stream"]]:
                        lasts[s] = raw["sequence"] >> 11
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
            if look and not closes:
                keeps = bool(current["admitted"] and stores[raw["stream"]])
                its = (raw["timestamp"], counters, keeps << raw["stream"])
                told = list(shown)[2 * flowed :]
                assert told == [its] * len(told), "the windows did not know of it"
            was_flow = bool(bench.get_same("windows", "flow"))
            shown.append(
                (
                    bench.get_same("windows", "now"),
                    bench.get_each("windows", "counter"),
                    bench.bits_each("windows", "wanted"),
                )
            )
            was_settling = settling_now
            emits: list[tuple | None] = [None] * OFFERS
            for i in range(OFFERS):
                if not bench.bits("offers.emit") >> i & 1:
                    assert offered[i] is None, "taken back"
                    continue
                reference = bench.get("offers.emitted")[i]
                assert reference["carries"] == 1 << reference["stream"]
                it = tuple(reference[name] for name in ("context", "tag", "stream", "carries"))
                emits[i] = it
                assert offered[i] in (None, it), "what is emitted stays"
                assert offered[i] or snapshot
                assert not bench.bits("idle")
                if turns >> i & 1:
                    emitted.came(it)
                    uncounted[it[0]] -= 1
                    seen["emitted"] += 1
                    emits[i] = None
            turns = sum(
                (each is not None and chance.random() >= pressure) << i
                for i, each in enumerate(emits)
            )
            offered = emits
            assert finished or not bench.bits("idle")
            on_its_way = [c for c, count in flight.items() if count]
            if on_its_way:
                assert bench.get_same("windows", "busy") or not flew
                # The oldest context may be called busy longer than it is, never shorter.
                first, head = bench.get_same("windows", "oldest"), on_its_way[0]
                newest = list(flight)[-1]
                assert (head - first) % CONTEXTS <= (newest - first) % CONTEXTS
                assert not bench.bits("idle")
            here = coming and coming[0][0] < bench.cycle
            assert not (here or owes) or not bench.bits("idle")
            flew = bool(on_its_way)
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
        assert not bench.get_same("windows", "busy")
        await bench.clock()
        bench.set("clear", 1)
        await bench.tick()
        bench.set("clear", 0)
        await bench.clock()
    assert seen["stored"] > 100
    assert seen["emitted"] > 100
    assert seen["with the next"] > 100
    assert seen["stored two later"] > 20
    for what in ("flow", "a cycle after", "closes", "no room"):
        assert seen[what] > 20, what
