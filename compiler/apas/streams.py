"""Extension points for a user's library on whole streams: windows, and indexes of joins and aggregates.

    class Last(WindowFunction):
        names, takes, constants = ("stream", "n"), (INTEGER,), ("n",)
        def open(self, n): return LastRows(n)

A window gives every tuple a new lifetime, a `Matching` condition finds the pairs of a join without
testing all of them, an `AggregateIndex` maintains an aggregate of the live tuples. All of them work
on columns (numpy: int64, float64, bool, objects for STRING) with any number of rows.

These rules must hold, since results depend on the streams' contents alone:

1. The way rows are cut into calls changes nothing.
2. Nothing reads a clock, a random number, or rows of another query.
3. Between two calls, `save` returns everything that a window or an aggregate's index remembers.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from seustream.compiler.apas.functions import Saved, Scalar, StreamFunction
from seustream.compiler.language.types import Type

Ints = npt.NDArray[np.int64]
Column = npt.NDArray[Any]


class Lifetimes(NamedTuple):
    """New lifetimes [ts, te) of tuples; `which` are their numbers, counted from 0 in order of
    arrival."""

    which: Ints
    ts: Ints
    te: Ints


NONE = Lifetimes(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))
"""No lifetimes are known yet."""


class LiveWindow(Saved):
    """A running window. It gives each tuple its lifetime once, as soon as it is known, possibly in
    a later call. No lifetime begins before its tuple does; results wait until it is known."""

    def push(self, first: int, ts: Ints, te: Ints, *columns: Column) -> Lifetimes:
        """Takes tuples in the order of (ts, te); `first` is the number of the first one."""
        raise NotImplementedError

    def advance(self, now: int) -> Lifetimes:
        """Advances to `now`, before which no further tuple begins."""
        return NONE

    def finish(self) -> Lifetimes:
        """Ends the stream and returns the lifetimes of all remaining tuples."""
        return NONE


class WindowFunction(StreamFunction):
    """Changes the lifetimes of a stream. The first of `names` is the stream. `takes` are the types
    of the others, which are values of the stream's attributes or, if listed in `constants`,
    constants.

    Implement `ends` if the end of a tuple depends on that tuple alone, else `open`.
    """

    names: tuple[str, ...] = ("stream",)
    takes: ClassVar[tuple[Type, ...]] = ()
    constants: ClassVar[tuple[str, ...]] = ()

    def check(self, **constants: Any) -> None:
        """Raises `BadArgument` for constants that the window does not accept."""

    def ends(self, ts: Ints, te: Ints, *columns: Column, **constants: Any) -> Column:
        """Returns the new end of each tuple, never before its begin."""
        raise NotImplementedError

    def open(self, **constants: Any) -> LiveWindow:
        """Starts a new window."""
        return _EachAlone(self, constants)


class _EachAlone(LiveWindow):
    """Runs the window of a function that only implements `ends`."""

    def __init__(self, function: WindowFunction, constants: dict[str, Any]) -> None:
        self.function, self.constants = function, constants

    def push(self, first: int, ts: Ints, te: Ints, *columns: Column) -> Lifetimes:
        ends = self.function.ends(ts, te, *columns, **self.constants)
        return Lifetimes(np.arange(first, first + len(ts)), ts, np.asarray(ends))

    def save(self) -> Any:
        return None

    def load(self, saved: Any) -> None:
        """Does nothing, since this window has no state."""


class JoinIndex:
    """Indexes the rows of one side of a join by number, on the values that a `Matching` condition
    reads."""

    def insert(self, numbers: Ints, *columns: Column) -> None:
        raise NotImplementedError

    def delete(self, numbers: Ints) -> None:
        raise NotImplementedError

    def candidates(self, *columns: Column) -> tuple[Ints, Ints]:
        """Returns rows that may match rows of the other side: places in `columns`, and a number for
        each. All matching rows must be among them; the condition itself is checked on the
        candidates."""
        raise NotImplementedError


class Matching(Scalar):
    """A condition on two streams that an index serves. `sides` gives the number of values it takes
    from the first and from the second stream. In a join of the two, `index(0)` keeps rows of the
    first and is probed with values of the second, `index(1)` the other way round; elsewhere only
    `call` is used."""

    sides: ClassVar[tuple[int, int]] = (1, 1)

    def index(self, side: int) -> JoinIndex:
        raise NotImplementedError
