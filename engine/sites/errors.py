"""What can go wrong in a join across sites, in terms of its streams, sites and costs."""

from __future__ import annotations


class MultiJoinError(Exception):
    """Base of all; `hint` says what might help."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class BadQuery(MultiJoinError):
    """A join that is not defined: unknown columns, negative windows."""


class DisconnectedJoinGraph(BadQuery):
    """Streams that no equality connects: their join would be a cross product."""


class RowWindowRefused(BadQuery):
    """A window counted in rows: what it holds depends on the order of arrival over all sites."""


class BadCosts(MultiJoinError):
    """Unit costs that are no square matrix of numbers from 0 up with a zero diagonal."""


class BadKey(MultiJoinError):
    """A join key of a type that has no equality here, such as a boolean."""


class PlannerLimit(MultiJoinError):
    """More sites than this planner enumerates."""


class SynopsisUnderflow(MultiJoinError):
    """More rows were removed from a synopsis than it held."""


class LateBlock(MultiJoinError):
    """A block that closes before an earlier block of its stream: refused whole."""


class BlockGap(MultiJoinError):
    """A block whose number leaves out the one before it."""


class FeederBlocked(MultiJoinError):
    """A site has as many open blocks as it may; the block was not taken, offer it again."""
