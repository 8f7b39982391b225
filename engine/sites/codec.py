"""The codec of everything that crosses between nodes: values as JSON, checked when they are read.

A type that JSON lacks is an object with one member: the type's name, and its fields in order.

    (1, inf, b"k")            [1, {"float": "inf"}, {"bytes": "aw=="}]
    Done((0, 3), 5.0)         {"Done": [[0, 3], 5.0, 0.0, 0]}
    ((1, "a"), (2, "b"))      {"zip": [[1, 2], ["a", "b"]]}
    pa.timestamp("ms")        {"timestamp": ["ms", null]}

Several values of one shape are written by columns. Only the types listed here are read, and only
with as many fields as they have. Nothing executable crosses: conditions are sent as their
expressions.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import enum
import fractions
import json
import math
from collections.abc import Sequence
from typing import Any, get_args

import pyarrow as pa

from seustream.compiler import catalogue
from seustream.compiler.errors import Span
from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import Kind, Type
from seustream.engine.sites.costs import UnitCosts
from seustream.engine.sites.errors import SitesError
from seustream.engine.sites.explain import Block
from seustream.engine.sites.layout import SiteLayout
from seustream.engine.sites.messages import MESSAGES, AccountState, ToHub
from seustream.engine.sites.model import (
    BlockRows,
    EquiJoin,
    Partial,
    Result,
    SiteRow,
    SiteStream,
    Stored,
)
from seustream.engine.sites.query import Where
from seustream.engine.sites.shared import Bundle, SharedLayout
from seustream.engine.sites.synopsis import CountingBloom, CountMin, Exact, Hashed
from seustream.engine.times import TICKS, UNKNOWN
from seustream.hdl.device import Window, WindowKind
from seustream.hdl.isa import Condition

_OWN = (
    *(
        AccountState,
        ToHub,
        Partial,
        Stored,
        Result,
        SiteRow,
        BlockRows,
        SiteStream,
        UnitCosts,
        Block,
    ),
    *(Exact, Hashed, CountMin, CountingBloom, EquiJoin, SiteLayout, SharedLayout, Bundle, Where),
    *(Window, Type, Span),
)
_KINDS: dict[str, type[Any]] = {
    **MESSAGES,
    **{kind.__name__: kind for kind in _OWN},
    # Column and Stream are each the name of two classes, so the prefix tells them apart.
    **{f"catalogue.{kind.__name__}": kind for kind in (catalogue.Stream, catalogue.Column)},
    **{
        f"x.{kind.__name__}": kind
        for kind in (x.ColumnReference, *get_args(x.Expression))
        if kind is not x.Leaf
    },
}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_FIELDS = {kind: [f.name for f in dataclasses.fields(kind) if f.init] for kind in _NAMES}
_ENUMS: dict[str, type[enum.Enum]] = {kind.__name__: kind for kind in (Kind, Condition, WindowKind)}


class Malformed(SitesError):
    """Bytes that are not a message."""


def encode(value: object) -> bytes:
    return json.dumps(_plain(value), separators=(",", ":"), allow_nan=False).encode()


def decode(data: bytes) -> Any:
    try:
        return _value(json.loads(data))
    except (ValueError, TypeError, KeyError, IndexError, ArithmeticError, RecursionError) as error:
        raise Malformed(f"no message: {error}") from None


def _plain(value: Any) -> object:
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if kind in (tuple, list):
        return _several(value)
    if kind in _NAMES:
        return {_NAMES[kind]: [_plain(getattr(value, name)) for name in _FIELDS[kind]]}
    if kind is dict:
        return {"map": [_several(list(value)), _several(list(value.values()))]}
    if kind is bytes:
        return {"bytes": base64.b64encode(value).decode()}
    if kind is frozenset:
        return {"set": _several(list(value))}
    if kind in (datetime.date, datetime.time, datetime.datetime):
        return {kind.__name__: value.isoformat()}
    if kind is datetime.timedelta:
        return {"timedelta": [value.days, value.seconds, value.microseconds]}
    if kind in (decimal.Decimal, fractions.Fraction):
        return {kind.__name__: str(value)}
    if isinstance(value, pa.TimestampType):
        return {"timestamp": [value.unit, value.tz]}
    if isinstance(value, pa.DataType) and str(value) in _TYPES:
        return {"type": str(value)}
    if kind.__name__ in _ENUMS:
        return {kind.__name__: value.name}
    raise Malformed(f"a {kind.__name__} does not cross between nodes")


def _several(values: Sequence[Any]) -> object:
    """Writes several values. Values of one shape are written by columns, because that is where the
    time goes in a message of thousands of rows. A stored row that is in several combinations is
    written once."""
    kinds = set(map(type, values))
    if kinds <= _SCALARS or (kinds == {float} and all(map(math.isfinite, values))):
        return list(values)
    if len(values) > 1 and len(kinds) == 1:
        (kind,) = kinds
        if kind is tuple and len({*map(len, values)}) == 1 and values[0]:
            return {"zip": [_several(column) for column in zip(*values, strict=True)]}
        if kind is float:
            return {"floats": [str(value) for value in values]}
        if kind is Stored and len(once := {id(row): row for row in values}) < len(values):
            at = {key: place for place, key in enumerate(once)}
            return {"pick": [_several(list(once.values())), [at[id(row)] for row in values]]}
        if kind in _NAMES:
            columns = [[getattr(value, name) for value in values] for name in _FIELDS[kind]]
            return {"many": [_NAMES[kind], *map(_several, columns)]}
    return [_plain(value) for value in values]


def _value(plain: Any) -> Any:
    if isinstance(plain, list):
        if _NESTED.isdisjoint(map(type, plain)):
            return tuple(plain)
        return tuple([_value(part) for part in plain])
    if not isinstance(plain, dict):
        return plain
    ((name, of),) = plain.items()
    if name in _READ:
        return _READ[name](of)
    if name in _ENUMS:
        return _ENUMS[name][of]
    return _made(_KINDS[name], of)


def _made(kind: type[Any], of: list[Any]) -> Any:
    if not isinstance(of, list) or len(of) != len(_FIELDS[kind]):
        raise ValueError(f"{kind.__name__} has other members")
    return kind(*map(_value, of))


def _many(of: list[Any]) -> tuple[Any, ...]:
    kind, columns = _KINDS[of[0]], [_value(column) for column in of[1:]]
    if len(columns) != len(_FIELDS[kind]) or len({*map(len, columns)}) != 1:
        raise ValueError(f"{kind.__name__} has other members")
    return tuple(map(kind, *columns))


def _picked(of: list[Any]) -> tuple[Any, ...]:
    rows = _value(of[0])
    return tuple([rows[at] for at in of[1]])


_TYPES = {str(kind): kind for kind in (TICKS, UNKNOWN)}
"""The types of times that are no timestamps."""
_SCALARS = {bool, int, str, type(None)}
_NESTED = {list, dict}
_READ: dict[str, Any] = {
    "float": float,
    "floats": lambda of: tuple(map(float, of)),
    "bytes": lambda of: base64.b64decode(of, validate=True),
    "set": lambda of: frozenset(_value(of)),
    "map": lambda of: dict(zip(_value(of[0]), _value(of[1]), strict=True)),
    "zip": lambda of: tuple(zip(*map(_value, of), strict=True)),
    "many": _many,
    "pick": _picked,
    "Decimal": decimal.Decimal,
    "Fraction": fractions.Fraction,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "datetime": datetime.datetime.fromisoformat,
    "timedelta": lambda of: datetime.timedelta(*of),
    "timestamp": lambda of: pa.timestamp(*of),
    "type": lambda of: _TYPES[of],
}
