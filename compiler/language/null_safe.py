"""Equality of two columns where NULL equals NULL, as two equalities that an index can follow.

before  L.k IS NOT DISTINCT FROM R.k
before  L.k = R.k OR L.k IS NULL AND R.k IS NULL
after   (L.k IS NULL) = (R.k IS NULL) AND coalesce(L.k, 0) = coalesce(R.k, 0)
after   L.k = R.k, if one of the two is never NULL
"""

from __future__ import annotations

import datetime
from decimal import Decimal

from seustream.compiler.language.expressions import (
    TRUE,
    And,
    Call,
    ColumnReference,
    Compare,
    Expression,
    IsNull,
    Literal,
    Not,
    Or,
    Value,
    conjunction,
    disjunction,
)
from seustream.compiler.language.types import BOOLEAN, Kind, Type
from seustream.hdl.isa import Condition

_STANDS_IN: dict[Kind, Value] = {
    **dict.fromkeys((Kind.SMALLINT, Kind.INT, Kind.BIGINT), 0),
    **dict.fromkeys((Kind.REAL, Kind.DOUBLE), 0.0),
    **dict.fromkeys((Kind.CHAR, Kind.VARCHAR), ""),
    Kind.DECIMAL: Decimal(0),
    Kind.BOOLEAN: False,
    Kind.DATE: datetime.date(1970, 1, 1),
    Kind.TIME: datetime.time(0),
    Kind.TIMESTAMP: datetime.datetime(1970, 1, 1),
    Kind.INTERVAL: datetime.timedelta(0),
}
"""By kind, a value that takes the place of NULL: any would do."""


def as_equalities(e: Expression, lacking: frozenset[int] = frozenset()) -> Expression:
    """Returns a condition that is true for the same rows. Those of the sources `lacking` may be
    missing."""
    match e:
        case And():
            return conjunction(tuple(as_equalities(term, lacking) for term in e.terms))
        case Or():
            terms = _without_pairs(e.terms, lacking)
            return disjunction(tuple(as_equalities(term, lacking) for term in terms))
        case Not(Compare(Condition.EQ, Call(function="is_distinct") as call, right)) | Compare(
            Condition.NE, Call(function="is_distinct") as call, right
        ) if right == TRUE:
            a, b = call.arguments
            return _equal(a, b, call.takes[0], lacking) or e
        case _:
            return e


def _without_pairs(
    terms: tuple[Expression, ...], lacking: frozenset[int]
) -> tuple[Expression, ...]:
    """Merges `a = b` with the alternative that both are NULL."""
    both_null = {_both_null(term): term for term in terms if _both_null(term)}
    found: list[Expression] = []
    merged: list[Expression] = []
    for term in terms:
        if isinstance(term, Compare) and term.condition is Condition.EQ:
            other = both_null.get(frozenset((term.left, term.right)))
            equal = other and _equal(term.left, term.right, term.of, lacking)
            if other and equal:
                merged.append(other)
                term = equal
        found.append(term)
    return tuple(term for term in found if term not in merged)


def _both_null(e: Expression) -> frozenset[Expression]:
    """Returns the two values that `a IS NULL AND b IS NULL` names."""
    if not isinstance(e, And) or len(e.terms) != 2:
        return frozenset()
    return frozenset(term.term for term in e.terms if isinstance(term, IsNull) and not term.negated)


def _equal(a: Expression, b: Expression, of: Type, lacking: frozenset[int]) -> Expression | None:
    """Returns the equality of two columns; None for values that are computed, whose faults would
    count twice, and for columns of one source, which need no index."""
    if not isinstance(a, ColumnReference) or not isinstance(b, ColumnReference):
        return None
    if a.source == b.source or of.kind not in _STANDS_IN:
        return None
    if not all(column.nullable or column.source in lacking for column in (a, b)):
        return Compare(Condition.EQ, a, b, of)
    nothing = Literal(_STANDS_IN[of.kind], of)
    first, second = (Call("coalesce", (column, nothing), (of, of), of) for column in (a, b))
    absent = Compare(Condition.EQ, IsNull(a, False), IsNull(b, False), BOOLEAN)
    return conjunction((absent, Compare(Condition.EQ, first, second, of)))
