"""Trees of joins: FROM lists beyond inner joins of windows.

A *combination* takes at most one tuple of each source. It is *within* when, at the arrival of its
latest tuple, each is in its own source's window. A join matches a combination l of its left side
and r of its right when its condition is true and both together are within.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from seustream.compiler.language.expressions import ColumnReference, Expression
from seustream.compiler.language.types import Kind, Type
from seustream.compiler.logical.program import Operation, Query, Source


class JoinKind(Enum):
    """The kinds of joins. INNER gives all matches; LEFT, RIGHT and FULL add the combinations of
    that side without one. SEMI gives the left combinations that have a match, ANTI those that have
    none, ASOF the latest match of each left one."""

    INNER = "INNER"
    LEFT = "LEFT OUTER"
    RIGHT = "RIGHT OUTER"
    FULL = "FULL OUTER"
    SEMI = "LEFT SEMI"
    ANTI = "LEFT ANTI"
    ASOF = "ASOF"
    LEFT_ASOF = "LEFT ASOF"

    @property
    def keeps_left(self) -> bool:
        """Returns whether left combinations without a match are results."""
        return self in (JoinKind.LEFT, JoinKind.FULL, JoinKind.ANTI)

    @property
    def looks_up(self) -> bool:
        """Returns whether each left combination has at most one partner, the latest."""
        return self in (JoinKind.ASOF, JoinKind.LEFT_ASOF)

    @property
    def keeps_right(self) -> bool:
        """Returns whether right combinations without a match are results."""
        return self in (JoinKind.RIGHT, JoinKind.FULL)

    @property
    def pairs(self) -> bool:
        """Returns whether matches are results as pairs."""
        return self not in (JoinKind.SEMI, JoinKind.ANTI)


@dataclass(frozen=True, slots=True)
class TreeJoin:
    """Joins two sides under a condition. A side is a join or the position of a source."""

    kind: JoinKind
    left: JoinSide
    right: JoinSide
    condition: Expression


JoinSide = int | TreeJoin


@dataclass(frozen=True, slots=True)
class AsofJoin(TreeJoin):
    """Joins each left combination with at most one right tuple that meets the condition: the one of
    greatest time, and among equal times the last to arrive. The partner is known once the watermark
    has passed the time of source `at`; it is at most `later` milliseconds after that time. Other
    conditions do not distinguish candidates of one key: they read one side, or bound the age of a
    candidate, which is then at most `age` milliseconds before the time of `at`."""

    at: int
    later: int
    age: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinTree(Operation):
    """A SELECT over a tree of joins; `where` applies to the tree's output. A match is certain at
    the arrival of its latest tuple. A combination without a match is certain once no later tuple
    can bring one, when one of its tuples has left its window. A row has the times of its own
    tuples. `inputs` are the streams of the sources, once each."""

    sources: tuple[Source, ...]
    tree: JoinSide
    where: Expression
    group_by: tuple[Expression, ...] = ()
    having: Expression | None = None
    aggregated: bool = False

    @property
    def query(self) -> Query:
        """Returns the SELECT as if its FROM were a list."""
        return Query(
            self.name,
            self.sources,
            self.where,
            self.items,
            self.group_by,
            self.having,
            self.aggregated,
            self.text,
            self.span,
            self.defines,
            self.strict,
            self.keeps_oldest,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLog(JoinTree):
    """Gives the changes of a SELECT's result over its windows. `CHANGE`, its first column, states
    whether a row comes or goes. A change is certain when the watermark has reached its time."""


CHANGE = ColumnReference(-1, "op", Type(Kind.VARCHAR), False, "change")
"""`+` or `-`."""


def members(side: JoinSide) -> tuple[int, ...]:
    """Returns all sources below, in order."""
    if isinstance(side, int):
        return (side,)
    return (*members(side.left), *members(side.right))


def visible(side: JoinSide) -> tuple[int, ...]:
    """Returns the sources that a side's combinations have: all but those right of a SEMI or ANTI
    join."""
    if isinstance(side, int):
        return (side,)
    right = visible(side.right) if side.kind.pairs else ()
    return (*visible(side.left), *right)


def timing(side: JoinSide, sources: Sequence[Source]) -> tuple[int, ...]:
    """Returns the sources one of which has the newest time of a row. Tables are excluded, and so is
    a source looked up as of another's time."""
    earlier = {join.right for join in joins(side) if isinstance(join, AsofJoin) and join.later <= 0}
    return tuple(at for at in visible(side) if at not in earlier and not sources[at].stream.table)


def optional(side: JoinSide) -> frozenset[int]:
    """Returns the sources that some combination of a side may lack."""
    if isinstance(side, int):
        return frozenset()
    found = optional(side.left) | optional(side.right)
    if side.kind in (JoinKind.LEFT, JoinKind.FULL, JoinKind.LEFT_ASOF):
        found |= frozenset(visible(side.right))
    if side.kind in (JoinKind.RIGHT, JoinKind.FULL):
        found |= frozenset(visible(side.left))
    return found


def joins(side: JoinSide) -> Iterator[TreeJoin]:
    """Yields all joins below, each after the joins inside it."""
    if isinstance(side, TreeJoin):
        yield from joins(side.left)
        yield from joins(side.right)
        yield side
