"""The ways in which a user's library works on a whole stream: windows, and indexes of joins and aggregates.

    class Last(WindowFunction):
        names, takes, constants = ("stream", "n"), (INTEGER,), ("n",)
        def open(self, n): return LastRows(n)

A window gives every tuple a new lifetime, a `Matching` condition finds the pairs of a join without
looking at all of them, an `AggregateIndex` keeps an aggregate of the tuples that live. All of them work
on columns (numpy: int64, float64, bool, objects for STRING), however many rows stand in one.

What must hold, since results depend on the streams' contents alone:

1. How rows are cut into calls changes nothing.
2. Nothing looks at a clock, at chance, or at rows of another query.
3. Between two calls everything a window or an aggregate's index remembers is what `save` gives.
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
    """New lifetimes [ts, te) of tuples; `which` are their numbers, counted from 0 as they came."""

    which: Ints
    ts: Ints
    te: Ints


NONE = Lifetimes(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))
"""No tuple's lifetime is known by now."""


class LiveWindow(Saved):
    """A window at work. Each tuple gets its lifetime once, when it is known: a later call may give
    it. No lifetime begins before its tuple does; until it is known, results wait."""

    def push(self, first: int, ts: Ints, te: Ints, *columns: Column) -> Lifetimes:
        """Takes tuples in the order of (ts, te); `first` is the first one's number."""
        raise NotImplementedError

    def advance(self, now: int) -> Lifetimes:
        """No tuple before `now` comes any more."""
        return NONE

    def finish(self) -> Lifetimes:
        """No tuple comes any more: what is left gets its lifetime."""
        return NONE


class WindowFunction(StreamFunction):
    """Changes the lifetimes of a stream. The first of `names` is the stream; `takes` are the types of
    the others, which are values of the stream's attributes or, if they are in `constants`, constant.

    Give `ends`, if the end of a tuple depends on that tuple alone, else `open`."""

    names: tuple[str, ...] = ("stream",)
    takes: ClassVar[tuple[Type, ...]] = ()
    constants: ClassVar[tuple[str, ...]] = ()

    def check(self, **constants: Any) -> None:
        """Raises `BadArgument` for constants the window cannot have."""

    def ends(self, ts: Ints, te: Ints, *columns: Column, **constants: Any) -> Column:
        """The new end of each tuple, never before its begin."""
        raise NotImplementedError

    def open(self, **constants: Any) -> LiveWindow:
        """A new window at work."""
        return _EachAlone(self, constants)


class _EachAlone(LiveWindow):
    """The window of a function that has only `ends`."""

    def __init__(self, function: WindowFunction, constants: dict[str, Any]) -> None:
        self.function, self.constants = function, constants

    def push(self, first: int, ts: Ints, te: Ints, *columns: Column) -> Lifetimes:
        ends = self.function.ends(ts, te, *columns, **self.constants)
        return Lifetimes(np.arange(first, first + len(ts)), ts, np.asarray(ends))

    def save(self) -> Any:
        return None

    def load(self, saved: Any) -> None:
        """There is nothing to."""


class JoinIndex:
    """The rows of one side of a join, by number, as far as a `Matching` condition reads them."""

    def insert(self, numbers: Ints, *columns: Column) -> None:
        raise NotImplementedError

    def delete(self, numbers: Ints) -> None:
        raise NotImplementedError

    def candidates(self, *columns: Column) -> tuple[Ints, Ints]:
        """Rows that may match rows of the other side: places in `columns`, and for each a number.
        All that match must be among them; of the others the condition itself is asked."""
        raise NotImplementedError


class Matching(Scalar):
    """A condition on two streams that an index serves. `sides` says how many values it takes of the
    one stream, and then how many of the other. In a join of the two `index(0)` keeps rows of the first
    and is asked with values of the second, `index(1)` the other way; elsewhere `call` is all."""

    sides: ClassVar[tuple[int, int]] = (1, 1)

    def index(self, side: int) -> JoinIndex:
        raise NotImplementedError
