"""Queries over the same rows that differ in constants, answered together.

The rows are those of a stream, or the results of a join that the queries share. What several queries
ask of a row is evaluated once: an expression that they compare with constants is looked up in a
sorted index of these, a condition that several have is a mask, a SELECT list that several have is
one table of which each takes its rows.

**Faults.** What is shared has none: a condition or a SELECT list with a fault in some row is
evaluated for each query as written, which counts faults where they belong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.logical.program import Item, Query
from seustream.engine.host.constants import ConstantIndex, Interval, intervals
from seustream.engine.host.grouping import Grouping
from seustream.engine.stream.evaluate import Leaves, evaluate, holds, survivors
from seustream.engine.stream.faults import QueryFaults
from seustream.engine.stream.numbers import Key, converted

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_AT_ONCE = 1 << 18
"""Result rows that are taken together."""


class Candidates(Protocol):
    """Rows that conditions are decided on, in order. `null_decides`: where a condition is NULL, faults of
    others do not count, as a join finds no combinations for it."""

    null_decides: bool

    def __len__(self) -> int: ...

    def leaves(self, read: Iterable[x.Expression], index: Ints | None = None) -> Leaves:
        """The columns that expressions read, of some rows."""

    def name(self, row: int) -> str:
        """A row, for people."""

    def answer(
        self, query: Query, grouping: Grouping | None, index: Ints, faults: Faults
    ) -> pa.Table:
        """The results of a query for some rows."""

    def select(self, query: Query, index: Ints | None, faults: Faults) -> pa.Table:
        """The SELECT list of a query without groups over some rows."""


@dataclass(frozen=True, slots=True)
class Member:
    """A query of a family: `interval` is what its constants allow, `rest` its other conditions."""

    query: Query
    interval: Interval | None
    rest: tuple[x.Expression, ...]
    grouping: Grouping | None
    faults: QueryFaults


def by_interval(
    conditions: Sequence[x.Expression],
) -> tuple[Interval | None, tuple[x.Expression, ...]]:
    """The tightest of the intervals that conditions amount to, and the other conditions."""
    found = min(intervals(conditions).values(), key=lambda one: one.rank, default=None)
    covered = () if found is None else found.conditions
    return found, tuple(e for e in conditions if not any(e is one for one in covered))


class Family:
    """Queries with an interval over one expression, or with none."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = tuple(members)
        some = [one.interval for one in members if one.interval is not None]
        self.index = ConstantIndex(some) if some else None
        risky = (n for n, one in enumerate(members) if any(map(may_fault, one.rest)))
        self.risky = frozenset(risky)  # whose faults count where the interval is NULL
        uses = Counter(e for one in members for e in set(one.rest))
        self.shared = {e for e, count in uses.items() if count > 1}
        lists: dict[tuple[Item, ...], int] = {}
        self._lists = {
            id(one): lists.setdefault(one.query.items, len(lists)) for one in self.members
        }

    def answers(
        self, rows: Candidates, skips: Callable[[Query], bool]
    ) -> Iterator[tuple[Member, Callable[[], pa.Table] | pa.Table]]:
        """By member with results, these, or what computes them and may fail."""
        work = _Work(rows, self.shared)
        tables: dict[int, list[tuple[Member, Ints]]] = {}
        for member, found, rest in self._found(work):
            if skips(member.query):
                continue
            if rest or member.grouping is not None:
                yield member, _later(rows, member, found, rest)
            elif len(found):
                tables.setdefault(self._lists[id(member)], []).append((member, found))
        for some in tables.values():
            yield from _taken(rows, some)

    def _found(self, work: _Work) -> Iterator[tuple[Member, Ints, tuple[x.Expression, ...]]]:
        """By member, rows that may fit, and the conditions that are still to be decided on them."""
        everything = np.arange(len(work.rows))
        if self.index is None:
            places: Iterable[tuple[int, Ints]] = ((n, everything) for n in range(len(self.members)))
            sure = True
        else:
            column = work.column(self.index.key)
            if column is None:  # perhaps another condition excludes the rows with a fault
                for member in self.members:
                    assert member.interval is not None
                    yield member, everything, (*member.interval.conditions, *member.rest)
                return
            values, flags = self.index.numbers(column)
            places = self.index.matches(values, flags)
            sure = flags is None or work.rows.null_decides
        for number, found in places:
            if sure or number not in self.risky:
                yield work.narrowed(self.members[number], found, sure)
        for number in () if sure else self.risky:
            yield work.narrowed(self.members[number], everything, sure)


class _Work:
    """The knowledge of some rows: each part is evaluated once."""

    def __init__(self, rows: Candidates, shared: set[x.Expression]) -> None:
        self.rows, self.shared = rows, shared
        self._masks: dict[x.Expression, tuple[Bools, bool] | None] = {}

    def column(self, key: Key) -> pa.Array | None:
        """An expression in all rows; None where it has a fault."""
        doubts = Faults()
        e = converted(key)
        found = evaluate(e, self.rows.leaves([e]), len(self.rows), doubts)
        return None if doubts.total else found

    def narrowed(
        self, member: Member, found: Ints, sure: bool
    ) -> tuple[Member, Ints, tuple[x.Expression, ...]]:
        """The rows that conditions leave which other members have, too. Where one may be NULL, a
        fault of another counts: then all of them are decided as written."""
        rest = []
        for e in member.rest:
            mask = self._mask(e) if e in self.shared else None
            if mask is None:
                rest.append(e)
            else:
                sure = sure and (mask[1] or self.rows.null_decides)
                found = found[mask[0][found]]
        if rest and not sure and any(map(may_fault, rest)):
            whole = () if member.interval is None else member.interval.conditions
            return member, np.arange(len(self.rows)), (*whole, *member.rest)
        return member, found, tuple(rest)

    def _mask(self, e: x.Expression) -> tuple[Bools, bool] | None:
        """The rows in which a condition holds, and whether it is never NULL; None where it has a fault."""
        if e not in self._masks:
            doubts = Faults()
            value = evaluate(e, self.rows.leaves([e]), len(self.rows), doubts)
            sure = not value.null_count
            mask = np.asarray(value if sure else pc.fill_null(value, False), np.bool_)
            self._masks[e] = None if doubts.total else (mask, sure)
        return self._masks[e]


def may_fault(e: x.Expression) -> bool:
    """Tells the expressions that need not have a value where their operands have one."""
    return any(isinstance(part, x.Call | x.Cast) for part in x.walk(e))


def _later(
    rows: Candidates, member: Member, found: Ints, rest: tuple[x.Expression, ...]
) -> Callable[[], pa.Table]:
    """Returns the function that decides the rest of a query's conditions and gives its results."""

    def results() -> pa.Table:
        kept, doubtful = found, rest
        if rows.null_decides:
            doubtful = ()
            for e in rest:
                doubts = Faults()
                fits = holds(e, rows.leaves([e], kept), len(kept), doubts)
                if doubts.total:
                    doubtful += (e,)
                else:
                    kept = kept[fits]
        if doubtful:
            left = kept
            with member.faults.naming(lambda row: rows.name(int(left[row]))):
                kept = left[
                    survivors(
                        doubtful,
                        lambda e, index: rows.leaves([e], left[index]),
                        len(left),
                        member.faults,
                    )
                ]
        return rows.answer(member.query, member.grouping, kept, member.faults)

    return results


def _taken(
    rows: Candidates, some: Sequence[tuple[Member, Ints]]
) -> Iterator[tuple[Member, Callable[[], pa.Table] | pa.Table]]:
    """Results of queries with one SELECT list."""
    if len(some) == 1:
        member, found = some[0]
        yield member, _later(rows, member, found, ())
        return
    wanted = np.zeros(len(rows), np.bool_)
    for _, found in some:
        wanted[found] = True
    whole = bool(wanted.all())
    doubts = Faults()
    table = rows.select(some[0][0].query, None if whole else np.flatnonzero(wanted), doubts)
    if doubts.total:
        for member, found in some:
            yield member, _later(rows, member, found, ())
        return
    place = np.cumsum(wanted) - 1
    table = table.combine_chunks()
    begin = 0
    while begin < len(some):
        end, count = begin, 0
        while end < len(some) and (count == 0 or count + len(some[end][1]) <= _AT_ONCE):
            count += len(some[end][1])
            end += 1
        index = np.concatenate([found for _, found in some[begin:end]])
        taken = table.take(pa.array(index if whole else place[index]))
        at = 0
        for member, found in some[begin:end]:
            yield member, taken.slice(at, len(found))
            at += len(found)
        begin = end
