"""Errors of joins across sites, in terms of their streams, sites and costs."""

from __future__ import annotations

from seustream.engine.stream.errors import EngineError


class SitesError(EngineError):
    """Base of all errors of joins across sites."""


class BadQuery(SitesError):
    """A join that is not defined: unknown columns, negative windows."""


class DisconnectedJoinGraph(BadQuery):
    """Streams that no equality connects: their join would be a cross product."""


class RowWindowRefused(BadQuery):
    """A window counted in rows: its contents depend on the order of arrival over all sites."""


class BadCosts(SitesError):
    """Unit costs that are not a square matrix of numbers from 0 up with a zero diagonal."""


class BadKey(SitesError):
    """A join key of a type that has no equality here, such as a boolean."""


class PlannerLimit(SitesError):
    """More sites than this planner enumerates."""


class SynopsisUnderflow(SitesError):
    """More rows were removed from a synopsis than it held."""


class LateBlock(SitesError):
    """A block that closes before an earlier block of its stream: refused whole."""


class BlockGap(SitesError):
    """A block whose number skips the one before it."""


class FeederBlocked(SitesError):
    """A site has as many open blocks as it may have; the block was not taken and has to be offered
    again."""
