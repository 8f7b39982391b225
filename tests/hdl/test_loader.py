"""Tests ProbeLoader: the next probe is one of the highest level, and whole, however late its parts
come."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter, deque

import cocotb
import numpy as np
import pytest

from seustream.hdl.config import CONFIGURATIONS, CONTEXTS
from seustream.hdl.control_words import ROW_BITS, ROWS_BITS
from seustream.hdl.hashing import bucket_of, seed_bits
from seustream.hdl.loader import ASKED, ProbeLoader
from tests.hdl.bench import PACES, Bench, Monitor, simulate
from tests.hdl.programs import places_of, probes_compared

_CONFIG = dataclasses.replace(CONFIGURATIONS["tiny"], streams=4)
_OWN = 1
_OTHERS = [s for s in range(_CONFIG.streams) if s != _OWN]
_MADE = 120
CASES = {
    "lanes": lambda: ProbeLoader(_CONFIG, _OWN),
    "serial": lambda: ProbeLoader(dataclasses.replace(_CONFIG, lanes=0, indexes=0), _OWN),
}
_LOADS = [(16, 4), (16, 2), (1, 4), (16, 1), (8, 4), (5, 4), (16, 4), (8, 1), (0, 4)]
"""For each pace, the number of factors and of their window attributes. Where several factors are of
one attribute a row takes more turns, and comparisons of fewer probes are kept."""


@pytest.mark.parametrize("case", CASES)
def test_probe_loader(case: str) -> None:
    simulate(__name__, CASES, case, ["every_probe_is_staged_whole"])


def test_a_probe_a_cycle() -> None:
    simulate(__name__, CASES, "lanes", ["as_soon_and_as_often_as_promised"])


class _Probes:
    """Models the probe FIFO: raw tuples with what they carry, the first time; of others, what is
    fetched."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.queues: list[deque[dict]] = [deque() for _ in range(bench.component.layouts.levels)]
        self.taken = [0] * len(self.queues)
        self.made = 0
        self.known = 0  # raw tuples in it that were taken before
        self.again = 0  # raw tuples that were fetched
        self.by_slots: dict[tuple[int, int], dict] = {}  # for the tuple fetch
        self.read: dict = {}
        self.brings = False  # the last one taken is a raw tuple, the first time
        self.brought: deque[dict] = deque()  # brought by those, and not given yet
        self.took_now = False

    def make(self, level: int) -> None:
        chance, config = self.bench.chance, self.bench.component.config
        streams = chance.sample(_OTHERS, level + 1)
        slots = (self.made & 15, self.made >> 4)

        def attributes() -> list[int]:
            return [chance.getrandbits(config.attribute_width) for _ in range(4)]

        probe = {
            "level": level,
            "reference": {
                "context": chance.randrange(CONTEXTS),
                "tag": chance.randrange(16),
                "stream": streams[0],
                "carries": sum(1 << s for s in streams),
                "slots": [*slots, 0, 0],
            },
            "bits": chance.getrandbits(16),
            # A stream that it does not carry has any content.
            "components": [{"attributes": attributes()} for _ in range(config.streams)],
        }
        self.by_slots[slots] = probe
        self.queues[level].append(probe)
        self.made += 1

    def fetched(self, request: dict) -> dict:
        """Returns the answer of the tuple fetch. Selection bits are those of the raw tuple."""
        probe = self.by_slots[tuple(request["slots"][:2])]
        assert request == probe["reference"], "asks for another"
        assert probe["level"] or probe.get("again"), "asks for what it brings"
        self.again += not probe["level"]
        return {name: probe[name] for name in ("reference", "components", "bits")}

    def available(self) -> int:
        there = (len(q) > t for q, t in zip(self.queues, self.taken, strict=True))
        return sum(more << level for level, more in enumerate(there))

    def offer(self) -> None:
        """Offers the probe taken last, until the next is taken."""
        self.bench.set("reference", self.read)
        self.bench.set("brings", self.brings)
        self.bench.set(
            "raw", self.brought[0] if self.brought else {"bits": self.bench.chance.getrandbits(16)}
        )

    def answer(self, flush: bool) -> tuple[int, dict] | None:
        """Returns what is taken in this cycle; what else is available is known in the same
        cycle."""
        took = None
        if self.bench.bits("give"):
            self.brought.popleft()
        if self.bench.bits("take"):
            level = self.bench.bits("level")
            assert self.available() >> level & 1
            took = level, self.take(level, flush)
        self.bench.set("available", self.available())
        return took

    def take(self, level: int, flush: bool) -> dict:
        probe = self.queues[level][self.taken[level]]
        self.read, self.brings = probe["reference"], False
        if level == 0 and self.taken[0] == self.known:
            stream = probe["reference"]["stream"]
            attributes = probe["components"][stream]["attributes"]
            self.brings = True
            if not flush:
                self.brought.append({"bits": probe["bits"], "attributes": attributes})
                self.known += 1
        elif level == 0:
            probe["again"] = True
        self.taken[level] += 1
        return probe

    def commit(self, level: int) -> None:
        self.queues[level].popleft()
        self.taken[level] -= 1
        self.known -= level == 0

    def rewind(self) -> None:
        self.taken = [0] * len(self.queues)


def _factors(bench: Bench, used: int, window_attributes: int) -> tuple[list[dict], int]:
    """Returns factors, the first `used` of which have this many attributes in turn, and the last
    turn."""
    chance, config = bench.chance, bench.component.config
    attributes = [n % window_attributes for n in range(config.factors)]
    first = attributes[:used]
    chance.shuffle(first)
    attributes[:used] = first
    places = places_of(attributes, config)
    factors = [
        {
            "window_attribute": attribute,
            "probe_attribute": chance.randrange(4),
            "probe_stream": chance.randrange(config.streams),
            "condition": chance.randrange(8),
        }
        | place
        for attribute, place in zip(attributes, places, strict=True)
    ]
    return factors, max((place["turn"] for place in places[:used]), default=0)


def _turns(bench: Bench) -> dict[str, int]:
    turns = bench.component.config.turns
    return {name: bench.chance.randrange(turns) for name in ("first", "last")}


def _plans(bench: Bench) -> list[dict]:
    chance, config = bench.chance, bench.component.config
    return [
        {
            "indexed": chance.getrandbits(1),
            "index": chance.randrange(2),
            "stream": chance.choice(_OTHERS),
            "attribute": chance.randrange(4),
            "row": chance.getrandbits(ROW_BITS),
            "rows": chance.getrandbits(ROWS_BITS),
            "turns": _turns(bench) if config.lanes else {},
        }
        for _ in range(16)
    ]


@cocotb.test()
async def every_probe_is_staged_whole(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance, loader = bench.chance, bench.component
    config, layouts = loader.config, loader.layouts
    levels, depth = layouts.levels, config.depth
    serial = not config.lanes
    seed = 0
    seen: Counter = Counter()

    def bucket(key: int) -> int:
        return int(bucket_of(np.array([key]), seed, layouts.bucket_bits)[0])

    kept: set[int] = set()
    for number, (idle, pressure) in enumerate(PACES):
        used, window_attributes = _LOADS[number]
        factors, last_turn = _factors(bench, used, window_attributes)
        most_compared = probes_compared(last_turn)
        kept.add(most_compared)
        views = [(chance.randrange(depth), chance.randrange(depth + 1)) for _ in range(CONTEXTS)]
        plans = _plans(bench)
        seed = chance.getrandbits(seed_bits(config))
        await bench.reset(factors=factors, used=used, last_turn=last_turn, seed=seed)
        requests: list[dict] = []
        Monitor(bench, "fetch.request", idle, requests.append)
        probes = _Probes(bench)
        put: dict = {}  # by buffer, comparator and turn
        done = 0
        last: deque[dict] = deque()  # taken, not staged yet
        respond, answers = -1, deque[tuple[dict, int]]()  # and when each may come
        answer: dict = {}
        view, next_view, plan = (0, 0), (0, 0), plans[0]
        hold = late = 0
        frozen: dict[int, list[int]] | None = None
        in_use: deque[int] = deque()  # buffers of the probes staged
        ahead: set[int] = set()  # ... of probes whose comparisons were put before they are staged
        told, taken_before = 0, False
        since_flush = 9
        for cycle in range(40_000):
            if probes.made < _MADE and chance.random() >= idle:
                # In turn the FIFO has probes of one level and of all levels.
                phase = probes.made // 12 % 3
                probes.make((0, levels - 1, chance.randrange(levels))[phase])
            probes.offer()
            # The answer comes in the cycle after its announcement.
            bench.set("fetch.answering", respond == 0)
            bench.set("fetch.data", answer)
            bench.set("tail", view[0])
            bench.set("count", view[1])
            bench.set("plan", plan)
            # The area may take a cycle to report it.
            holds = serial and hold > 0 and late <= 0
            bench.set("hold", holds)
            # Frees the oldest of the probes that the area has, whenever it is done. At times that
            # takes long.
            crowded = number < 5
            long = crowded and cycle // 400 % 2 == 0
            frees = bool(in_use) and chance.random() < (0.002 if long else 0.2)
            bench.set("freed", frees)
            ready = chance.random() >= pressure and not (serial and hold)
            bench.set("staged.ready", ready)
            # Now and then another flush comes in the first cycle in which a probe may be taken
            # again.
            rare = 0.001 if crowded else 0.01
            flush = chance.random() < (0.2 if since_flush == 1 else rare)
            bench.set("flush", flush)
            await bench.settle()
            assert not (bench.bits("meter.working") and bench.bits("meter.blocked"))
            view, next_view = next_view, views[bench.bits("context")]
            tag = bench.bits("tag") & 15
            plan = plans[tag]
            answer = answers.popleft()[0] if respond == 0 else {}
            if requests:
                answers.append((probes.fetched(requests.pop()), cycle + 2))
            may = bool(answers) and answers[0][1] <= cycle + 1
            # At times the fetch is slow, so that its answer comes when its place would be needed
            # again.
            fast = cycle // 100 % 2 == 0
            respond = 0 if may and chance.random() < (0.7 if fast else 0.01) else -1
            staged = bench.get("staged.payload") if bench.bits("staged.valid") else None
            its = bench.get("put")
            if its["valid"]:
                at = its["buffer"]
                put[at, its["comparator"], its["turn"]] = its["comparison"]
                if since_flush > 2:  # otherwise it may be of a forgotten probe
                    # The last one of a probe may come when that is staged.
                    needed = {*in_use, *ahead, *([staged["buffer"]] if staged else [])} - {at}
                    places = {buffer % most_compared for buffer in needed}
                    assert len(places) == len(needed)
                    assert at % most_compared not in places, "put in a place of one that is needed"
                    seen["put ahead"] += bool(in_use)
                    seen["put further ahead"] += len(ahead - {at}) > 1
                    seen[f"all but one of {most_compared}"] += len(needed) == most_compared - 1
                    ahead.add(at)
            if holds and frozen is not None:
                now = bench.get("attributes")
                assert {s: now[s] for s in frozen} == frozen, "changed while they were needed"
            took = probes.answer(flush)
            if took is not None:
                level, probe = took
                # The level is chosen a cycle earlier.
                assert level == told.bit_length() - 1, "not of the highest level"
                assert since_flush > 0, "chosen before the probes taken back were known of"
                seen["taken in a flush"] += flush
                seen["taken one after the other"] += taken_before
                assert len(last) <= ASKED, "takes a probe, but has enough"
                seen["has enough"] += len(last) == ASKED
                last.append(probe)
            told, taken_before = probes.available(), took is not None
            if staged is not None:
                probe = last[0]
                reference, level = probe["reference"], probe["level"]
                carried = [s for s in _OTHERS if reference["carries"] >> s & 1]
                attributes = {s: probe["components"][s]["attributes"] for s in carried}
                expected_plan = plans[reference["tag"]]
                assert staged["reference"] == reference
                assert staged["level"] == level
                assert staged["bits"] == (0 if level else probe["bits"])
                assert (staged["tail"], staged["count"]) == views[reference["context"]]
                assert staged["plan"] == expected_plan
                if expected_plan["stream"] in carried:  # otherwise it looks into no index
                    key = attributes[expected_plan["stream"]][expected_plan["attribute"]]
                    assert staged["bucket"] == bucket(key)
                if serial:
                    now = bench.get("attributes")
                    assert {s: now[s] for s in carried} == attributes
                    assert now[_OWN] == [0] * 4
                else:
                    for factor in factors[:used]:
                        s = factor["probe_stream"]
                        at = staged["buffer"], factor["comparator"], factor["turn"]
                        comparison = put[at]
                        if s in carried:
                            assert comparison["operand"] == attributes[s][factor["probe_attribute"]]
                        assert comparison["carried"] == (s in carried)
                        assert comparison["condition"] == factor["condition"]
                        assert comparison["window_attribute"] == factor["window_attribute"]
                if ready and not flush:
                    probes.commit(level)
                    done += 1
                    last.popleft()
                    hold, late = chance.randrange(2, 12) + 1, chance.choice([1, 2])
                    frozen = attributes
                    in_use.append(staged["buffer"])
                    ahead.discard(staged["buffer"])
                    seen["joined" if level else "raw"] += 1
                    seen["keyed"] += expected_plan["stream"] in carried
            if frees and not flush:
                in_use.popleft()
            await bench.clock()
            hold, late = max(hold - 1, 0), late - 1
            since_flush += 1
            if flush:
                since_flush = 0
                seen["flush"] += bool(last)
                seen["far flushed"] += len(last) > ASKED // 2
                last.clear()
                in_use.clear()
                ahead.clear()
                probes.rewind()
            if done == probes.made == _MADE:
                break
        else:
            raise AssertionError(f"{done} of {probes.made} staged")
        assert not requests
        seen["a raw tuple again"] += probes.again
        for _ in range(10):
            bench.set("available", 0)
            bench.set("flush", 0)
            await bench.settle()
            assert not bench.bits("staged.valid")
            assert not bench.bits("fetch.request.valid")
            await bench.clock()
    assert kept == {2, 4, 8, 16, 32}
    more = ["put ahead", "put further ahead", *(f"all but one of {most}" for most in kept)]
    often = ["joined", "raw", "keyed", "flush", "far flushed", "taken in a flush"]
    often += ["a raw tuple again"]
    often += ["taken one after the other", "has enough"]
    for what in (*often, *(more if not serial else ())):
        assert seen[what] > 3, f"{what}: {seen[what]}"


@cocotb.test()
async def as_soon_and_as_often_as_promised(dut: object) -> None:
    """Takes probes from a full probe FIFO, by a tuple fetch that answers at once, to an area that
    waits for nothing."""
    bench = Bench(dut, CASES)
    levels = bench.component.layouts.levels
    for used, level in itertools.product((0, 1, 2, 5), (0, levels - 1)):
        factors, last_turn = _factors(bench, used, 4)
        plans = _plans(bench)
        await bench.reset(factors=factors, used=used, last_turn=last_turn)
        requests: list[dict] = []
        Monitor(bench, "fetch.request", came=requests.append)
        probes = _Probes(bench)
        for _ in range(_MADE):
            probes.make(level)
        answers: deque[tuple[int, dict]] = deque()  # and when it is announced
        fetched: dict = {}
        plan = plans[0]
        staged: list[int] = []
        frees = False
        for cycle in range(20 * _MADE):
            probes.offer()
            answering = bool(answers) and answers[0][0] == cycle
            bench.set("fetch.answering", answering)
            bench.set("fetch.data", fetched)
            bench.set("plan", plan)
            bench.set("freed", frees)
            bench.set("staged.ready", 1)
            await bench.settle()
            plan = plans[bench.bits("tag") & 15]
            fetched = answers.popleft()[1] if answering else {}
            if requests:
                # 7 cycles to the answer, as the tuple fetch promises.
                answers.append((cycle + 6, probes.fetched(requests.pop())))
            probes.answer(False)
            frees = bool(bench.bits("staged.valid"))
            if frees:
                staged.append(cycle)
            await bench.clock()
            if len(staged) == _MADE:
                break
        gaps = [after - before for before, after in itertools.pairwise(staged)]
        steady, each = gaps[4:], max(used, 1)
        # Of joined ones so many are fetched at once, which is less than a cycle each.
        assert set(steady) == {each} or (level and sum(steady) < 1.25 * len(steady)), gaps
        # Without factors the probe takes as long as with one.
        assert staged[0] == (18 if level else 11) + max(used, 1)
