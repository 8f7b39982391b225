"""ProbeLoader: the probe of the highest level next, whole, however late its parts come."""

from __future__ import annotations

import dataclasses
from collections import Counter, deque

import cocotb
import numpy as np
import pytest

from seustream.hdl.config import CONFIGURATIONS, CONTEXTS
from seustream.hdl.control_words import ROW_BITS, ROWS_BITS, TERMS
from seustream.hdl.hashing import bucket_of, seed_bits
from seustream.hdl.loader import ASKED, ProbeLoader
from tests.hdl.bench import PACES, Bench, Monitor, simulate
from tests.hdl.programs import places_of, probes_compared

_CONFIG = dataclasses.replace(CONFIGURATIONS["tiny"], streams=3)
_OWN = 1
CASES = {
    "lanes": lambda: ProbeLoader(_CONFIG, _OWN),
    "serial": lambda: ProbeLoader(dataclasses.replace(_CONFIG, lanes=0, indexes=0), _OWN),
}


@pytest.mark.parametrize("case", CASES)
def test_probe_loader(case: str) -> None:
    simulate(__name__, CASES, case)


@cocotb.test()
async def every_probe_is_staged_whole(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance, loader = bench.chance, bench.component
    config, layouts = loader.config, loader.layouts
    n, levels, depth = config.streams, layouts.levels, config.depth
    serial = not config.lanes
    width, bits = config.attribute_width, layouts.slot_bits
    seed = 0
    seen: Counter = Counter()

    def bucket(key: int) -> int:
        return int(bucket_of(np.array([key]), seed, bits)[0])

    kept: set[int] = set()
    for number, (idle, pressure) in enumerate(PACES):
        factors = [
            {
                # Of one attribute all are compared in turns.
                "window_attribute": 0 if number % 3 == 1 else chance.randrange(4),
                "probe_attribute": chance.randrange(4),
            }
            | {"probe_stream": chance.randrange(n), "condition": chance.randrange(8)}
            for _ in range(config.factors)
        ]
        places = places_of([factor["window_attribute"] for factor in factors], config)
        for factor, place in zip(factors, places, strict=True):
            factor |= place
        put: dict = {}  # by buffer, comparator and turn
        used = (config.factors, config.factors, chance.choice([1, 5]))[number % 3] * (number < 8)
        last_turn = max((place["turn"] for place in places[:used]), default=0)
        most_compared = probes_compared(last_turn)
        kept.add(most_compared)
        views = [(chance.randrange(depth), chance.randrange(depth + 1)) for _ in range(CONTEXTS)]
        plans = [
            {
                "interest": chance.getrandbits(config.factors),
                "always": chance.getrandbits(1),
                "indexed": chance.getrandbits(1),
                "index": chance.randrange(2),
                "stream": chance.randrange(n),
                "attribute": chance.randrange(4),
                "row": chance.getrandbits(ROW_BITS),
                "rows": chance.getrandbits(ROWS_BITS),
            }
            for _ in range(16)
        ]
        terms = [[chance.getrandbits(config.factors) for _ in range(TERMS)] for _ in range(16)]
        seed = chance.getrandbits(seed_bits(config))
        await bench.reset(factors=factors, used=used, last_turn=last_turn, seed=seed)
        requests: list[dict] = []
        Monitor(bench, "request", idle, requests.append)
        queues: list[deque] = [deque() for _ in range(levels)]
        taken = [0] * levels
        data: dict[int, dict] = {}
        made = done = 0
        last: deque[tuple[int, dict]] = deque()  # taken, not staged yet
        respond, answers = -1, deque[tuple[dict, int]]()  # and when it may come
        read: dict = {}
        answer: dict = {}
        view, plan, its_terms = (0, 0), plans[0], terms[0]
        hold = 0
        frozen: dict | None = None
        in_use: deque[int] = deque()  # buffers of the probes staged
        available = told_now = 0
        taken_before: dict | None = None
        since_flush = 9
        for cycle in range(40_000):
            if made < 40 and chance.random() >= idle:
                level = chance.randrange(levels)
                streams = chance.sample([s for s in range(n) if s != _OWN], level + 1)
                reference = {
                    "context": chance.randrange(CONTEXTS),
                    "tag": chance.randrange(16),
                    "carries": sum(1 << s for s in streams),
                    "slots": [made & 15, made >> 4, 0],
                }
                data[made] = {
                    "reference": reference,
                    "components": [
                        {"attributes": [chance.getrandbits(width) for _ in range(4)]}
                        for _ in range(n)
                    ],
                    "bits": chance.getrandbits(16),
                }
                queues[level].append(reference)
                made += 1
            # The probe FIFO says so a cycle late.
            bench.set("available", available)
            bench.set("reference", read)
            # Its answer comes in the cycle after it is announced.
            bench.set("answering", respond == 0)
            bench.set("fetched", answer)
            bench.set("tail", view[0])
            bench.set("count", view[1])
            bench.set("plan", plan)
            bench.set("terms", its_terms)
            bench.set("hold", serial and hold > 0)
            # The oldest of the probes that the area has, whenever it is done.
            frees = bool(in_use) and chance.random() < (0.02 if number in (1, 2, 3, 5) else 0.2)
            bench.set("freed", frees)
            bench.set("staged.ready", chance.random() >= pressure and not (serial and hold))
            flush = chance.random() < 0.01
            bench.set("flush", flush)
            ready = bench._inputs["staged.ready"]
            await bench.settle()
            view, tag = views[bench.bits("context")], bench.bits("tag") & 15
            plan, its_terms = plans[tag], terms[tag]
            answer = answers.popleft()[0] if respond == 0 else {}
            if requests:
                wanted = requests.pop()
                answers.append((data[wanted["slots"][0] | wanted["slots"][1] << 4], cycle + 2))
                assert wanted == answers[-1][0]["reference"]
            may = bool(answers) and answers[0][1] <= cycle + 1
            respond = 0 if may and chance.random() < 0.3 else -1
            its = bench.get("put")
            if its["valid"]:
                # Its last may come when it is staged.
                other = bench.get("staged.payload")["buffer"] != its["buffer"]
                needed = len(in_use) + (bench.bits("staged.valid") and other)
                assert its["buffer"] not in in_use, "put where the area reads"
                assert needed < most_compared, "put in a place of one that is needed"
                seen["put ahead"] += bool(in_use)
                seen[f"all but one of {most_compared}"] += needed == most_compared - 1
                put[its["buffer"], its["comparator"], its["turn"]] = its["comparison"]
            if serial and hold and frozen is not None:
                assert bench.get("attributes") == frozen, "changed while they were needed"
            told, told_now = told_now, available
            available = sum((len(queues[k]) > taken[k]) << k for k in range(levels))
            if bench.bits("take"):
                level = bench.bits("level")
                # The level is chosen a cycle before.
                assert level == told.bit_length() - 1, "not of the highest level"
                assert since_flush > 1, "chosen before the probes taken back were known of"
                seen["taken in a flush"] += flush
                assert len(last) < ASKED + 2, "takes a probe, but has enough"
                read = queues[level][taken[level]]
                taken[level] += 1
                last.append((level, read))
            if taken_before is not None:
                assert bench.get("staged.payload") == taken_before, "gone before it was taken over"
            taken_before = None
            if bench.bits("staged.valid"):
                level, reference = last[0]
                probe = bench.get("staged.payload")
                parts = data[reference["slots"][0] | reference["slots"][1] << 4]
                attributes = [part["attributes"] for part in parts["components"]]
                attributes[_OWN] = [0] * 4
                expected_plan = plans[reference["tag"]]
                assert probe["reference"] == reference
                assert probe["level"] == level
                joined = reference["carries"].bit_count() > 1
                assert probe["bits"] == (0 if joined else parts["bits"])
                assert (probe["tail"], probe["count"]) == views[reference["context"]]
                assert probe["plan"] == expected_plan
                assert serial or probe["terms"] == terms[reference["tag"]]
                key = attributes[expected_plan["stream"]][expected_plan["attribute"]]
                assert probe["bucket"] == bucket(key)
                if serial:
                    assert bench.get("attributes") == attributes
                else:
                    for factor in factors[:used]:
                        s = factor["probe_stream"]
                        at = probe["buffer"], factor["comparator"], factor["turn"]
                        assert put[at] == {
                            "operand": attributes[s][factor["probe_attribute"]],
                            "carried": reference["carries"] >> s & 1,
                            "condition": factor["condition"],
                            "window_attribute": factor["window_attribute"],
                        }
                if ready and not flush:
                    taken_before = probe
                    queues[level].popleft()
                    taken[level] -= 1
                    done += 1
                    last.popleft()
                    hold = chance.randrange(1, 12) + 1
                    frozen = attributes
                    in_use.append(probe["buffer"])
                    seen["joined" if joined else "raw"] += 1
            if frees and not flush:
                in_use.popleft()
            await bench.clock()
            hold = max(hold - 1, 0)
            since_flush += 1
            if flush:
                since_flush = 0
                seen["flush"] += bool(last)
                last.clear()
                in_use.clear()
                taken = [0] * levels
            if done == made == 40:
                break
        else:
            raise AssertionError(f"{done} of {made} staged")
        assert not requests
        for _ in range(10):
            bench.set("available", 0)
            bench.set("flush", 0)
            await bench.settle()
            assert not bench.bits("staged.valid")
            assert not bench.bits("request.valid")
            await bench.clock()
    assert kept == {2, 4, 8}
    ahead = ["put ahead", *(f"all but one of {most}" for most in kept)]
    for what in ("joined", "raw", "flush", *(ahead if not serial else ())):
        assert seen[what] > 5, what
