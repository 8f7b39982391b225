"""Faults: evaluations without a value, counted by place.

A fault is a strict operation that has no value although all its operands have one: a division by zero,
an overflow, a failed cast, a function outside its domain. Its value is NULL.

**What counts.** Every operation that is reached counts. In AND and OR, an operand's faults count only
in rows that no other operand decides, whichever comes first, since conditions are evaluated in any
order; so `b <> 0 AND a / b > 2` has no fault where b is 0. Of the conditions that a row must meet, one
that is NULL decides for the others, too. In CASE, the branch taken counts, and the
conditions up to it; in `coalesce`, the arguments up to the first one that has a value. Other functions
evaluate all their arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from seustream.compiler.errors import Span


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a fault: the operation in the query's text, its bound text, and the reason."""

    at: Span | None
    text: str
    reason: str

    def __str__(self) -> str:
        return f"{self.reason} in {self.text}"


class FaultError(ValueError):
    """The first fault under `strict`."""

    def __init__(self, place: Place, row: int | str) -> None:
        super().__init__(f"{place}, row {row}")
        self.place, self.row = place, row


@dataclass
class Faults:
    """Counts faults by place, and keeps the number of each place's first row. `strict` turns the
    first fault into an error. `named` holds the first rows in words, if the evaluation said how to
    name them (`naming`)."""

    strict: bool = False
    count: dict[Place, int] = field(default_factory=dict)
    first: dict[Place, int] = field(default_factory=dict)
    named: dict[Place, str] = field(default_factory=dict)
    _name: Callable[[int], str] | None = field(default=None, init=False, repr=False)

    def add(self, place: Place, rows: int, first: int) -> None:
        """Counts `rows` faults, the first of them in row `first`."""
        name = None if self._name is None else self._name(first)
        if self.strict:
            raise FaultError(place, first if name is None else name)
        self.count[place] = self.count.get(place, 0) + rows
        self.first.setdefault(place, first)
        if name is not None:
            self.named.setdefault(place, name)

    def naming(self, name: Callable[[int], str]) -> _Naming:
        """Names rows within the returned context."""
        return _Naming(self, name)

    @property
    def total(self) -> int:
        return sum(self.count.values()) if self.count else 0


class _Naming:
    __slots__ = ("_before", "_faults", "_name")

    def __init__(self, faults: Faults, name: Callable[[int], str]) -> None:
        self._faults, self._name = faults, name

    def __enter__(self) -> None:
        self._before, self._faults._name = self._faults._name, self._name

    def __exit__(self, *error: object) -> None:
        self._faults._name = self._before
