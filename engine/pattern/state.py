"""Events and matches as plain values, for a snapshot in JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compiler.pattern import ir
from engine.pattern.event import Event, Match
from engine.pattern.skip import Skipper


def event(e: Event) -> list[Any]:
    return [e.ts, e.seq, e.type, dict(e.attrs)]


def event_of(plain: list[Any]) -> Event:
    ts, seq, kind, attrs = plain
    return Event(ts, seq, kind, attrs)


def events(found: Sequence[Event]) -> list[list[Any]]:
    return [event(e) for e in found]


def events_of(plain: list[list[Any]]) -> list[Event]:
    return [event_of(one) for one in plain]


def skipper(key: tuple[Any, ...], of: Skipper) -> dict[str, Any]:
    """The matches of a key that wait for their start to be settled."""
    matches = [{"D": m.D, "groups": [events(g) for g in m.groups]} for m in of.waiting.values()]
    return {"key": list(key), "after": list(of.after), "matches": matches}


def skipper_of(query: ir.Query, plain: dict[str, Any]) -> tuple[tuple[Any, ...], Skipper]:
    found = Skipper(query)
    found.after = tuple(plain["after"])
    matches = [
        Match(tuple(tuple(events_of(g)) for g in m["groups"]), m["D"]) for m in plain["matches"]
    ]
    found.waiting = {match.first.order: match for match in matches}
    return tuple(plain["key"]), found
