"""Errors between rows and device, in terms of the user's streams and queries."""

from __future__ import annotations

from seustream.engine.stream.errors import EngineError


class RowsRefused(EngineError):
    """Rows that are not of their stream: nothing of them was taken."""


class EvaluationError(EngineError):
    """Under `strict`, an expression that has no value in some row, such as an overflow."""


class WindowOverflow(EngineError):
    """A window needs more tuples than its buffer holds and the run may not go on in software."""
