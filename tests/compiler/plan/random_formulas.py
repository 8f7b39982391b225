"""Random conditions as bound expressions, over nullable and NOT NULL columns."""

from __future__ import annotations

import random

from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import BIGINT, BOOLEAN, INT, VARCHAR
from seustream.hdl.isa import Condition


def column(name: str, nullable: bool = True) -> x.ColumnReference:
    return x.ColumnReference(0, name, INT, nullable, "R")


def equals(left: x.Expression, value: int) -> x.Compare:
    return x.Compare(Condition.EQ, left, x.Literal(value, INT), INT)


def like(text: x.Expression, pattern: str, negated: bool) -> x.Compare:
    call = x.Call("like", (text, x.Literal(pattern, VARCHAR)), (VARCHAR, VARCHAR), BOOLEAN)
    return x.Compare(Condition.NE if negated else Condition.EQ, call, x.TRUE, BOOLEAN)


A, B, N = column("a"), column("b"), column("n", nullable=False)
S = x.ColumnReference(0, "s", VARCHAR, True, "R")
K = x.ColumnReference(1, "k", INT, False, "S")
D = x.ColumnReference(1, "d", INT, True, "S")
OPERANDS: tuple[x.Expression, ...] = (A, B, N, K, D, x.Literal(1, INT), x.Literal(2, INT))


def is_distinct(left: x.Expression, right: x.Expression, negated: bool) -> x.Expression:
    call = x.Compare(
        Condition.EQ, x.Call("is_distinct", (left, right), (INT, INT), BOOLEAN), x.TRUE, BOOLEAN
    )
    return x.Not(call) if negated else call


def sum_of_both(chance: random.Random) -> x.Expression:
    """Compares sums that read two streams, or the absolute value of one with a constant."""

    def some(columns: int) -> x.Expression:
        found: x.Expression = chance.choice(OPERANDS[:5])
        if chance.random() < 0.2:
            found = x.Call("negate", (found,), (BIGINT,), BIGINT)
        for number in range(columns):
            operands = OPERANDS if number == 1 else OPERANDS[:5]
            sides = found, chance.choice(operands)
            found = x.Call(chance.choice("+-"), sides, (BIGINT, BIGINT), BIGINT)
        return found

    condition = chance.choice(list(Condition)[:6])
    if chance.random() < 0.5:
        return x.Compare(condition, some(chance.randint(1, 3)), some(chance.randint(0, 2)), BIGINT)
    apart = x.Call("abs", (some(chance.randint(1, 2)),), (BIGINT,), BIGINT)
    sides = apart, x.Literal(chance.randint(-1, 3), INT)
    return x.Compare(condition, *(sides if chance.random() < 0.8 else sides[::-1]), BIGINT)


def leaf(chance: random.Random) -> x.Expression:
    kind = chance.randrange(13)
    if kind < 6:
        left, right = chance.choice(OPERANDS), chance.choice(OPERANDS)
        return x.Compare(chance.choice(list(Condition)[:6]), left, right, INT)
    if kind < 7:
        return x.IsNull(chance.choice(OPERANDS[:5]), chance.random() < 0.5)
    if kind < 8:
        return like(S, chance.choice(("a%", "_b", "%")), chance.random() < 0.5)
    if kind < 9:
        left, right = chance.choice((A, N)), chance.choice((K, D))
        return is_distinct(left, right, chance.random() < 0.8)
    if kind < 10:
        left, right = chance.choice((A, N)), chance.choice((K, D))
        equal = x.Compare(Condition.EQ, left, right, INT)
        nulls = x.And((x.IsNull(left, False), x.IsNull(right, False)))
        return x.Or((equal, nulls) if chance.random() < 0.5 else (nulls, equal))
    if kind < 11:
        return sum_of_both(chance)
    if kind < 12:
        return equals(chance.choice((A, B)), 1)
    return chance.choice((x.TRUE, x.FALSE, x.Compare(Condition.EQ, A, x.Literal(None, INT), INT)))


def random_formula(chance: random.Random, depth: int) -> x.Expression:
    if depth == 0 or chance.random() < 0.15:
        return leaf(chance)
    if chance.random() < 0.25:
        return x.Not(random_formula(chance, depth - 1))
    terms = tuple(random_formula(chance, depth - 1) for _ in range(chance.choice((2, 2, 3))))
    return x.And(terms) if chance.random() < 0.5 else x.Or(terms)
