"""Elements of a stream: values with a lifetime, and the marks between them.

Time is a signed 64-bit number of milliseconds since the epoch; additions saturate at `FOREVER`.
An interval [ts, te) has ts <= te; with ts = te it is an *instant*, in no snapshot. A stream never
falls in the key (ts, te).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

FOREVER = 2**63 - 1
"""A te that never comes."""

EARLIEST = -(2**63)

Value = int | float | str | bool
"""INTEGER and DATETIME are int, DOUBLE float; there is no NULL."""

Key = tuple[int, int]


class Kind(enum.Enum):
    """What an element is. Only INSERTION and BOUNDARY have a time; the others act when they
    reach the head of their queue."""

    HEADER = "HEADER"  # the schema of the insertions that follow
    REMOVE = "REMOVE"  # the stream has left the system
    STOP = "STOP"  # operators cease work; final
    INSERTION = "INSERTION"  # values
    BOUNDARY = "BOUNDARY"  # (t, t): nothing later starts before t

    @property
    def timed(self) -> bool:
        return self in (Kind.INSERTION, Kind.BOUNDARY)


@dataclass(frozen=True, slots=True)
class Element:
    """One element. `values` are the leaves in order, of an INSERTION; `schema` that of a HEADER,
    whatever the layer above takes for one."""

    kind: Kind
    ts: int = 0
    te: int = 0
    values: tuple[Value, ...] = ()
    schema: object = None

    @property
    def key(self) -> Key:
        return (self.ts, self.te)

    @property
    def instant(self) -> bool:
        return self.ts == self.te

    def __repr__(self) -> str:
        if self.kind is Kind.BOUNDARY:
            return f"B({self.ts})"
        if self.kind is Kind.INSERTION:
            te = "inf" if self.te == FOREVER else self.te
            return f"[{self.ts},{te}) {', '.join(map(repr, self.values))}"
        return self.kind.name


def insertion(ts: int, te: int, *values: Value) -> Element:
    if ts > te:
        raise ValueError(f"[{ts}, {te}): an interval ends after it starts")
    return Element(Kind.INSERTION, ts, te, values)


def boundary(t: int) -> Element:
    return Element(Kind.BOUNDARY, t, t)


def header(schema: object) -> Element:
    return Element(Kind.HEADER, schema=schema)


STOP = Element(Kind.STOP)
REMOVE = Element(Kind.REMOVE)


def later(ts: int, size: int) -> int:
    """ts + size, as far as there is time."""
    return min(ts + size, FOREVER)
