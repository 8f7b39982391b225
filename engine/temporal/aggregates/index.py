"""The aggregate index as a list of disjoint elements: Algorithms 6 and 7, corrected.

At instant t the value is the aggregate of all tuples with ts <= t < te; where there are no tuples
there is none. For each tuple, `reorganise(ts)` is called, then `change`.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from seustream.compiler.apas.functions import Aggregate

Values = tuple[Any, ...]
Result = tuple[int, int, Values]
"""[start, end) and the partials' final values, flat."""


class Index(Protocol):
    def reorganise(self, now: int) -> list[Result]:
        """Returns the results that lie before `now`; equal results that touch are merged."""

    def change(self, v: tuple[Values, ...], s: int, e: int, sign: int = 1) -> None:
        """Adds a tuple on [s, e), or with sign -1 withdraws it; `v` holds its values for each
        partial."""

    def save(self) -> Any:
        """Returns the state, for a snapshot."""

    def load(self, saved: Any) -> None:
        """Continues from a saved state."""


def merged(results: list[Result]) -> list[Result]:
    """Merges neighbours that touch and have equal values."""
    out: list[Result] = []
    for start, end, values in results:
        if out and out[-1][1] == start and same(out[-1][2], values):
            out[-1] = (out[-1][0], end, values)
        else:
            out.append((start, end, values))
    return out


def same(a: Values, b: Values) -> bool:
    """Compares values; NULL equals NULL."""
    return a == b


class Partials:
    """The partials of a node as one aggregate over their states. A tuple with a NULL among its
    values does not count for a partial; the partial's state is None until a tuple counts."""

    def __init__(self, functions: Sequence[Aggregate], leaves: Sequence[int]) -> None:
        self.functions, self.leaves = tuple(functions), tuple(leaves)

    def init(self, v: tuple[Values, ...]) -> Values:
        return tuple(
            None if None in each else f.init(each)
            for f, each in zip(self.functions, v, strict=True)
        )

    def add(self, state: Values, v: tuple[Values, ...]) -> Values:
        return tuple(
            s if None in each else f.init(each) if s is None else f.add(s, each)
            for f, s, each in zip(self.functions, state, v, strict=True)
        )

    def remove(self, state: Values, v: tuple[Values, ...]) -> Values:
        """Removes a tuple from the partials that support it; the others keep it, as tuples are not
        stored."""
        return tuple(
            f.remove(s, each) if f.removes and None not in each else s
            for f, s, each in zip(self.functions, state, v, strict=True)
        )

    def final(self, state: Values) -> Values:
        return tuple(
            value
            for f, s, n in zip(self.functions, state, self.leaves, strict=True)
            for value in (f.none(n) if s is None else f.final(s))
        )


@dataclass(slots=True)
class Piece:
    """One element; n counts its live tuples."""

    start: int
    end: int
    state: Values
    n: int


class ListIndex:
    """Disjoint pieces in the order of time, each with the state of the tuples that live in it."""

    def __init__(self, functions: Sequence[Aggregate], leaves: Sequence[int] | None = None) -> None:
        self.partials = Partials(functions, leaves or [1] * len(functions))
        self.pieces: list[Piece] = []

    def reorganise(self, now: int) -> list[Result]:
        done = 0
        while done < len(self.pieces) and self.pieces[done].end <= now:
            done += 1
        out = [(p.start, p.end, self.partials.final(p.state)) for p in self.pieces[:done]]
        del self.pieces[:done]
        if self.pieces and self.pieces[0].start < now:
            running = self.pieces[0]
            out.append((running.start, now, self.partials.final(running.state)))
            running.start = now
        return merged(out)

    def change(self, v: tuple[Values, ...], s: int, e: int, sign: int = 1) -> None:
        if s >= e:
            return
        self._cut(s)
        self._cut(e)
        first = self._at(s)
        last = self._at(e)
        cur, new = s, []
        # All states are computed before any is stored: if one has no value, nothing changes.
        for x in self.pieces[first:last]:
            if cur < x.start:
                new.append(self._gap(cur, x.start, v, sign))
            change = self.partials.add if sign > 0 else self.partials.remove
            if x.n + sign:
                new.append(Piece(x.start, x.end, change(x.state, v), x.n + sign))
            cur = x.end
        if cur < e:
            new.append(self._gap(cur, e, v, sign))
        self.pieces[first:last] = new

    def save(self) -> Any:
        return [(p.start, p.end, p.state, p.n) for p in self.pieces]

    def load(self, saved: Any) -> None:
        self.pieces = [Piece(*each) for each in saved]

    def _gap(self, start: int, end: int, v: tuple[Values, ...], sign: int) -> Piece:
        if sign < 0:
            raise AssertionError(f"nothing to withdraw on [{start}, {end})")
        return Piece(start, end, self.partials.init(v), 1)

    def _at(self, t: int) -> int:
        """Returns the place of the first piece that starts at or after t."""
        return bisect.bisect_left(self.pieces, t, key=lambda piece: piece.start)

    def _cut(self, t: int) -> None:
        """Splits the piece that strictly contains t; both parts keep state and n."""
        place = self._at(t) - 1
        if place >= 0 and self.pieces[place].end > t:
            x = self.pieces[place]
            self.pieces.insert(place + 1, Piece(t, x.end, x.state, x.n))
            x.end = t
