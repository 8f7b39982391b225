"""The codec of everything that crosses between nodes: values as JSON, read with suspicion.

What JSON lacks is an object with one member: the type's name, and its fields in order.

    (1, inf, b"k")            [1, {"float": "inf"}, {"bytes": "aw=="}]
    Done((0, 3), 5.0)         {"Done": [[0, 3], 5.0, 0.0, 0]}

Only the types listed here are read, and only with as many fields as they have. Nothing executable
crosses: conditions are sent as their expressions.
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
from typing import Any, get_args

from compiler import catalogue
from compiler.errors import Span
from compiler.language import expressions as x
from compiler.language.types import Kind, Type
from engine.sites.costs import UnitCosts
from engine.sites.errors import SitesError
from engine.sites.explain import Block
from engine.sites.messages import MESSAGES, AccountState, ToHub
from engine.sites.model import BlockRows, Join, Partial, Result, Row, Stored, Stream
from engine.sites.node import Layout
from engine.sites.query import Where
from engine.sites.shared import Bundle, SharedLayout
from engine.sites.synopsis import CountingBloom, CountMin, Exact, Hashed
from hdl.device import Window, WindowKind
from hdl.isa import Condition

_OWN = (
    *(AccountState, ToHub, Partial, Stored, Result, Row, BlockRows, Stream, UnitCosts, Block),
    *(Exact, Hashed, CountMin, CountingBloom, Join, Layout, SharedLayout, Bundle, Where),
    *(Window, Type, Span),
)
_KINDS: dict[str, type[Any]] = {
    **MESSAGES,
    **{kind.__name__: kind for kind in _OWN},
    # Two rooms have a Column, two a Stream.
    **{f"catalogue.{kind.__name__}": kind for kind in (catalogue.Stream, catalogue.Column)},
    **{
        f"x.{kind.__name__}": kind
        for kind in (x.Column, *get_args(x.Expression))
        if kind is not x.Leaf
    },
}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_FIELDS = {kind: [f.name for f in dataclasses.fields(kind) if f.init] for kind in _NAMES}
_ENUMS: dict[str, type[enum.Enum]] = {kind.__name__: kind for kind in (Kind, Condition, WindowKind)}
_READ: dict[str, Any] = {
    "float": float,
    "bytes": lambda of: base64.b64decode(of, validate=True),
    "Decimal": decimal.Decimal,
    "Fraction": fractions.Fraction,
    **{kind.__name__: kind.fromisoformat for kind in (datetime.date, datetime.time)},
    "datetime": datetime.datetime.fromisoformat,
    "timedelta": lambda of: datetime.timedelta(*of),
}


class Malformed(SitesError):
    """Bytes that are no message."""


def encode(value: object) -> bytes:
    return json.dumps(_Writer().plain(value), separators=(",", ":"), allow_nan=False).encode()


def decode(data: bytes) -> Any:
    try:
        return _Reader().value(json.loads(data))
    except (ValueError, TypeError, KeyError, IndexError, ArithmeticError, RecursionError) as error:
        raise Malformed(f"no message: {error}") from None


class _Writer:
    """Writes one value. A stored row that is in several combinations is written once."""

    def __init__(self) -> None:
        self.rows: dict[int, int] = {}

    def plain(self, value: Any) -> object:
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if kind in (tuple, list):
            return [self.plain(part) for part in value]
        if kind is Stored:
            if (known := self.rows.get(id(value))) is not None:
                return {"row": known}
            self.rows[id(value)] = len(self.rows)
        if kind in _NAMES:
            return {_NAMES[kind]: [self.plain(getattr(value, name)) for name in _FIELDS[kind]]}
        if kind is dict:
            return {"map": [[self.plain(k), self.plain(v)] for k, v in value.items()]}
        if kind is bytes:
            return {"bytes": base64.b64encode(value).decode()}
        if kind is frozenset:
            return {"set": [self.plain(part) for part in value]}
        if kind in (datetime.date, datetime.time, datetime.datetime):
            return {kind.__name__: value.isoformat()}
        if kind is datetime.timedelta:
            return {"timedelta": [value.days, value.seconds, value.microseconds]}
        if kind in (decimal.Decimal, fractions.Fraction):
            return {kind.__name__: str(value)}
        if kind.__name__ in _ENUMS:
            return {kind.__name__: value.name}
        raise Malformed(f"a {kind.__name__} does not cross between nodes")


class _Reader:
    def __init__(self) -> None:
        self.rows: list[Stored] = []

    def value(self, plain: Any) -> Any:
        if isinstance(plain, list):
            return tuple([self.value(part) for part in plain])
        if not isinstance(plain, dict):
            return plain
        ((name, of),) = plain.items()
        match name:
            case "row":
                return self.rows[of]
            case "set":
                return frozenset(map(self.value, of))
            case "map":
                return {self.value(k): self.value(v) for k, v in of}
        if name in _READ:
            return _READ[name](of)
        if name in _ENUMS:
            return _ENUMS[name][of]
        kind = _KINDS[name]
        if not isinstance(of, list) or len(of) != len(_FIELDS[kind]):
            raise ValueError(f"{name} has other members")
        value = kind(*map(self.value, of))
        if kind is Stored:
            self.rows.append(value)
        return value
