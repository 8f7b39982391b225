"""The first rows of partitions, as rows come and go: which of them are among the first is followed by
their places in the order alone, so a row costs no more than the changes that it makes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seustream.compiler.language import expressions as x
from seustream.compiler.logical import program as logical
from seustream.hdl.isa import Condition

Ints = npt.NDArray[np.int64]

_RANKS = ("row_number", "rank", "dense_rank")


class RankBound(NamedTuple):
    """The greatest rank of the rows that are shown, and the function that ranks them."""

    over: logical.Over
    most: int


def bound_of(node: logical.RankChanges) -> RankBound | None:
    """Returns the bound of a query whose rows are shown if their rank is within it, whatever else it is."""
    e = node.qualify
    if not isinstance(e, x.Compare) or e.condition not in (Condition.LE, Condition.LT):
        return None
    over, most = e.left, e.right
    if not (isinstance(over, logical.Over) and over.order and over.function in _RANKS):
        return None
    if not isinstance(most, x.Literal) or type(most.value) is not int:
        return None
    reads = (one for item in node.items for one in x.walk(item.expression))
    if any(isinstance(one, logical.Over) for one in reads):
        return None
    return RankBound(over, most.value - (e.condition is Condition.LT))


class Ranked(NamedTuple):
    """Rows, each with its group, its place in the order of all rows, and the number of its result; by place,
    the row there, and the last place of those equal in order."""

    group: list[int]
    place: list[int]
    result: list[int]
    row: list[int]
    last: list[int]


class Leaders:
    """The rows that are among the first of their groups. If rows are only to `come`, those behind are
    dropped."""

    def __init__(self, bound: RankBound, rows: Ranked, come: bool) -> None:
        self.bound, self.rows, self.come = bound, rows, come
        self._present = defaultdict[int, list[int]](list)  # by group, places in order
        self._until = defaultdict[int, int](lambda: -1)  # by group, the last place that is shown
        self._shown = defaultdict[int, defaultdict[int, set[int]]](lambda: defaultdict(set))
        """The rows that are shown, by result and group."""
        self.goes, self.comes = list[tuple[int, int, int]](), list[tuple[int, int, int]]()
        """The changes, by those that go and come: the moment, the order, and the row."""
        self.at_once = list[int]()
        """Rows that are shown when they come."""

    def begin(self, rows: Iterable[int]) -> None:
        """Takes the rows that are there before, of which the first are shown."""
        for place in sorted(self.rows.place[row] for row in rows):
            self._present[self.rows.group[self.rows.row[place]]].append(place)
        for group, present in self._present.items():
            self._until[group] = self._bounded(present)
            for place in present[: bisect_right(present, self._until[group])]:
                row = self.rows.row[place]
                self._shown[self.rows.result[row]][group].add(row)

    def step(self, moment: int, touched: set[int], go: dict[int, int], come: list[int]) -> None:
        """Finds what changes at a moment in some groups: `go` has rows by those that remove them, in order.
        Of equal results of these groups that do not stay, as many come as go; the first ones are no
        changes."""
        removed, left, new = list[tuple[int, int]](), list[int](), defaultdict[int, list[int]](list)
        group, place = self.rows.group, self.rows.place
        for by, row in go.items():
            present = self._present[group[row]]
            at = bisect_left(present, place[row])
            if at < len(present) and present[at] == place[row]:
                del present[at]
                if place[row] <= self._until[group[row]]:
                    removed.append((by, row))
        for row in come:
            new[group[row]].append(place[row])
        enter = list[int]()
        for one in touched:
            self._move(one, new.get(one, []), left, enter)
        if removed or left or enter:
            self._note(moment, touched, removed, left, enter)

    def _move(self, group: int, new: list[int], left: list[int], enter: list[int]) -> None:
        """Takes new places of a group; adds the rows that are among the first no longer, and those that are
        from now on."""
        present, before = self._present[group], self._until[group]
        for place in new:
            insort(present, place)
        until = self._until[group] = self._bounded(present)
        low, high = min(before, until), max(before, until)
        between = present[bisect_right(present, low) : bisect_right(present, high)]
        row = self.rows.row
        if until < before:
            left += [row[place] for place in between]
        else:
            enter += [row[place] for place in between]
        enter += [row[place] for place in new if place <= low]
        self.at_once += [row[place] for place in new if place <= until]
        if self.come:
            del present[bisect_right(present, until) :]

    def _bounded(self, present: list[int]) -> int:
        """Returns the last place whose rank is within the bound; -1 if there is none."""
        most, last = self.bound.most, self.rows.last
        if most <= 0 or not present:
            return -1
        match self.bound.over.function:
            case "row_number":
                return present[min(most, len(present)) - 1]
            case "rank":
                return last[present[min(most, len(present)) - 1]]
        end = 0
        for _ in range(most):
            if end < len(present):
                end = bisect_right(present, last[present[end]])
        return present[end - 1]

    def _note(
        self,
        moment: int,
        touched: set[int],
        removed: list[tuple[int, int]],
        left: list[int],
        enter: list[int],
    ) -> None:
        group, result, shown = self.rows.group, self.rows.result, self._shown
        changed = {result[row] for _, row in removed}
        changed.update([result[row] for row in (*left, *enter)])
        before = {one: self._rows(one, touched) for one in changed}
        by = defaultdict[int, list[tuple[int, int]]](list)
        for remover, row in removed:
            by[result[row]].append((remover, row))
            shown[result[row]][group[row]].discard(row)
            before[result[row]].remove(row)
        for row in left:
            shown[result[row]][group[row]].discard(row)
        for row in enter:
            shown[result[row]][group[row]].add(row)
        for one in changed:
            stays = set(before[one])
            after = self._rows(one, touched)
            stays.intersection_update(after)
            after = [row for row in after if row not in stays]
            went = by[one] + [(len(group), row) for row in before[one] if row not in stays]
            equal = min(len(went), len(after))
            self.goes += [(moment, order, row) for order, row in went[equal:]]
            self.comes += [(moment, 0, row) for row in after[equal:]]

    def _rows(self, result: int, touched: set[int]) -> list[int]:
        """Returns the rows of some groups that are shown with a result, in order."""
        return sorted(
            [row for of, rows in self._shown[result].items() if of in touched for row in rows]
        )

    def present(self) -> Ints:
        """Returns the rows that are there."""
        row = self.rows.row
        return np.array(
            sorted(row[place] for of in self._present.values() for place in of), np.int64
        )
