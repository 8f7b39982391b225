"""Types, the default-cast tree and which operators there are: section 6.3 of StreamAPAS.

    INTEGER ─┐
    BOOLEAN ─┼─► DOUBLE ─► STRING        more general to the right
    DATETIME ┘

A cast is one direct conversion, never a chain.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable


class Type(enum.Enum):
    INTEGER = "INTEGER"
    BOOLEAN = "BOOLEAN"
    DATETIME = "DATETIME"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    ERROR = "ERROR"  # of an attribute that failed to compile; silences what follows

    def __repr__(self) -> str:
        return self.value


INTEGER, BOOLEAN, DATETIME = Type.INTEGER, Type.BOOLEAN, Type.DATETIME
DOUBLE, STRING, ERROR = Type.DOUBLE, Type.STRING, Type.ERROR

TYPES = (INTEGER, DATETIME, BOOLEAN, DOUBLE, STRING)

_TO_THE_RIGHT: dict[Type, Type | None] = {
    INTEGER: DOUBLE,
    BOOLEAN: DOUBLE,
    DATETIME: DOUBLE,
    DOUBLE: STRING,
    STRING: None,
}

CASTS: frozenset[tuple[Type, Type]] = frozenset(
    {
        (BOOLEAN, STRING),
        (BOOLEAN, DOUBLE),
        (BOOLEAN, INTEGER),
        (INTEGER, DOUBLE),
        (INTEGER, STRING),
        (DATETIME, DOUBLE),
        (DATETIME, STRING),
        (DOUBLE, STRING),
    }
)

ORDERINGS = (">=", ">", "<=", "<", "!=")
LOGICAL = ("AND", "OR", "XOR")
BINARY = ("==", *ORDERINGS, "+", "-", "*", "/", *LOGICAL)
"""The thirteen operators of two arguments."""

AVAILABLE: dict[str, frozenset[Type]] = {
    "==": frozenset(TYPES),
    **dict.fromkeys(ORDERINGS, frozenset({INTEGER, DATETIME, DOUBLE, STRING})),
    "+": frozenset({INTEGER, DOUBLE, STRING}),
    **dict.fromkeys(("-", "*", "/", "negate"), frozenset({INTEGER, DOUBLE})),
    **dict.fromkeys((*LOGICAL, "NOT"), frozenset({INTEGER, BOOLEAN})),
}
"""The computation types of each operator; `negate` is the sign, BOOLEAN has no `!=` but XOR."""


def to_the_right(of: Type) -> list[Type]:
    """The type and all more general ones, nearest first."""
    found: list[Type] = []
    at: Type | None = of
    while at is not None:
        found.append(at)
        at = _TO_THE_RIGHT[at]
    return found


def common(types: Iterable[Type]) -> Type:
    """The nearest type all of these become by moving right."""
    first, *others = (to_the_right(each) for each in types)
    return next(each for each in first if all(each in other for other in others))


def computation(operator: str, types: tuple[Type, ...]) -> tuple[Type, Type] | None:
    """Algorithm 4: the computation type and the result type, None where there is no such
    operator. It never climbs beyond the common type."""
    ct = common(types)
    if ct not in AVAILABLE[operator]:
        return None
    if any(each is not ct and (each, ct) not in CASTS for each in types):
        return None
    return ct, BOOLEAN if operator in ("==", *ORDERINGS) else ct
