"""The nodes of a tree of joins: each gives its combinations once they are certain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.logical.joins import JoinKind, JoinSide, TreeJoin, visible
from seustream.engine.relational.combinations import (
    NOTHING,
    Combinations,
    Frontier,
    Ints,
    Lives,
    TreeSources,
    together,
)
from seustream.engine.stream.evaluate import evaluate, survivors
from seustream.hdl.isa import Condition

_PAIRS_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class Arrived:
    """The tuples since the last step: sequence numbers by stream; what comes after it."""

    rows: dict[str, Ints]
    frontier: Frontier


class SourceTuples:
    """The tuples of one source."""

    def __init__(self, source: int, frame: TreeSources) -> None:
        self.source, self.frame = source, frame

    def nodes(self) -> Iterator[JoinStep]:
        return iter(())

    def step(self, arrived: Arrived) -> tuple[Combinations, Frontier]:
        new = arrived.rows[self.frame.sources[self.source].stream.name]
        store = self.frame.store(self.source)
        rows = np.full((len(new), len(self.frame.sources)), NOTHING)
        rows[:, self.source] = new
        at = store.index(new)
        certain = Combinations(
            rows, store.timestamp[at], store.position[0][at], np.zeros(len(new), np.bool_)
        )
        return certain, arrived.frontier


class JoinStep:
    """A join of two parts. It keeps the combinations of each side that may still match."""

    def __init__(self, join: TreeJoin, frame: TreeSources, faults: Faults) -> None:
        self.join, self.frame, self.faults = join, frame, faults
        self.sides = (part(join.left, frame, faults), part(join.right, frame, faults))
        self.kept = [Combinations.none(len(frame.sources)) for _ in self.sides]
        self.conjuncts = x.conjuncts(join.condition)
        self.equalities = list(_equalities(join))

    def nodes(self) -> Iterator[JoinStep]:
        for side in self.sides:
            yield from side.nodes()
        yield self

    def step(self, arrived: Arrived) -> tuple[Combinations, Frontier]:
        kind = self.join.kind
        (new_left, left_frontier), (new_right, right_frontier) = (
            side.step(arrived) for side in self.sides
        )
        old = [len(kept) for kept in self.kept]
        left = together([self.kept[0], new_left])
        right = together([self.kept[1], new_right])
        lives = self.frame.lives(left.rows), self.frame.lives(right.rows)
        everything = np.arange(len(right))
        found = [
            *self._matches(left, right, lives, np.arange(old[0], len(left)), everything),
            *self._matches(left, right, lives, np.arange(old[0]), everything[old[1] :]),
        ]
        of_left = np.concatenate([np.empty(0, np.int64), *(pair[0] for pair in found)])
        of_right = np.concatenate([np.empty(0, np.int64), *(pair[1] for pair in found)])
        left.matched[of_left] = True
        right.matched[of_right] = True
        results = []
        if kind.pairs:
            results.append(_paired(left.pick(of_left), right.pick(of_right)))
        elif kind is JoinKind.SEMI and len(of_left):
            results.append(_first(left, right, of_left, of_right))
        ended = right_frontier.ended(lives[0]), left_frontier.ended(lives[1])
        for keeps, side, over, life in (
            (kind.keeps_left, left, ended[0], lives[0]),
            (kind.keeps_right, right, ended[1], lives[1]),
        ):
            if keeps:
                alone = np.flatnonzero(over & ~side.matched)
                results.append(side.pick(alone).not_before(*life.pick(alone).end))
        stays = [~ended[0], ~ended[1]]
        if not kind.pairs:
            stays[0] &= ~left.matched
        self.kept = [side.pick(stay) for side, stay in zip((left, right), stays, strict=True)]
        frontier = left_frontier.meet(right_frontier) if kind.pairs else left_frontier
        for waits, side, stay, life in (
            (kind.keeps_left or kind is JoinKind.SEMI, left, stays[0], lives[0]),
            (kind.keeps_right, right, stays[1], lives[1]),
        ):
            pending = stay & ~side.matched
            if waits and pending.any():
                first = Frontier(int(life.place[pending].min()), int(life.time[pending].min()))
                frontier = frontier.meet(first)
        certain = together([Combinations.none(len(self.frame.sources)), *results])
        certain.matched = np.zeros(len(certain), np.bool_)
        return certain, frontier

    def _matches(
        self,
        left: Combinations,
        right: Combinations,
        lives: tuple[Lives, Lives],
        some: Ints,
        others: Ints,
    ) -> Iterator[tuple[Ints, Ints]]:
        """Pairs, one of `some` on the left and one of `others` on the right, that match."""
        if not len(some) or not len(others):
            return
        mine, theirs = lives[0].pick(some), lives[1].pick(others)
        order = np.argsort(theirs.place, kind="stable")
        others, theirs = others[order], theirs.pick(order)
        # Those before `low` have ended when a combination comes, those from `high` on come after it.
        low = np.maximum(
            np.searchsorted(np.maximum.accumulate(theirs.last), mine.time),
            np.searchsorted(np.maximum.accumulate(theirs.gone), mine.place, side="right"),
        )
        high = np.minimum(
            np.searchsorted(theirs.time, mine.last, side="right"),
            np.searchsorted(theirs.place, mine.gone),
        )
        codes = self._codes(left.rows[some], right.rows[others])
        if codes is not None:
            ours, keys = codes
            span = len(others) + 1
            by = np.lexsort((np.arange(len(others)), keys))
            ranked = keys[by] * span + by
            low = np.searchsorted(ranked, ours * span + low)
            high = np.searchsorted(ranked, ours * span + high)
            high = np.where(ours < 0, low, high)
            others, theirs = others[by], theirs.pick(by)
        counts = np.maximum(high - low, 0)
        ends = np.cumsum(counts)
        start = 0
        while start < len(counts):
            before = ends[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + _PAIRS_AT_ONCE, "right")))
            who = np.repeat(np.arange(start, stop), counts[start:stop])
            offset = np.arange(len(who)) - np.repeat(
                ends[start:stop] - counts[start:stop] - before, counts[start:stop]
            )
            partner = low[who] + offset
            fit = mine.pick(who).within(theirs.pick(partner))
            of_left, of_right = some[who[fit]], others[partner[fit]]
            holds = self._true(left.rows[of_left], right.rows[of_right])
            yield of_left[holds], of_right[holds]
            start = stop

    def _true(self, left: Ints, right: Ints) -> Ints:
        """For which pairs the condition is true."""
        rows = np.where(left != NOTHING, left, right)
        with self.faults.naming(lambda row: self.frame.named(rows[row])):
            return survivors(
                self.conjuncts,
                lambda e, which: self.frame.leaves(e, rows[which]),
                len(rows),
                self.faults,
            )

    def _codes(self, left: Ints, right: Ints) -> tuple[Ints, Ints] | None:
        """Numbers that are equal where all equalities hold, -1 where one has NULL; None without any."""
        found: Ints | None = None
        valid = np.ones(len(left) + len(right), np.bool_)
        for mine, theirs in self.equalities:
            doubts = Faults()
            values = [
                self._value(mine, left, doubts),
                self._value(theirs, right, doubts),
            ]
            if doubts.total:
                continue  # the condition as a whole says in which pairs they count
            indices = pa.concat_arrays(values).dictionary_encode().indices.fill_null(-1)
            one = np.asarray(indices).astype(np.int64)
            valid &= one >= 0
            one = np.maximum(one, 0)
            if found is None:
                found = one
            else:
                found = np.unique(found * (one.max(initial=0) + 1) + one, return_inverse=True)[1]
        if found is None:
            return None
        found = np.where(valid, found, -1)
        return found[: len(left)], found[len(left) :]

    def _value(self, e: x.Expression, rows: Ints, doubts: Faults) -> pa.Array:
        value = evaluate(e, self.frame.leaves(e, rows), len(rows), doubts)
        if pa.types.is_floating(value.type):
            value = pc.add(value, pa.scalar(0.0, value.type))  # -0.0 equals 0.0
        return value


def part(side: JoinSide, frame: TreeSources, faults: Faults) -> SourceTuples | JoinStep:
    """Makes the operator of a part of a tree."""
    return SourceTuples(side, frame) if isinstance(side, int) else JoinStep(side, frame, faults)


def _equalities(join: TreeJoin) -> Iterator[tuple[x.Expression, x.Expression]]:
    """Finds what is equal on both sides wherever they match: left, right."""
    left, right = frozenset(visible(join.left)), frozenset(visible(join.right))
    for e in x.conjuncts(join.condition):
        if not (isinstance(e, x.Compare) and e.condition is Condition.EQ):
            continue
        sides = [
            side if side.type == e.of else x.Cast(side, e.of, quiet=True)
            for side in (e.left, e.right)
        ]
        for mine, theirs in (sides, sides[::-1]):
            reads = x.sources(mine), x.sources(theirs)
            if all(reads) and reads[0] <= left and reads[1] <= right:
                yield mine, theirs


def _paired(left: Combinations, right: Combinations) -> Combinations:
    rows = np.where(left.rows != NOTHING, left.rows, right.rows)
    both = Combinations(rows, left.time, left.place, left.matched)
    return both.not_before(right.time, right.place)


def _first(left: Combinations, right: Combinations, of_left: Ints, of_right: Ints) -> Combinations:
    """Left combinations that have a match, each once, at the moment of the first."""
    found = left.pick(of_left)
    partner = right.pick(of_right)
    found = found.not_before(partner.time, partner.place)
    order = np.lexsort((found.place, found.time, of_left))
    _, first = np.unique(of_left[order], return_index=True)
    return found.pick(order[first])
