"""Proves the whole processor, from the commands that load it to its ports: every result of a few raw
tuples comes once (P12), and in the end nothing is in flight, whatever waited before (P10).

It is the smallest build that does all of this, loaded as a host loads it. Free are the distances in
time between the raw tuples, their attributes, and in every cycle whether a result, or a tuple
handed over, is taken. A case gives the streams of the raw tuples, and how many cycles after the one
before each comes: the first in which it may, or later.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value

from seustream.hdl import isa
from seustream.hdl.config import DeviceConfig
from seustream.hdl.contexts import Contexts
from seustream.hdl.control_words import Command, ControlOperation, Verdict, load_commands
from seustream.hdl.device import Area, Retention, Route, Tables, Window, WindowKind
from seustream.hdl.output import Output
from seustream.hdl.top import Wjasip
from tests.formal.harness import (
    Case,
    Specification,
    altered,
    anything,
    before,
    check,
    constant,
    narrowed,
    proof,
    small,
)

QUERIES = 2
EVERYWHERE = {
    "CONTEXT_BITS": 2, "EPOCH_BITS": 1, "CONTEXTS": 4, "TAG_BITS": 2, "TEST_BITS": 2, "SET_BITS": 1, "STEP_BITS": 2,
    "PLACES": 4, "PLACE_BITS": 2,
}  # fmt: skip
"""Fewer contexts, route tags, tests of windows and tuples at the output than in a build."""
ADDRESSES = {"ADDRESS_BITS": 2}
"""Programs of 4 instructions, in memories of as many."""
LOADED = 358
"""Cycles until the tables are loaded. A pair's first result is there 106 cycles later, and nothing
is in flight 112 later. A smaller bound would show neither: the planted faults, which must be found
within the same bound, reveal when it has become too small."""
BOUND = LOADED + 152
JOINED = 2
"""Route tag of a pair."""
WINDOWS = (
    (Window(WindowKind.ROWS, 2), Window(WindowKind.RANGE, 3)),
    (Window(WindowKind.ROWS, 1), Window(WindowKind.RANGE, 1)),
)
"""Windows of each query, over each stream."""


def tables() -> Tables:
    """Returns tables for both queries: pairs of both streams with the same attribute 0."""
    programs = [
        (isa.Cmp(0, 1 - s, 0, isa.Condition.EQ, 0), isa.Emit(0, JOINED), isa.Nop())
        for s in range(2)
    ]
    return Tables(
        groups=(0, 1),
        selections=((), ()),
        admission=((0,), (0,)),
        areas=tuple(
            Area(
                program=tuple(instruction.encode() for instruction in program),
                retention=Retention.over(windows[s] for windows in WINDOWS),
            )
            for s, program in enumerate(programs)
        ),
        routes={
            0: Route(insert=True, probes=frozenset({1})),
            1: Route(insert=True, probes=frozenset({0})),
            JOINED: Route(queries=frozenset(range(QUERIES))),
        },
        windows=WINDOWS,
    )


class WholeJoins(Specification):
    """Raw tuples of these streams, and what becomes of them by the definition of the queries.
    `gaps` gives how many cycles each waits after the one before. After `drained` cycles in which
    every offer was taken, nothing is in flight. An offer is taken in any cycle or, with `steadily`,
    always after the same number of cycles, which is any up to 15."""

    def __init__(
        self,
        streams: tuple[int, ...] = (0, 1),
        drained: int = 130,
        steadily: bool = False,
        gaps: tuple[int, ...] = (),
        fault: tuple[type, str, str] | None = None,
    ) -> None:
        super().__init__()
        self.streams, self.drained, self.steadily = streams, drained, steadily
        self.gaps, self.fault = gaps, fault

    @contextlib.contextmanager
    def setting(self) -> Iterator[None]:
        somewhere = dict.fromkeys(("execution", "program_store", "probe_queue", "area"), ADDRESSES)
        with narrowed(EVERYWHERE, somewhere):
            if not self.fault:
                yield
                return
            component, *fault = self.fault
            room = component.__module__.removeprefix("seustream.hdl.")
            own = {**EVERYWHERE, **somewhere.get(room, {})}
            names = vars(sys.modules[component.__module__])
            own = {name: value for name, value in own.items() if name in names}
            faulty = altered(component, tuple(fault), **own)
            with narrowed({component.__name__: faulty}, {}):
                yield

    def describe(self, m: Module) -> None:
        config = small(
            depth=2,
            lanes=1,
            factors=2,
            comparators=2,
            timestamp_width=4,
            sequence_width=4,
            tags=3,
            queries=QUERIES,
            instructions=4,
            comparisons=1,
            probe_fifo_depth=1,
            groups=8,
            output_fifo_depth=1,
        )
        m.submodules.top = top = Wjasip(config)
        loaded = self._load(m, config, top)

        # Raw tuples, one after the other.
        n = len(self.streams)
        came = Signal(range(n + 1))
        of = [Const(stream, 1) for stream in self.streams]
        values = [constant(m, config.attribute_width, f"value{k}") for k in range(n)]
        now, sequence = [], []
        for k in range(n):
            step = constant(m, 2, f"step{k}")
            now.append(self._named(m, (now[k - 1] + step if k else step)[:4]))
            sequence.append(self._named(m, sum((of[i] == of[k] for i in range(k)), Const(0, 4))))
        raw = top.raw
        since = Signal(range(64))
        comes = Const(1)
        for k, gap in enumerate(self.gaps):
            comes = Mux(came == k, since >= gap, comes)
        m.d.comb += raw.valid.eq(loaded & (came != n) & comes)
        with m.If(~loaded):
            m.d.sync += since.eq(0)
        with m.Elif(raw.valid & raw.ready):
            m.d.sync += [came.eq(came + 1), since.eq(0)]
        with m.Elif(since != 63):
            m.d.sync += since.eq(since + 1)
        for k in range(n):
            with m.If(came == k):
                m.d.comb += [
                    raw.payload.stream.eq(of[k]),
                    raw.payload.admit.eq(1),
                    raw.payload.timestamp.eq(now[k]),
                    raw.payload.sequence.eq(sequence[k]),
                    raw.payload.attributes[0].eq(values[k]),
                ]

        # By the definition: for each query, each pair of an earlier and a later tuple.
        results = top.results
        self._takes(m, results, "results")
        handed = results.valid & results.ready
        result = results.payload
        expected, marks = [], []
        for j in range(n):
            for i in range(j):
                first = of[j] == 1  # the earlier one is of stream 0
                rank = sum((of[k] == of[i] for k in range(i + 1, j + 1)), Const(0, 4))
                age = (now[j] - now[i])[:4]
                pair = self._named(m, (of[i] != of[j]) & (values[i] == values[j]))
                is_it = self._named(
                    m,
                    pair
                    & (result.sequences[0] == Mux(first, sequence[i], sequence[j]))
                    & (result.sequences[1] == Mux(first, sequence[j], sequence[i])),
                )
                for q, (rows, ticks) in enumerate(WINDOWS):
                    fits = Mux(first, rank < rows.size, age <= ticks.size)
                    expected.append(pair & fits)
                    marks.append(is_it & result.queries[q])
                with m.If(results.valid & is_it):
                    self.claim(m, (result.newest == now[j]) & (result.oldest == now[i]))
        wanted = self._named(m, Cat(expected))
        mark = self._named(m, Cat(marks))
        got = Signal(len(wanted))
        with m.If(handed):
            m.d.sync += got.eq(got | mark)
        with m.If(results.valid):
            self.claim(m, mark.any() & ((mark & ~(wanted & ~got)) == 0))
            self.claim(m, result.carries == 0b11)

        # The third tuple of stream 1 finds its window full of tuples that are still wanted.
        left = top.handed_over
        self._takes(m, left, "left")
        overflows = Const(0)
        if n == 3:
            overflows = Cat(of).all() & ((now[2] - now[0])[:4] <= 3)
        displaced = Signal()
        with m.If(left.valid & left.ready):
            m.d.sync += displaced.eq(1)
        with m.If(left.valid):
            self.claim(m, overflows & ~displaced)
            self.claim(m, (left.payload.stream == 1) & (left.payload.sequence == sequence[0]))
            self.claim(m, (left.payload.taker == 1) & (left.payload.taken_by == sequence[-1]))

        # When nothing is in flight everything has come; with willing takers that is soon so.
        all_came = came == n
        self.claim(m, ~(all_came & top.idle) | ((got == wanted) & (displaced == overflows)))
        willing = Signal(range(self.drained + 1))
        kept_waiting = (results.valid & ~results.ready) | (left.valid & ~left.ready)
        with m.If(~all_came | kept_waiting):
            m.d.sync += willing.eq(0)
        with m.Elif(willing != self.drained):
            m.d.sync += willing.eq(willing + 1)
        self.claim(m, (willing != self.drained) | top.idle)
        # A waiting output does not change.
        self._stable(m, results)
        self._stable(m, left)

        waited = Signal(range(12))
        with m.If(results.valid & ~results.ready & (waited != 11)):
            m.d.sync += waited.eq(waited + 1)
        if len(set(self.streams)) == 1:
            self.reach(m, all_came & top.idle & displaced)
            return
        self.reach(m, all_came & top.idle & wanted[0] & wanted[-1] & (waited == 11))
        self.reach(m, all_came & top.idle & (wanted == 0))
        self.reach(m, (willing == self.drained) & (waited == 11))

    def _load(self, m: Module, config: DeviceConfig, top: Wjasip) -> Value:
        """Sends the commands that load the tables; returns whether all were answered."""
        commands = [
            Command(ControlOperation.BEGIN),
            *load_commands(tables(), config),
            Command(ControlOperation.COMMIT),
        ]
        layout = top.commands.payload.shape()
        words = []
        for command in commands:
            members = {
                "operation": command.operation,
                "target": command.target,
                "unit": command.unit,
                "address": command.address,
                "data": command.data,
            }
            words.append(Const(layout.const(members).as_value().value, layout.size))
        size = len(commands)
        at, answered = Signal(range(size + 1)), Signal(range(size + 1))
        m.d.comb += [
            top.commands.valid.eq(at != size),
            top.commands.payload.as_value().eq(Array([*words, Const(0, layout.size)])[at]),
            top.responses.ready.eq(1),
        ]
        with m.If(top.commands.valid & top.commands.ready):
            m.d.sync += at.eq(at + 1)
        with m.If(top.responses.valid):
            m.d.sync += answered.eq(answered + 1)
            self.claim(m, top.responses.payload.verdict == Verdict.OK)
        return answered == size

    def _takes(self, m: Module, stream: object, name: str) -> None:
        """Takes from a stream: in any cycle, or always after the same number of cycles, any."""
        if not self.steadily:
            m.d.comb += stream.ready.eq(anything(m, 1, f"{name}_ready"))
            return
        patience, waits = constant(m, 4, f"{name}_patience"), Signal(4)
        m.d.comb += stream.ready.eq(waits == patience)
        with m.If(stream.valid & ~stream.ready):
            m.d.sync += waits.eq(waits + 1)
        with m.Elif(stream.valid):
            m.d.sync += waits.eq(0)

    def _stable(self, m: Module, stream: object) -> None:
        waits = before(m, stream.valid & ~stream.ready)
        payload = stream.payload.as_value()
        self.claim(m, ~waits | (stream.valid & (payload == before(m, payload))))

    @staticmethod
    def _named(m: Module, value: Value) -> Signal:
        it = Signal(len(value))
        m.d.comb += it.eq(value)
        return it


def joins(**options: object) -> object:
    return lambda: WholeJoins(**options)


REPEATS = (
    Output, "& ~left)\n        with m.If(leaves):", ")\n        with m.If(0):"
)  # fmt: skip
"""A record comes again."""
NEVER_DONE = (
    Contexts, "number) for i in range(config.streams + 1)",
    "number) for i in range(config.streams)"
)  # fmt: skip
"""A tuple that the output is done with stays in flight."""


@pytest.mark.parametrize(
    "case",
    [
        proof("pair", joins(), "search", BOUND),
        proof("pair", joins(), "meet", BOUND + 120),
        proof("pair-turned", joins(streams=(1, 0), gaps=(0, 9)), "search", BOUND + 10),
        # Of three that come at once, the last begins when the first two are through.
        proof("three", joins(streams=(0, 1, 0), drained=230), "search", BOUND + 110, limit=1800),
        proof("overflow", joins(streams=(1, 1, 1), drained=230), "search", BOUND + 110, limit=1800),
        proof("overflow", joins(streams=(1, 1, 1)), "meet", BOUND + 110),
        proof("repeats", joins(fault=REPEATS), "search", BOUND, "FAIL"),
        proof("never-done", joins(fault=NEVER_DONE), "search", BOUND, "FAIL"),
    ],
)
def test_top(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
