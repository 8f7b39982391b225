"""Simplifies predicates, bottom-up to a fixed point.

before  NOT (R.a <> S.d OR R.a <> S.d) AND (R.a = S.d OR R.b > 5)
after   R.a = S.d

Rules: double negation, De Morgan, NOT pushed into comparisons (the device has no NOT),
functions of constants, forms for an index (`language.indexable`), constants, idempotence,
contradiction, excluded middle, both absorptions. A comparison with NULL is not true and NOT does
not make it so; hence `A OR NOT A` is not TRUE but "no operand of A is NULL", which is TRUE only for
columns that are never NULL. An operand is decided by those beside it: `A AND (NOT A OR B)` is
`A AND B`, so that contradictions of whole formulas are found too.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import replace

from seustream.compiler.language.evaluate import COMPARE, compile_row
from seustream.compiler.language.expressions import (
    FALSE,
    TRUE,
    And,
    Call,
    Cast,
    ColumnReference,
    Compare,
    Expression,
    IsNull,
    Leaf,
    Literal,
    Or,
    Value,
    children,
    conjunction,
    disjunction,
    push_not,
    rebuild,
)
from seustream.compiler.language.faults import Faults
from seustream.compiler.language.indexable import indexable
from seustream.compiler.plan.encoding import as_compared
from seustream.hdl.isa import Condition

_LEAVES = (Compare, IsNull)


def simplify(predicate: Expression) -> Expression:
    """Returns an equivalent predicate without NOT that none of the rules changes any more."""
    current = computed(predicate)
    while True:
        after = _once(indexable(current))
        if after == current:
            return current
        current = after


def computed(e: Expression) -> Expression:
    """Computes functions of constants; those without a value stay, since their faults count when
    they are evaluated."""
    e = rebuild(e, computed)
    if not isinstance(e, Call | Cast) or not all(isinstance(part, Literal) for part in children(e)):
        return e
    faults = Faults()
    value = compile_row(e, _no_leaf, faults)(None)
    return e if value is None or faults.total else Literal(value, e.type)


def _no_leaf(e: Leaf) -> Callable[[object], Value]:
    raise AssertionError(f"{e} is no constant")


def _once(e: Expression) -> Expression:
    match e:
        case And() | Or():
            return _connective(e, tuple(_once(term) for term in e.terms))
        case Compare():
            return _comparison(e)
        case IsNull():
            return _null_test(e)
        case _:
            return e


def _connective(e: And | Or, terms: tuple[Expression, ...]) -> Expression:
    """Simplifies one AND or OR whose operands are already simplified. OR is the dual case."""
    is_and = isinstance(e, And)
    neutral, dominant = (TRUE, FALSE) if is_and else (FALSE, TRUE)
    flat: dict[Expression, None] = {}
    for term in terms:
        inner = term.terms if type(term) is type(e) else (term,)
        for part in inner:
            if part == dominant:
                return dominant
            if part != neutral:
                flat[part] = None
    for part in flat:
        opposite = push_not(part, negated=True)
        if isinstance(part, _LEAVES) and opposite in flat:
            if is_and:
                return FALSE
            never_null = _operands_not_null(part)
            rest = tuple(other for other in flat if other not in (part, opposite))
            return _once(disjunction((never_null, *rest)))
    build = conjunction if is_and else disjunction
    return build(tuple(_resolve(part, flat, is_and) for part in _absorb(list(flat), is_and)))


def _absorb(terms: list[Expression], is_and: bool) -> list[Expression]:
    """Absorbs: A and (A or B) is A; A or (A and B) is A."""
    other = Or if is_and else And
    alone = {term for term in terms if not isinstance(term, other)}
    compound = [frozenset(term.terms) for term in terms if isinstance(term, other)]

    kept: list[Expression] = []
    seen: set[frozenset[Expression]] = set()
    for term in terms:
        if isinstance(term, other):
            mine = frozenset(term.terms)
            weaker = not alone.isdisjoint(mine) or any(theirs < mine for theirs in compound)
            if weaker or mine in seen:
                continue
            seen.add(mine)
        kept.append(term)
    return kept


def _resolve(part: Expression, beside: Container[Expression], is_and: bool) -> Expression:
    """Resolves: A and (not A or B) is A and B; if A is never NULL, A or (not A and B) is A or B."""
    other, build = (Or, disjunction) if is_and else (And, conjunction)
    if not isinstance(part, other):
        return part
    return build(
        tuple(
            term
            for term in part.terms
            if push_not(term, negated=True) not in beside or not (is_and or _never_null(term))
        )
    )


def _never_null(e: Expression) -> bool:
    return isinstance(e, _LEAVES) and _operands_not_null(e) == TRUE


def _operands_not_null(e: Expression) -> Expression:
    operands: tuple[Expression, ...] = ()
    if isinstance(e, Compare):
        operands = (e.left, e.right)
        if isinstance(e.left, Call) and e.left.function in ("like", "ilike"):
            operands = (*e.left.arguments, e.right)
    tests = (_null_test(IsNull(operand, negated=True)) for operand in operands)
    return conjunction(tuple(test for test in tests if test != TRUE))


def _null_test(e: IsNull) -> Expression:
    if isinstance(e.term, ColumnReference) and not e.term.nullable:
        return TRUE if e.negated else FALSE
    if isinstance(e.term, Literal):
        return TRUE if (e.term.value is None) != e.negated else FALSE
    return e


def _comparison(e: Compare) -> Expression:
    """Decides constants or moves them to the right; of two columns, puts the earlier one first."""
    left, right = e.left, e.right
    if isinstance(left, Literal) and isinstance(right, Literal):
        return TRUE if _holds(e) else FALSE
    if any(isinstance(side, Literal) and side.value is None for side in (left, right)):
        return FALSE
    if left == right:
        if e.condition in (Condition.EQ, Condition.LE, Condition.GE):
            return _null_test(IsNull(left, negated=True))
        return FALSE
    exchange = isinstance(left, Literal)
    if isinstance(left, ColumnReference) and isinstance(right, ColumnReference):
        exchange = (right.source, right.name) < (left.source, left.name)
    if exchange:
        return replace(e, condition=e.condition.mirrored(), left=right, right=left)
    return e


def _holds(e: Compare) -> bool:
    a, b = (
        as_compared(side.value, e.of) if isinstance(side, Literal) else None
        for side in (e.left, e.right)
    )
    if a is None or b is None:
        return False
    return COMPARE[e.condition](a, b)
