"""Conditions of a join, sorted by the sources they read.

A *selection* reads one source. A *link* compares an expression over one source with one over
others, so that an index can find its partners. All other conditions are evaluated for each
combination.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import BIGINT, DOUBLE, TIMESTAMP, Type
from seustream.engine.stream.differences import Difference, differences
from seustream.engine.stream.formulas import Formula, formula_of
from seustream.engine.stream.numbers import Numbers, comparable
from seustream.hdl.isa import Condition

_MICROSECOND = datetime.timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class JoinLink:
    """`theirs op ours`, both as values of type `of`; `theirs` reads one source, `ours` others. With
    `apart` it bounds their difference instead, and the conjunct has to be evaluated, too."""

    conjunct: x.Expression
    op: Condition
    theirs: x.Expression
    ours: x.Expression
    of: Type
    apart: Difference | None = None

    def compared(self, ours: Numbers) -> Numbers:
        """Returns the numbers with which those of `theirs` are compared."""
        values, flags = ours
        return ours if self.apart is None else (self.apart.bounds(values), flags)


@dataclass(frozen=True, slots=True)
class Alternatives:
    """A condition `A OR B ...` that has links in each alternative. Unless it is `exact`, it has other
    conditions, too, and is evaluated for each pair that a way finds."""

    condition: x.Expression
    ways: tuple[tuple[JoinLink, ...], ...]
    exact: bool


@dataclass(frozen=True, slots=True)
class Search:
    """One more source of a combination, or a side of a join, the first of whose sources is named: links
    to it, and conditions to evaluate once it is bound. There may be a choice of links if no equality leads to it. `formulas` are those of the other
    conditions that have one."""

    source: int
    links: tuple[JoinLink, ...]
    others: tuple[x.Expression, ...]
    choice: Alternatives | None = None
    formulas: tuple[Formula, ...] = ()

    @property
    def all_links(self) -> Iterator[JoinLink]:
        yield from self.links
        for way in self.choice.ways if self.choice is not None else ():
            yield from way


def selections(conjuncts: Sequence[x.Expression], source: int) -> tuple[x.Expression, ...]:
    """Returns the conditions on the rows of one source; those that read nothing go with the
    first."""
    wanted = [frozenset({source})] + ([frozenset()] if source == 0 else [])
    return tuple(e for e in conjuncts if x.sources(e) in wanted)


def searches(conjuncts: Sequence[x.Expression], source: int, count: int) -> tuple[Search, ...]:
    """Returns the order in which a row of one source meets the others: the next is one that an
    equality reaches, if possible, otherwise one that another link reaches."""
    bound, found = frozenset({source}), []
    while len(bound) < count:
        free = [number for number in range(count) if number not in bound]
        by = {number: between(conjuncts, bound, frozenset({number})) for number in free}
        best = min(free, key=lambda number: (_rank(by[number]), number))
        found.append(by[best])
        bound |= {best}
    return tuple(found)


def _rank(search: Search) -> int:
    ops = {link.op for link in search.all_links}
    return 0 if Condition.EQ in ops else 1 if ops - {Condition.NE} else 2


def between(
    conjuncts: Sequence[x.Expression], ours: frozenset[int], theirs: frozenset[int]
) -> Search:
    """Returns how rows of the sources `theirs` are found for rows of `ours`, by the conditions that
    read both and nothing else."""
    links: list[JoinLink] = []
    others: list[x.Expression] = []
    for e in conjuncts:
        reads = x.sources(e)
        if not (reads & theirs and reads & ours and reads <= ours | theirs):
            continue
        link = _link(e, theirs)
        if link is None:
            others.append(e)
        else:
            links.append(link)
    source = min(theirs)
    if any(link.op is Condition.EQ for link in links):
        return Search(source, tuple(links), tuple(others), None, _formulas(others, theirs))
    links += (link for e in others for link in apart(e, theirs, ours))
    choice = choice_of(others, lambda e: _link(e, theirs))
    decided = choice.condition if choice is not None and choice.exact else None
    rest = tuple(e for e in others if e is not decided)
    return Search(source, tuple(links), rest, choice, _formulas(rest, theirs))


def _formulas(conditions: Iterable[x.Expression], theirs: frozenset[int]) -> tuple[Formula, ...]:
    found = (formula_of(e, theirs) for e in conditions)
    return tuple(formula for formula in found if formula is not None)


def choice_of(
    conditions: Iterable[x.Expression], linked: Callable[[x.Expression], JoinLink | None]
) -> Alternatives | None:
    """Returns the first condition that is a choice of links, one that is exact if there is any."""
    found: list[Alternatives] = []
    for e in conditions:
        if not isinstance(e, x.Or):
            continue
        parts = [[linked(one) for one in x.conjuncts(term)] for term in e.terms]
        ways = tuple(tuple(link for link in part if link is not None) for part in parts)
        if all(ways):
            found.append(Alternatives(e, ways, all(None not in part for part in parts)))
    return min(found, key=lambda choice: not choice.exact, default=None)


def _link(e: x.Expression, theirs: frozenset[int]) -> JoinLink | None:
    if not comparable(e):
        return None
    assert isinstance(e, x.Compare)
    for op, one, other in (
        (e.condition, e.left, e.right),
        (e.condition.mirrored(), e.right, e.left),
    ):
        reads = x.sources(one), x.sources(other)
        if all(reads) and reads[0] <= theirs and not reads[1] & theirs:
            return JoinLink(e, op, one, other, e.of)
    return None


def apart(
    e: x.Expression, theirs: frozenset[int], ours: frozenset[int] | None = None
) -> Iterator[JoinLink]:
    """Yields links by the difference of two sides: one reads `theirs`, the other `ours` or anything
    else."""
    for found in differences(e):
        for one in (found, found.exchanged):
            reads = x.sources(one.left), x.sources(one.right)
            if not all(reads) or not reads[0] <= theirs or reads[1] & theirs:
                continue
            if ours is None or reads[1] <= ours:
                yield JoinLink(e, one.op, one.left, one.right, one.of, one)


def shift(e: x.Expression, of: Type) -> tuple[x.Expression, int | float]:
    """Splits a constant off an expression: `S.y - 50` becomes S.y and -50, to be added to it. Sums
    of integers and of times are exact; sums of reals are rounded."""
    if not (isinstance(e, x.Call) and e.function in ("+", "-") and e.type == of):
        return e, 0
    inner, constant = e.arguments[0], e.arguments[-1]
    if len(e.arguments) != 2 or not isinstance(constant, x.Literal) or e.takes[0] != of:
        return e, 0
    amount = _amount(constant.value, of)
    if amount is None:
        return e, 0
    return inner, amount if e.function == "+" else -amount


def _amount(value: x.Value, of: Type) -> int | float | None:
    if of == BIGINT and isinstance(value, int):
        return value
    if of == DOUBLE and isinstance(value, (int, float, Decimal)):
        return float(value)
    if of == TIMESTAMP and isinstance(value, datetime.timedelta):
        return value // _MICROSECOND
    return None
