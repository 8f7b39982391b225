"""Errors between rows and device, in terms of the user's streams and queries."""

from __future__ import annotations

from seustream.engine.stream.errors import EngineError


class RowsRefused(EngineError):
    """Rows that do not fit their stream: none of them was taken."""


WITHOUT = "exclude such rows with another condition; without strict the value is NULL"
"""The hint for a fault under `strict`."""


class EvaluationError(EngineError):
    """Under `strict`, an expression that has no value in some row, for example after an
    overflow."""


class WindowOverflow(EngineError):
    """A window needs more tuples than its buffer holds, and the run may not go on in software."""
