"""Types, constants and texts in DuckDB's SQL, for `judge`."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

from seustream.compiler.language.types import Kind, Type, digits

MILLISECOND = datetime.timedelta(milliseconds=1)


class NotAsked(Exception):
    """Raised if DuckDB has nothing of the same meaning."""


def type_name(of: Type) -> str:
    """Returns the type in DuckDB."""
    match of.kind:
        case Kind.INTERVAL:
            return "BIGINT"
        case Kind.REAL:
            return "REAL"
        case Kind.CHAR | Kind.VARCHAR:
            return "VARCHAR"
        case Kind.LIST:
            assert of.element is not None
            return f"{type_name(of.element)}[]"
        case Kind.NULL:
            return "INTEGER"
    return str(of).upper()


def constant(value: Any, of: Type) -> str:
    """Returns a constant of a type."""
    if value is None:
        return f"NULL::{type_name(of)}"
    if isinstance(value, datetime.timedelta):
        return f"({value // MILLISECOND})::BIGINT"
    text = f"{value:f}" if isinstance(value, Decimal) else str(value)
    return "CAST('{}' AS {})".format(text.replace("'", "''"), type_name(of))


def double_text(text: str, of: Type) -> str:
    """Returns a double or real as a text that reads back as the same value."""
    return f"({text})::DOUBLE::VARCHAR" if of.kind is Kind.REAL else f"({text})::VARCHAR"


def read_decimal(text: str, to: Type) -> str:
    """Goes through 38 digits and counts them itself: DuckDB does not count those of a text with an
    exponent."""
    precision, scale = digits(to)
    wide = f"TRY_CAST({text} AS DECIMAL(38,{scale}))"
    fits = f"abs(trunc({wide})::HUGEINT) < {10 ** (precision - scale)}::HUGEINT"
    return f"(CASE WHEN {fits} THEN TRY_CAST({wide} AS {type_name(to)}) END)"


def to_text(text: str, of: Type, to: Type) -> str:
    """Returns a value other than an interval as a text of another type."""
    if of.is_inexact:
        words = f"CASE ({text})::DOUBLE WHEN 'inf'::DOUBLE THEN 'Infinity'"
        words += f" WHEN '-inf'::DOUBLE THEN '-Infinity' ELSE ({text})::VARCHAR END"
        shown = f"({words})"
    elif of.is_decimal:
        precision, scale = digits(of)
        if precision == scale:
            raise NotAsked("DuckDB writes no zero before the point")
        shown = f"({text})::VARCHAR"
    else:
        shown = f"({text})::VARCHAR"
    return shown if to.length is None else f"left({shown}, {to.length})"


_INTEGER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)$"
_REAL = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def from_text(text: str, to: Type) -> str:
    """Reads a text as a value of another type, NULL if it has none."""
    name = type_name(to)
    bare = f"trim({text})"
    if to.is_integer:
        whole = f"regexp_extract('0' || ltrim({bare}, '+-'), '^[0-9]+')"
        sign = f"(CASE WHEN starts_with({bare}, '-') THEN '-' ELSE '' END)"
        value = f"TRY_CAST({sign} || {whole} AS {name})"
        return f"(CASE WHEN regexp_matches({bare}, '{_INTEGER}') THEN {value} END)"
    if to.is_decimal:
        # A value far too small for a decimal is 0; DuckDB refuses such exponents.
        small = f"regexp_matches({bare}, '[eE]-0*[1-9][0-9]{{4,}}$')"
        value = read_decimal(f"(CASE WHEN {small} THEN '0' ELSE {bare} END)", to)
        return f"(CASE WHEN regexp_matches({bare}, '{_REAL}') THEN {value} END)"
    if to.kind is Kind.BOOLEAN:
        word = f"lower({bare})"
        true, false = "'t', 'true', 'y', 'yes', '1'", "'f', 'false', 'n', 'no', '0'"
        return f"(CASE WHEN {word} IN ({true}) THEN TRUE WHEN {word} IN ({false}) THEN FALSE END)"
    raise NotAsked(f"text to {to}")
