"""Tests Scanner between a window memory and an index: which pairs come out of each probe, in which
order."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter, deque

import cocotb
import pytest

from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.hdl.control_words import TERMS
from seustream.hdl.factors import BUFFER_BITS
from seustream.hdl.isa import Condition
from seustream.hdl.scan import Scanner
from tests.hdl.bench import PACES, Bench, Monitor, Scoreboard, simulate
from tests.hdl.programs import places_of, probes_compared
from tests.hdl.test_factors import HOLDS


def config(lanes: int, depth: int = 16, **members: int) -> DeviceConfig:
    return dataclasses.replace(
        CONFIGURATIONS["tiny"], attribute_width=8, streams=2, lanes=lanes, depth=depth, **members
    )


_TAGS = 24
CASES = {
    "2 lanes": lambda: Scanner(config(2)),
    "2 lanes, deep": lambda: Scanner(config(2, depth=64)),
    "4 lanes, factors in turns": lambda: Scanner(config(4, factors=6, comparators=2)),
    "2 lanes, many factors in turns": lambda: Scanner(config(2, factors=16, comparators=4)),
    "8 comparators": lambda: Scanner(config(2, factors=16, comparators=8)),
    "one row": lambda: Scanner(config(8, depth=8, indexes=0, factors=4)),
    "serial": lambda: Scanner(config(0, indexes=0)),
}


@pytest.mark.parametrize("case", CASES)
def test_scanner(case: str) -> None:
    simulate(__name__, CASES, case)


def _worth(bench: Bench, used: list[dict]) -> dict:
    """Returns which pairs of a route tag are of interest, by factors of some turns; these factors,
    as a mask, and the turns."""
    chance, factors = bench.chance, bench.component.config.factors
    last_turn = max((factor["turn"] for factor in used), default=0)
    first = chance.randint(0, last_turn)
    turns = range(first, chance.randint(first, last_turn) + 1)
    of_used = sum(1 << n for n, factor in enumerate(used) if factor["turn"] in turns)
    # Mostly few factors, because many seldom hold together.
    terms = [
        chance.getrandbits(factors) & chance.getrandbits(factors) & of_used or of_used & -of_used
        for _ in range(TERMS)
    ]
    if chance.random() < 0.3:
        terms[chance.randrange(TERMS)] = 0  # holds always
    interest = {"factors": chance.getrandbits(factors) & of_used, "always": chance.random() < 0.3}
    return {"interest": interest, "terms": terms, "compares": (of_used, turns)}


@cocotb.test()
async def the_pairs_of_interest_and_no_others(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance, scanner = bench.chance, bench.component
    config = scanner.config
    depth, lanes, factors = config.depth, config.lanes, config.factors
    banks = max(lanes, 1)
    # The deep one runs until a long chain is tried again.
    most_probes, flushes = (160, 0.0001) if depth == 64 else (40, 0.003)
    seen: Counter = Counter()
    kept: set[int] = set()  # probes whose comparisons there is room for
    # Whether a bucket's chain was too long when it was last walked; None if a flush came in
    # between. A reset clears no memory.
    long: dict[int, bool | None] = dict.fromkeys(range(depth), False)
    for number, (idle, pressure) in enumerate(PACES):
        same = number // 4 % 2 and depth < 64  # deep in turns takes long
        window = [[chance.randrange(3) for _ in range(4)] for _ in range(depth)]
        # The index: the bucket of each tuple by age, the oldest first, from a slot on; mostly one
        # of a few.
        start = chance.randrange(depth)
        # In the deep one chains are long, and come often enough to be tried again.
        told = [bucket for bucket in range(depth) if long[bucket] is not None]
        few = chance.sample(told, min(3 if depth == 64 else 4, len(told)))
        bucket_of = [chance.choice([*few * 3, -1]) for _ in range(depth)]
        bucket_of = [chance.randrange(depth) if of < 0 else of for of in bucket_of]
        ages: dict[int, list[int]] = {}
        for age, bucket in enumerate(bucket_of):
            ages.setdefault(bucket, []).append(age)
        # Where none was before, anything.
        before_it = {
            (start + age) % depth: (start + older) % depth
            for of_one in ages.values()
            for older, age in itertools.pairwise(of_one)
        }
        before_it = {slot: before_it.get(slot, chance.randrange(depth)) for slot in range(depth)}
        marks = {(start + age) % depth: bucket for age, bucket in enumerate(bucket_of)}
        does = [
            {
                "window_attribute": 0 if same else chance.randrange(4),
                "probe_stream": chance.randrange(4),
                "probe_attribute": chance.randrange(4),
                "condition": chance.randrange(8),
            }
            for _ in range(factors)
        ]
        used = (factors, factors // 2, 1, 0)[number % 4]
        places = places_of([factor["window_attribute"] for factor in does], config)
        for factor, place in zip(does, places, strict=True):
            factor |= place
        last_turn = max((place["turn"] for place in places[:used]), default=0)
        await bench.reset(factors=does, last_turn=last_turn)
        seen["turns"] += last_turn
        # By route tag.
        worths = [_worth(bench, does[:used]) for _ in range(_TAGS)]
        compares = [worth.pop("compares") for worth in worths]  # which factors
        asked = 0  # of which tag
        buffer, puts = 0, deque()
        most_compared = probes_compared(last_turn)
        kept.add(most_compared)
        board, tallies = Scoreboard("pairs"), Scoreboard("tallies")
        pairs = Monitor(bench, "pairs", pressure)
        rows: deque = deque([{}, {}, {}])
        newest: deque = deque([0, 0])  # what the index answers, later
        older: deque = deque([{}, {}])
        times = 0  # how often a bucket was known
        under_way: deque[int | None] = deque()  # the buckets of probes that walk
        compared: deque[int] = deque()  # where their comparisons are
        held_back = 0  # cycles until the next probe is staged
        offered: dict | None = None
        probes = 0
        waits = takes = takes_next = False
        begun = -9
        for cycle in range(160_000):
            room = len(compared) < most_compared
            if offered is None and room and probes < most_probes and not held_back:
                count = chance.choice([0, 1, 2, depth // 2, depth - 1, depth])
                operands = [chance.randrange(3) for _ in range(factors)]
                carried = chance.getrandbits(factors) | chance.getrandbits(factors)
                # Each bucket is of one probe at a time, because it may come to be known as long.
                certain = [b for b in [*few, *range(depth)] if long[b] is not None]
                certain = certain[: 3 if depth == 64 else 6]
                certain = [bucket for bucket in certain if bucket not in under_way]
                indexed = bool(config.indexes and count and certain) and chance.random() < 0.5
                walk, in_view = None, list(range(count))
                first = chance.randrange(depth - count + 1)  # by age
                tail = (start + first) % depth
                bucket = chance.choice(certain or [0])
                if indexed:
                    of_bucket = [age - first for age in reversed(ages.get(bucket, []))]
                    in_view = walk = [o for o in of_bucket if 0 <= o < count]
                    seen["foreign"] += not of_bucket
                resume = bool(in_view) and chance.random() < 0.3
                latest = chance.choice(in_view) if resume else count
                probe = {
                    "reference": {"tag": chance.randrange(_TAGS)},
                    "tail": tail,
                    "count": count,
                    "plan": {"indexed": indexed, "index": 1 if indexed else 0},
                    "bucket": bucket,
                }
                if lanes:
                    its_turns = compares[probe["reference"]["tag"]][1]
                    turns = {"first": its_turns.start, "last": its_turns.stop - 1}
                    probe["buffer"], probe["plan"]["turns"] = buffer, turns
                    for factor, operand in zip(does[:used], operands, strict=False):
                        its = {
                            "operand": operand,
                            "carried": carried >> len(puts) & 1,
                            "condition": factor["condition"],
                            "window_attribute": factor["window_attribute"],
                        }
                        at = {"comparator": factor["comparator"], "turn": factor["turn"]}
                        puts.append({"valid": 1, "buffer": buffer, "comparison": its, **at})
                offered = {
                    "probe": probe, "operands": operands, "carried": carried,
                    "latest": latest, "resume": resume, "walk": walk, "bucket": bucket,
                    "resume_slot": (tail + latest) % depth if resume else chance.randrange(depth),
                }  # fmt: skip
                bench.set("staged.payload", probe)
                bench.set("resume", resume)
                bench.set("resume_slot", offered["resume_slot"])
            held_back = max(held_back - 1, 0)
            put = puts.popleft() if puts and chance.random() >= idle else {}
            if lanes:
                bench.set("put", put)
            bench.set("staged.valid", offered is not None and not put and not puts)
            seen["at once"] += len(under_way) > 2
            bench.set("may_begin", chance.random() >= idle)
            bench.set("tuples", rows[0])
            if lanes:
                bench.set("worth", worths[asked])
            # The second of the two indexes is asked.
            ready, others_ready = chance.random() >= idle, chance.random() >= idle / 2
            takes, takes_next = takes_next, ready
            if config.indexes:
                bench.set_each("lookups", "newest", [chance.randrange(depth), newest[0]])
                bench.set_each("lookups", "older", [{}, older[0]])
                bench.set_each("lookups", "ready", [others_ready, ready])
            flush = chance.random() < flushes and probes < most_probes - 2
            if flush:  # a probe that begins or is taken in this cycle does not count
                bench.dut.rst.value = 1
            waited, waits = waits, chance.random() < idle
            bench.set("wait", waits)
            await bench.settle()
            if bench.bits("ended") and not flush:
                under_way.popleft()
                tallies.came(bench.bits("tally"))
            seen["flush"] += flush
            asked = bench.bits("tag")
            row = bench.bits("row") * banks
            # A fetch takes the memories in the cycle after its announcement.
            rows.append({} if waited else [window[row + bank] for bank in range(banks)])
            rows.popleft()
            newest.append(chance.randrange(depth))
            older.append({})
            if config.indexes:
                after = bench.get_same("lookups", "after")
                older[-1] = {"slot": before_it[after], "mark": marks[after]}
            if config.indexes and bench.bits_each("lookups", "ask"):
                assert bench.bits_each("lookups", "ask") == 2
                seen["put off"] += not takes
                of_bucket = ages.get(bench.get_same("lookups", "bucket"))
                if takes and of_bucket:
                    newest[-1] = (start + of_bucket[-1]) % depth
            newest.popleft()
            older.popleft()
            for item in pairs.got:
                assert item["some"] or item["end"]
                seen["an end with a pair"] += item["some"] and item["end"]
                if item["some"]:
                    # For the other factors it is whatever was found before.
                    wanted = next(iter(board.waiting.get(None, ())), {})
                    known = wanted.get("compared", 0)
                    in_use = item["held"] & known
                    board.came({**item, "end": 0, "held": in_use, "compared": known})
                if item["end"]:
                    board.came({"end": 1})
            pairs.got.clear()
            if bench.bits("freed"):
                compared.popleft()
            if bench.bits("begin") and not flush:
                probe = offered["probe"]
                seen["resume" if offered["resume"] else "whole"] += 1
                seen["indexed"] += offered["walk"] is not None
                # From the newest to the oldest, either way.
                count, bucket = probe["count"], offered["bucket"]
                order, tally = list(reversed(range(count))), count
                under_way.append(None if offered["walk"] is None else bucket)
                if offered["walk"] is not None and not (lanes and count < 2 * lanes):
                    known, tried = long[bucket], times == 15
                    times = (times + bool(known)) % 16
                    candidates = offered["walk"]
                    # A slot that was never written may still look like an older one.
                    last = (probe["tail"] + candidates[-1]) % depth if candidates else 0
                    after = (before_it[last] - probe["tail"]) % depth
                    goes_on = bool(candidates) and after < candidates[-1]
                    # More candidates than a scan takes time for: the rest is scanned.
                    quarter = count // banks // 4
                    most = (quarter >> 4 | 7 if known else quarter) + 1
                    seen["tried again"] += bool(known and tried)
                    known = known and not tried
                    if known:
                        seen["known to be long"] += 1
                    elif len(candidates) > most or (len(candidates) == most and goes_on):
                        order = candidates[:most]
                        tally = most + order[-1]
                        order += reversed(range(order[-1]))
                        long[bucket] = long[bucket] or most >= 8
                        seen["too long"] += 1
                    else:
                        order, tally = candidates, len(candidates)
                        long[bucket] = False
                        seen["walk"] += 1
                latest = offered["latest"]
                for slot in [(probe["tail"] + o) % depth for o in order if o <= latest]:
                    held = 0
                    for number, factor in enumerate(does[:used]):
                        condition = Condition(factor["condition"])
                        if not lanes:
                            break
                        outcome = HOLDS[condition](
                            offered["operands"][number], window[slot][factor["window_attribute"]]
                        ) and (offered["carried"] >> number & 1 or condition is Condition.TRUE)
                        held |= bool(outcome) << number
                    its_tag = probe["reference"]["tag"]
                    worth, its_factors = worths[its_tag], compares[its_tag][0]
                    interest = worth["interest"]
                    if lanes and not interest["always"] and not held & interest["factors"]:
                        seen["passed over"] += 1
                        continue
                    if lanes and all(term & ~held for term in worth["terms"]):
                        seen["no term holds"] += 1
                        continue
                    attributes = [] if lanes else window[slot]
                    board.expect(
                        {
                            "some": 1,
                            "end": 0,
                            "slot": slot,
                            "held": held & its_factors,
                            "attributes": attributes,
                            "compared": its_factors,
                        }
                    )
                    seen["pair"] += 1
                board.expect({"end": 1})
                tallies.expect(tally)
                if lanes:
                    compared.append(buffer)
                    buffer = (buffer + 1) % (1 << BUFFER_BITS)
                offered = None
                held_back = chance.randrange(4) if idle else 0
                seen["begun one after the other"] += begun == cycle - 1
                begun = cycle
                probes += 1
            await bench.clock()
            if flush:
                bench.dut.rst.value = 0
                pairs._offered = None
                board.waiting.clear()
                tallies.waiting.clear()
                long.update((bucket, None) for bucket in under_way if bucket is not None)
                under_way.clear()
                compared.clear()
                held_back = 2
                offered, times = None, 0
                puts.clear()
            if probes == most_probes and board.empty and tallies.empty and not compared:
                break
        else:
            raise AssertionError(f"after {probes} probes: {board.waiting} {tallies.waiting}")
        board.finish()
        tallies.finish()
        for _ in range(30):
            await bench.settle()
            assert not bench.bits("pairs.valid")
            await bench.clock()
    wanted = ["whole", "resume", "pair", "an end with a pair", "flush", "at once"]
    if factors == 16 and config.comparators == 4 and lanes and depth < 64:
        assert kept >= {2, 4, 32}
    wanted += ["begun one after the other"] * (factors < 16)
    wanted += ["turns"] * (lanes > 0 and factors > config.comparators)
    wanted += ["passed over", "no term holds"] * bool(lanes)
    wanted += ["indexed", "walk", "too long", "foreign", "put off"] * bool(config.indexes)
    wanted += ["known to be long", "tried again"] * (depth == 64)
    for what in wanted:
        assert seen[what], what
