"""Elements of a stream: values with a lifetime, and the marks between them.

Time is a signed 64-bit number of milliseconds since the epoch; additions saturate at `FOREVER`. An
interval [ts, te) has ts <= te; with ts = te it is an *instant*, which is in no snapshot. The key
(ts, te) of a stream's elements never decreases.
"""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass

from seustream.compiler.language import expressions as language
from seustream.compiler.language.types import EPOCH, MICROSECOND, TIME_RANGES, Kind
from seustream.engine.stream.operator import EARLIEST as EARLIEST
from seustream.engine.stream.operator import FOREVER as FOREVER

Value = language.Value
"""A value of an attribute; NULL is None."""

LEAST_MOMENT, LATEST_MOMENT = (end // 1000 for end in TIME_RANGES[Kind.TIMESTAMP])

Key = tuple[int, int]


class ElementKind(enum.Enum):
    """The kind of an element. Only INSERTION and BOUNDARY have a time; the others act when they
    reach the head of their queue."""

    HEADER = "HEADER"  # the schema of the insertions that follow
    REMOVE = "REMOVE"  # the stream has left the system
    STOP = "STOP"  # operators cease work; final
    INSERTION = "INSERTION"  # values
    BOUNDARY = "BOUNDARY"  # (t, t): nothing later starts before t

    @property
    def timed(self) -> bool:
        return self in (ElementKind.INSERTION, ElementKind.BOUNDARY)


@dataclass(frozen=True, slots=True)
class StreamElement:
    """One element. `values` are the leaves of an INSERTION, in order. `schema` is the schema of a
    HEADER, in any form that the layer above uses."""

    kind: ElementKind
    ts: int = 0
    te: int = 0
    values: tuple[Value, ...] = ()
    schema: object = None

    @property
    def key(self) -> Key:
        return (self.ts, self.te)

    def __repr__(self) -> str:
        if self.kind is ElementKind.BOUNDARY:
            return f"B({self.ts})"
        if self.kind is ElementKind.INSERTION:
            te = "inf" if self.te == FOREVER else self.te
            return f"[{self.ts},{te}) {', '.join(map(repr, self.values))}"
        return self.kind.name


def milliseconds(moment: datetime.datetime) -> int | float:
    """Returns a DATETIME in milliseconds since the epoch, with a fraction where it has
    microseconds."""
    microseconds = (moment - EPOCH) // MICROSECOND
    return microseconds // 1000 if microseconds % 1000 == 0 else microseconds / 1000
