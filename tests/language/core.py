"""The language core by itself: expressions over named, typed columns, evaluated by rows and by
columns.

A row is a mapping from names to Python values; NULL is None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from lark.exceptions import UnexpectedInput

from seustream.compiler.errors import CompileError, Problems, SourceText, Span
from seustream.compiler.language import expressions as x
from seustream.compiler.language import types
from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.language.bind import ParameterValue
from seustream.compiler.language.convert import to_real
from seustream.compiler.language.evaluate import compile_row, convert
from seustream.compiler.language.faults import Faults, Place
from seustream.compiler.language.registry import FAULT
from seustream.compiler.language.types import Kind, Type
from seustream.engine.stream.evaluate import evaluate
from seustream.engine.stream.schema import arrow_type
from tests.compiler.language import plain

Row = Mapping[str, Any]
Evaluate = Callable[[x.Expression, Sequence[Row], Faults], list[Any]]


def bind(
    text: str,
    columns: Mapping[str, Type],
    parameters: Mapping[str, ParameterValue] | None = None,
) -> x.Expression:
    """Returns the bound expression; raises `CompileError` if it has no meaning."""
    try:
        bound = plain.bind(text, columns, parameters, aggregates=True)
    except UnexpectedInput as error:
        at = min(error.pos_in_stream or 0, len(text))
        bound = Problems()
        bound.add("syntax", str(error), Span(at, at + 1))
    if isinstance(bound, Problems):
        raise CompileError(SourceText(text), bound.found)
    return bound


def type_named(name: str) -> Type:
    """Returns a type by its name, including `list(int)` and `null`."""
    if name.startswith("list("):
        return types.list_of(type_named(name[5:-1]))
    return types.NULL if name == "null" else plain.type_named(name)


def read(value: Any, of: Type) -> Any:
    """Returns a value as it enters the engine: NaN becomes NULL, a real is rounded to 24 bits."""
    if isinstance(value, float) and math.isnan(value):
        return None
    return to_real(value) if of.kind is Kind.REAL and value is not None else value


def by_rows(e: x.Expression, rows: Sequence[Row], faults: Faults) -> list[Any]:
    """Returns the value in each row, by the row reference."""
    value = compile_row(e, _cell, faults)
    return [value(row) for row in rows]


def _cell(e: x.Leaf) -> Callable[[Row], Any]:
    assert isinstance(e, x.ColumnReference)
    name = e.name
    return lambda row: row[name]


def by_columns(e: x.Expression, rows: Sequence[Row], faults: Faults) -> list[Any]:
    """Returns the value in each row, by the evaluator by columns."""

    def column(of: x.Leaf) -> pa.Array:
        assert isinstance(of, x.ColumnReference)
        return pa.array([row[of.name] for row in rows], arrow_type(of.type))

    found: list[Any] = evaluate(e, column, len(rows), faults).to_pylist()
    return found


def aggregated(
    e: x.Expression, rows: Sequence[Row], faults: Faults, each: Evaluate = by_rows
) -> Any:
    """Returns the value of an expression of aggregates over all rows, by the definitions of the
    registry; `each` evaluates arguments and filters."""
    values: dict[str, Any] = {}

    def replaced(part: x.Expression) -> x.Expression:
        if isinstance(part, x.AggregateCall):
            name = f"aggregate {len(values)}"
            values[name] = _aggregate(part, rows, faults, each)
            return x.ColumnReference(0, name, part.type, True, "t")
        return x.rebuild(part, replaced)

    over = replaced(e)
    [value] = each(over, [values], faults)
    return value


def _aggregate(e: x.AggregateCall, rows: Sequence[Row], faults: Faults, each: Evaluate) -> Any:
    if e.where is not None:
        keeps = each(e.where, rows, faults)
        rows = [row for row, keep in zip(rows, keeps, strict=True) if keep]
    entry = AGGREGATES[e.function]
    columns = [
        [convert(value, argument.type, to) for value in each(argument, rows, faults)]
        for argument, to in zip(e.arguments, e.takes, strict=True)
    ]
    given = list(zip(*columns, strict=True)) if columns else [() for _ in rows]
    given = [values for values in given if None not in values]
    if e.distinct:
        given = list(dict.fromkeys(given))
    state = entry.init()
    for values in given:
        state = entry.insert(state, *values)
    result = entry.result(e.type, state) if entry.typed else entry.result(state)
    if result is FAULT:
        faults.add(Place(e.at, x.show(e), entry.fault), 1, 0)
        return None
    return result
