"""Checks one random expression: columns against rows against DuckDB, and that its shown text reads
back.

    found = check(random.Random(7), asking.connection())
    found.difference                           None, or what differs where

A difference names the smallest part of the expression that has it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb

from seustream.compiler.errors import CompileError
from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from tests.language import asking, core, judge
from tests.language.generate import COLUMNS, Row, Writer, table
from tests.language.spelling import NotAsked

ROWS = 12
MOST_DEPTH = 6

JUDGED = frozenset({*judge.SPELLINGS, *judge.ALONE})
"""The functions of every second expression, so that DuckDB is asked often."""


@dataclass
class Found:
    """The outcome of a case: the text, whether it was bound and DuckDB asked, the registry entries
    in it, its number of faults, and the difference."""

    text: str
    bound: bool = False
    asked: bool = False
    entries: set[str] = field(default_factory=set)
    faults: int = 0
    difference: str | None = None

    def __str__(self) -> str:
        return f"{self.text}\n    {self.difference}"


def check(rng: random.Random, connection: duckdb.DuckDBPyConnection) -> Found:
    """Evaluates a random expression everywhere."""
    kind = rng.randrange(8)
    writer = Writer(rng, JUDGED if kind % 2 else None)
    aggregate = kind == 0
    depth = rng.randint(1, MOST_DEPTH)
    text = writer.aggregate(min(depth, 3)) if aggregate else writer.value(depth)
    found = Found(text)
    try:
        e = core.bind(text, COLUMNS)
    except CompileError as error:
        found.difference = None if _is_checked(error) else str(error)
        return found
    found.bound = True
    found.entries = {p.function for p in x.walk(e) if isinstance(p, (x.Call, x.AggregateCall))}
    rows = [
        {name: core.read(value, COLUMNS[name]) for name, value in row.items()}
        for row in table(rng, ROWS)
    ]
    try:
        found.difference = _compare(found, e, rows, connection, aggregate)
    except Exception as error:  # any error is a difference
        found.difference = f"{type(error).__name__}: {error}"
    return found


def _is_checked(error: CompileError) -> bool:
    """Returns whether an entry's own check of constants refused the expression."""
    marks = ("there is no ", "is no regular expression", "the pattern has a")
    return all(any(mark in p.message for mark in marks) for p in error.problems)


def _compare(
    found: Found,
    e: x.Expression,
    rows: Sequence[Row],
    connection: duckdb.DuckDBPyConnection,
    aggregate: bool,
) -> str | None:
    by_rows, by_columns = Faults(), Faults()
    if aggregate:
        values = [core.aggregated(e, rows, by_rows, core.by_rows)]
        others = [core.aggregated(e, rows, by_columns, core.by_columns)]
    else:
        values = core.by_rows(e, rows, by_rows)
        others = core.by_columns(e, rows, by_columns)
    found.faults = by_rows.total
    for row, (a, b) in enumerate(zip(values, others, strict=True)):
        if not same(a, b):
            return f"row {row}: by rows {a!r}, by columns {b!r}"
    if (by_rows.count, by_rows.first) != (by_columns.count, by_columns.first):
        return f"faults by rows {by_rows.count}, by columns {by_columns.count}"
    again = core.bind(x.show(e).replace("R.", ""), COLUMNS)
    if x.show(again) != x.show(e) or again.type != e.type:
        return f"shown as {x.show(e)}, which is bound to {x.show(again)}"
    return _judge(found, e, rows, values, connection)


def _judge(
    found: Found,
    e: x.Expression,
    rows: Sequence[Row],
    values: list[Any],
    connection: duckdb.DuckDBPyConnection,
) -> str | None:
    try:
        text, near = judge.text_of(e)
    except NotAsked:
        return None
    found.asked = True
    asking.load(connection, x.columns(e), rows)
    judged = asking.ask(connection, text, e.type)
    agree = asking.near if near else equal
    for row, (a, b) in enumerate(zip(values, judged, strict=True)):
        if not agree(a, b):
            where = _smallest(e, rows, connection) or e
            cells = {column.name: rows[row][column.name] for column in x.columns(where)}
            return f"row {row}: {a!r}, DuckDB {b!r}, in {x.show(where)} of {cells}"
    return None


def _smallest(
    e: x.Expression, rows: Sequence[Row], connection: duckdb.DuckDBPyConnection
) -> x.Expression | None:
    """Returns the smallest part of an expression that differs."""
    for child in x.children(e):
        inner = _smallest(child, rows, connection)
        if inner is not None:
            return inner
    if isinstance(e, x.AggregateCall):
        return None
    try:
        values = core.by_rows(e, rows, Faults())
        judged = asking.ask(connection, judge.text_of(e)[0], e.type)
    except (NotAsked, duckdb.Error, TypeError):
        return None
    differ = any(not equal(a, b) for a, b in zip(values, judged, strict=True))
    return e if differ else None


def same(a: Any, b: Any) -> bool:
    """Returns whether two values are the same in every bit."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b and math.copysign(1, a) == math.copysign(1, b)
    return type(a) is type(b) and a == b


def equal(a: Any, b: Any) -> bool:
    """Returns whether two values are equal, zeros of either sign included."""
    return type(a) is type(b) and bool(a == b)
