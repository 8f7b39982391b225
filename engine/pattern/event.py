"""Events and matches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from seustream.compiler.pattern import ir

END_OF_STREAM = (1 << 63) - 1
"""The watermark after which no event comes."""

BEGIN_OF_TIME = -(1 << 63)


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """One row of a stream. `seq`, assigned at arrival, is its identity: equal rows are different
    events. Events are stored in the order of (ts, seq)."""

    ts: int
    seq: int
    type: str | None
    attrs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def order(self) -> tuple[int, int]:
        return (self.ts, self.seq)

    def __repr__(self) -> str:
        return f"{self.type}#{self.seq}@{self.ts}"


def key_of(event: Event, names: Iterable[str]) -> tuple[Any, ...]:
    """Returns the values of the PARTITION BY columns."""
    return tuple(event.ts if name == ir.TIME else event.attrs.get(name) for name in names)


Ids = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """One match: the events of every element of the query, with none for negated elements. `D` is
    the time at which it became certain, which is the time of its row."""

    groups: tuple[tuple[Event, ...], ...]
    D: int

    @property
    def ids(self) -> Ids:
        return tuple(tuple(event.seq for event in group) for group in self.groups)

    @property
    def first(self) -> Event:
        return next(group[0] for group in self.groups if group)

    @property
    def last(self) -> Event:
        return next(group[-1] for group in reversed(self.groups) if group)

    @property
    def order(self) -> tuple[int, Ids]:
        """The order in which matches are given out."""
        return (self.D, self.ids)
