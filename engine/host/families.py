"""Queries over the same rows that differ in constants, answered together.

The rows are those of a stream, or the results of a join that the queries share. Work that several
queries need is done once: an expression that they compare with constants is looked up in a sorted
index of these, a condition that several have is a mask, and a SELECT list that several have is one
table from which each takes its rows.

**Faults.** Shared work has none: a condition or a SELECT list with a fault in some row is evaluated
for each query as written, which counts faults where they belong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.logical.program import Item, Query
from seustream.engine.host.candidates import Answers, Candidates, Member, Share
from seustream.engine.host.cohorts import grouped
from seustream.engine.host.constants import ConstantIndex, Interval, Places, intervals
from seustream.engine.host.grouping import Grouping, alike
from seustream.engine.stream.answers import no_results
from seustream.engine.stream.evaluate import evaluate, holds, survivors
from seustream.engine.stream.numbers import Key, converted
from seustream.engine.stream.taken import taken

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_AT_ONCE = 1 << 17
"""The most result rows that are taken together."""


def by_interval(
    conditions: Sequence[x.Expression],
) -> tuple[Interval | None, tuple[x.Expression, ...]]:
    """Returns the tightest of the intervals that conditions amount to, and the other conditions."""
    found = min(intervals(conditions).values(), key=lambda one: one.rank, default=None)
    covered = () if found is None else found.conditions
    return found, tuple(e for e in conditions if not any(e is one for one in covered))


class Family:
    """Queries with an interval over one expression, or with none. `groupings` holds the groupings
    of those with groups; several may share one."""

    def __init__(self, members: Sequence[Member], groupings: Mapping[str, Grouping]) -> None:
        self.members, self.groupings = tuple(members), groupings
        some = [one.interval for one in members if one.interval is not None]
        self.index = ConstantIndex(some) if some else None
        uses = Counter(e for one in members for e in set(one.rest))
        self.shared = {e for e, count in uses.items() if count > 1}
        lists: dict[tuple[Item, ...], int] = {}
        self._lists = {
            id(one): lists.setdefault(one.query.items, len(lists)) for one in self.members
        }

    def alike(self) -> list[list[Query]]:
        """Returns lists of queries whose groups can be held together."""
        found: dict[tuple[object, ...], list[Query]] = {}
        for member in self.members:
            if member.query.aggregated:
                found.setdefault(alike(member.query), []).append(member.query)
        return [some for some in found.values() if len(some) > 1]

    def answers(self, rows: Candidates, skips: Callable[[Query], bool]) -> Answers:
        """Yields members with their results, or with a function that computes them and may fail."""
        work = _Work(rows, self.shared)
        tables: dict[int, list[Share]] = {}
        groups: dict[int, tuple[Grouping, list[Share]]] = {}
        for member, found, rest in self._found(work):
            if skips(member.query):
                continue
            grouping = self.groupings.get(member.query.name)
            if grouping is not None and grouping.several:
                _, shares = groups.setdefault(id(grouping), (grouping, []))
                if rest:
                    yield member, _decided(rows, member, found, rest, shares)
                elif len(found):
                    shares.append((member, found))
            elif rest or grouping is not None:
                yield member, _later(rows, member, found, rest, grouping)
            elif len(found):
                number = self._lists[id(member)]
                if number not in tables:
                    tables[number] = []
                tables[number].append((member, found))
        for some in tables.values():
            yield from _taken(rows, some)
        for grouping, shares in groups.values():
            yield from grouped(rows, grouping, shares, skips)

    def _found(self, work: _Work) -> Iterator[tuple[Member, Places, tuple[x.Expression, ...]]]:
        """Yields members with the rows that may fit, and the conditions still to be decided on
        them."""
        everything = np.arange(len(work.rows), dtype=np.int32)
        if self.index is None:
            places: Iterable[tuple[int, Places]] = (
                (n, everything) for n in range(len(self.members))
            )
        else:
            column = work.column(self.index.key)
            if column is None:  # another condition may exclude the rows with a fault
                for member in self.members:
                    yield member, everything, (*_own(member), *member.rest)
                return
            values, flags = self.index.numbers(column)
            places = self.index.matches(values, flags)
        for number, found in places:
            member = self.members[number]
            yield work.narrowed(member, found) if member.rest else (member, found, ())


def _own(member: Member) -> tuple[x.Expression, ...]:
    """Returns the conditions of a member that differ from those of others in a constant."""
    return () if member.interval is None else member.interval.conditions


class _Work:
    """Results of conditions on some rows: each part is evaluated once."""

    def __init__(self, rows: Candidates, shared: set[x.Expression]) -> None:
        self.rows, self.shared = rows, shared
        self._masks: dict[x.Expression, Bools | None] = {}

    def column(self, key: Key) -> pa.Array | None:
        """Returns an expression in all rows, or None where it has a fault."""
        doubts = Faults()
        e = converted(key)
        found = evaluate(e, self.rows.leaves([e]), len(self.rows), doubts)
        return None if doubts.total else found

    def narrowed(
        self, member: Member, found: Places
    ) -> tuple[Member, Places, tuple[x.Expression, ...]]:
        """Narrows a member's rows by the conditions that other members share."""
        rest = []
        for e in member.rest:
            mask = self._mask(e) if e in self.shared else None
            if mask is None:
                rest.append(e)
            else:
                found = found[mask[found]]
        return member, found, tuple(rest)

    def _mask(self, e: x.Expression) -> Bools | None:
        """Returns the rows in which a condition holds; None where it has a fault."""
        if e not in self._masks:
            doubts = Faults()
            mask = holds(e, self.rows.leaves([e]), len(self.rows), doubts)
            self._masks[e] = None if doubts.total else mask
        return self._masks[e]


def may_fault(e: x.Expression) -> bool:
    """Returns whether an expression may lack a value where its operands have one."""
    return any(isinstance(part, x.Call | x.Cast) for part in x.walk(e))


def _later(
    rows: Candidates,
    member: Member,
    found: Places | Ints,
    rest: tuple[x.Expression, ...],
    grouping: Grouping | None = None,
) -> Callable[[], pa.Table]:
    """Returns a function that decides the rest of a query's conditions and returns its results."""

    def results() -> pa.Table:
        kept = _kept(rows, member, found, rest)
        return rows.answer(member.query, grouping, kept, member.faults)

    return results


def _decided(
    rows: Candidates,
    member: Member,
    found: Places | Ints,
    rest: tuple[x.Expression, ...],
    shares: list[Share],
) -> Callable[[], pa.Table]:
    """Returns a function that decides the rest of a query's conditions, and adds the rows left to
    the shares that get their results together."""

    def results() -> pa.Table:
        kept = _kept(rows, member, found, rest)
        if len(kept):
            shares.append((member, kept))
        return no_results(member.query)

    return results


def _kept(
    rows: Candidates, member: Member, found: Places | Ints, rest: tuple[x.Expression, ...]
) -> Ints:
    """Returns the rows for which the rest of a query's conditions holds."""
    kept = found.astype(np.int64)
    with member.faults.naming(lambda row: rows.name(int(kept[row]))):
        return kept[
            survivors(
                rest, lambda e, index: rows.leaves([e], kept[index]), len(kept), member.faults
            )
        ]


def _taken(rows: Candidates, some: Sequence[Share]) -> Answers:
    """Yields the results of queries with one SELECT list."""
    if len(some) == 1:
        member, found = some[0]
        yield member, _later(rows, member, found, ())
        return
    query, count, wanted = some[0][0].query, len(rows), None
    if not _worth_all(query, some, count):
        wanted = np.zeros(count, np.bool_)
        for _, found in some:
            wanted[found] = True
    doubts = Faults()
    table = rows.select(query, None if wanted is None else np.flatnonzero(wanted), doubts)
    if doubts.total:
        for member, found in some:
            yield member, _later(rows, member, found, ())
        return
    table = table.combine_chunks()
    place = None if wanted is None else np.cumsum(wanted) - 1
    for part in _parts([one for one in some if len(one[1]) < count]):
        index = np.concatenate([found for _, found in part])
        rows_ = _take(table, index if place is None else place[index])
        at = 0
        for member, found in part:
            yield member, rows_.slice(at, len(found))
            at += len(found)
    for member, found in some:
        if len(found) == count:
            yield member, table


def _worth_all(query: Query, some: Sequence[Share], count: int) -> bool:
    """Returns whether a SELECT list is best evaluated over all rows: some query wants them all, or
    the list cannot fault and the queries together want at least as many rows as there are."""
    sizes = [len(found) for _, found in some]
    if max(sizes) == count:
        return True
    return sum(sizes) >= count and not any(may_fault(item.expression) for item in query.items)


def _parts(some: Sequence[Share]) -> Iterator[list[Share]]:
    """Splits the shares into parts small enough to be taken together."""
    part: list[Share] = []
    count = 0
    for one in some:
        if part and count + len(one[1]) > _AT_ONCE:
            yield part
            part, count = [], 0
        part.append(one)
        count += len(one[1])
    if part:
        yield part


def _take(table: pa.Table, index: Ints | Places) -> pa.Table:
    """Takes some rows from complete results. Those of one stream have equal times, which are taken
    once."""
    columns = [column.chunk(0) for column in table.columns]
    once = columns[:-1] if columns[-1].equals(columns[-2]) else columns
    some = [taken(column, index) for column in once]
    some += some[-1:] * (len(columns) - len(once))
    return pa.Table.from_arrays(some, schema=table.schema)
