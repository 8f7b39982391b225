"""Elements in the form in which tests write them."""

from __future__ import annotations

import datetime

from seustream.engine.temporal.elements import (
    EPOCH,
    FOREVER,
    LATEST_MOMENT,
    LEAST_MOMENT,
    ElementKind,
    StreamElement,
    Value,
)


def insertion(ts: int, te: int, *values: Value) -> StreamElement:
    if ts > te:
        raise ValueError(f"[{ts}, {te}): an interval ends after it starts")
    return StreamElement(ElementKind.INSERTION, ts, te, values)


def boundary(t: int) -> StreamElement:
    return StreamElement(ElementKind.BOUNDARY, t, t)


def header(schema: object) -> StreamElement:
    return StreamElement(ElementKind.HEADER, schema=schema)


STOP = StreamElement(ElementKind.STOP)
REMOVE = StreamElement(ElementKind.REMOVE)


def later(ts: int, size: int) -> int:
    """Returns ts + size, limited to the end of time."""
    return min(ts + size, FOREVER)


def moment(t: int) -> datetime.datetime | None:
    """Returns a tuple's time as a DATETIME; NULL beyond the years 1 to 9999, for example for
    ever."""
    return (
        EPOCH + datetime.timedelta(milliseconds=t) if LEAST_MOMENT <= t <= LATEST_MOMENT else None
    )
