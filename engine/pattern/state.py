"""Events and matches as plain values, for a JSON snapshot."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from seustream.compiler.pattern import ir
from seustream.engine.pattern.event import Event, Match
from seustream.engine.pattern.skip import Skipper, Skipping

_MILLISECOND = datetime.timedelta(milliseconds=1)
_WRITE: dict[type, tuple[str, Any, Any]] = {
    Decimal: ("decimal", str, Decimal),
    datetime.datetime: ("timestamp", str, datetime.datetime.fromisoformat),
    datetime.date: ("date", str, datetime.date.fromisoformat),
    datetime.time: ("time", str, datetime.time.fromisoformat),
    datetime.timedelta: (
        "interval",
        lambda value: value // _MILLISECOND,
        lambda size: size * _MILLISECOND,
    ),
}
"""Types that JSON lacks: their names, and how their values are written and read."""
_READ = {name: read for name, _, read in _WRITE.values()}


def value(of: Any) -> Any:
    """Returns a value as JSON; a value of a type that JSON lacks becomes `{type name: text}`."""
    written = _WRITE.get(type(of))
    return of if written is None else {written[0]: written[1](of)}


def value_of(plain: Any) -> Any:
    if not isinstance(plain, dict):
        return plain
    ((name, text),) = plain.items()
    return _READ[name](text)


def event(e: Event) -> list[Any]:
    return [e.ts, e.seq, e.type, {name: value(of) for name, of in e.attrs.items()}]


def event_of(plain: list[Any]) -> Event:
    ts, seq, kind, attrs = plain
    return Event(ts, seq, kind, {name: value_of(of) for name, of in attrs.items()})


def events(found: Sequence[Event]) -> list[list[Any]]:
    return [event(e) for e in found]


def events_of(plain: list[list[Any]]) -> list[Event]:
    return [event_of(one) for one in plain]


def skipping(of: Skipping) -> list[dict[str, Any]]:
    """Returns, by key, the matches that wait for their start to be settled."""
    return [_skipper(key, one) for key, one in of.skippers.items()]


def skipping_of(query: ir.PatternQuery, plain: Sequence[dict[str, Any]]) -> Skipping:
    found = Skipping(query)
    found.skippers = dict(_skipper_of(query, one) for one in plain)
    return found


def _skipper(key: tuple[Any, ...], of: Skipper) -> dict[str, Any]:
    matches = [{"D": m.D, "groups": [events(g) for g in m.groups]} for m in of.waiting.values()]
    return {"key": [value(of) for of in key], "after": list(of.after), "matches": matches}


def _skipper_of(query: ir.PatternQuery, plain: dict[str, Any]) -> tuple[tuple[Any, ...], Skipper]:
    found = Skipper(query)
    found.after = tuple(plain["after"])
    matches = [
        Match(tuple(tuple(events_of(g)) for g in m["groups"]), m["D"]) for m in plain["matches"]
    ]
    found.waiting = {match.first.order: match for match in matches}
    return tuple(map(value_of, plain["key"])), found
