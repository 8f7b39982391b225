"""Tests SelectionUnit against selections and masks as the contract defines them
(`seustream.hdl.device`)."""

from __future__ import annotations

import dataclasses
import itertools
import operator
import random
from collections import Counter

import cocotb
import pytest

from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.hdl.control_words import Command, Target, load_commands
from seustream.hdl.device import Area, Comparison, Route, Selection, Tables
from seustream.hdl.isa import Condition, Nop
from seustream.hdl.selection import SelectionUnit
from tests.hdl.bench import NONE, PACES, Bench, Driver, Load, Monitor, Scoreboard, simulate

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
    f"{width} bits, {selectors} at once": (
        lambda width=width, selectors=selectors: SelectionUnit(
            dataclasses.replace(
                CONFIGURATIONS["tiny"],
                attribute_width=width,
                comparisons=256,
                selectors=selectors,
            )
        )
    )
    for width, selectors in ((8, 1), (32, 4), (32, 16))
}


@pytest.mark.parametrize("case", CASES)
def test_selection_unit(case: str) -> None:
    simulate(__name__, CASES, case)


def random_tables(chance: random.Random, streams: int, width: int) -> Tables:
    """Returns tables with random selections and admission masks; everything else is empty."""

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


class Feed:
    """Feeds raw tuples to the unit, and expects what must come of them by the tables of their
    round."""

    EACH = 40

    def __init__(self, bench: Bench, idle: float, pressure: float) -> None:
        self.bench = bench
        self.board = Scoreboard("selected")
        self.driver = Driver(bench, "raw", idle)
        self.came: list[int] = []  # cycles
        self.rows: list[int] = []
        Monitor(bench, "selected", pressure, self._came)

    def _came(self, item: dict) -> None:
        self.board.came(item)
        self.came.append(self.bench.cycle)

    def attributes(self) -> list[int]:
        chance, width = self.bench.chance, self.bench.component.config.attribute_width
        return [chance.choice([0, 1, 2, (1 << width) - 1, chance.getrandbits(width)])
                for _ in range(4)]  # fmt: skip

    def offer(self, tables: Tables, admitted: Counter) -> None:
        chance, config = self.bench.chance, self.bench.component.config
        for _ in range(self.EACH):
            raw = {
                "stream": chance.randrange(config.streams),
                "admit": int(chance.random() < 0.8),
                "filler": int(chance.random() < 0.1),
                "timestamp": chance.getrandbits(24),
                "sequence": chance.getrandbits(16),
                "attributes": self.attributes(),
            }
            self.driver.queue.append(raw)
            bits = bits_of(tables, raw["stream"], raw["attributes"])
            masks = tables.admission[raw["stream"]]
            lets_in = any(bits & mask == mask for mask in masks)
            deals = raw["admit"] and not raw["filler"]
            if deals:
                admitted[lets_in] += 1
            self.board.expect(
                {"raw": raw, "bits": bits if deals else 0, "admitted": int(deals and lets_in)}
            )
            # A tick passes as if it had one row.
            selectors = config.selectors
            entries = tables.selection_entries(raw["stream"], selectors) if deals else 1
            self.rows.append(max(-(-entries // selectors), 1))


def words_of(tables: Tables, config: DeviceConfig) -> list[Command]:
    wanted = (Target.SELECTION, Target.ROWS)  # ROWS is for other units
    return [word for word in load_commands(tables, config) if word.target in wanted]


@cocotb.test()
async def bits_and_admission(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance, config = bench.chance, bench.component.config
    admitted: Counter = Counter()
    paused = waited = 0
    for idle, pressure in PACES:
        await bench.reset(pause=1)
        load, feed = Load(bench), Feed(bench, idle, pressure)
        sent, board = feed.driver.sent, feed.board
        # The tables are exchanged twice; raw tuples wait meanwhile.
        rounds = [random_tables(chance, config.streams, config.attribute_width) for _ in range(3)]
        feed.offer(rounds[0], admitted)
        for number, tables in enumerate(rounds):
            await load.words(words_of(tables, config))
            assert len(sent) == number * feed.EACH, "taken in a pause"
            for _ in range(20_000):
                # A pause keeps new tuples out and lets those inside go on.
                pause = chance.random() < 0.2
                before = len(sent)
                bench.set("pause", pause)
                await bench.settle()
                assert not (pause and len(sent) > before), "taken in a pause"
                paused += pause and feed.driver.offered
                done = bench.bits("idle") and board.seen == (number + 1) * feed.EACH
                assert not bench.bits("idle") or board.seen == before, "something is still there"
                assert not (bench.bits("meter.working") and bench.bits("meter.blocked"))
                await bench.clock()
                if done:
                    break
            assert len(sent) == board.seen == (number + 1) * feed.EACH
            bench.set("pause", 1)
            if number + 1 < len(rounds):
                feed.offer(rounds[number + 1], admitted)
            for _ in range(10):  # stored tuples, evaluated anew
                stream, stored = chance.randrange(config.streams), feed.attributes()
                bench.set("replayed.again", 1)
                bench.set("replayed.stream", stream)
                bench.set("replayed.attributes", stored)
                await bench.tick()
                bench.set("replayed.again", 0)
                bench.set("replayed.stream", 0)
                worked_out: list[int] = []

                def known(found: list[int] = worked_out) -> bool:
                    if bench.bits("replayed.known"):
                        found.append(bench.bits("replayed.bits"))
                    return bool(found)

                await bench.until(known, 200)
                assert worked_out == [bits_of(tables, stream, stored)]
                waited += feed.driver.offered
            assert len(sent) == board.seen, "taken in a pause"
        board.finish()
    assert paused > 20
    assert waited > 20
    assert min(admitted[True], admitted[False]) > 20


@cocotb.test()
async def a_row_a_cycle(dut: object) -> None:
    """Offers raw tuples in every cycle, and takes the results at once."""
    bench = Bench(dut, CASES)
    chance, config = bench.chance, bench.component.config
    rows: Counter = Counter()
    for _ in range(5):
        await bench.reset(pause=1)
        load, feed = Load(bench), Feed(bench, NONE, NONE)
        tables = random_tables(chance, config.streams, config.attribute_width)
        await load.words(words_of(tables, config))
        feed.offer(tables, Counter())
        bench.set("pause", 0)
        begun = bench.cycle
        await bench.until(lambda feed=feed: feed.board.seen == feed.EACH)
        assert feed.came[0] - begun == 9 + feed.rows[0]
        gaps = [after - before for before, after in itertools.pairwise(feed.came)]
        assert gaps == feed.rows[1:]
        rows.update(gaps)
    assert rows[1] > 20, "a tuple a cycle"
    assert max(rows) > (5 if config.selectors == 1 else 2)
