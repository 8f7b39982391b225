"""Tests ArrayExecution and SerialExecution on random programs: each pair against `programs.execute`, instruction by
instruction; and joined tuples exactly once, also where a probe is left and taken up again."""

from __future__ import annotations

import dataclasses
from collections import Counter, deque

import cocotb
import pytest

from seustream.hdl import isa
from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.control_words import (
    JOIN_ROWS,
    LAST_WORD,
    NEEDS_BITS,
    Command,
    ControlOperation,
    Target,
)
from seustream.hdl.execution import ArrayExecution, SerialExecution
from seustream.hdl.layouts import CONTEXTS
from seustream.hdl.program import AreaProgram
from tests.hdl.bench import Bench, Driver, Load, Scoreboard, simulate
from tests.hdl.programs import execute, random_program
from tests.hdl.test_factors import HOLDS

_NUMBER = 1
_CONFIG = dataclasses.replace(CONFIGURATIONS["tiny"], streams=4, attribute_width=8)
CASES = {
    "lanes": lambda: ArrayExecution(_CONFIG, _NUMBER),
    "serial": lambda: SerialExecution(dataclasses.replace(_CONFIG, lanes=0, indexes=0), _NUMBER),
}


@pytest.mark.parametrize("case", CASES)
def test_execution_unit(case: str) -> None:
    simulate(__name__, CASES, case)


@cocotb.test()
async def every_pair_runs_the_program(dut: object) -> None:
    bench = Bench(dut, CASES)
    seen: Counter = Counter()
    for run in range(54):
        # In a third of the runs there is never a long wait for the router, so that no probe is left
        # and every instruction can be foreseen. In another third there is no room for long.
        await _run(bench, seen, changes=(0, 0.03, 0.006)[run % 3], idle=(0, 0.3, 0.9)[run // 3 % 3])
    for kind in isa.INSTRUCTIONS:
        assert seen[kind.MNEMONIC] > 20, f"{kind.MNEMONIC}: {seen[kind.MNEMONIC]}"
    assert seen["rewind"]
    assert seen["resumed"]
    assert seen["by rows"] > 20 or not bench.component.config.lanes
    often = ["follows", "at once"]
    if bench.component.config.lanes:  # else a probe enters only when the one before is done
        often += ["blocked", "follows across an end", "at once across an end"]
    for what in often:
        assert seen[what] > 5, f"{what}: {seen[what]}"


async def _run(bench: Bench, seen: Counter, changes: float, idle: float) -> None:
    chance, unit = bench.chance, bench.component
    crowded = changes > 0
    config, serial = unit.config, not unit.config.lanes
    levels, depth = unit.layouts.levels, config.depth
    await bench.reset()
    program = random_program(chance, chance.choice([2, 6, 15, 30]), config.factors)
    words = [instruction.encode() for instruction in program]
    last = len(words) - 1
    own: dict[int, dict] = {}  # by tag, the rows of a pair that is joined by rows
    in_rows: list[Command] = []
    by_tag = AreaProgram(tuple(words))
    for tag in range(0 if serial else 4):
        rows = by_tag.rows(tag, 31)
        if rows and len(in_rows) + len(rows) <= JOIN_ROWS and chance.random() < 0.6:
            own[tag] = {"row": len(in_rows), "rows": len(rows)}
            for row in rows:
                needs = sum(1 << need for need in row.needs)
                data = needs | row.tag << NEEDS_BITS | row.first << NEEDS_BITS + 8
                at = len(in_rows)
                in_rows.append(Command(ControlOperation.WRITE, Target.JOIN_ROW, _NUMBER, at, data))
    destinations = [{"areas": chance.randrange(16), "output": 1} for _ in range(8)]
    load = Load(bench)
    await load.words(
        [
            Command(
                ControlOperation.WRITE,
                Target.INSTRUCTION,
                _NUMBER,
                at,
                word | LAST_WORD * (at == last),
            )
            for at, word in enumerate(words)
        ]
        + [
            Command(ControlOperation.WRITE, Target.DESTINATION, 0, tag, each["areas"] | 16)
            for tag, each in enumerate(destinations)
        ]
        + in_rows
    )
    # They are not for this area, and must change nothing.
    bench.set("tables.unit", 2)
    leading = next(at for at, i in enumerate(program) if not isinstance(i, isa.Cmp))
    start = 0 if serial else leading
    compares = [i.condition for i in program if isinstance(i, isa.Cmp)]
    never, always = (
        sum((condition == sure) << n for n, condition in enumerate(compares))
        for sure in (isa.Condition.FALSE, isa.Condition.TRUE)
    )
    for _ in range(8):
        await bench.tick()

    bits_of = [chance.getrandbits(16) for _ in range(depth)]
    joined = Scoreboard("joined", key=lambda item: item[0])
    steps = Scoreboard("executed")
    queues: list[deque[dict]] = [deque() for _ in range(levels)]
    unborn: deque[dict] = deque()
    level = 0
    for number in range(16):
        level = chance.choice([level, chance.randrange(levels)])
        other = chance.sample([0, 2, 3], level + 1)
        carries = sum(1 << s for s in other)
        probe = {
            "number": number,
            "reference": {
                "context": chance.randrange(CONTEXTS),
                "tag": chance.randrange(4),
                "stream": other[0],
                "carries": carries,
                "slots": [number, 0, number, 0],
            },
            "level": level,
            "bits": chance.getrandbits(15) if level == 0 else 0,
            "attributes": [[chance.randrange(3) for _ in range(4)] for _ in range(4)],
            "pairs": [],
        }
        many = 12 if 0 < changes < 0.01 else 6
        for slot in chance.sample(range(depth), chance.choice([0, 1, 3, many])):
            window = [chance.randrange(3) for _ in range(4)]
            held = chance.getrandbits(16) & chance.getrandbits(16) & ~never | always

            def outcome(n: int, cmp: isa.Cmp, held=held, window=window, probe=probe) -> bool:
                if not serial:
                    return bool(held >> n & 1)
                if not probe["reference"]["carries"] >> cmp.probe_stream & 1:
                    return cmp.condition == isa.Condition.TRUE
                value = probe["attributes"][cmp.probe_stream][cmp.probe_attribute]
                return HOLDS[isa.Condition(cmp.condition)](value, window[cmp.window_attribute])

            reference = probe["reference"]
            executed, joins = execute(
                program, reference["tag"], outcome, bits_of[slot], probe["bits"]
            )
            probe["pairs"].append((slot, held, window, [at for at in executed if at >= start]))
            for _, tag in joins:
                slots = [number, slot, number, 0]
                post = {**reference, "tag": tag, "carries": carries | 1 << _NUMBER, "slots": slots}
                joined.expect((number, post, level, destinations[tag]))
        unborn.append(probe)

    pairs = Driver(bench, "pairs", idle)
    to_come: deque[tuple[int, list[dict]]] = deque()  # with the cycle of each
    entered: deque[dict] = deque()  # not committed yet, in order
    taken = [0] * levels  # of each queue, how many are entered
    # The router: there is room; a register says so for the present request; it was taken, and so
    # granted.
    room, roomy, granted, taking = True, False, False, False
    follows: tuple[int, dict] | None = None  # the level and destination of the next request
    then: dict | None = None  # where the one after that goes
    last_grant: tuple[int, int] | None = None  # cycle, and number of the probe
    followed = False  # by what was said then
    hit: int | None = None
    waited: dict | None = None
    cooling = 0
    for cycle in range(30_000):
        if hit is not None:
            bench.set("hit_bits", bits_of[hit])
        if chance.random() < (changes or 0.5):
            room = not room if crowded else True
        enter = None
        if unborn and chance.random() < 0.1:
            probe = unborn.popleft()
            queues[probe["level"]].append(probe)
        bench.set("waiting", sum(bool(queue) << level for level, queue in enumerate(queues)))
        while to_come and to_come[0][0] <= cycle:
            pairs.queue.extend(to_come.popleft()[1])
        ready = [level for level in range(levels) if len(queues[level]) > taken[level]]
        bench.set("enter", 0)
        bench.set("resumed", 0)
        bench.set("offer.roomy", roomy)
        await bench.settle()
        emit = bench.bits("offer.emit")
        offer = bench.get("offer.emitted")
        if waited is not None and not bench.bits("rewind"):
            assert emit, "withdrawn before the router had it"
            assert offer == waited
        if follows is not None and not bench.bits("rewind"):
            assert emit, "nothing followed"
            assert (bench.bits("offer.level"), bench.get("offer.destination")) == follows
        waited = offer if emit and not granted else None
        assert bench.bits("stalled") == bool(emit and not granted)
        seen["blocked"] += bench.bits("meter.blocked")
        # Others get their turn, too.
        taking = bool(emit and roomy and chance.random() < 0.8)
        bench.set("offer.taking", taking)  # it is granted in the next cycle
        said, to = bench.bits("offer.follows"), bench.get("offer.follows_to")
        assert said in (0, 1, 3)
        gone = granted or not (emit or bench.bits("rewind"))
        if then is not None:
            assert said
            assert to[0] == then, "another follows"
        follows = (bench.bits("offer.level"), to[0]) if gone and said else None
        then = to[1] if gone and said == 3 else None
        roomy = room and bool(
            (said >> 1 if granted else said & 1) if taking else said & 1 if gone else emit
        )
        if granted:
            number = offer["slots"][0]
            joined.came((number, offer, bench.bits("offer.level"), bench.get("offer.destination")))
            if last_grant is not None:
                at_once = cycle - last_grant[0] == 1
                seen["at once"] += at_once
                seen["at once across an end"] += at_once and number != last_grant[1]
                seen["follows across an end"] += followed and number != last_grant[1]
            last_grant = cycle, number
            followed = bool(said)
            seen["follows"] += followed
        granted = taking
        hit = bench.bits("hit") if bench.bits("hit_take") else None
        rewind = bench.bits("rewind")
        if bench.bits("executed"):
            step = bench.get("trace")
            instruction = isa.decode(step["word"])
            assert words[step["address"]] == step["word"]
            seen[instruction.MNEMONIC] += 1
            if not crowded:
                steps.came((step["slot"], step["address"], step["probe"][0]))
        if bench.bits("commit"):
            assert not rewind
            probe = entered.popleft()
            queue = queues[probe["level"]]
            assert queue.popleft() is probe
            taken[probe["level"]] -= 1
            assert bench.bits("context") == probe["reference"]["context"]
            assert not joined.waiting.get(probe["number"]), "done, but not all was joined"
        if rewind:
            assert crowded
            seen["rewind"] += 1
            entered.clear()
            taken = [0] * levels
            pairs.queue.clear()
            to_come.clear()
            pairs.offered = False
            cooling = 3
            hit = None
        elif cooling:
            cooling -= 1
        elif (
            ready
            and bench.bits("may_enter")
            and chance.random() >= idle
            and not (serial and bench.bits("hold"))
        ):
            enter = queues[ready[-1]][taken[ready[-1]]]
        if enter is not None:
            # The unit sees this until the coming edge.
            level = enter["level"]
            bench.set("resume_level", level)
            bench.set("enter", 1)
            bench.set("resumed", 1)
            bench.set(
                "entering",
                {"reference": enter["reference"], "level": level, "bits": enter["bits"]}
                | own.get(enter["reference"]["tag"], {"row": 0, "rows": 0}),
            )
            bench.set("attributes", enter["attributes"])
            await _moment()
            left = bench.bits("resume_slot") if bench.bits("resume") else None
            seen["resumed"] += left is not None
            seen["by rows"] += enter["reference"]["tag"] in own
            entered.append(enter)
            taken[level] += 1
            coming: list[dict] = []
            for slot, held, window, addresses in enter["pairs"]:
                if left is not None and slot != left:
                    continue
                left = None
                its = {"attributes": window} if serial else {"held": held}
                coming.append({"some": 1, "slot": slot} | its)
                for at in () if enter["reference"]["tag"] in own else addresses:
                    steps.expect((slot, at, enter["number"]))
            # The end comes with the last pair, or by itself, for instance if that pair is not the
            # last in its row.
            if not coming or chance.random() < 0.4:
                coming.append({})
            coming[-1]["end"] = 1
            to_come.append((cycle + 2, coming))  # they take the scanner some cycles
        await bench.clock()
        if not any(queues) and not unborn:
            break
    else:
        raise AssertionError("not all probes were done")
    assert joined.empty, f"never joined: {joined.waiting}"
    assert crowded or steps.empty
    for _ in range(5):
        await bench.settle()
        assert not bench.bits("offer.emit")
        assert not bench.bits("executed")
        assert not bench.bits("hold")
        await bench.clock()


async def _moment() -> None:
    """Waits until inputs set in the second half of a cycle have settled."""
    from cocotb.triggers import Timer

    await Timer(1, unit="ns")
