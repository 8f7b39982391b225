"""The evaluator by columns compared with the row reference: the same values and the same faults.

The random calls reveal an Arrow kernel with another meaning, a NULL gone astray, a fault that is
counted twice or not at all. The cases by hand and DuckDB show that the row reference is right.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence

import pyarrow as pa
import pytest

from seustream.compiler.language import expressions as x
from seustream.compiler.language import types as t
from seustream.compiler.language.evaluate import compile_row
from seustream.compiler.language.expressions import ColumnReference, Leaf
from seustream.compiler.language.faults import FaultError, Faults, Place
from seustream.compiler.language.functions import FUNCTIONS
from seustream.compiler.language.registry import ScalarFunction, choose
from seustream.compiler.language.types import Type
from seustream.engine.stream.evaluate import evaluate, survivors
from seustream.engine.stream.schema import arrow_type
from seustream.hdl.isa import Condition
from tests.engine.stream.trees import COLUMNS, Trees
from tests.engine.stream.values import TYPES, column, value

Rows = dict[str, list[object]]


def leaf_columns(rows: Rows) -> Callable[[Leaf], pa.Array]:
    def leaf(of: Leaf) -> pa.Array:
        assert isinstance(of, ColumnReference)
        return pa.array(rows[of.name], arrow_type(of.type))

    return leaf


def leaf_rows(rows: Rows) -> Callable[[Leaf], Callable[[int], x.Value]]:
    def leaf(of: Leaf) -> Callable[[int], x.Value]:
        assert isinstance(of, ColumnReference)
        values = rows[of.name]
        return lambda row: values[row]  # type: ignore[return-value]

    return leaf


def same(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a == b and math.copysign(1, a) == math.copysign(1, b)
    return type(a) is type(b) and a == b


def compared(e: x.Expression, rows: Rows, count: int) -> Faults:
    """Asserts that columns and rows agree on values and faults; returns the faults."""
    by_column, by_row = Faults(), Faults()
    found = evaluate(e, leaf_columns(rows), count, by_column)
    assert found.type == arrow_type(e.type)
    assert len(found) == count
    compute = compile_row(e, leaf_rows(rows), by_row)
    wanted = [compute(row) for row in range(count)]
    for row, (a, b) in enumerate(zip(found.to_pylist(), wanted, strict=True)):
        given = {name: values[row] for name, values in rows.items()}
        assert same(a, b), f"{x.show(e)}: column {a!r}, row {b!r} of {given}"
    text = f"{x.show(e)} of {rows}"
    assert by_column.count == by_row.count, text
    assert by_column.first == by_row.first, text
    quiet = evaluate(e, leaf_columns(rows), count)
    assert quiet.equals(found)
    return by_row


def a_column(name: str, of: Type) -> ColumnReference:
    return ColumnReference(0, name, of, True, "R")


def signatures(entry: ScalarFunction) -> list[tuple[str, int]]:
    return [(entry.name, number) for number in range(len(entry.overloads) + 1)]


def a_call(
    rng: random.Random, entry: ScalarFunction, number: int, count: int
) -> tuple[x.Call, Rows] | None:
    """Returns a call of an overload with random types, columns and constants; None if types do not
    fit."""
    own = entry.overloads[number - 1] if number else entry
    wanted = list(own.parameters)
    if not number:
        wanted = wanted[: len(wanted) - rng.randint(0, entry.optional)]
    if entry.variadic:
        wanted += [wanted[-1]] * rng.randint(0, 2)
    fitting = [[of for of in TYPES if p.accepts(of)] for p in wanted]
    types = [rng.choice(some) for some in fitting]
    if len({p.takes for p in wanted}) == 1 and rng.random() < 0.5:
        types = [
            types[0] if types[0] in some else of for of, some in zip(types, fitting, strict=True)
        ]
    chosen = choose(wanted, own.result, types)
    others = (entry.parameters, *(o.parameters for o in entry.overloads[: max(number - 1, 0)]))
    taken = number and any(
        len(other) == len(types) and choose(other, t.BOOLEAN, types) for other in others
    )
    if chosen is None or taken:
        return None
    arguments: list[x.Expression] = []
    rows: Rows = {}
    constant = rng.random() < 0.5
    for place, of in enumerate(types):
        name = f"c{place}"
        rows[name] = column(rng, of, count, rng.choice((0, 0.3)))
        if constant and place and rng.random() < 0.8:
            known = None if rng.random() < 0.1 else value(rng, of)
            arguments.append(x.Literal(known, of))  # type: ignore[arg-type]
        else:
            arguments.append(a_column(name, of))
    return x.Call(entry.name, tuple(arguments), chosen.takes, chosen.type, number), rows


@pytest.mark.parametrize(
    ("name", "number"), [each for entry in FUNCTIONS.values() for each in signatures(entry)]
)
def test_every_entry_by_column_and_by_row(name: str, number: int) -> None:
    rng = random.Random(f"{name} {number}")
    tried = attempts = 0
    while tried < 60 and attempts < 5000:
        attempts += 1
        count = rng.choice((0, 1, 5, 40))
        made = a_call(rng, FUNCTIONS[name], number, count)
        if made is not None:
            compared(*made, count)
            tried += 1
    assert tried == 60


A, B, N = (a_column(name, t.INT) for name in "abn")
D, E = (a_column(name, t.DOUBLE) for name in "de")
P, Q = (a_column(name, t.BOOLEAN) for name in "pq")


# --- conversions ----------------------------------------------------------------


@pytest.mark.parametrize("of", TYPES, ids=str)
def test_every_cast_by_column_and_by_row(of: Type) -> None:
    rng = random.Random(f"cast {of}")
    for to in TYPES:
        if not t.castable(of, to):
            continue
        for quiet in (False, True):
            for count in (0, 3, 60):
                rows: Rows = {"c": column(rng, of, count)}
                faults = compared(x.Cast(a_column("c", of), to, quiet), rows, count)
                assert not (quiet and faults.total)


def test_comparisons_of_all_types_that_meet() -> None:
    rng = random.Random("compare")
    for a in TYPES:
        for b in TYPES:
            met = t.common(a, b)
            if met is None:
                continue
            for condition in list(Condition)[:6]:
                rows: Rows = {"a": column(rng, a, 30), "b": column(rng, b, 30)}
                e = x.Compare(condition, a_column("a", a), a_column("b", b), met)
                assert compared(e, rows, 30).total == 0
                constant = x.Literal(value(rng, b), b)  # type: ignore[arg-type]
                compared(x.Compare(condition, a_column("a", a), constant, met), rows, 30)


def test_rounding_of_columns_is_that_of_what_is_written() -> None:
    rng = random.Random("round")

    def real() -> float:
        """Often draws a number whose last digit is the 5 that decides."""
        match rng.randrange(4):
            case 0:
                return float(f"{rng.randrange(-(10**5), 10**5)}.{rng.randrange(10**places)}5")
            case 1:
                return round(rng.uniform(-1000, 1000), places + 1)
            case 2:
                return rng.uniform(-10, 10)
        return rng.choice((0.0, -0.0, 0.5, -0.5, 1.005, 2.675, 1.015, -1e-9, 0.285))

    for places in (0, 1, 2, 2, 3, 5, 9, 12):
        rows: Rows = {"d": [real() for _ in range(300)]}
        arguments = (D, x.Literal(places, t.INT))
        e = x.Call("round", arguments, (t.DOUBLE, t.BIGINT), t.DOUBLE, 5)
        compared(e, rows, 300)


# --- trees ----------------------------------------------------------------------


def quotient(a: x.Expression, b: x.Expression) -> x.Call:
    return x.Call("/", (a, b), (t.DOUBLE, t.DOUBLE), t.DOUBLE, 3)


def random_number(rng: random.Random, depth: int) -> x.Expression:
    """Returns a random expression that often has faults."""
    if depth == 0:
        return rng.choice((A, B, N, D, E, x.Literal(0, t.INT), x.Literal(2.5, t.DOUBLE)))
    match rng.randrange(7):
        case 0 | 1:
            return quotient(random_number(rng, depth - 1), random_number(rng, depth - 1))
        case 2:
            term = random_number(rng, depth - 1)
            return x.Call("ln", (term,), (t.DOUBLE,), t.DOUBLE)
        case 3:
            return x.Cast(random_number(rng, depth - 1), t.SMALLINT, rng.random() < 0.2)
        case 4:
            values = tuple(random_number(rng, depth - 1) for _ in range(2))
            return x.Call("coalesce", values, (t.DOUBLE,) * 2, t.DOUBLE)
        case 5:
            branches = tuple(
                (random_condition(rng, depth - 1), random_number(rng, depth - 1))
                for _ in range(rng.randint(1, 2))
            )
            return x.Case(branches, random_number(rng, depth - 1), t.DOUBLE)
    return random_number(rng, 0)


def random_condition(rng: random.Random, depth: int) -> x.Expression:
    if depth == 0:
        return rng.choice((P, Q, x.TRUE, x.FALSE, x.Literal(None, t.BOOLEAN)))
    match rng.randrange(6):
        case 0 | 1:
            make = rng.choice((x.And, x.Or))
            return make(tuple(random_condition(rng, depth - 1) for _ in range(rng.randint(2, 3))))
        case 2:
            return x.Not(random_condition(rng, depth - 1))
        case 3:
            return x.IsNull(random_number(rng, depth - 1), rng.random() < 0.5)
    condition = rng.choice(list(Condition)[:6])
    return x.Compare(
        condition, random_number(rng, depth - 1), random_number(rng, depth - 1), t.DOUBLE
    )


def tree_rows(rng: random.Random, count: int) -> Rows:
    numbers = [0, 0, 1, -1, 2, None, 70_000]
    rows: Rows = {name: [rng.choice(numbers) for _ in range(count)] for name in "abn"}
    for name in "de":
        rows[name] = [rng.choice((0.0, -0.0, 0.5, -2.0, math.inf, None)) for _ in range(count)]
    for name in "pq":
        rows[name] = [rng.choice((True, False, None)) for _ in range(count)]
    return rows


def test_random_trees_have_the_same_values_and_faults() -> None:
    rng = random.Random("trees")
    faults = 0
    for _ in range(500):
        count = rng.choice((0, 1, 12))
        make = rng.choice((random_number, random_condition))
        faults += compared(make(rng, 4), tree_rows(rng, count), count).total
    assert faults > 500


def typed_rows(rng: random.Random, e: x.Expression, count: int) -> Rows:
    """Returns values for the columns that an expression reads, and for one more."""
    read = {part.name: part for part in x.columns(e) | {COLUMNS[0]}}
    return {name: column(rng, read[name].type, count) for name in sorted(read)}


def campaign(seed: int, trees: int) -> set[str]:
    """Compares this many typed trees; returns the registry entries in them."""
    rng, made = random.Random(seed), Trees(seed)
    for _ in range(trees):
        e, count = made.any(rng.randint(1, 6)), rng.choice((0, 1, 6, 40))
        compared(e, typed_rows(rng, e, count), count)
    return made.used


@pytest.fixture
def short_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits the length of texts, which nested functions would make huge."""
    monkeypatch.setattr("seustream.compiler.language.functions.texts.MAX_TEXT", 500)


@pytest.mark.usefixtures("short_texts")
def test_random_typed_trees_over_every_entry() -> None:
    assert campaign(1, 600) == set(FUNCTIONS)


@pytest.mark.campaign
@pytest.mark.usefixtures("short_texts")
@pytest.mark.parametrize("seed", range(100, 110))
def test_many_random_typed_trees(seed: int) -> None:
    campaign(seed, 10_000)


def test_survivors_and_their_faults() -> None:
    """A fault counts in a row unless another condition leaves the row out: it is false, or it is NULL
    and has no fault itself. Each condition is judged in each row by itself."""
    rng = random.Random("survivors")
    total = 0
    for _ in range(300):
        count = rng.choice((0, 1, 20))
        rows = tree_rows(rng, count)
        conditions = [random_condition(rng, 3) for _ in range(rng.randint(1, 4))]

        def leaves(_: x.Expression, left: object, rows: Rows = rows) -> Callable[[Leaf], pa.Array]:
            return lambda leaf: leaf_columns(rows)(leaf).take(pa.array(left))

        wanted, counted_ = list[int](), Counter[Place]()
        for row in range(count):
            one = {name: [cells[row]] for name, cells in rows.items()}
            values, found = [], []
            for condition in conditions:
                faults = Faults()
                values += evaluate(condition, leaf_columns(one), 1, faults).to_pylist()
                found.append(faults)
            if all(values):
                wanted.append(row)
            out = [
                value is False or (value is None and not own.total)
                for value, own in zip(values, found, strict=True)
            ]
            for number, own in enumerate(found):
                if not any(out[:number] + out[number + 1 :]):
                    counted_.update(own.count)
        each = Faults()
        assert survivors(conditions, leaves, count).tolist() == wanted
        assert survivors(conditions, leaves, count, each).tolist() == wanted
        assert each.count == counted_, f"{[x.show(one) for one in conditions]} of {rows}"
        total += each.total
    assert total > 100


# --- the rule of faults -----------------------------------------------------------


def counted(e: x.Expression, **columns: Sequence[object]) -> list[tuple[str, int, int]]:
    """Returns each fault as its text, its number of rows and its first row."""
    rows: Rows = {name: list(values) for name, values in columns.items()}
    count = len(next(iter(columns.values())))
    faults = compared(e, rows, count)
    return [(place.text, n, faults.first[place]) for place, n in faults.count.items()]


RATIO = quotient(A, B)
RATIO_ABOVE = x.Compare(Condition.GT, RATIO, x.Literal(2, t.INT), t.DOUBLE)
B_THERE = x.Compare(Condition.NE, B, x.Literal(0, t.INT), t.INT)


def test_a_fault_counts_where_all_operands_have_a_value() -> None:
    found = counted(RATIO, a=[1, None, 1, 1, 1], b=[1, 0, None, 0, 0])
    assert found == [("R.a / R.b", 2, 3)]


@pytest.mark.parametrize("terms", [(B_THERE, RATIO_ABOVE), (RATIO_ABOVE, B_THERE)])
def test_what_another_operand_decides_is_no_fault(terms: tuple[x.Expression, ...]) -> None:
    assert counted(x.And(terms), a=[1, 2], b=[0, 1]) == []
    assert counted(x.Or(terms), a=[1, 2], b=[0, 1]) == [("R.a / R.b", 1, 0)]


def test_of_a_case_the_branch_that_is_taken_counts() -> None:
    guarded = x.Case(((B_THERE, RATIO),), x.Literal(0, t.INT), t.DOUBLE)
    assert counted(guarded, a=[1, 2], b=[0, 1]) == []
    unguarded = x.Case(((x.Not(B_THERE), RATIO),), x.Literal(0, t.INT), t.DOUBLE)
    assert counted(unguarded, a=[1, 2], b=[0, 1]) == [("R.a / R.b", 1, 0)]
    condition = x.Case(((RATIO_ABOVE, A), (RATIO_ABOVE, B)), A, t.INT)
    assert counted(condition, a=[9, 1], b=[1, 0]) == [("R.a / R.b", 2, 1)]


def coalesce(*values: x.Expression) -> x.Call:
    return x.Call("coalesce", values, (t.DOUBLE,) * len(values), t.DOUBLE)


def test_coalesce_evaluates_what_it_needs() -> None:
    assert counted(coalesce(A, RATIO), a=[1, None], b=[0, 0]) == []
    assert counted(coalesce(B, RATIO), a=[1, 1], b=[0, None]) == []
    last = coalesce(N, RATIO, quotient(B, B), A)
    assert counted(last, n=[None, 1, None], a=[1, 1, 1], b=[0, 0, 2]) == [
        ("R.a / R.b", 1, 0), ("R.b / R.b", 1, 0)
    ]  # fmt: skip
    assert counted(coalesce(x.Literal(2, t.INT), RATIO), a=[1], b=[0]) == []
    assert counted(coalesce(x.Literal(None, t.NULL), RATIO), a=[1], b=[0]) == [("R.a / R.b", 1, 0)]
    within = x.Call("ln", (coalesce(A, RATIO),), (t.DOUBLE,), t.DOUBLE)
    assert counted(coalesce(B, within), a=[0, 0], b=[None, 0]) == [(x.show(within), 1, 0)]


def test_strict_names_the_first_row() -> None:
    rows: Rows = {"a": [1, 1, 1], "b": [1, 0, 0]}
    with pytest.raises(FaultError, match=r"division by zero in R\.a / R\.b, row 1"):
        evaluate(RATIO, leaf_columns(rows), 3, Faults(strict=True))
    by_row = compile_row(RATIO, leaf_rows(rows), Faults(strict=True))
    assert by_row(0) == 1.0
    with pytest.raises(FaultError, match="row 1"):
        by_row(1)


def test_an_aggregate_has_no_value_in_one_row() -> None:
    e = x.AggregateCall("sum", (A,), (t.INT,), t.BIGINT)
    with pytest.raises(TypeError, match="one row"):
        evaluate(e, leaf_columns({"a": [1]}), 1)
    with pytest.raises(TypeError, match="one row"):
        compile_row(e, leaf_rows({"a": [1]}))


def test_kernels_are_taken_where_there_are_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual operations never use the row reference."""

    def refuse(*_: object) -> pa.Array:
        raise AssertionError("by rows")

    monkeypatch.setattr("seustream.engine.stream.evaluate.each_row", refuse)
    monkeypatch.setattr("seustream.engine.stream.convert.each_row", refuse)
    rows: Rows = {"a": [1, 2, None], "b": [0, 2, 2], "d": [0.5, None, 2.0]}
    for e in (RATIO, RATIO_ABOVE, x.And((B_THERE, RATIO_ABOVE)), quotient(D, A)):
        evaluate(e, leaf_columns(rows), 3, Faults())
