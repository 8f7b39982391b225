"""Proves the query search: for each tuple the queries that its tests leave, once, whatever else is
in the ring (P9)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal

from seustream.hdl.config import DeviceConfig
from seustream.hdl.control_words import Target
from seustream.hdl.device import WindowKind
from seustream.hdl.layouts import Layouts
from seustream.hdl.query_search import QuerySearch
from seustream.hdl.window_tests import Then
from tests.formal.harness import (
    Case,
    Specification,
    altered,
    anything,
    before,
    check,
    constant,
    drive,
    narrowed,
    proof,
    small,
)

QUERIES, TESTS, SETS, PLACES = 2, 2, 2, 4
SMALL = {"TEST_BITS": 1, "SET_BITS": 1, "STEP_BITS": 1, "PLACES": PLACES, "PLACE_BITS": 2}
"""Narrow, so that the memories are small."""


def tiny() -> DeviceConfig:
    return small(
        attribute_width=1, timestamp_width=2, sequence_width=2, output_fifo_depth=1, queries=QUERIES
    )


class SearchFinds(Specification):
    """Any tables in which tests lead to later ones; any one tuple is followed, among any others."""

    def __init__(self, *fault: tuple[str, str]) -> None:
        super().__init__()
        self.fault = fault

    @contextlib.contextmanager
    def setting(self) -> Iterator[None]:
        with narrowed(SMALL, {}):
            yield

    def describe(self, m: Module) -> None:
        config = tiny()
        layouts = Layouts(config)
        own = {name: value for name, value in SMALL.items() if name != "STEP_BITS"}
        made = altered(QuerySearch, *self.fault, **own) if self.fault else QuerySearch
        m.submodules.search = search = made(config)
        drive(m, search, "tables", "came", "keys", "queries", "test")

        # Load, then exchange the halves.
        tests = [
            layouts.window_test(constant(m, layouts.window_test.size, f"test{number}"))
            for number in range(TESTS)
        ]
        # All but the bit that tells whether a look follows, which the search has to see for itself.
        size = layouts.query_set.size - 1
        sets = [constant(m, size, f"set{number}") for number in range(SETS)]
        writes: list[tuple] = []
        for number, test in enumerate(tests):
            writes += [(Target.PART, 0, test.high), (Target.PART, 0, test.low)]
            writes.append((Target.TEST, number, Cat(test.steps, test.kinds)))
        for number, left in enumerate(sets):
            writes += [(Target.PART, 0, left[QUERIES:]), (Target.SET, number, left[:QUERIES])]
        clock = Signal(range(len(writes) + 1))
        loaded = clock == len(writes)
        with m.If(~loaded):
            m.d.sync += clock.eq(clock + 1)
        bus = search.tables
        m.d.comb += [bus.valid.eq(~loaded), bus.half.eq(loaded)]
        for number, (target, address, word) in enumerate(writes):
            with m.If(clock == number):
                m.d.comb += [bus.target.eq(target), bus.address.eq(address), bus.data.eq(word)]
        self._acyclic(m, tests, sets)

        # Tuples come while a place is free, and leave in order when they are found.
        came, gone, followed = Signal(4), Signal(4), constant(m, 4, "followed")
        known = Signal(PLACES)
        comes = anything(m, 1, "comes") & loaded & ((came - gone)[:4] < PLACES)
        goes = anything(m, 1, "goes") & known.bit_select(gone[:2], 1)
        is_it = came == followed
        m.d.sync += [came.eq(came + comes), gone.eq(gone + goes)]
        members = ("keys", "queries", "test")
        mine = {}
        for name in members:
            port = getattr(search, name)
            width = len(port.as_value() if hasattr(port, "as_value") else port)
            mine[name] = constant(m, width, f"mine_{name}")
            other = anything(m, width, f"other_{name}")
            as_bits = port.as_value() if hasattr(port, "as_value") else port
            late = name == "queries"
            m.d.comb += as_bits.eq(Mux(before(m, is_it) if late else is_it, mine[name], other))
        m.d.comb += search.came.eq(comes)

        found = search.found
        waiting = Signal(PLACES)
        for place in range(PLACES):
            begins, ends = comes & (came[:2] == place), goes & (gone[:2] == place)
            is_found = found & (search.place == place)
            with m.If(begins):
                m.d.sync += waiting[place].eq(1)
            with m.Elif(is_found):
                m.d.sync += waiting[place].eq(0)
            with m.If(is_found):
                m.d.sync += known[place].eq(1)
            with m.Elif(ends):
                m.d.sync += known[place].eq(0)
        self.claim(m, ~found | waiting.bit_select(search.place, 1))

        expected = Signal(QUERIES)
        leave = self._leaves(m, search.keys.shape()(mine["keys"]), tests, sets)
        m.d.comb += expected.eq(mine["queries"] & Array(leave)[mine["test"]])
        present = (came > followed) & (gone <= followed)
        at = search.place == followed[:2]
        with m.If(present & found & at):
            self.claim(m, search.some == (expected != 0))
        seen = (found & at) | known.bit_select(followed[:2], 1)
        with m.If(present & seen & (search.read == followed[:2])):
            self.claim(m, search.left == expected)

        two = (tests[0].steps[1].then == Then.SET) & (mine["test"] == 0) & (mine["queries"] == 3)
        ends = present & found & at
        self.reach(m, ends & two & (sets[0][QUERIES:] == 1) & (expected == 1) & (followed == 1))
        self.reach(m, ends & (expected == 0) & (mine["queries"] == 3) & (followed == 2))
        # A tuple that came later is found sooner.
        self.reach(m, found & (search.place == 1) & waiting[0] & (gone == 0) & (came == 2))

    def _acyclic(self, m: Module, tests: list, sets: list[Signal]) -> None:
        """Assumes that the first test may lead to the second one, and that one to none."""
        for number, test in enumerate(tests):
            for step in test.steps:
                last = number == TESTS - 1
                self.assume(m, (step.then != Then.TEST) | (Const(not last) & (step.index == 1)))
                if last:
                    onward = Array(sets)[step.index][QUERIES:]
                    self.assume(m, (step.then != Then.SET) | (onward == 0))

    def _leaves(self, m: Module, key: object, tests: list, sets: list[Signal]) -> list[Signal]:
        """Returns, by the definition, the queries that are left from each test on."""
        everything = Const((1 << QUERIES) - 1, QUERIES)
        leave: list[Signal] = []
        for number, test in reversed(list(enumerate(tests))):

            def under(limit: Signal, test: object = test) -> Signal:
                fits = []
                for s in range(len(key.carries)):
                    by_age = (test.kinds[s] == WindowKind.RANGE) & (key.ages[s] >= limit)
                    by_rank = (test.kinds[s] == WindowKind.ROWS) & (key.ranks[s] >= limit)
                    fits.append(~key.carries[s] | ~(by_age | by_rank))
                return Cat(fits).all()

            low, high = under(test.low), under(test.high)
            step = Mux(
                low,
                test.steps[0].as_value(),
                Mux(high, test.steps[1].as_value(), test.steps[2].as_value()),
            )
            then, index = step[:2], step[2:]
            left, follows = Array(sets)[index], leave[0] if leave else everything
            of_test = Signal(QUERIES, name=f"leaves{number}")
            with m.Switch(then):
                with m.Case(Then.ALL):
                    m.d.comb += of_test.eq(everything)
                with m.Case(Then.TEST):
                    m.d.comb += of_test.eq(follows)
                with m.Case(Then.SET):
                    goes_on = left[QUERIES:] != 0
                    m.d.comb += of_test.eq(left[:QUERIES] & Mux(goes_on, follows, everything))
            leave.insert(0, of_test)
        return leave


def finds(*fault: tuple[str, str]) -> object:
    return lambda: SearchFinds(*fault)


@pytest.mark.parametrize(
    "case",
    [
        proof("search", finds(), "search", 26, campaign=False),
        proof("search", finds(), "search", 34, limit=1800),
        proof("search", finds(), "meet", 36),
        proof("limit", finds(("value < high", "value <= high")), "search", 26, "FAIL"),
        proof(
            "rank-for-age",
            finds(("Mux(by_rank, key.ranks", "Mux(by_age, key.ranks")),
            "search",
            26,
            "FAIL",
        ),
        proof(
            "forgets-a-list",
            finds(("queries.data, before.data)", "queries.data, queries.data)")),
            "search",
            34,
            "FAIL",
        ),
        proof(
            "found-before-the-end",
            finds(("ended.eq(valid[-1] & ~goes_on)", "ended.eq(valid[-1])")),
            "search",
            34,
            "FAIL",
        ),
    ],
)
def test_query_search(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
