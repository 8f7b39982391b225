"""The format of results: a query's own columns, then the times of its oldest and newest
component."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from seustream.compiler.logical.program import RESULT_TIMES, Relation
from seustream.engine.stream.schema import arrow_type

_KEPT = 4096
_schemas: dict[int, tuple[Relation, pa.Schema, pa.Table]] = {}
"""The latest schemas and empty tables, by the id of their query, which is kept alive beside them;
each step asks for one."""


def result_schema(node: Relation) -> pa.Schema:
    """Returns the columns of a query's results: its SELECT list, then the two times."""
    return _known(node)[1]


def no_results(node: Relation) -> pa.Table:
    """Returns the results of a step that has none."""
    return _known(node)[2]


def _known(node: Relation) -> tuple[Relation, pa.Schema, pa.Table]:
    known = _schemas.get(id(node))
    if known is not None:
        return known
    if len(_schemas) >= _KEPT:
        _schemas.clear()
    fields = [pa.field(item.name, arrow_type(item.expression.type)) for item in node.items]
    times = [pa.field(name, pa.int64(), nullable=False) for name in RESULT_TIMES]
    schema = pa.schema([*fields, *times])
    known = _schemas[id(node)] = node, schema, schema.empty_table()
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
