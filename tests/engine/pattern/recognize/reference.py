"""Row pattern matching by definition: tries every way a pattern can match, in the order of
preference.

Shares no code with the engine. A case is written in two forms at once: as SQL text, and as Python
functions of the match so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

Row = dict[str, Any]


class Stuck(Exception):
    """Raised if SKIP leads nowhere."""


@dataclass
class View:
    """A match as seen from one of its rows: `labels` belong to the rows from `start` on; the first
    `hand` of them count as running."""

    rows: list[Row]
    start: int
    labels: list[str]
    hand: int
    number: int

    def own(self, among: str | None, final: bool = False) -> list[int]:
        """Returns the rows matched to some variables; None means all."""
        upto = len(self.labels) if final else self.hand
        return [self.start + i for i in range(upto) if among is None or self.labels[i] in among]

    def at(
        self,
        among: str | None,
        first: bool = False,
        back: int = 0,
        offset: int = 0,
        final: bool = False,
    ) -> int | None:
        """Returns a row by navigation."""
        own = self.own(among, final)
        if back >= len(own):
            return None
        place = (own[back] if first else own[-1 - back]) + offset
        return place if 0 <= place < len(self.rows) else None

    def x(self, place: int | None, name: str = "x") -> Any:
        return None if place is None else self.rows[place][name]

    def label(self, place: int | None) -> str | None:
        inside = place is not None and self.start <= place < self.start + len(self.labels)
        return self.labels[place - self.start] if inside and place is not None else None

    def values(self, among: str | None, final: bool = False) -> list[Any]:
        found = [self.rows[place]["x"] for place in self.own(among, final)]
        return [value for value in found if value is not None]


Condition = Callable[[View], bool | None]
Measure = Callable[[View], Any]


def less(a: Any, b: Any) -> bool | None:
    """Compares as SQL does."""
    return None if a is None or b is None else a < b


def mean(values: list[Any]) -> Fraction | None:
    return Fraction(sum(values), len(values)) if values else None


# --- patterns: tuples of a kind and its parts -----------------------------------

Pattern = tuple[Any, ...]


def text(p: Pattern) -> str:
    """Returns the pattern as SQL."""
    match p:
        case ("one", name):
            return str(name)
        case ("sequence", *parts):
            return "(" + " ".join(map(text, parts)) + ")"
        case ("choice", *parts):
            return "(" + " | ".join(map(text, parts)) + ")"
        case ("permute", *parts):
            return "PERMUTE(" + ", ".join(map(text, parts)) + ")"
        case ("exclude", part):
            return "{- " + text(part) + " -}"
        case ("repeat", part, least, most, reluctant):
            sign = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((least, most))
            if sign is None:
                sign = (
                    f"{{{least}}}"
                    if least == most
                    else f"{{{least},{'' if most is None else most}}}"
                )
            return text(part) + sign + "?" * reluctant
        case ("anchor", sign):
            return str(sign)
    raise AssertionError(p)


def orders(parts: tuple[Pattern, ...]) -> Iterator[tuple[Pattern, ...]]:
    """Yields the permutations, in lexicographic order of the places."""
    if not parts:
        yield ()
    for i, first in enumerate(parts):
        for rest in orders(parts[:i] + parts[i + 1 :]):
            yield (first, *rest)


@dataclass
class Case:
    """A query over the rows of one partition."""

    pattern: Pattern
    define: dict[str, Condition]
    measures: dict[str, Measure]
    give: str  # one, all, omit, unmatched
    skip: tuple[str, str]  # past, next, first or last; and its variables
    within: int | None = None
    key: str = "k"  # of the partition

    def ways(
        self, p: Pattern, rows: list[Row], start: int, labels: list[str], number: int
    ) -> Iterator[list[str]]:
        """Yields every way to continue a pattern, the preferred one first; excluded rows have
        lower-case labels."""
        match p:
            case ("one", name):
                place = start + len(labels)
                if place < len(rows):
                    late = rows[place]["ts"] - rows[start]["ts"]
                    taken = [*labels, name]
                    view = View(rows, start, [one.upper() for one in taken], len(taken), number)
                    if self.within is not None and late > self.within:
                        return
                    if name not in self.define or self.define[name](view) is True:
                        yield taken
            case ("sequence",):
                yield labels
            case ("sequence", first, *rest):
                for some in self.ways(first, rows, start, labels, number):
                    yield from self.ways(("sequence", *rest), rows, start, some, number)
            case ("choice", *parts):
                for part in parts:
                    yield from self.ways(part, rows, start, labels, number)
            case ("permute", *parts):
                whole = tuple(("sequence", *order) for order in orders(tuple(parts)))
                yield from self.ways(("choice", *whole), rows, start, labels, number)
            case ("exclude", part):
                for some in self.ways(part, rows, start, labels, number):
                    hidden = [one.lower() for one in some[len(labels) :]]
                    yield some[: len(labels)] + hidden
            case ("repeat", part, least, most, reluctant):
                if reluctant and least == 0:
                    yield labels
                if most is None or most > 0:
                    for some in self.ways(part, rows, start, labels, number):
                        if least > 0 or len(some) > len(labels):  # none beyond the least is empty
                            rest = None if most is None else most - 1
                            again = ("repeat", part, max(least - 1, 0), rest, reluctant)
                            yield from self.ways(again, rows, start, some, number)
                if not reluctant and least == 0:
                    yield labels
            case ("anchor", "^"):
                if start + len(labels) == 0:
                    yield labels
            case ("anchor", "$"):
                if start + len(labels) == len(rows):
                    yield labels

    def results(self, rows: list[Row]) -> list[Row]:
        """Returns the rows that the query gives."""
        found: list[Row] = []
        start = number = covered = 0
        while start < len(rows):
            labels = next(self.ways(self.pattern, rows, start, [], number + 1), None)
            if labels is None:
                if self.give == "unmatched" and start >= covered:
                    found.append(rows[start] | dict.fromkeys(self.measures))
                start += 1
                continue
            number += 1
            plain = [one.upper() for one in labels]
            hands = range(1, len(labels) + 1) if self.give != "one" else [len(labels)]
            if not labels and self.give != "omit":
                hands = [0]
            for hand in hands:
                if self.give != "one" and hand and labels[hand - 1].islower():
                    continue
                view = View(rows, start, plain, hand, number)
                row = rows[start + max(hand - 1, 0)]
                own = {self.key: row[self.key]} if self.give == "one" else row
                found.append(own | {name: of(view) for name, of in self.measures.items()})
            covered = max(covered, start + len(labels))
            start = self._next(start, plain)
        return found

    def _next(self, start: int, labels: list[str]) -> int:
        kind, among = self.skip
        if not labels or kind == "next":
            return start + 1
        if kind == "past":
            return start + len(labels)
        own = [start + i for i, label in enumerate(labels) if label in among]
        if not own:
            raise Stuck
        to = own[0] if kind == "first" else own[-1]
        if to == start:
            raise Stuck
        return to
