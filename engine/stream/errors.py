"""Errors of running queries, in terms of the user's streams and queries."""

from __future__ import annotations


class EngineError(Exception):
    """Base of all engine errors; `hint` says what might help."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
