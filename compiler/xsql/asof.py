"""ASOF joins: for each row of the left side, the row that was valid on the right at its time.

before  R LEFT ASOF JOIN S ON R.a = S.a AND R.ts >= S.ts        R LEFT JOIN S FOR SYSTEM_TIME AS OF R.ts ON R.a = S.a
after   AsofJoin(LEFT ASOF, R, S, ..., at=R, later=0)
"""

from __future__ import annotations

from collections.abc import Iterator

from seustream.compiler.errors import Problems, Span
from seustream.compiler.language import expressions as x
from seustream.compiler.logical.joins import AsofJoin, JoinKind, JoinSide, visible
from seustream.compiler.xsql.bounds import bounds, in_milliseconds
from seustream.hdl.isa import Condition

_FORM = "R ASOF JOIN S ON R.a = S.a AND R.ts >= S.ts"


def asof(
    kind: JoinKind,
    left: JoinSide,
    right: JoinSide,
    condition: x.Expression,
    span: Span,
    problems: Problems,
) -> AsofJoin:
    """Returns the join if its condition determines the right row; otherwise reports the problem."""
    if not isinstance(right, int):
        problems.add("asof", "an ASOF JOIN looks up one stream", span, f"such as {_FORM}")
        return AsofJoin(kind, left, visible(right)[0], x.TRUE, 0, 0)
    terms = tuple(in_milliseconds(e) for e in _terms(condition))
    mine = frozenset(visible(left))
    latest: list[tuple[int, int]] = []
    oldest: list[tuple[int, int]] = []
    for e in terms:
        reads, found = x.sources(e), list(bounds(e))
        latest += [(i, later) for i, j, later in found if j == right]
        oldest += [(j, later) for i, j, later in found if i == right]
        both = right in reads and reads & mine
        equal = isinstance(e, x.Compare) and e.condition is Condition.EQ
        if both and not (found or (equal and _apart(e, mine, right))):
            problems.add(
                "asof",
                f"{x.show(e)} would choose among the rows of one key",
                span,
                "ASOF JOIN takes equalities, conditions on one side, and bounds on times;"
                " WHERE filters what it gives",
            )
    if len({source for source, _ in latest}) != 1:
        why = "says" if not latest else "goes by one time, and this one by several; it says"
        problems.add("asof", f"an ASOF JOIN {why} which rows come before", span, f"such as {_FORM}")
        return AsofJoin(kind, left, right, x.TRUE, 0, 0)
    at = latest[0][0]
    age = min((most for source, most in oldest if source == at), default=None)
    later = min(most for _, most in latest)
    return AsofJoin(kind, left, right, x.conjunction(terms), at, later, age)


def _terms(e: x.Expression) -> Iterator[x.Expression]:
    """Yields the conjuncts, including those of BETWEEN."""
    for term in x.conjuncts(e):
        if isinstance(term, x.And):
            yield from _terms(term)
        else:
            yield term


def _apart(e: x.Expression, left: frozenset[int], right: int) -> bool:
    """Returns whether each side of a comparison reads one side of the join."""
    assert isinstance(e, x.Compare)
    sides = [x.sources(e.left), x.sources(e.right)]
    return {right} in sides and any(side and side <= left for side in sides)
