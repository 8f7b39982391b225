"""Errors of a running pattern."""

from __future__ import annotations

from seustream.engine.stream.errors import EngineError


class PatternError(EngineError):
    """Base of all pattern errors; `hint` says what might help."""


class PatternBudgetExceeded(PatternError):
    """More runs, or matches that have to be in memory together, than allowed."""


class LateEvent(PatternError):
    """An event below the watermark, where late events may not be dropped."""


class EngineRefused(PatternError):
    """The requested matcher cannot run this query (P016)."""


class SkipStuck(PatternError):
    """AFTER MATCH SKIP TO leads to the row at which the match started."""


class InternalError(AssertionError):
    """A bug in the engine: an invariant does not hold."""
