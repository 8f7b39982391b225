"""Ordered event lists in columns, as one epoch of a search sees them.

With a partition, times are laid out so that each key has a stretch of its own, further from the
next than any window reaches: one search then serves all keys.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa

from compiler.pattern import ir
from compiler.pattern.classify import references
from compiler.pattern.evaluate import aggregate
from engine.pattern.batch import Batch
from engine.pattern.columns import Array, Column, Ints, column_of, evaluate
from engine.pattern.errors import PatternError
from engine.pattern.found import Members

FAR = 1 << 62


class Lists:
    """For each element its rows of the log, in order, and their times `T` in the layout."""

    def __init__(self, query: ir.Query, log: Batch, rows: list[Ints]) -> None:
        self.query = query
        self.log = log
        self.rows = rows
        self.span = int(log.ts[-1] - log.ts[0]) if len(log) else 0
        self.shift: list[Ints | None] = [None] * len(rows)
        self.T = [log.ts[r] for r in rows]
        self.stretch = FAR
        self.keys = 1
        self._columns: dict[tuple[int, str], Column] = {}
        self._alone: dict[tuple[int, int], Column] = {}
        if query.partition:
            self._lay_out()

    def _lay_out(self) -> None:
        keys = self._keys()
        self.keys = int(keys.max(initial=0)) + 1
        window = self.query.window or 0
        self.stretch = self.span + 2 * window + 2
        if self.keys * self.stretch >= FAR:
            raise PatternError(
                "too many keys over too long a time for one epoch", "advance more often"
            )
        base = self.log.ts[0]
        shift = keys * self.stretch - base
        for element, rows in enumerate(self.rows):
            times = self.log.ts[rows] + shift[rows]
            order = np.argsort(times, kind="stable")
            self.rows[element] = rows[order]
            self.T[element] = times[order]
            self.shift[element] = shift[rows[order]]

    def _keys(self) -> Ints:
        """A number for each row's key; NULL is a key like any other."""
        codes: Ints = np.zeros(len(self.log), np.int64)
        for name in self.query.partition:
            column = Column(self.log.ts) if name == ir.TIME else self.log.columns[name]
            mask = None if column.valid is None else ~column.valid
            array = pa.array(column.values, mask=mask, from_pandas=column.values.dtype == object)
            coded = array.dictionary_encode(null_encoding="encode")
            one = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
            pairs = codes * (len(coded.dictionary) + 1) + one
            codes = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
        return codes

    def after(self) -> Ints:
        """For each row of the log the next one of its key, or one past the last row."""
        found: Ints = np.full(len(self.log) + 1, len(self.log), np.int64)
        keys = self._keys()
        order = np.argsort(keys, kind="stable")
        same = keys[order[1:]] == keys[order[:-1]]
        found[order[:-1][same]] = order[1:][same]
        return found

    def stretch_begin(self, times: Ints) -> Ints:
        """Where the keys' stretches begin that hold these times."""
        if not self.query.partition:
            return np.full(len(times), -FAR)
        return times // self.stretch * self.stretch

    def stretch_end(self, times: Ints) -> Ints:
        """Where they end."""
        if not self.query.partition:
            return np.full(len(times), FAR)
        return (times // self.stretch + 1) * self.stretch

    def counts(self, elements: tuple[int, ...]) -> list[int]:
        return [len(self.rows[e]) for e in elements]

    def column(self, element: int, attribute: str) -> Column:
        key = (element, attribute)
        if key not in self._columns:
            rows = self.rows[element]
            if attribute == ir.TIME:
                self._columns[key] = Column(self.log.ts[rows])
            else:
                self._columns[key] = self.log.columns[attribute].take(rows)
        return self._columns[key]

    def alone(self, element: int, e: ir.Expression, bindings: int) -> Column | None:
        """A subexpression about one element, for its whole list, if that is worth it."""
        key = (element, id(e))
        if key not in self._alone:
            if bindings < len(self.rows[element]) // 4:
                return None
            self._alone[key] = evaluate(e, _WholeList(self, element))
        return self._alone[key]


class _WholeList:
    """Every event of one element's list, alone."""

    def __init__(self, lists: Lists, element: int) -> None:
        self.size = len(lists.rows[element])
        self._lists = lists
        self._element = element

    def value(self, element: int, pick: ir.Pick, attribute: str) -> Column:
        return self._lists.column(self._element, attribute)

    def aggregate(self, e: ir.Aggregate) -> Column:
        raise AssertionError(e)

    def alone(self, e: ir.Expression) -> Column | None:
        return None


class BatchRows:
    """Some rows of a batch, as the events of whatever element is asked for."""

    def __init__(self, batch: Batch, rows: Array) -> None:
        self.size = len(rows)
        self._batch = batch
        self._rows = rows

    def value(self, element: int, pick: ir.Pick, attribute: str) -> Column:
        if attribute == ir.TIME:
            return Column(self._batch.ts[self._rows])
        return self._batch.columns[attribute].take(self._rows)

    def aggregate(self, e: ir.Aggregate) -> Column:
        raise AssertionError(e)

    def alone(self, e: ir.Expression) -> Column | None:
        return None


class Columns(Protocol):
    """Where bindings look: the columns of each element's list."""

    def column(self, element: int, attribute: str) -> Column: ...
    def alone(self, element: int, e: ir.Expression, bindings: int) -> Column | None: ...


class Bindings:
    """Rows of a search: for each element a position in its list. `each` are members of groups,
    `owner` says which match of `groups` a row belongs to (each its own, if None)."""

    def __init__(
        self,
        lists: Columns,
        size: int,
        at: dict[int, Array],
        each: dict[int, Array] | None = None,
        before: dict[int, Array] | None = None,
        groups: dict[int, Members] | None = None,
        owner: Array | None = None,
    ) -> None:
        self.size = size
        self._lists = lists
        self._at = at
        self._each = each or {}
        self._before = before or {}
        self._groups = groups or {}
        self._owner = owner

    def value(self, element: int, pick: ir.Pick, attribute: str) -> Column:
        return self._lists.column(element, attribute).take(self._positions(element, pick))

    def _positions(self, element: int, pick: ir.Pick) -> Array:
        if pick is ir.Pick.ONE:
            return self._at[element]
        if pick is ir.Pick.EACH:
            return self._each[element]
        if pick is ir.Pick.PREVIOUS:
            return self._before[element]
        members = self._groups[element]
        ends = members.starts if pick is ir.Pick.FIRST else members.ends - 1
        return members.rows[ends if self._owner is None else ends[self._owner]]

    def aggregate(self, e: ir.Aggregate) -> Column:
        found = self._over_groups(e, self._groups[e.element])
        return found if self._owner is None else found.take(self._owner)

    def _over_groups(self, e: ir.Aggregate, members: Members) -> Column:
        size = len(members.counts)
        if e.attribute is None:
            return Column(members.counts)
        column = self._lists.column(e.element, e.attribute).take(members.rows)
        owner, values = members.owner, column.values
        if column.valid is not None:
            owner, values = owner[column.valid], values[column.valid]
        counts = np.bincount(owner, minlength=size)
        if e.function == "count":
            return Column(counts.astype(np.int64))
        some = counts > 0
        if values.dtype.kind == "f" and e.function in ("sum", "avg"):
            sums = np.bincount(owner, weights=values, minlength=size)  # from left to right
            total = Column(sums if e.function == "sum" else sums / np.maximum(counts, 1), some)
            return Column(total.values, some & ~np.isnan(total.values))
        return self._one_by_one(e.function, values.tolist(), counts.tolist())

    def _one_by_one(self, function: str, values: list[object], counts: list[int]) -> Column:
        """Integers without overflow, and texts."""
        found, at = [], 0
        for count in counts:
            found.append(aggregate(function, values[at : at + count]))
            at += count
        return column_of(found)

    def alone(self, e: ir.Expression) -> Column | None:
        refs = references(e)
        if len(refs) != 1 or isinstance(e, ir.Value):
            return None
        (element,) = refs
        if element in self._at:
            at = self._at[element]
        elif element in self._each and _members_only(e):
            at = self._each[element]
        else:
            return None
        whole = self._lists.alone(element, e, self.size)
        return None if whole is None else whole.take(at)


def _members_only(e: ir.Expression) -> bool:
    return all(
        part.pick is ir.Pick.EACH
        if isinstance(part, ir.Value)
        else not isinstance(part, ir.Aggregate)
        for part in ir.walk(e)
    )
