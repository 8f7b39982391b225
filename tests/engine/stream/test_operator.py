"""The operator contract, tested with every operator: those of one query set with all of them, and
those of random sets."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from seustream.compiler.pipeline import Compilation
from seustream.cosim.golden import GoldenDevice
from seustream.engine.graph import GraphRun
from seustream.engine.stream.merge import END_OF_STREAM
from seustream.engine.stream.operator import BEGIN_OF_TIME, Answer, Operator
from seustream.engine.stream.snapshot import Snapshot, unpack
from tests.cosim.bridge.serving import EVERYTHING, compiled, streams
from tests.engine.stream import contract
from tests.engine.stream.contract import (
    Checked,
    Recorded,
    exchange,
    held,
    in_pieces,
    recorded,
    same,
)
from tests.system.mixed import DECLARED, case

OPERATORS = sorted(contract.fresh(compiled(EVERYTHING)).operators)


@pytest.fixture(scope="module")
def everything() -> tuple[Compilation, dict[str, Recorded]]:
    compilation = compiled(EVERYTHING)
    return compilation, recorded(compilation, streams(300, 3), 17)


def test_every_operator_is_here() -> None:
    kinds = {type(one).__name__ for one in contract.fresh(compiled(EVERYTHING)).operators.values()}
    assert kinds == {"HostDriver", "SoftwareJoin", "PatternNode", "TemporalNode"}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("seed", range(3))
def test_any_pieces_and_saved_anywhere(
    name: str, seed: int, everything: tuple[Compilation, dict[str, Recorded]]
) -> None:
    print(f"seed {seed}")
    compilation, runs = everything
    assert sum(rows.total() for rows in runs[name].answers.values()) > 3
    same(in_pieces(compilation, name, runs[name], random.Random(seed)), runs[name])


@pytest.mark.parametrize("seed", range(100, 112))
def test_random_sets(seed: int) -> None:
    print(f"seed {seed}")
    of, chance = case(seed), random.Random(seed)
    print(of.text)
    compilation = of.compilation
    for name, want in recorded(compilation, of.rows, chance.randint(1, 50)).items():
        same(in_pieces(compilation, name, want, chance), want)


def test_memory_is_bounded_by_the_windows() -> None:
    """Four times the rows take the same memory, counted in bytes that each operator keeps alive."""
    assert_bounded(lambda name, operator: operator)


def assert_bounded(change: Callable[[str, Operator], Operator]) -> None:
    compilation, rows, at = compiled(EVERYTHING), streams(1600, 1), 40
    run = GraphRun(compilation, GoldenDevice(compilation.options.config), slice_rows=32)
    for name, operator in run.operators.items():
        exchange(run, name, change(name, operator))
    most: dict[str, list[int]] = {name: [0] * 4 for name in run.operators}
    for number in range(40):
        for stream, table in rows.items():
            # Copy, because a slice keeps the whole table alive.
            run.push(stream, table.take(list(range(number * at, number * at + at))))
        for _ in run.advance():
            pass
        if number % 2:
            continue
        for name, operator in run.operators.items():
            quarters = most[name]
            quarters[number // 10] = max(quarters[number // 10], held(operator))
    for name, quarters in most.items():
        first, *_, last = quarters
        assert last < 1.5 * first + 4096, f"rule 8: {name} holds {quarters} bytes, by quarters"


# --- each rule broken on purpose ------------------------------------------------------


class Broken:
    """A real operator, that of the first software join, with one behaviour changed."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.inputs = operator.inputs
        self.faults = operator.faults
        self.calls = 0

    @property
    def watermark(self) -> int:
        return self.operator.watermark

    def push(self, input: str, rows: pa.Table) -> None:
        self.calls += 1
        self.operator.push(input, rows)

    def advance(self, input: str, watermark: int) -> None:
        self.operator.advance(input, watermark)

    def outputs(self) -> Iterator[Answer]:
        yield from self.operator.outputs()

    def snapshot(self) -> bytes:
        return self.operator.snapshot()

    def restore(self, snapshot: bytes) -> None:
        self.operator.restore(snapshot)


class Hasty(Broken):
    """Promises a watermark beyond what it knows."""

    @property
    def watermark(self) -> int:
        found = self.operator.watermark
        return found + 200 if BEGIN_OF_TIME < found < END_OF_STREAM - 200 else found


class Wavering(Broken):
    """Takes a watermark back."""

    @property
    def watermark(self) -> int:
        self.calls += 1
        return self.operator.watermark - 7 * (self.calls % 3)


class Endless(Broken):
    """Never reaches the end-of-stream watermark."""

    @property
    def watermark(self) -> int:
        return min(self.operator.watermark, END_OF_STREAM - 1)


class Repeating(Broken):
    """Repeats the last answer."""

    last: tuple[Answer, ...] = ()

    def outputs(self) -> Iterator[Answer]:
        yield from self.last
        self.last = tuple(self.operator.outputs())
        yield from self.last


class Misnaming(Broken):
    """Answers a query that does not exist."""

    def outputs(self) -> Iterator[Answer]:
        for query, rows in self.operator.outputs():
            yield f"{query} again", rows


class Careless(Broken):
    """Loses the first row of every call after the ninth."""

    def push(self, input: str, rows: pa.Table) -> None:
        self.calls += 1
        self.operator.push(input, rows.slice(1) if self.calls > 9 else rows)


class Forgetful(Broken):
    """Keeps only the plain part of its state."""

    def snapshot(self) -> bytes:
        whole = unpack(self.operator.snapshot(), "software join")
        tables = {name: rows.slice(0, 0) for name, rows in whole.tables.items()}
        return Snapshot(whole.kind, whole.plain, tables).pack()


class Unsteady(Broken):
    """Gives a different state on each snapshot."""

    def snapshot(self) -> bytes:
        self.calls += 1
        whole = unpack(self.operator.snapshot(), "software join")
        return Snapshot(whole.kind, whole.plain | {"n": self.calls}, whole.tables).pack()


class Hoarding(Broken):
    """Keeps every row it has taken."""

    def __init__(self, operator: Operator) -> None:
        super().__init__(operator)
        self.kept: list[pa.Table] = []

    def push(self, input: str, rows: pa.Table) -> None:
        self.kept.append(rows)
        super().push(input, rows)


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (Hasty, 5), (Wavering, 5), (Endless, 5), (Repeating, 4), (Misnaming, 4), (Careless, 6),
        (Forgetful, 6), (Unsteady, 7),
    ],
)  # fmt: skip
def test_a_broken_rule_is_found(
    broken: type[Broken],
    rule: int,
    everything: tuple[Compilation, dict[str, Recorded]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compilation, runs = everything
    name, fresh, saves = "software join 1", contract.fresh, 0.2 if rule > 5 else 0.0

    def one(compilation: Compilation) -> GraphRun:
        run = fresh(compilation)
        run.operators[name] = broken(run.operators[name])
        return run

    monkeypatch.setattr(contract, "fresh", one)
    with pytest.raises(AssertionError, match=f"rule {rule}"):
        same(in_pieces(compilation, name, runs[name], random.Random(1), saves), runs[name])


def test_memory_without_a_bound_is_found() -> None:
    with pytest.raises(AssertionError, match="rule 8: software join 1"):
        assert_bounded(lambda name, it: Hoarding(it) if name == "software join 1" else it)


def rows_at(*ts: int) -> pa.Table:
    return pa.table({"ts": pa.array(ts, pa.int64()), "d": [1] * len(ts), "name": ["n"] * len(ts)})


@pytest.mark.parametrize(
    ("calls", "rule"),
    [
        ([("push", "Z", rows_at(1))], 1),
        ([("advance", "Z", 1)], 1),
        ([("push", "S", rows_at(2, 1))], 2),
        ([("push", "S", rows_at(2)), ("push", "S", rows_at(1))], 2),
        ([("advance", "S", 5), ("push", "S", rows_at(5))], 2),
        ([("push", "S", rows_at(2).select(["d", "ts"]))], 2),
        ([("advance", "S", 5), ("advance", "S", 4)], 3),
        ([("advance", "S", END_OF_STREAM), ("push", "S", rows_at(9))], 3),
    ],
)
def test_a_caller_that_breaks_a_rule_is_found(calls: list[tuple[str, str, Any]], rule: int) -> None:
    judge = Checked(contract.fresh(compiled(EVERYTHING)).operators["software join 1"], {})
    *before, (method, input, given) = calls
    for name, *arguments in before:
        getattr(judge, name)(*arguments)
    with pytest.raises(AssertionError, match=f"rule {rule}"):
        getattr(judge, method)(input, given)


RELATIONAL = {
    "UnionOperator": "SELECT R.a FROM R WINDOW NOW UNION ALL SELECT S.d FROM S WINDOW NOW",
    "TreeOperator": "SELECT R.a, S.name FROM R LEFT JOIN S ON R.a = S.d WINDOW RANGE 9, RANGE 5",
    "PeriodOperator": "SELECT R.a, count(*) AS n FROM R GROUP BY R.a, TUMBLE(ts, 20 ms)",
    "OverOperator": "SELECT R.a, sum(R.b) OVER (PARTITION BY R.a ORDER BY R.ts ROWS BETWEEN 3 PRECEDING"
    " AND CURRENT ROW) AS s FROM R WINDOW NOW",
}


@pytest.mark.parametrize("kind", RELATIONAL)
@pytest.mark.parametrize("seed", range(3))
def test_relational_operators(kind: str, seed: int) -> None:
    print(f"seed {seed}")
    compilation = compiled(f"{DECLARED}REGISTER QUERY q AS {RELATIONAL[kind]};")
    operators = contract.fresh(compilation).operators
    assert kind in {type(one).__name__ for one in operators.values()}
    for name, want in recorded(compilation, streams(150, seed), 17).items():
        assert sum(rows.total() for rows in want.answers.values()) > 3
        same(in_pieces(compilation, name, want, random.Random(seed)), want)
