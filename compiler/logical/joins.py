"""Trees of joins: FROM lists with more in them than inner joins of windows.

A *combination* takes at most one tuple of each source. It is *within* when, at the arrival of its latest
tuple, each is in its own source's window. A join matches a combination l of its left side and r of its
right when its condition is true and both together are within.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from seustream.compiler.language.expressions import ColumnReference, Expression
from seustream.compiler.language.types import Kind, Type
from seustream.compiler.logical.program import Operation, Query, Source


class JoinKind(Enum):
    """The results of a join: all matches, and with LEFT, RIGHT, FULL the combinations of that side without
    one; with SEMI the left ones that have a match, with ANTI those that have none; with ASOF the latest match of each
    left one."""

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
        """Says if left combinations without a match are results."""
        return self in (JoinKind.LEFT, JoinKind.FULL, JoinKind.ANTI)

    @property
    def looks_up(self) -> bool:
        """Says if each left combination has at most one partner, the latest."""
        return self in (JoinKind.ASOF, JoinKind.LEFT_ASOF)

    @property
    def keeps_right(self) -> bool:
        """Says if right combinations without a match are results."""
        return self in (JoinKind.RIGHT, JoinKind.FULL)

    @property
    def pairs(self) -> bool:
        """Says if matches are results as pairs."""
        return self not in (JoinKind.SEMI, JoinKind.ANTI)


@dataclass(frozen=True, slots=True)
class TreeJoin:
    """Two sides under a condition. A side is a join or the position of a source."""

    kind: JoinKind
    left: JoinSide
    right: JoinSide
    condition: Expression


JoinSide = int | TreeJoin


@dataclass(frozen=True, slots=True)
class AsofJoin(TreeJoin):
    """Each left combination with the one right tuple of greatest time among those that meet the condition,
    the last to arrive among equal times: known once the watermark has passed the time of source `at`. The
    right tuple is at most `later` milliseconds after it. Other conditions do not tell candidates of one
    key apart: they read one side, or bound how old a candidate may be."""

    at: int
    later: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinTree(Operation):
    """A SELECT over a tree of joins; `where` applies to what the tree gives. A match is certain at the
    arrival of its latest tuple; what has no match once no later tuple can bring one, which is when one
    of its tuples has left its window. A row has the times of its own tuples. `inputs` are the streams
    of the sources, once each."""

    sources: tuple[Source, ...]
    tree: JoinSide
    where: Expression
    group_by: tuple[Expression, ...] = ()
    having: Expression | None = None
    aggregated: bool = False

    @property
    def query(self) -> Query:
        """The SELECT as if its FROM were a list."""
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
    """The changes of what a SELECT gives over what its windows hold: `CHANGE`, its first column, says
    whether a row comes or goes. A change is certain when the watermark has reached its time."""


CHANGE = ColumnReference(-1, "op", Type(Kind.VARCHAR), False, "change")
"""`+` or `-`."""


def members(side: JoinSide) -> tuple[int, ...]:
    """All sources below, in order."""
    if isinstance(side, int):
        return (side,)
    return (*members(side.left), *members(side.right))


def visible(side: JoinSide) -> tuple[int, ...]:
    """The sources that a side's combinations have: all but those right of a SEMI or ANTI join."""
    if isinstance(side, int):
        return (side,)
    right = visible(side.right) if side.kind.pairs else ()
    return (*visible(side.left), *right)


def timing(side: JoinSide, sources: Sequence[Source]) -> tuple[int, ...]:
    """The sources one of which has the newest time of a row: not tables, nor what is looked up as of an
    other's time."""
    earlier = {join.right for join in joins(side) if isinstance(join, AsofJoin) and join.later <= 0}
    return tuple(at for at in visible(side) if at not in earlier and not sources[at].stream.table)


def optional(side: JoinSide) -> frozenset[int]:
    """The sources that some combination of a side may lack."""
    if isinstance(side, int):
        return frozenset()
    found = optional(side.left) | optional(side.right)
    if side.kind in (JoinKind.LEFT, JoinKind.FULL, JoinKind.LEFT_ASOF):
        found |= frozenset(visible(side.right))
    if side.kind in (JoinKind.RIGHT, JoinKind.FULL):
        found |= frozenset(visible(side.left))
    return found


def joins(side: JoinSide) -> Iterator[TreeJoin]:
    """All joins below, each after those it is made of."""
    if isinstance(side, TreeJoin):
        yield from joins(side.left)
        yield from joins(side.right)
        yield side
