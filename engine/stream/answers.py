"""The format of results: a query's own columns, then the times of its oldest and newest
component."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.logical.program import RESULT_TIMES, Relation
from seustream.engine.stream.schema import arrow_type

Names = Mapping[int, Collection[str]]
"""Columns by the position of their stream in FROM."""

_KEPT = 4096


class _OfQuery(NamedTuple):
    node: Relation
    schema: pa.Schema
    empty: pa.Table
    read: Names


_by_query: dict[int, _OfQuery] = {}
"""The latest queries, by the id of each, which is kept alive beside it; each step asks for one."""


def result_schema(node: Relation) -> pa.Schema:
    """Returns the columns of a query's results: its SELECT list, then the two times."""
    return _of(node).schema


def no_results(node: Relation) -> pa.Table:
    """Returns the results of a step that has none."""
    return _of(node).empty


def columns_read(node: Relation) -> Names:
    """Returns the columns that a query's SELECT list reads."""
    return _of(node).read


def _of(node: Relation) -> _OfQuery:
    known = _by_query.get(id(node))
    if known is not None:
        return known
    if len(_by_query) >= _KEPT:
        _by_query.clear()
    fields = [pa.field(item.name, arrow_type(item.expression.type)) for item in node.items]
    times = [pa.field(name, pa.int64(), nullable=False) for name in RESULT_TIMES]
    schema = pa.schema([*fields, *times])
    read = x.columns_by_source(item.expression for item in node.items)
    known = _by_query[id(node)] = _OfQuery(node, schema, schema.empty_table(), read)
    return known


def answer(node: Relation, columns: Sequence[Any]) -> pa.Table:
    """Builds results from their columns, in the form that their readers expect."""
    return as_rows(node, pa.table(list(columns), schema=result_schema(node)))


def as_rows(node: Relation, results: pa.Table) -> pa.Table:
    """Returns results in the form that their readers expect: those of a definition become rows of
    the stream it defines, at the time of their newest component."""
    if node.defines is None:
        return results
    newest = results.num_columns - 1
    kept = newest if node.keeps_oldest else newest - 1
    names = results.column_names[:kept]
    return results.select([newest, *range(kept)]).rename_columns(["ts", *names])
