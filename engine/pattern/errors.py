"""Errors of a running pattern."""

from __future__ import annotations

from seustream.engine.stream.errors import EngineError


class PatternError(EngineError):
    """Base of all; `hint` says what might help."""


class PatternBudgetExceeded(PatternError):
    """More matches or runs than allowed: nothing of the epoch was given out."""


class LateEvent(PatternError):
    """An event below the watermark, where none may be dropped."""


class EngineRefused(PatternError):
    """The matcher asked for cannot run this query (P016)."""


class SkipStuck(PatternError):
    """AFTER MATCH SKIP TO leads to the row the match started at."""


class InternalError(AssertionError):
    """A fault of ours: an invariant does not hold."""
