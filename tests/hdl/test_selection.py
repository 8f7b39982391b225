"""SelectionUnit against selections and masks as the contract has them (`seustream.hdl.device`)."""

from __future__ import annotations

import dataclasses
import operator
import random

import cocotb
import pytest

from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.control_words import Target, load_commands
from seustream.hdl.device import Area, Comparison, Route, Selection, Tables
from seustream.hdl.isa import Condition, Nop
from seustream.hdl.selection import SelectionUnit
from tests.hdl.bench import PACES, Bench, Driver, Load, Monitor, Scoreboard, simulate

HOLDS = {
    Condition.LT: operator.lt,
    Condition.EQ: operator.eq,
    Condition.GT: operator.gt,
    Condition.GE: operator.ge,
    Condition.LE: operator.le,
    Condition.NE: operator.ne,
    Condition.TRUE: lambda a, b: True,
    Condition.FALSE: lambda a, b: False,
}
CASES = {
    f"{width} bits": (
        lambda width=width: SelectionUnit(
            dataclasses.replace(CONFIGURATIONS["tiny"], attribute_width=width, comparisons=64)
        )
    )
    for width in (8, 32)
}


@pytest.mark.parametrize("case", CASES)
def test_selection_unit(case: str) -> None:
    simulate(__name__, CASES, case)


def random_tables(chance: random.Random, streams: int, width: int) -> Tables:
    """Selections and admission masks; all else is empty."""

    def constant() -> int:
        return chance.choice([0, 1, 2, (1 << width) - 1, chance.getrandbits(width)])

    def selection() -> Selection:
        comparisons = tuple(
            Comparison(chance.randrange(4), Condition(chance.randrange(8)), constant())
            for _ in range(chance.choice([0, 1, 1, 2, 4]))
        )
        return Selection(chance.random() < 0.5, comparisons)

    selections, admission = [], []
    for _ in range(streams):
        count = chance.choice([0, 1, 3, 7])
        selections.append(tuple(selection() for _ in range(count)))
        masks = [chance.getrandbits(count) & chance.getrandbits(count) for _ in range(2)]
        admission.append(tuple(masks[: chance.choice([0, 1, 1, 2])]))
    area = Area(program=(Nop().encode(),))
    return Tables(
        tuple(range(streams)), tuple(selections), tuple(admission), (area,) * streams,
        {s: Route() for s in range(streams)}, (),
    )  # fmt: skip


def bits_of(tables: Tables, stream: int, attributes: list[int]) -> int:
    bits = 0
    for number, selection in enumerate(tables.selections[stream]):
        outcomes = [HOLDS[c.condition](attributes[c.attribute], c.constant)
                    for c in selection.comparisons]  # fmt: skip
        bits |= (all(outcomes) if selection.every else any(outcomes)) << number
    return bits


@cocotb.test()
async def bits_and_admission(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance, unit = bench.chance, bench.component
    config = unit.config
    admitted = {False: 0, True: 0}
    for idle, pressure in PACES:
        await bench.reset()
        load = Load(bench)
        board = Scoreboard("selected")
        driver = Driver(bench, "raw", idle)
        Monitor(bench, "selected", pressure, board.came)
        for _ in range(3):  # the tables are exchanged, twice
            tables = random_tables(chance, config.streams, config.attribute_width)
            words = [
                word
                for word in load_commands(tables, config)
                if word.target in (Target.SELECTION, Target.ROWS)  # ROWS is for others
            ]
            await load.words(words)

            def attributes() -> list[int]:
                width = config.attribute_width
                return [chance.choice([0, 1, 2, (1 << width) - 1, chance.getrandbits(width)])
                        for _ in range(4)]  # fmt: skip

            for _ in range(40):
                raw = {
                    "stream": chance.randrange(config.streams),
                    "admit": int(chance.random() < 0.8),
                    "filler": int(chance.random() < 0.1),
                    "timestamp": chance.getrandbits(24),
                    "sequence": chance.getrandbits(16),
                    "attributes": attributes(),
                }
                driver.queue.append(raw)
                bits = bits_of(tables, raw["stream"], raw["attributes"])
                masks = tables.admission[raw["stream"]]
                lets_in = any(bits & mask == mask for mask in masks)
                deals = raw["admit"] and not raw["filler"]
                if deals:
                    admitted[lets_in] += 1
                board.expect(
                    {"raw": raw, "bits": bits if deals else 0, "admitted": int(deals and lets_in)}
                )
            paused = 0
            for _ in range(20_000):
                # A pause keeps new tuples out and lets go on what is in.
                pause = chance.random() < 0.2
                before = len(driver.sent)
                bench.set("pause", pause)
                await bench.settle()
                assert not (pause and len(driver.sent) > before), "taken in a pause"
                done = bench.bits("idle") and board.empty
                paused += pause
                await bench.clock()
                if done:
                    break
            board.finish()
            bench.set("pause", 1)
            for _ in range(10):  # stored tuples, worked out anew
                stream, stored = chance.randrange(config.streams), attributes()
                bench.set("again", 1)
                bench.set("stream", stream)
                bench.set("attributes", stored)
                await bench.tick()
                bench.set("again", 0)
                bench.set("stream", 0)
                worked_out: list[int] = []

                def known(found: list[int] = worked_out) -> bool:
                    if bench.bits("known"):
                        found.append(bench.bits("bits"))
                    return bool(found)

                await bench.until(known, 200)
                assert worked_out == [bits_of(tables, stream, stored)]
            bench.set("pause", 0)
        assert paused
    assert all(admitted.values())
