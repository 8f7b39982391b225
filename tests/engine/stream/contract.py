"""Judges of the operator contract: check the numbered rules of `seustream.engine.stream.operator`
at every call, and run single operators over recorded inputs in random pieces."""

from __future__ import annotations

import gc
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import FunctionType, ModuleType

import numpy as np
import pyarrow as pa

from seustream.compiler.logical.levels import definitions
from seustream.compiler.pipeline import Compilation
from seustream.cosim.golden import GoldenDevice
from seustream.engine.graph import GraphRun, drive
from seustream.engine.stream.faults import QueryFaults
from seustream.engine.stream.merge import END_OF_STREAM
from seustream.engine.stream.operator import BEGIN_OF_TIME, Answer, Operator
from seustream.engine.stream.snapshot import unpack
from tests.cosim.bridge.serving import Rows, multiset


class Checked:
    """Wraps an operator; raises an `AssertionError` if the operator or its caller breaks a rule.

    `times` maps a query to the column with the time of its results; a pattern whose results define
    no stream has none.
    """

    def __init__(self, operator: Operator, times: Mapping[str, str]) -> None:
        self.operator, self.times = operator, times
        self.inputs = operator.inputs
        self.marks = dict.fromkeys(self.inputs, BEGIN_OF_TIME)
        self.last: dict[str, int] = {}
        self.reached = self.settled = operator.watermark
        self.taken: dict[str, list[pa.Table]] = {name: [] for name in self.inputs}

    @property
    def faults(self) -> Mapping[str, QueryFaults]:
        return self.operator.faults

    @property
    def watermark(self) -> int:
        found = self.operator.watermark
        assert found >= self.reached, f"rule 5: the watermark retreats to {found}"
        self.reached = found
        return found

    def push(self, input: str, rows: pa.Table) -> None:
        assert input in self.inputs, f"rule 1: {input} is no input"
        assert self.marks[input] < END_OF_STREAM or not rows.num_rows, "rule 3: a row after the end"
        assert rows.schema.field(0).name == "ts", "rule 2: ts is not the first column"
        ts = rows.column("ts").to_numpy()
        if len(ts):
            assert (np.diff(ts) >= 0).all(), "rule 2: rows are not in order"
            assert ts[0] >= self.last.get(input, int(ts[0])), "rule 2: rows fall back between calls"
            assert ts[0] > self.marks[input], "rule 2: a row at or before the watermark"
            self.last[input] = int(ts[-1])
        self.taken[input].append(rows)
        self.operator.push(input, rows)

    def advance(self, input: str, watermark: int) -> None:
        assert input in self.inputs, f"rule 1: {input} is no input"
        assert watermark >= self.marks[input], f"rule 3: {input} retreats to {watermark}"
        self.marks[input] = watermark
        self.operator.advance(input, watermark)

    def outputs(self) -> Iterator[Answer]:
        before = self.settled
        for query, rows in self.operator.outputs():
            assert query.removesuffix("#") in self.operator.faults, f"rule 4: {query} is no query"
            if query in self.times and rows.num_rows:
                ts = rows.column(self.times[query]).to_numpy()
                assert ts.min() > before, f"rule 5: {query} at {ts.min()}, watermark {before}"
            yield query, rows
        self.settled = self.watermark
        if self.marks and all(mark == END_OF_STREAM for mark in self.marks.values()):
            assert self.watermark == END_OF_STREAM, "rule 5: all inputs ended, the output did not"
        assert not list(self.operator.outputs()), "rule 4: a result comes again"

    def snapshot(self) -> bytes:
        found = self.operator.snapshot()
        assert self.operator.snapshot() == found, "rule 7: to take a snapshot changes the state"
        return found

    def restore(self, snapshot: bytes) -> None:
        self.operator.restore(snapshot)
        self.reached = self.settled = self.operator.watermark


@dataclass
class Recorded:
    """An operator's inputs, whole, and its answers, which must not depend on how inputs are cut.
    `order` has the times of the rows of each stream that it defines, in the order they come."""

    inputs: dict[str, pa.Table]
    answers: dict[str, Rows] = field(default_factory=dict)
    order: dict[str, list[int]] = field(default_factory=dict)

    def add(self, query: str, rows: pa.Table, times: Mapping[str, str]) -> None:
        self.answers[query] = self.answers.get(query, Counter()) + multiset(rows)
        if times.get(query) == "ts":
            self.order.setdefault(query, []).extend(rows.column("ts").to_pylist())


def times_of(compilation: Compilation) -> dict[str, str]:
    """Returns the column with the time of a result, by the name of its answer."""
    program = compilation.program
    found = {query.name: "ts_newest" for query in program.asked}
    defined = {id(node): name for name, node in definitions(program).items()}
    for node in (*program.queries, *program.patterns):
        if id(node) in defined:
            found[node.name] = "ts"
    return found | {f"{compiled.name}#": "ts" for compiled in program.apas.values()}


def fresh(compilation: Compilation) -> GraphRun:
    return GraphRun(compilation, GoldenDevice(compilation.options.config))


def checked_run(compilation: Compilation) -> GraphRun:
    """Returns a run whose operators are all `Checked`."""
    run, times = fresh(compilation), times_of(compilation)
    for name, operator in run.operators.items():
        exchange(run, name, Checked(operator, times))
    return run


def exchange(run: GraphRun, name: str, other: Operator) -> None:
    """Puts another operator in the place of one of a run."""
    before, run.operators[name] = run.operators[name], other
    for readers in run.readers.values():
        readers[:] = [other if reader is before else reader for reader in readers]


def recorded(
    compilation: Compilation, rows: Mapping[str, pa.Table], at: int
) -> dict[str, Recorded]:
    """Returns every operator's inputs and answers in one run over whole streams, with each call
    checked."""
    run, times = checked_run(compilation), times_of(compilation)
    found: dict[str, Recorded] = {}
    for _ in drive(run, rows, at):
        pass
    for name, judge in run.operators.items():
        assert isinstance(judge, Checked)
        taken = {i: pa.concat_tables(t) for i, t in judge.taken.items() if t}
        one = found[name] = Recorded(taken)
        alone = Checked(fresh(compilation).operators[name], times)
        for input in alone.inputs:
            if input in taken:
                alone.push(input, taken[input])
            alone.advance(input, END_OF_STREAM)
        for query, answer in alone.outputs():
            one.add(query, answer, times)
    return found


def in_pieces(
    compilation: Compilation, name: str, want: Recorded, chance: random.Random, saves: float = 0.2
) -> Recorded:
    """Returns the answers of an operator to the same inputs in random pieces: the inputs
    interleaved at random, watermarks between any two rows, saved and restored now and then."""
    times = times_of(compilation)
    judge = Checked(fresh(compilation).operators[name], times)
    found = Recorded(want.inputs)
    many = sum(rows.num_rows for rows in want.inputs.values())
    saves = min(saves, 150 / max(many, 1))  # about 25 at most if rows explode
    left = {i: want.inputs.get(i) for i in judge.inputs}
    while left:
        input = chance.choice(sorted(left))
        rows = left[input]
        size = chance.choice((0, 1, 2, chance.randint(0, 40)))
        if rows is not None and size:
            judge.push(input, rows.slice(0, size))
            rows = left[input] = rows.slice(size)
        if chance.random() < 0.5:
            if rows is None or not rows.num_rows:
                judge.advance(input, END_OF_STREAM)
                del left[input]
            else:
                low = max(judge.marks[input], judge.last.get(input, -9) - 2)
                high = int(rows.column("ts")[0].as_py()) - 1
                if low <= high:
                    judge.advance(input, chance.randint(low, high))
        if chance.random() < 0.6:
            for query, answer in judge.outputs():
                found.add(query, answer, times)
        if chance.random() < saves:
            saved = judge.snapshot()
            operator = fresh(compilation).operators[name]
            operator.restore(saved)
            alike(operator.snapshot(), saved)
            assert operator.watermark == judge.watermark, "rule 7: another watermark"
            judge.operator = operator  # the restored one keeps its promises, too
    for query, answer in judge.outputs():
        found.add(query, answer, times)
    return found


def alike(found: bytes, want: bytes) -> None:
    """Asserts that two states are equal, except for how their tables are chunked."""
    head = json.loads(want[14 : 14 + int.from_bytes(want[6:14], "little")])
    one, other = (unpack(data, head["kind"], head["version"]) for data in (found, want))
    assert one.plain == other.plain, "rule 7: a restored state is another"
    assert one.tables.keys() == other.tables.keys(), "rule 7: a restored state has other tables"
    for name, rows in other.tables.items():
        assert one.tables[name].equals(rows), f"rule 7: {name} is another, once restored"


def same(found: Recorded, want: Recorded) -> None:
    empty: Rows = Counter()
    for query in want.answers.keys() | found.answers.keys():
        got, wanted = found.answers.get(query, empty), want.answers.get(query, empty)
        assert got == wanted, f"rule 6: {query}: {got - wanted} too many, {wanted - got} missing"
    for query, order in found.order.items():
        assert order == sorted(want.order[query]), f"rule 6: {query} is not in order of time"


def held(operator: object) -> int:
    """Returns the bytes that an operator keeps alive: whole Arrow buffers, even if it only holds a
    slice; arrays; containers.

    The compiled query set and the device exist before any row, so they do not count."""
    seen: set[int] = set()
    buffers: set[tuple[int, int]] = set()
    total, stack = 0, [operator]
    while stack:
        one = stack.pop()
        module = type(one).__module__
        if id(one) in seen or isinstance(one, type | ModuleType | FunctionType):
            continue
        if module.startswith(("seustream.compiler", "seustream.hdl", "seustream.cosim")):
            continue
        seen.add(id(one))
        if isinstance(one, pa.Table | pa.ChunkedArray | pa.Array):
            columns = one.columns if isinstance(one, pa.Table) else [one]
            for column in columns:
                chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
                for chunk in chunks:
                    buffers |= {(b.address, b.size) for b in chunk.buffers() if b is not None}
        elif isinstance(one, np.ndarray):
            while isinstance(one.base, np.ndarray):
                one = one.base
            if id(one) not in seen or one.base is None:
                seen.add(id(one))
                total += one.nbytes
            if one.dtype == object:
                stack += one.tolist()
        else:
            total += sys.getsizeof(one)
            stack += gc.get_referents(one)
    return total + sum(size for _, size in buffers)
