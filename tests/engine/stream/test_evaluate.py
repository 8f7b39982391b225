"""The evaluator by columns against the row reference: the same values and the same faults.

The random calls find a kernel of Arrow that means something else, a NULL gone astray, a fault that is
counted twice or not at all. That the row reference is right is for the cases by hand and DuckDB to say.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pyarrow as pa
import pytest

from compiler.language import expressions as x
from compiler.language import types as t
from compiler.language.evaluate import compile_row
from compiler.language.expressions import Column, Leaf
from compiler.language.faults import Faults
from compiler.language.functions import FUNCTIONS
from compiler.language.registry import Function, choose
from compiler.language.types import Type
from engine.stream.evaluate import evaluate
from engine.stream.schema import arrow_type
from tests.engine.stream.values import TYPES, column, value

Rows = dict[str, list[object]]


def leaf_columns(rows: Rows) -> Callable[[Leaf], pa.Array]:
    def leaf(of: Leaf) -> pa.Array:
        assert isinstance(of, Column)
        return pa.array(rows[of.name], arrow_type(of.type))

    return leaf


def leaf_rows(rows: Rows) -> Callable[[Leaf], Callable[[int], x.Value]]:
    def leaf(of: Leaf) -> Callable[[int], x.Value]:
        assert isinstance(of, Column)
        values = rows[of.name]
        return lambda row: values[row]  # type: ignore[return-value]

    return leaf


def same(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a == b and math.copysign(1, a) == math.copysign(1, b)
    return type(a) is type(b) and a == b


def compared(e: x.Expression, rows: Rows, count: int) -> Faults:
    """The faults of an expression, once columns and rows agree on them and on the values."""
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


def a_column(name: str, of: Type) -> Column:
    return Column(0, name, of, True, "R")


def signatures(entry: Function) -> list[tuple[str, int]]:
    return [(entry.name, number) for number in range(len(entry.overloads) + 1)]


def a_call(
    rng: random.Random, entry: Function, number: int, count: int
) -> tuple[x.Call, Rows] | None:
    """A call of an overload with random types, columns and constants; None where types do not fit."""
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
