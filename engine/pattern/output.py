"""RETURN: matches as rows, one by one or in columns.

A whole event is a column for its time and each of its attributes, `a.ts`, `a.price`; what goes
over a group is a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from compiler.language.types import Type
from compiler.pattern import ir
from compiler.pattern.evaluate import evaluator
from compiler.pattern.fields import fields
from engine.pattern.batch import Batch, to_arrow
from engine.pattern.columns import Column, column_of, evaluate
from engine.pattern.event import Match
from engine.pattern.found import Found
from engine.pattern.lists import Bindings
from engine.stream.schema import arrow_type


def schema(query: ir.Query) -> pa.Schema:
    return pa.schema(
        [
            (name, pa.list_(arrow_type(e.type)) if each is not None else arrow_type(e.type))
            for name, e, each in fields(query)
        ]
    )


def of_matches(query: ir.Query, matches: Sequence[Match]) -> pa.Table:
    """Single matches as rows."""
    columns = []
    zeros = [0] * len(query.elements)
    for _, e, each in fields(query):
        value = evaluator(e)
        if each is None:
            columns.append(_array([value(match.groups, zeros) for match in matches], e.type))
            continue
        counts, values = [], []
        for match in matches:
            counts.append(len(match.groups[each]))
            at = list(zeros)
            for at[each] in range(counts[-1]):
                values.append(value(match.groups, at))
        columns.append(_lists(counts, _array(values, e.type)))
    return pa.Table.from_arrays(columns, schema=schema(query))


def _array(values: list[Any], of: Type) -> pa.Array:
    return to_arrow(column_of(values, of.is_text), of)


def _lists(counts: Sequence[int] | np.ndarray[Any, Any], values: pa.Array) -> pa.Array:
    ends = np.cumsum(np.asarray(counts, np.int64))
    offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, values)


def of_found(query: ir.Query, found: Found | None) -> pa.Table:
    """Matches in columns as rows."""
    if found is None or not len(found):
        return schema(query).empty_table()
    log = _Log(found.log)
    columns = []
    for _, e, each in fields(query):
        if each is None:
            whole = Bindings(log, len(found), found.singles, groups=found.groups)
            columns.append(to_arrow(evaluate(e, whole), e.type))
            continue
        members = found.groups[each]
        owner = members.owner
        singles = {i: rows[owner] for i, rows in found.singles.items()}
        bindings = Bindings(
            log, len(owner), singles, {each: members.rows}, groups=found.groups, owner=owner
        )
        columns.append(_lists(members.counts, to_arrow(evaluate(e, bindings), e.type)))
    return pa.Table.from_arrays(columns, schema=schema(query))


class _Log:
    """A batch seen as the list of every element: positions are its rows."""

    def __init__(self, log: Batch) -> None:
        self._log = log

    def column(self, element: int, attribute: str) -> Column:
        return Column(self._log.ts) if attribute == ir.TIME else self._log.columns[attribute]

    def alone(self, element: int, e: ir.Expression, bindings: int) -> Column | None:
        return None
