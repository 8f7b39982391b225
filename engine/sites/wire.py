"""Messages as bytes: JSON with the few kinds of values it lacks, read with suspicion.

A dataclass is an object whose member `is` names it; the names that may be are those listed here,
its members exactly its fields. Tuples are arrays. Nothing executable crosses the wire.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import enum
import json
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any, get_args

from compiler.errors import Span
from compiler.language import expressions as x
from compiler.language.types import Kind, Type
from engine.sites import messages as m
from engine.sites.costs import UnitCosts
from engine.sites.errors import MultiJoinError
from engine.sites.explain import Block
from engine.sites.model import BlockRows, Partial, Result, Row, Stored, Stream
from engine.sites.synopsis import CountingBloom, CountMin, Exact, Hashed
from engine.sites.where import Where
from hdl.device import Window, WindowKind
from hdl.isa import Condition

_KNOWN: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        m.Delta,
        m.Plan,
        m.Probe,
        m.Deliver,
        m.Done,
        m.Expire,
        m.Ack,
        m.Wait,
        m.Rebuild,
        m.Standing,
        m.Stale,
        m.Takeover,
        m.Lost,
        m.Announce,
        m.Tell,
        m.Told,
        m.Ship,
        m.Fetch,
        m.Fetched,
        m.Joined,
        m.Forward,
        m.Led,
        m.Books,
        m.Hubwards,
        Partial,
        Stored,
        Result,
        Row,
        BlockRows,
        Stream,
        UnitCosts,
        Exact,
        Hashed,
        CountMin,
        CountingBloom,
        Block,
        Where,
        Window,
        Type,
        Span,
        x.Column,
        *(kind for kind in get_args(x.Expression) if kind not in (x.Leaf, x.Aggregate)),
    )
}
_ENUMS: dict[str, type[enum.Enum]] = {kind.__name__: kind for kind in (Kind, Condition, WindowKind)}
_TIMES = {kind.__name__: kind for kind in (datetime.date, datetime.time, datetime.datetime)}


class Malformed(MultiJoinError):
    """Bytes that are no message."""


def encode(value: object) -> bytes:
    return json.dumps(_plain(value), separators=(",", ":"), allow_nan=False).encode()


def decode(data: bytes) -> Any:
    try:
        return _value(json.loads(data))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise Malformed(f"no message: {error}") from None


def _plain(value: object) -> object:
    if value is None or (isinstance(value, bool | int | str) and not isinstance(value, enum.Enum)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"is": "float", "of": str(value)}
    if isinstance(value, Decimal | Fraction):
        return {"is": type(value).__name__, "of": str(value)}
    if isinstance(value, datetime.timedelta):
        return {"is": "timedelta", "of": value // datetime.timedelta(microseconds=1)}
    if isinstance(value, bytes):
        return {"is": "bytes", "of": base64.b64encode(value).decode()}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    if isinstance(value, frozenset):
        return {"is": "set", "of": [_plain(part) for part in value]}
    if isinstance(value, enum.Enum) and type(value).__name__ in _ENUMS:
        return {"is": type(value).__name__, "of": value.name}
    if type(value).__name__ in _TIMES and hasattr(value, "isoformat"):
        return {"is": type(value).__name__, "of": value.isoformat()}
    if isinstance(value, dict):
        return {"is": "map", "of": [[_plain(k), _plain(v)] for k, v in value.items()]}
    name = type(value).__name__
    if _KNOWN.get(name) is not type(value):
        raise Malformed(f"a {name} does not cross the wire")
    members = {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}  # type: ignore[arg-type]  # of _KNOWN: dataclasses
    return {"is": name, **members}


def _value(plain: Any) -> Any:
    if isinstance(plain, list):
        return tuple(map(_value, plain))
    if not isinstance(plain, dict):
        return plain
    name = plain.pop("is")
    match name:
        case "float":
            return float(plain["of"])
        case "Decimal":
            return Decimal(plain["of"])
        case "Fraction":
            return Fraction(plain["of"])
        case "timedelta":
            return datetime.timedelta(microseconds=plain["of"])
        case "bytes":
            return base64.b64decode(plain["of"], validate=True)
        case "set":
            return frozenset(map(_value, plain["of"]))
        case "map":
            return {_value(k): _value(v) for k, v in plain["of"]}
    if name in _ENUMS:
        return _ENUMS[name][plain["of"]]
    if name in _TIMES:
        return _TIMES[name].fromisoformat(plain["of"])
    kind = _KNOWN[name]
    if set(plain) != {field.name for field in dataclasses.fields(kind)}:
        raise ValueError(f"{name} has other members")
    return kind(**{member: _value(part) for member, part in plain.items()})
