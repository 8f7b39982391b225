"""APAS's names of types. The types are those of all languages; a leaf has one of the named ones."""

from __future__ import annotations

from seustream.compiler.language import types as t
from seustream.compiler.language.types import Kind, Type

INTEGER, DOUBLE, STRING, BOOLEAN, DATETIME = t.BIGINT, t.DOUBLE, t.VARCHAR, t.BOOLEAN, t.TIMESTAMP
DATE, TIME, INTERVAL, ERROR = t.DATE, t.TIME, t.INTERVAL, t.ERROR

NAMES: dict[str, Type] = {
    "INTEGER": INTEGER,
    "BOOLEAN": BOOLEAN,
    "DATETIME": DATETIME,
    "DOUBLE": DOUBLE,
    "STRING": STRING,
    "DATE": DATE,
    "TIME": TIME,
    "INTERVAL": INTERVAL,
}
_SHOWN = {of: name for name, of in NAMES.items()}


def settled(of: Type) -> Type:
    """Returns the type of a leaf that takes values of a type: the widest of integers, reals and
    texts."""
    if of.is_integer:
        return INTEGER
    if of.is_inexact:
        return DOUBLE
    return STRING if of.is_text or of.kind is Kind.NULL else of


def widest(a: Type, b: Type) -> Type | None:
    """Returns the wider of two types that APAS treats as one, None for others."""
    if ERROR in (a, b):
        return ERROR
    if a == b:
        return a
    return t.common(a, b) if settled(a) == settled(b) else None


def shown(of: Type | None) -> str:
    """Returns a type as messages and schemas name it; None is a group."""
    if of is None:
        return "a group"
    return _SHOWN.get(settled(of), str(of).upper())


def named(text: str) -> Type | None:
    """Returns the type of a name such as `INTEGER` or `DECIMAL(10,2)`, None if there is none."""
    if text in NAMES:
        return NAMES[text]
    digits = text.removeprefix("DECIMAL(").removesuffix(")").split(",")
    if f"DECIMAL({','.join(digits)})" != text or not all(each.isdecimal() for each in digits):
        return None
    precision, scale = (*map(int, digits), 0, 0)[:2] if len(digits) < 3 else (0, 0)
    return t.decimal(precision, scale) if 0 <= scale <= precision <= 38 and precision else None
