"""DEFINE conditions, sorted by when they can be decided.

about the present row and its neighbours    evaluated once per row, in columns, as bits
a comparison with another row of the match  both sides once per row, in columns; the search compares
everything else                             the search calls back; the row reference evaluates it
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.language.evaluate import compile_noting
from seustream.compiler.language.faults import Faults, Place
from seustream.compiler.language.types import VARCHAR, Type
from seustream.compiler.pattern import rows
from seustream.engine.kernels import native
from seustream.engine.pattern.columns import Ints
from seustream.engine.pattern.leaves import Fold
from seustream.engine.pattern.recognize.log import RowLog
from seustream.engine.stream.evaluate import evaluate, holds
from seustream.engine.stream.numbers import has_numbers, is_ordered, numbers
from seustream.engine.stream.schema import arrow_type
from seustream.hdl.isa import Condition

_LABEL = 63
"""The bits of a label that hold its variable."""


def aggregates(e: x.Expression) -> Iterator[rows.RowAggregate]:
    return (leaf for leaf in x.leaves(e) if isinstance(leaf, rows.RowAggregate))


def navigations(e: x.Expression) -> Iterator[rows.At]:
    return (leaf for leaf in x.leaves(e) if isinstance(leaf, rows.At))


def _labelled(e: x.Expression) -> bool:
    return any(isinstance(leaf, rows.Label) for leaf in x.leaves(e))


@dataclass
class Conditions:
    """The conditions of a query over a log. Faults are counted in `faults`, if given: those of an
    expression about single rows once per row, all others where they are tried."""

    log: RowLog
    query: rows.RowQuery
    faults: Faults | None
    only: rows.Definition | None = None  # None for all of the query, or the one to explain
    sides: list[tuple[x.Expression, Type]] = field(default_factory=list)
    tests: list[tuple[int, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._codes = native.Codes()
        self._noted: list[Place] = []
        count = len(self.query.variables)
        self._alone: list[x.Expression | None] = [None] * count
        self.asked: list[list[Callable[[Path], Any]]] = [[] for _ in range(count)]
        self.asks: npt.NDArray[np.uint8] = np.zeros(count, np.uint8)
        for definition in (self.only,) if self.only is not None else self.query.definitions:
            own, alone = definition.variable, []
            for term in x.conjuncts(definition.condition):
                if self._is_alone(term, own):
                    alone.append(self._at_hand(term, own))
                    continue
                self.asked[own].append(compile_noting(term, self._reader, self._noted))
                if not self._compares(term, own):
                    self.asks[own] = 1
            if alone:
                self._alone[own] = x.conjunction(tuple(alone))

    @property
    def recalls(self) -> bool:
        """Returns whether no condition mentions another row of the match."""
        return not any(self.asked)

    # --- about the row at hand ------------------------------------------------

    def _is_alone(self, e: x.Expression, own: int) -> bool:
        """Returns whether an expression is about the present row, or about rows at a fixed place
        beside it."""
        for leaf in x.leaves(e):
            if not isinstance(leaf, rows.At) or leaf.first or leaf.back:
                return False
            if not leaf.among >> own & 1 or (leaf.offset and _labelled(leaf.part)):
                return False
        return True

    def _at_hand(self, e: x.Expression, own: int) -> x.Expression:
        """Rewrites an expression to cells of the present row, except for the rows beside it."""
        if isinstance(e, rows.At):
            return e if e.offset else self._at_hand(e.part, own)
        if isinstance(e, rows.Label):
            return x.Literal(self.query.variables[own].upper(), VARCHAR)
        return x.rebuild(e, lambda part: self._at_hand(part, own)) if x.children(e) else e

    def leaf(self, e: x.Leaf, at: Ints) -> pa.Array:
        if isinstance(e, rows.Cell):
            return self.log.cells(e.attribute, at)
        assert isinstance(e, rows.At), e
        return self.log.values(e.part, self.log.step(at, e.offset), self.leaf, self.faults)

    def may(self, at: Ints) -> Ints:
        """Returns for each row the variables it may be, as bits."""
        found: Ints = np.zeros(len(at), np.int64)
        for variable, condition in enumerate(self._alone):
            if condition is None:
                found |= 1 << variable
                continue
            faults = None if self.faults is None else Faults()
            true = holds(condition, lambda part: self.leaf(part, at), len(at), faults)
            self._count(faults, at)
            found |= true.astype(np.int64) << variable
        return found

    def _count(self, found: Faults | None, at: Ints) -> None:
        if found is not None and self.faults is not None:
            for place, count in found.count.items():
                self.faults.add(place, count, self.log.arrival(int(at[found.first[place]])))

    # --- comparisons with other rows ------------------------------------------

    def _compares(self, e: x.Expression, own: int) -> bool:
        """Adds a test for a comparison, if its sides are constants or values of one row each."""
        if not isinstance(e, x.Compare) or not has_numbers(e.of):
            return False
        if not is_ordered(e.of) and e.condition not in (Condition.EQ, Condition.NE):
            return False
        before = len(self.sides)
        left, right = self._side(e.left, e.of, own), self._side(e.right, e.of, own)
        if left is None or right is None:
            del self.sides[before:]
            return False
        self.tests.append((own, int(e.condition), *left, *right))
        return True

    def _side(self, e: x.Expression, of: Type, own: int) -> tuple[int, int, int, int] | None:
        converted = e if e.type == of else x.Cast(e, of)
        places = {
            (leaf.among, int(leaf.first), leaf.back) if isinstance(leaf, rows.At) else None
            for leaf in x.leaves(e)
        }
        if not places:
            value = evaluate(converted, self._nothing, 1)
            number, _ = numbers(value, self._codes)
            return None if value.null_count else (-1, 0, 0, int(number[0]))
        if len(places) != 1 or None in places or any(_labelled(at.part) for at in navigations(e)):
            return None
        ((among, first, back),) = places  # type: ignore[misc]  # None is not among them
        present = among >> own & 1 and not first and not back
        if not present and not self._is_null_without_row(converted):
            return None  # the search takes a row that is not there for NULL
        self.sides.append((self._at_hand(converted, 0), of))
        return len(self.sides) - 1, among, first, back

    def _is_null_without_row(self, e: x.Expression) -> bool:
        """Returns whether an expression about one row is NULL, without a fault, if there is none."""
        faults = Faults()
        value = evaluate(e, lambda leaf: pa.nulls(1, arrow_type(leaf.type)), 1, faults)
        return value.null_count == 1 and not faults.count

    def _nothing(self, e: x.Leaf) -> pa.Array:
        raise AssertionError(e)

    def values(self, at: Ints) -> tuple[Ints, npt.NDArray[np.uint8]]:
        """Returns the values that tests compare, and their flags; the search asks back for possible
        faults."""
        found: Ints = np.zeros((len(at), len(self.sides)), np.int64)
        flags = np.ones((len(at), len(self.sides)), np.uint8)
        for column, (e, _) in enumerate(self.sides):
            faults = Faults()
            value = self.log.values(e, at, self.leaf, faults)
            found[:, column], mine = numbers(value, self._codes)
            if mine is not None:
                flags[:, column] = np.where(mine, 1, 2 if faults.count else 0)
        return found, flags

    # --- what is asked for ----------------------------------------------------

    def ask(self, variable: int, number: int, members: bytes, labels: bytes) -> bool:
        """Returns whether the newest row of a match so far may be `variable`."""
        path = Path(self.log, members, labels, number)
        true = True
        for condition in self.asked[variable]:
            if condition(path) is not True:
                true = False
                break
        if self._noted:
            places = list(self._noted)
            self._noted.clear()
            if self.faults is not None:
                for place in places:
                    self.faults.add(place, 1, self.log.arrival(path.row(-1)))
        return true

    def _reader(self, e: x.Leaf) -> Callable[[Path], Any]:
        if isinstance(e, rows.MatchNumber):
            return lambda path: path.number
        if isinstance(e, rows.RowAggregate):
            return self._fold(e)
        assert isinstance(e, rows.At), e
        part = compile_noting(e.part, self._cell, self._noted)
        at, step = e, self.log.step

        def value(path: Path) -> Any:
            index = path.index(at)
            if index is None:
                return None
            row = path.row(index)
            if at.offset:
                row = int(step(np.array([row]), at.offset)[0])
                if row < 0:
                    return None
            return part(PathRow(path, index + at.offset, row))

        return value

    def _cell(self, e: x.Leaf) -> Callable[[PathRow], Any]:
        if isinstance(e, rows.Cell):
            name, cell = e.attribute, self.log.cell
            return lambda member: cell(name, member.row)
        if isinstance(e, rows.MatchNumber):
            return lambda member: member.path.number
        names = [name.upper() for name in self.query.variables]

        def label(member: PathRow) -> str | None:
            inside = 0 <= member.index < len(member.path.labels)
            return names[member.path.label(member.index)] if inside else None

        return label

    def _fold(self, e: rows.RowAggregate) -> Callable[[Path], Any]:
        fold = Fold(e)
        arguments = [compile_noting(one, self._cell, self._noted) for one in fold.arguments]
        where = e.aggregate.where
        only = None if where is None else compile_noting(where, self._cell, self._noted)
        among, noted = e.among, self._noted

        def given(member: PathRow) -> list[Any] | None:
            """Returns the arguments of a row, None if it does not count."""
            own = among >> member.path.label(member.index) & 1
            if not own or (only is not None and only(member) is not True):
                return None
            return [argument(member) for argument in arguments]

        if fold.has_small_states:
            return RunningFold(fold, given, noted).value

        def value(path: Path) -> Any:
            members = (given(PathRow(path, *one)) for one in path.after(0))
            return fold.noting((one for one in members if one is not None), noted)

        return value


class RunningFold:
    """An aggregate over the rows of a match so far. It keeps the state after each row, because a
    search mostly adds a row, or tries another one in the last place."""

    def __init__(
        self, fold: Fold, given: Callable[[PathRow], list[Any] | None], noted: list[Place]
    ) -> None:
        self.fold, self.given, self.noted = fold, given, noted
        self.states = [fold.entry.init()]
        self.path: Path | None = None

    def value(self, path: Path) -> Any:
        del self.states[path.common(self.path) + 1 :]
        self.path = path
        before = len(self.noted)
        for index, row in path.after(len(self.states) - 1):
            values, state = self.given(PathRow(path, index, row)), self.states[-1]
            if values is not None and None not in values:
                state = self.fold.entry.insert(list(state), *values)
            self.states.append(state)
        if len(self.noted) > before:
            self.path = None  # a fault counts wherever it is tried
        return self.fold.noted(self.states[-1], self.noted)


class Path:
    """A match so far: its rows by position, their variables, and its number. It is made for each row that
    is tried, so nothing here may look at all of its rows without need."""

    def __init__(self, log: RowLog, numbers: bytes, labels: bytes, number: int) -> None:
        self._log, self._numbers, self._labels, self.number = log, numbers, labels, number
        self.labels: npt.NDArray[np.int32] = np.frombuffer(labels, np.int32)
        """The variables of the rows, with bits that `label` leaves out."""

    def row(self, index: int) -> int:
        """Returns the position of a row."""
        return int(self._log.at(np.frombuffer(self._numbers, np.int64)[[index]])[0])

    def label(self, index: int) -> int:
        """Returns the variable of a row."""
        return int(self.labels[index]) & _LABEL

    def after(self, index: int) -> Iterator[tuple[int, int]]:
        """Yields the rows from an index on, each with its index."""
        rows = self._log.at(np.frombuffer(self._numbers, np.int64, offset=8 * index))
        yield from enumerate(rows.tolist(), index)

    def common(self, other: Path | None) -> int:
        """Returns the number of rows at the beginning that are the same in another path."""
        if other is None or other.number != self.number:
            return 0

        def is_same(count: int) -> bool:
            return (
                self._numbers[: 8 * count] == other._numbers[: 8 * count]
                and self._labels[: 4 * count] == other._labels[: 4 * count]
            )

        most = min(len(self.labels), len(other.labels))
        for count in (most, most - 1):
            if count >= 0 and is_same(count):
                return count
        return bisect.bisect_left(range(1, most), True, key=lambda count: not is_same(count))

    def index(self, at: rows.At) -> int | None:
        """Returns the index of the row that a navigation refers to, before its offset. It is mostly near
        the end that it is counted from."""
        labels = self.labels if at.first else self.labels[::-1]
        left, begin, size = at.back, 0, 32
        while begin < len(labels):
            own = (np.int64(at.among) >> (labels[begin : begin + size] & _LABEL) & 1).nonzero()[0]
            if left < len(own):
                index = begin + int(own[left])
                return index if at.first else len(labels) - 1 - index
            left -= len(own)
            begin, size = begin + size, 4 * size
        return None


@dataclass(slots=True)
class PathRow:
    """A row, by position in the log; `index` is its place in the match, or beside it."""

    path: Path
    index: int
    row: int
