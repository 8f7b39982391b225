"""The rows that a query with EMIT CHANGES gave last, and those that come and go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.logical.program import Relation
from seustream.engine.host.keys import KeyNumbers
from seustream.engine.stream.answers import answer
from seustream.engine.stream.growing import Growing
from seustream.engine.stream.schema import arrow_type
from seustream.engine.stream.sorting import lexsort
from seustream.engine.stream.taken import taken

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Columns = list[pa.Array]
"""Rows in columns: the items of a query, then the time of the oldest component."""

NOWHERE = -1
"""Stands for no row."""

_SIGNS = pa.array(["-", "+"])
_FEW = 4096
"""Rows that may be remembered beyond twice the number of those that are the last of something."""


def item_types(node: Relation) -> list[pa.DataType]:
    """Returns the types of a query's items, without that of the sign."""
    return [arrow_type(item.expression.type) for item in node.items[1:]]


class Signed(NamedTuple):
    """Rows in the order in which they are given, each with the number of its moment, and whether it comes
    or goes."""

    moment: Ints
    comes: Bools
    rows: Columns

    def answer(self, node: Relation, newest: Ints) -> pa.Table:
        """Returns results, with the times of the moments."""
        signs = taken(_SIGNS, self.comes.astype(np.int64))
        return answer(node, [signs, *self.rows, pa.array(newest)])


def one_zero(column: pa.Array) -> pa.Array:
    """Returns a column without -0.0: equal rows look alike, whichever came first."""
    if not pa.types.is_floating(column.type):
        return column
    return pc.add(column, pa.scalar(0.0, column.type))


def signed(before: Ints, after: Ints, moment: Ints, rows: Callable[[Ints], Columns]) -> Signed:
    """Returns the changes from one row to the next, both by place or `NOWHERE`: the old row goes, then
    the new one comes."""
    place = np.stack((before, after), axis=1).ravel()
    some = np.flatnonzero(place != NOWHERE)
    return Signed(moment[some // 2], some % 2 == 1, rows(place[some]))


def changing(row: Ints, oldest: Ints, moment: Ints, comes: Bools) -> Bools:
    """Returns which rows, given by number and oldest time, are changes: equal ones of which one comes and one
    goes at the same moment are none, first those that have the same time, then the first ones of each side."""
    if not comes.any() or comes.all():
        return np.ones(len(comes), np.bool_)
    _, number = np.unique(moment, return_inverse=True)
    _, same = np.unique(number * (row.max() + 1) + row, return_inverse=True)
    count = np.bincount(2 * same + comes, minlength=2 * int(same.max()) + 2)
    some = np.flatnonzero(((count[::2] > 0) & (count[1::2] > 0))[same])
    found = np.ones(len(comes), np.bool_)
    for times in (oldest, np.zeros_like(oldest)):
        if len(some):
            _, time = np.unique(times[some], return_inverse=True)
            found[some] = _unpaired(same[some] * (int(time.max()) + 1) + time, comes[some])
            some = some[found[some]]
    return found


def _unpaired(same: Ints, comes: Bools) -> Bools:
    """Returns which of equal things have none that comes where they go, or goes where they come."""
    _, same = np.unique(same, return_inverse=True)
    side = 2 * same + comes
    order = np.argsort(side, kind="stable")
    rank = np.empty(len(side), np.int64)
    rank[order] = np.arange(len(side)) - np.searchsorted(side[order], side[order])
    count = np.bincount(side, minlength=2 * int(same.max()) + 2)
    pairs = np.minimum(count[::2], count[1::2])
    found: Bools = rank >= pairs[same]
    return found


class RowNumbers:
    """Numbers the distinct rows of a query by their items."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._keys = KeyNumbers(types)

    def __len__(self) -> int:
        return len(self._keys)

    def of(self, items: Sequence[pa.Array], count: int) -> Ints:
        """Returns the number of each of `count` rows."""
        return self._keys.numbers([one_zero(column) for column in items], count)

    def columns(self, rows: Ints, oldest: Ints) -> Columns:
        """Returns rows with their oldest times."""
        return [*self._keys.values(rows), pa.array(oldest)]


class ToldRows:
    """The row given last for each of some things, which have numbers from 0 up: groups, or rows by place. A
    thing may have none."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._types = types
        self._begin()

    def _begin(self) -> None:
        self.numbers = RowNumbers(self._types)
        self._row, self._oldest, self._count = Growing(), Growing(), 0

    def last(self, things: Ints) -> tuple[Ints, Ints]:
        """Returns the numbers of the rows of some things, `NOWHERE` for those without one, and the times of
        their oldest components."""
        if len(things) and (more := int(things.max()) + 1 - len(self._row)) > 0:
            self._row.append(np.full(more, NOWHERE))
            self._oldest.append(np.zeros(more, np.int64))
        return self._row.view[things], self._oldest.view[things]

    def tell(self, things: Ints, rows: Ints, oldest: Ints) -> None:
        """Gives distinct things rows in place of those that they had."""
        before, _ = self.last(things)
        self._count += int((rows != NOWHERE).sum() - (before != NOWHERE).sum())
        self._row.view[things], self._oldest.view[things] = rows, oldest

    def forget(self, things: Ints) -> None:
        """Takes away the rows of distinct things."""
        self.tell(things, np.full(len(things), NOWHERE), np.zeros(len(things), np.int64))

    def add(self, things: Ints, rows: Columns) -> None:
        """Gives distinct things rows, in columns, in place of those that they had."""
        *items, oldest = rows
        self.tell(things, self.numbers.of(items, len(things)), np.asarray(oldest, dtype=np.int64))

    def all(self) -> tuple[Ints, Columns]:
        """Returns the things that have a row, and their rows."""
        things = np.flatnonzero(self._row.view != NOWHERE)
        return things, self.numbers.columns(*self.last(things))

    def renumber(self, things: Ints, now: Ints) -> None:
        """Gives things other numbers; things that are not given lose their rows."""
        rows, oldest = self.last(things)
        some = rows != NOWHERE
        columns = self.numbers.columns(rows[some], oldest[some])
        self._begin()
        self.add(now[some], columns)

    def trim(self) -> None:
        """Forgets rows that are the last of nothing, once most are; the others get new numbers."""
        if len(self.numbers) > 2 * self._count + _FEW:
            things, _ = self.all()
            self.renumber(things, things)


class Telling:
    """The results that rows give in a step: rows with results from before, then new ones."""

    def __init__(self, told: ToldRows, things: Ints, fresh: int) -> None:
        self._told = told
        told.trim()
        row, oldest = told.last(things)
        self._row, self._oldest = Growing(), Growing()  # by result
        self._row.append(row)
        self._oldest.append(oldest)
        self._of = np.full(len(things) + fresh, NOWHERE)  # by row, its present result
        self._of[: len(things)] = np.where(row == NOWHERE, NOWHERE, np.arange(len(things)))
        self._before = self._of.copy()
        self._moment, self._result = Growing(), Growing()
        self._comes, self._order = Growing(np.bool_), (Growing(), Growing())

    def go(self, moment: Ints, order: Ints, rows: Ints) -> None:
        """Takes away the results of distinct rows, where there are any. They go in an order, then in that
        of the rows."""
        there = self._of[rows] != NOWHERE
        some = rows[there]
        self._say(moment[there], False, (order[there], some), self._of[some])
        self._of[some] = NOWHERE

    def come(self, moment: Ints, rows: Ints, results: Columns) -> None:
        """Gives rows results."""
        *items, oldest = results
        numbers = len(self._row) + np.arange(len(rows))
        self._row.append(self._told.numbers.of(items, len(rows)))
        self._oldest.append(np.asarray(oldest, dtype=np.int64))
        self._of[rows] = numbers
        self._say(moment, True, (np.zeros(len(rows), np.int64), rows), numbers)

    def _say(self, moment: Ints, comes: bool, order: tuple[Ints, Ints], result: Ints) -> None:
        self._moment.append(moment)
        self._comes.append(np.full(len(moment), comes))
        self._result.append(result)
        for column, mine in zip(self._order, order, strict=True):
            column.append(mine)

    def changes(self) -> Signed:
        """Returns what has gone at each moment, then what has come. Equal rows that do both are no change."""
        moment, comes, result = self._moment.view, self._comes.view, self._result.view
        first, then = (column.view for column in self._order)
        order = lexsort((then, first, comes, moment))
        mine = result[order]
        row, oldest = self._row.view[mine], self._oldest.view[mine]
        order = order[changing(row, oldest, moment[order], comes[order])]
        mine = result[order]
        rows = self._told.numbers.columns(self._row.view[mine], self._oldest.view[mine])
        return Signed(moment[order], comes[order], rows)

    def note(self, rows: Ints, things: Ints) -> None:
        """Notes the results of rows that are these things from now on."""
        some = self._of[rows] != self._before[rows]
        now = self._of[rows[some]]
        row = np.append(self._row.view, NOWHERE)[now]
        self._told.tell(things[some], row, np.append(self._oldest.view, 0)[now])
