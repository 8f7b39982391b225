"""Errors the user can cause. The command line prints them and exits with status 2;
anything else is a fault of the program."""

from __future__ import annotations

from collections.abc import Sequence


class UserError(Exception):
    """One or more messages, each complete in itself, and perhaps a hint on what to do."""

    def __init__(self, messages: str | Sequence[str], hint: str | None = None) -> None:
        self.messages = (messages,) if isinstance(messages, str) else tuple(messages)
        self.hint = hint
        super().__init__("\n".join(self.messages))


class InputError(UserError):
    """What is wrong with an input file. `total` counts the errors, also those not listed."""

    def __init__(
        self, messages: str | Sequence[str], hint: str | None = None, total: int | None = None
    ) -> None:
        super().__init__(messages, hint)
        self.total = len(self.messages) if total is None else total


class OutputError(UserError):
    """Why results cannot be written."""
