"""Ordered event lists in columns, as one epoch of a search sees them.

With a partition, times are laid out so that each key has a stretch of its own, farther from the
next than any window reaches. One search then serves all keys.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.pattern import ir
from seustream.engine.kernels import native
from seustream.engine.pattern.aggregates import over_groups
from seustream.engine.pattern.batch import EventBatch
from seustream.engine.pattern.columns import Array, Bools, Ints, Once, taken
from seustream.engine.pattern.errors import PatternError
from seustream.engine.pattern.found import GroupMembers
from seustream.engine.stream.evaluate import evaluate
from seustream.engine.stream.numbers import Numbers, numbers

FAR = 1 << 62


class Lists:
    """For each element, its rows of the log in order and their times `T` in the layout."""

    def __init__(self, query: ir.PatternQuery, log: EventBatch, rows: list[Ints]) -> None:
        self.query = query
        self.log = log
        self.rows = rows
        self.span = int(log.ts[-1] - log.ts[0]) if len(log) else 0
        self.shift: list[Ints | None] = [None] * len(rows)
        self.T = [log.ts[r] for r in rows]
        self.stretch = FAR
        self.keys = 1
        self._columns: dict[tuple[int, str], pa.Array] = {}
        self._once: dict[int, tuple[Once, pa.Array | None]] = {}  # by id; keeps its part alive
        self._numbers: dict[int, tuple[Once, Numbers | None]] = {}  # likewise
        self._codes = native.Codes()
        if query.partition:
            self._lay_out()

    def _lay_out(self) -> None:
        keys = self._keys()
        self.keys = int(keys.max(initial=0)) + 1
        window = self.query.window or 0
        self.stretch = self.span + 2 * window + 2
        if self.keys * self.stretch >= FAR:
            raise PatternError(
                "too many keys over too long a time for one epoch", "advance more often"
            )
        base = self.log.ts[0]
        shift = keys * self.stretch - base
        for element, rows in enumerate(self.rows):
            times = self.log.ts[rows] + shift[rows]
            order = np.argsort(times, kind="stable")
            self.rows[element] = rows[order]
            self.T[element] = times[order]
            self.shift[element] = shift[rows[order]]

    def _keys(self) -> Ints:
        """Returns a number for each row's key; NULL is a key like any other, and zero has one
        key whatever its sign."""
        columns = [
            pa.array(self.log.ts) if name == ir.TIME else self.log.columns[name]
            for name in self.query.partition
        ]
        found: Ints = np.empty(len(self.log), np.int64)
        native.keys(tuple([one.__arrow_c_array__() for one in columns]), native.Codes(), found)
        return found

    def after(self) -> Ints:
        """Returns for each row of the log the next row of its key, or one past the last row."""
        found: Ints = np.full(len(self.log) + 1, len(self.log), np.int64)
        keys = self._keys()
        order = np.argsort(keys, kind="stable")
        same = keys[order[1:]] == keys[order[:-1]]
        found[order[:-1][same]] = order[1:][same]
        return found

    def stretch_begin(self, times: Ints) -> Ints:
        """Returns the beginnings of the stretches that hold these times."""
        if not self.query.partition:
            return np.full(len(times), -FAR)
        return times // self.stretch * self.stretch

    def stretch_end(self, times: Ints) -> Ints:
        """Returns the ends of the stretches that hold these times."""
        if not self.query.partition:
            return np.full(len(times), FAR)
        return (times // self.stretch + 1) * self.stretch

    def counts(self, elements: tuple[int, ...]) -> list[int]:
        return [len(self.rows[e]) for e in elements]

    def column(self, element: int, attribute: str) -> pa.Array:
        key = (element, attribute)
        if key not in self._columns:
            rows = self.rows[element]
            if attribute == ir.TIME:
                self._columns[key] = pa.array(self.log.ts[rows])
            else:
                self._columns[key] = taken(self.log.columns[attribute], rows)
        return self._columns[key]

    def arrivals(self, element: int, position: int) -> int:
        """Returns the arrival number of an event in a list."""
        return int(self.log.seq[self.rows[element][position]])

    def once(self, part: Once, bindings: int) -> pa.Array | None:
        """Evaluates a part of a condition for its whole list; returns None where that is not worth
        it, or where the part has a fault."""
        if id(part) not in self._once:
            size = len(self.rows[part.element])
            if bindings < size // 4:
                return None
            faults = Faults()
            column = evaluate(part.part, self._alone, size, faults)
            self._once[id(part)] = part, None if faults.count else column
        return self._once[id(part)][1]

    def numbers(self, part: Once) -> Numbers | None:
        """Returns the numbers of a part for its whole list, or None where it has a fault."""
        if id(part) not in self._numbers:
            faults, size = Faults(), len(self.rows[part.element])
            column = evaluate(part.part, self._alone, size, faults)
            found = None if faults.count else self.numbers_of(column)
            self._numbers[id(part)] = part, found
        return self._numbers[id(part)][1]

    def numbers_of(self, column: pa.Array) -> Numbers:
        """Returns the numbers of a column, which compare with those of parts."""
        return numbers(column, self._codes)

    def _alone(self, e: x.Leaf) -> pa.Array:
        assert isinstance(e, ir.Value)
        return self.column(e.element, e.attribute)


class BatchRows:
    """Some rows of a batch, serving as the events of any element."""

    def __init__(self, batch: EventBatch, rows: Array) -> None:
        self.size = len(rows)
        self._batch = batch
        self._rows = rows
        self.faults: Faults | None = None

    def leaf(self, e: x.Leaf) -> pa.Array:
        assert isinstance(e, ir.Value)
        if e.attribute == ir.TIME:
            return pa.array(self._batch.ts[self._rows])
        return taken(self._batch.columns[e.attribute], self._rows)

    def hoists(self, part: Once) -> bool:
        return False

    def arrival(self, row: int) -> int:
        return int(self._batch.seq[self._rows[row]])


class Columns(Protocol):
    """The columns that bindings read: those of each element's list."""

    def column(self, element: int, attribute: str) -> pa.Array: ...
    def arrivals(self, element: int, position: int) -> int: ...
    def once(self, part: Once, bindings: int) -> pa.Array | None: ...


class Bindings:
    """Rows of a search: for each element a position in its list. `each` holds members of groups;
    `owner` is the match of `groups` that a row belongs to (if None, row and match are the same)."""

    def __init__(
        self,
        lists: Columns,
        size: int,
        at: dict[int, Array],
        each: dict[int, Array] | None = None,
        before: dict[int, Array] | None = None,
        groups: dict[int, GroupMembers] | None = None,
        owner: Array | None = None,
    ) -> None:
        self.size = size
        self._lists = lists
        self._at = at
        self._each = each or {}
        self._before = before or {}
        self._groups = groups or {}
        self._owner = owner
        self.faults: Faults | None = None

    def kept(self, rows: Bools) -> Bindings:
        """Returns some of the rows, as members of groups."""
        at = {e: positions[rows] for e, positions in self._at.items()}
        each = {e: positions[rows] for e, positions in self._each.items()}
        return Bindings(self._lists, int(rows.sum()), at, each)

    def leaf(self, e: x.Leaf) -> pa.Array:
        match e:
            case ir.Value():
                positions = self._positions(e.element, e.pick)
                return taken(self._lists.column(e.element, e.attribute), positions)
            case Once():
                whole = self._lists.once(e, self.size)
                assert whole is not None, "hoisted"
                return taken(whole, self._positions(e.element, e.pick))
            case ir.GroupAggregate():
                return self._aggregate(e)
        raise AssertionError(e)

    def hoists(self, part: Once) -> bool:
        return self._lists.once(part, self.size) is not None

    def arrival(self, row: int) -> int:
        bound = [*self._at.items(), *self._each.items()]
        if not bound:
            (element, members), *_ = self._groups.items()
            return self._lists.arrivals(element, int(members.rows[members.ends[row] - 1]))
        return max(self._lists.arrivals(e, int(positions[row])) for e, positions in bound)

    def _positions(self, element: int, pick: ir.Pick) -> Array:
        if pick is ir.Pick.ONE:
            return self._at[element]
        if pick is ir.Pick.EACH:
            return self._each[element]
        if pick is ir.Pick.PREVIOUS:
            return self._before[element]
        members = self._groups[element]
        ends = members.starts if pick is ir.Pick.FIRST else members.ends - 1
        return members.rows[ends if self._owner is None else ends[self._owner]]

    def _aggregate(self, e: ir.GroupAggregate) -> pa.Array:
        """Evaluates the aggregate for every match, then spreads it over the rows of each match."""
        members = self._groups[e.element]
        owner = members.owner
        at = {element: self._of_match(rows)[owner] for element, rows in self._at.items()}
        inside = Bindings(self._lists, len(owner), at, {e.element: members.rows})
        found = over_groups(e, inside, members, self.faults)
        return found if self._owner is None else taken(found, self._owner)

    def _of_match(self, rows: Array) -> Array:
        """Returns the bound positions per match, given those per row."""
        if self._owner is None:
            return rows
        members = next(iter(self._groups.values()))
        found: Ints = np.zeros(len(members.counts), np.int64)
        found[self._owner] = rows
        return found
