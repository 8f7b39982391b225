"""Conditions between two rows in forms that an index can follow, and that a device can compare.

before  L.k IS NOT DISTINCT FROM R.k                 NULL equals NULL
before  L.k = R.k OR L.k IS NULL AND R.k IS NULL
after   (L.k IS NULL) = (R.k IS NULL) AND coalesce(L.k, 0) = coalesce(R.k, 0)

before  L.k = R.k AND L.a = 1 OR L.k = R.k AND L.b = 2    what all alternatives have
after   L.k = R.k AND (L.a = 1 OR L.b = 2)

before  (L.k = R.k) IS TRUE                          the truth of a condition
after   L.k = R.k

before  abs(L.a - R.b) <= 5                          sums of two rows, where nothing equates them
after   L.a <= R.b + 5 AND L.a >= R.b - 5
"""

from __future__ import annotations

import datetime
from collections.abc import Hashable, Iterable
from dataclasses import replace
from decimal import Decimal

from seustream.compiler.language.expressions import (
    FALSE,
    TRUE,
    And,
    Call,
    Cast,
    Compare,
    Expression,
    IsNull,
    Leaf,
    Literal,
    Or,
    Value,
    can_be_null,
    condition,
    conjunction,
    conjuncts,
    disjunction,
    leaves,
    push_not,
    walk,
)
from seustream.compiler.language.types import BIGINT, BOOLEAN, Kind, Type
from seustream.hdl.isa import Condition

_NOTHING: dict[Kind, Value] = {
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
_BELOW = (Condition.LT, Condition.LE)
_MILLISECOND = datetime.timedelta(milliseconds=1)
_SMALL = 1 << 60
"""Constants up to here make no sum of columns overflow."""

Pairs = frozenset[frozenset[Hashable]]
Sum = tuple[list[tuple[int, Leaf]], int]
"""Attributes, each with the sign 1 or -1, and a constant."""


def indexable(e: Expression, lacking: frozenset[int] = frozenset()) -> Expression:
    """Returns a condition without NOT that is true for the same rows. Those of the sources `lacking`
    may be missing."""
    return _apart(_plain(push_not(e), lacking), frozenset())


# --- NULL, and the truth of a condition -------------------------------------------------


def _plain(e: Expression, lacking: frozenset[int]) -> Expression:
    match e:
        case And():
            return conjunction(tuple(_plain(term, lacking) for term in e.terms))
        case Or():
            terms = _without_pairs(e.terms, lacking)
            return _shared(tuple(_plain(term, lacking) for term in terms))
        case Compare(Condition.NE, Call("is_distinct", (a, b)) as call, right) if right == TRUE:
            if b == TRUE and condition(a) is a:
                return _plain(push_not(a), lacking)
            return _equal(a, b, call.takes[0], lacking) or e
        case Compare(Condition.EQ, Call("coalesce", (inner, otherwise)), right) if (
            right == TRUE and otherwise == FALSE and condition(inner) is inner
        ):
            return _plain(push_not(inner), lacking)
        case Compare(Condition.EQ, inner, right) if right == TRUE and condition(inner) is inner:
            return _plain(push_not(inner), lacking)
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


def _shared(terms: tuple[Expression, ...]) -> Expression:
    """Returns the disjunction of terms, with the conditions that all of them have in front. Those that
    may have a fault, which would count once for each term, stay."""
    first, *more = (conjuncts(term) for term in terms)
    common = [
        one
        for one in dict.fromkeys(first)
        if not any(isinstance(part, Call | Cast) for part in walk(one))
        and all(one in other for other in more)
    ]
    if not common or not more:
        return disjunction(terms)
    rests = [[one for one in term if one not in common] for term in (first, *more)]
    rest = [disjunction(tuple(conjunction(tuple(one)) for one in rests))] if all(rests) else []
    return conjunction((*common, *rest))


def _both_null(e: Expression) -> frozenset[Expression]:
    """Returns the two values that `a IS NULL AND b IS NULL` names."""
    if not isinstance(e, And) or len(e.terms) != 2:
        return frozenset()
    return frozenset(term.term for term in e.terms if isinstance(term, IsNull) and not term.negated)


def _equal(a: Expression, b: Expression, of: Type, lacking: frozenset[int]) -> Expression | None:
    """Returns the equality of attributes of two rows; None for values that are computed, whose
    faults would count twice, and for attributes of one row, which need no index."""
    if not isinstance(a, Leaf) or not isinstance(b, Leaf) or of.kind not in _NOTHING:
        return None
    if a.origin == b.origin or None in (a.origin, b.origin):
        return None
    if not (can_be_null(a, lacking) and can_be_null(b, lacking)):
        return Compare(Condition.EQ, a, b, of)
    nothing = Literal(_NOTHING[of.kind], of)
    first, second = (Call("coalesce", (column, nothing), (of, of), of) for column in (a, b))
    absent = Compare(Condition.EQ, IsNull(a, False), IsNull(b, False), BOOLEAN)
    return conjunction((absent, Compare(Condition.EQ, first, second, of)))


# --- sums of two rows ------------------------------------------------------------------


def _apart(e: Expression, equated: Pairs) -> Expression:
    """Brings the attributes of each row to one side of a comparison, if no equality leads from one
    to the other. Behind an equality there are few pairs, and many queries may share what they
    compare with their constants."""
    match e:
        case And():
            equated |= {_origins(term) for term in conjuncts(e) if _equates(term)}
            return conjunction(tuple(_apart(term, equated) for term in e.terms))
        case Or():
            return disjunction(tuple(_apart(term, equated) for term in e.terms))
        case Compare() if len(_origins(e)) == 2 and _origins(e) not in equated:
            return _sides(e)
        case _:
            return e


def _origins(e: Expression) -> frozenset[Hashable]:
    return frozenset(leaf.origin for leaf in leaves(e))


def _equates(e: Expression) -> bool:
    return isinstance(e, Compare) and e.condition is Condition.EQ and _is_apart(e)


def _is_apart(e: Compare) -> bool:
    left, right = _origins(e.left), _origins(e.right)
    return len(left) == len(right) == 1 and left != right


def _sides(e: Compare) -> Expression:
    for one, other, op in (
        (e.left, e.right, e.condition),
        (e.right, e.left, e.condition.mirrored()),
    ):
        if isinstance(one, Call) and one.function == "abs" and one.takes == (BIGINT,):
            bound = _sum_of(other)
            if bound is None or bound[0] or op in (Condition.EQ, Condition.NE):
                return e
            most, least = _number(bound[1]), _number(-bound[1])
            within = replace(e, condition=op, left=one.arguments[0], right=most)
            beyond = replace(within, condition=op.mirrored(), right=least)
            found = tuple(_parted(part) for part in (within, beyond))
            if None in found:
                return e
            join = conjunction if op in _BELOW else disjunction
            return join(tuple(part for part in found if part is not None))
    return _parted(e) or e


def _parted(e: Compare) -> Compare | None:
    """Returns the comparison with one row on each side; None where it has that already, or where it
    compares more than sums of small integers, whose bounds are exact."""
    if _is_apart(e):
        return None
    left, right = _sum_of(e.left), _sum_of(e.right)
    if left is None or right is None:
        return None
    terms = [*left[0], *_minus(right[0])]
    constant, op = right[1] - left[1], e.condition
    first = terms[0][1].origin
    mine = [term for term in terms if term[1].origin == first]
    if all(sign < 0 for sign, _ in mine):
        terms, constant, op = [*_minus(terms)], -constant, op.mirrored()
        mine = [*_minus(mine)]
    theirs = [*_minus(term for term in terms if term[1].origin != first)]
    if abs(constant) > _SMALL:
        return None
    return replace(
        e, condition=op, left=_written(mine, 0), right=_written(theirs, constant), of=BIGINT
    )


def _minus(terms: Iterable[tuple[int, Leaf]]) -> list[tuple[int, Leaf]]:
    return [(-sign, leaf) for sign, leaf in terms]


def _sum_of(e: Expression) -> Sum | None:
    """Returns an expression as a sum, if it is one of integers of up to 32 bits and of times."""
    match e:
        case Leaf():
            small = e.type.kind in (Kind.SMALLINT, Kind.INT) or (e.is_time and e.type == BIGINT)
            return ([(1, e)], 0) if small and e.origin is not None else None
        case Literal(value=datetime.timedelta() as length) if not length % _MILLISECOND:
            return [], length // _MILLISECOND
        case Literal(value=int() as number) if not isinstance(number, bool):
            return [], number
        case Call("negate", (inner,)) if e.takes == (BIGINT,):
            of = _sum_of(inner)
            return None if of is None else (_minus(of[0]), -of[1])
        case Call("+" | "-", (one, other)) if e.takes == (BIGINT, BIGINT):
            left, right = _sum_of(one), _sum_of(other)
            if left is None or right is None:
                return None
            if e.function == "-":
                right = _minus(right[0]), -right[1]
            return [*left[0], *right[0]], left[1] + right[1]
        case _:
            return None


def _written(terms: list[tuple[int, Leaf]], constant: int) -> Expression:
    """Returns a sum as an expression, which begins with what is added."""
    added = [leaf for sign, leaf in terms if sign > 0]
    found: Expression
    if added:
        found, *more = added
    else:
        found, more, constant = _number(constant), [], 0
    for leaf in more:
        found = _add("+", found, leaf)
    for leaf in (leaf for sign, leaf in terms if sign < 0):
        found = _add("-", found, leaf)
    if constant:
        found = _add("+" if constant > 0 else "-", found, _number(abs(constant)))
    return found


def _add(operator: str, left: Expression, right: Expression) -> Call:
    return Call(operator, (left, right), (BIGINT, BIGINT), BIGINT)


def _number(value: int) -> Literal:
    return Literal(value, BIGINT)
