"""The columns of a pattern's result, and the stream of these results.

A whole event gives a column for its time and for each of its attributes, `a_ts`, `a_price`; a value
per member of a group is a list.
"""

from __future__ import annotations

from collections.abc import Iterator

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.errors import Problems
from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import BIGINT, Kind
from seustream.compiler.pattern import ir


def fields(query: ir.MatchQuery) -> Iterator[tuple[str, x.Expression, int | None]]:
    """Yields every column: its name, its value, and the group that it lists, if any."""
    taken: set[str] = set()
    for output in query.outputs:
        if not isinstance(output.expression, ir.Whole):
            yield _free(output.name, taken), output.expression, output.each
            continue
        assert isinstance(query, ir.PatternQuery)
        element, pick = output.expression.element, output.expression.pick
        name = query.elements[element].variable
        own = {column.name.lower() for column in query.stream.columns}
        if ir.TIME not in own:
            value = ir.Value(element, pick, ir.TIME, BIGINT, name)
            yield _free(f"{output.name}_{ir.TIME}", taken), value, output.each
        for column in query.stream.columns:
            value = ir.Value(element, pick, column.name.lower(), column.type, name)
            yield _free(f"{output.name}_{column.name}", taken), value, output.each


def _free(name: str, taken: set[str]) -> str:
    distinct, number = name, 1
    while distinct.lower() in taken:
        number += 1
        distinct = f"{name}_{number}"
    taken.add(distinct.lower())
    return distinct


def stream_of(name: str, query: ir.MatchQuery, problems: Problems) -> Stream:
    """Returns the stream of a pattern's results. Its rows have one value per column."""
    columns = []
    for column, e, each in fields(query):
        if each is not None or e.type.kind is Kind.LIST:
            problems.add(
                "P015",
                f"P015 stream {name} would have a list in column {column}",
                query.span,
                "return count, first or last of the group",
            )
        if column.lower() in ("ts", "timestamp"):
            problems.add(
                "duplicate-name",
                f"{column} is the implicit time of every stream",
                query.span,
                "name it with AS; the time of a match is that of its last event",
            )
        columns.append(Column(column, e.type))
    return Stream(name, tuple(columns), query.written)
