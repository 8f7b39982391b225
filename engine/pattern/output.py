"""RETURN: matches as rows, one by one or in columns.

A whole event has a column for its time and one for each of its attributes, `a_ts`, `a_price`. An
expression over the members of a group is a list.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from seustream.compiler.pattern import ir
from seustream.compiler.pattern.fields import fields
from seustream.engine.pattern.batch import EventBatch
from seustream.engine.pattern.columns import Array, Ints, Once, values_of
from seustream.engine.pattern.event import Match
from seustream.engine.pattern.found import Found
from seustream.engine.pattern.lists import Bindings
from seustream.engine.pattern.meaning import Meaning
from seustream.engine.stream.schema import arrow_type


def schema(query: ir.MatchQuery) -> pa.Schema:
    return pa.schema(
        [
            (name, pa.list_(arrow_type(e.type)) if each is not None else arrow_type(e.type))
            for name, e, each in fields(query)
        ]
    )


PART = 1 << 20
"""The events that the matches of a part have in columns, or the rows of a part."""
Rows = tuple[pa.Table, Ints]
"""Rows of RETURN, with their times."""


def together(parts: Sequence[Rows]) -> Rows:
    """Joins parts, one after the other; there is one at least."""
    if len(parts) == 1:
        return parts[0]
    return pa.concat_tables(rows for rows, _ in parts), np.concatenate([at for _, at in parts])


class Returned:
    """The rows that a query returns."""

    def __init__(self, meaning: Meaning) -> None:
        self._meaning = meaning
        self._fields = tuple(fields(meaning.query))
        self._schema = schema(meaning.query)

    def of_matches(self, matches: Sequence[Match]) -> pa.Table:
        """Returns single matches as rows."""
        columns, zeros = [], [0] * len(self._meaning.query.elements)
        for _, e, each in self._fields:
            value = self._meaning.evaluator(e)
            if each is None:
                columns.append(
                    pa.array(
                        [value((match.groups, zeros)) for match in matches], arrow_type(e.type)
                    )
                )
                continue
            counts, values = [], []
            for match in matches:
                counts.append(len(match.groups[each]))
                at = list(zeros)
                for at[each] in range(counts[-1]):
                    values.append(value((match.groups, at)))
            columns.append(_lists(counts, pa.array(values, arrow_type(e.type))))
        return pa.Table.from_arrays(columns, schema=self._schema)

    def of_found(self, found: Found | None) -> pa.Table:
        """Returns matches in columns as rows."""
        if found is None or not len(found):
            return self._schema.empty_table()
        log, faults = _Log(found.log), self._meaning.faults
        columns = []
        for _, e, each in self._fields:
            if each is None:
                whole = Bindings(log, len(found), found.singles, groups=found.groups)
                columns.append(values_of(e, whole, faults))
                continue
            members = found.groups[each]
            owner = members.owner
            singles = {i: rows[owner] for i, rows in found.singles.items()}
            bindings = Bindings(
                log, len(owner), singles, {each: members.rows}, groups=found.groups, owner=owner
            )
            columns.append(_lists(members.counts, values_of(e, bindings, faults)))
        return pa.Table.from_arrays(columns, schema=self._schema)


def _lists(counts: Sequence[int] | Array, values: pa.Array) -> pa.Array:
    ends = np.cumsum(np.asarray(counts, np.int64))
    offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, values)


class _Log:
    """A batch seen as the list of every element: positions are row numbers of the batch."""

    def __init__(self, log: EventBatch) -> None:
        self._log = log

    def column(self, element: int, attribute: str) -> pa.Array:
        return pa.array(self._log.ts) if attribute == ir.TIME else self._log.columns[attribute]

    def arrivals(self, element: int, position: int) -> int:
        return int(self._log.seq[position])

    def once(self, part: Once, bindings: int) -> pa.Array | None:
        return None
