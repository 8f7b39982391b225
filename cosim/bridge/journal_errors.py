"""Reasons why a journal cannot be opened. Later failures are a `BridgeError` (storage)."""

from __future__ import annotations

from pathlib import Path


class JournalDamaged(Exception):
    """A journal that cannot be trusted; names the file, and the byte from which it is damaged."""

    def __init__(self, path: Path, offset: int, what: str) -> None:
        super().__init__(f"{path}: byte {offset:,}: {what}")
        self.path, self.offset, self.what = path, offset, what


class JournalHeld(Exception):
    """Another process writes this journal."""


class JournalRefused(Exception):
    """A folder that is not a journal, or one of another format; nothing in it has been changed."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
