"""Interval joins: derives windows from bounds on differences of times.

before  R JOIN S ON S.ts BETWEEN R.ts - INTERVAL '5' SECOND AND R.ts + INTERVAL '10' SECOND
after   R: RANGE 10000 (S comes at most this much later), S: RANGE 5000

The conditions stay as they are: a window is the smallest that loses no match.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Container, Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction

from seustream.compiler.catalogue import TIME_COLUMN
from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import Kind
from seustream.compiler.logical.joins import JoinKind, JoinSide, joins, optional, visible
from seustream.hdl.isa import Condition

Bound = tuple[int, int, int]
"""Sources i, j and d: the time of j is at most d milliseconds after that of i."""

_SIGN = {"+": 1, "-": -1}
_WHOLE = 1 << 53
"""Every whole number up to here is a double, so a difference can be compared with a smaller one as
it is."""


def implied(
    side: JoinSide, where: Iterable[x.Expression], count: int, lasting: Container[int]
) -> list[int | None]:
    """Returns the windows of all sources in milliseconds, None where the conditions do not bound
    one. Rows that pass WHERE have all the sources whose times it bounds; nothing waits for a
    `lasting` source."""
    always = [bound for e in where for bound in bounds(e)]
    if all(join.kind.name == "INNER" for join in joins(side)):
        always += [bound for join in joins(side) for bound in bounds(join.condition)]
    windows: list[float] = [0] * count
    for join in joins(side):
        mine = [*bounds(join.condition), *always]
        below = [b for under in joins(join) if under is not join for b in bounds(under.condition)]
        left, right = visible(join.left), visible(join.right)
        # A bound through a third source holds only if a match has that source.
        lacking = optional(join.left) | optional(join.right)
        firm = {*left, *right} - lacking | {end for bound in mine for end in bound[:2]}
        pairs = ((i, j) for i in left for j in right)
        for i, j in ((i, j) for i, j in pairs if i not in lasting and j not in lasting):
            most = _shortest([*mine, *below], count, _beside({i, j, *firm}, join))
            windows[i] = max(windows[i], most[i][j])
            windows[j] = max(windows[j], most[j][i])
    return [None if math.isinf(size) else int(size) for size in windows]


def _beside(sources: set[int], side: JoinSide) -> set[int]:
    """Returns sources with all others that a combination of a side with rows of them also has."""
    found = set(sources)
    for join in (one for one in joins(side) if one.kind.pairs):
        left, right = found & {*visible(join.left)}, found & {*visible(join.right)}
        alone = join.kind.keeps_left or join.kind is JoinKind.LEFT_ASOF
        if (left and right) or (left and not alone) or (right and not join.kind.keeps_right):
            # The condition of a match is true, so it has the rows whose times this bounds.
            found |= {end for bound in bounds(join.condition) for end in bound[:2]}
            found |= _always(join.left) | _always(join.right)
    return found if found == sources else _beside(found, side)


def _always(side: JoinSide) -> frozenset[int]:
    """Returns the sources that every combination of a side has."""
    return frozenset(visible(side)) - optional(side)


def _shortest(found: Sequence[Bound], count: int, through: Iterable[int]) -> list[list[float]]:
    """Returns the most by which each source can be later than each other one."""
    most = [[0 if i == j else math.inf for j in range(count)] for i in range(count)]
    for i, j, most_later in found:
        most[i][j] = min(most[i][j], most_later)
    for k in through:
        for i in range(count):
            for j in range(count):
                most[i][j] = min(most[i][j], most[i][k] + most[k][j])
    return most


def bounds(e: x.Expression) -> Iterator[Bound]:
    """Yields the bounds that hold wherever a condition is true."""
    for bound in _bounds(e):
        yield bound[:3]


def in_milliseconds(e: x.Expression) -> x.Expression:
    """Rewrites a comparison of times in the whole milliseconds by which rows are ordered."""
    found = list(_bounds(e))
    if not (found and isinstance(e, x.Compare) and _finer((e.left, e.right))):
        return e
    alias = {column.source: column.alias for column in x.columns(e)}
    return x.conjunction(
        tuple(
            at_most(time_of(j, alias[j]), time_of(i, alias[i]), most - slack)
            for i, j, most, slack in found
        )
    )


def time_of(source: int, alias: str = "") -> x.ColumnReference:
    """Returns the time of a source's row in milliseconds."""
    return x.ColumnReference(source, TIME_COLUMN.name, TIME_COLUMN.type, False, alias, True)


def at_most(late: x.Expression, early: x.Expression, most: int) -> x.Compare:
    """Builds the condition that one time is at most this many milliseconds after another."""
    of = TIME_COLUMN.type
    apart = x.Call("-", (late, early), (of, of), of)
    return x.Compare(Condition.LE, apart, x.Literal(most, of), of)


def _bounds(e: x.Expression) -> Iterator[tuple[int, int, int, int]]:
    """Yields the bounds, and by how much each exceeds the bound on whole milliseconds."""
    if isinstance(e, x.And):
        for term in e.terms:
            yield from _bounds(term)
    if not isinstance(e, x.Compare):
        return
    for condition, left, right in (
        (e.condition, e.left, e.right),
        (e.condition.mirrored(), e.right, e.left),
    ):
        if condition not in (Condition.LT, Condition.LE, Condition.EQ):
            continue
        signs = (1, -1) if isinstance(left, x.Call) and left.function == "abs" else (1,)
        of = left.arguments[0] if isinstance(left, x.Call) and len(signs) > 1 else left
        first, second = _linear(of), _linear(right)
        if first is None or second is None or (len(signs) > 1 and second[0]):
            continue
        for sign in signs:  # sign * first <= second
            times = {s: sign * n for s, n in first[0].items()}
            for source, n in second[0].items():
                times[source] = times.get(source, 0) - n
            most = second[1] - sign * first[1]
            last = math.ceil(most) - 1 if condition is Condition.LT else math.floor(most)
            by_sign = {n: source for source, n in times.items() if n}
            if len(by_sign) == len([n for n in times.values() if n]) and {*by_sign} == {1, -1}:
                slack = _slack(condition, (left, right))
                yield by_sign[-1], by_sign[1], last + slack, slack


def _finer(sides: Iterable[x.Expression]) -> set[Kind]:
    """Returns the kinds of compared values that come from timestamps."""
    kinds = {side.type.kind for side in sides if not isinstance(side, x.Literal)}
    return kinds & {Kind.TIMESTAMP, Kind.INTERVAL}


def _slack(condition: Condition, sides: Iterable[x.Expression]) -> int:
    """Returns the milliseconds by which times may exceed a bound on timestamps, which count
    microseconds: one if equal milliseconds satisfy the comparison, or if the difference is
    truncated to milliseconds."""
    kinds = _finer(sides)
    return int(Kind.INTERVAL in kinds or (Kind.TIMESTAMP in kinds and condition is Condition.LT))


def _linear(e: x.Expression) -> tuple[dict[int, int], Fraction] | None:
    """Decomposes a sum of times of sources and of milliseconds: the coefficient of each time, and
    the rest."""
    match e:
        case x.ColumnReference(timed=True):
            return {e.source: 1}, Fraction(0)
        case x.Literal(value=datetime.timedelta() as length):
            return {}, Fraction(length // datetime.timedelta(milliseconds=1))
        case x.Literal(value=bool()):
            return None
        case x.Literal(value=int() | Decimal() as number):
            return {}, Fraction(number)
        case x.Literal(value=float() as number) if abs(number) < _WHOLE:
            return {}, Fraction(number)
        case x.Call(function="epoch_ms" | "timestamp_millis", arguments=(time,)):
            return _linear(time)
        # A sum of doubles is rounded, so it gives no exact bound on times.
        case x.Call(function="+" | "-" as operator, arguments=(left, right)) if (
            not e.type.is_inexact
        ):
            first, second = _linear(left), _linear(right)
            if first is None or second is None:
                return None
            sign, times = _SIGN[operator], dict(first[0])
            for source, n in second[0].items():
                times[source] = times.get(source, 0) + sign * n
            return times, first[1] + sign * second[1]
        case _:
            return None
