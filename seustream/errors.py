"""Errors the user can cause. The command line prints them and exits with status 2;
anything else is a fault of the program."""

from __future__ import annotations

from collections.abc import Sequence


class Error(Exception):
    """Base of what `run` and `connect` raise. `hint` says what to do about it; `line` and `column`,
    both from 1, where in the text it is, of a mistake in a text.

    >>> import seustream as ss
    >>> try:
    ...     ss.run("SELECT custmer FROM orders WINDOW NOW", orders={"ts": [1], "customer": ["Ada"]})
    ... except ss.Error as error:
    ...     print(error.line, error.column, error.hint)
    1 8 did you mean customer?
    """

    hint: str | None = None
    line: int | None = None
    column: int | None = None

    def _note(self) -> None:
        """Shows the hint in a traceback, unless the message has it."""
        if self.hint and self.hint not in str(self):
            self.add_note(f"  hint: {self.hint}")


class QueryError(Error):
    """A mistake in a query, or a failure while it ran."""

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message)
        self.hint, self.line, self.column = hint, line, column
        self._note()


class UserError(Error):
    """One or more messages, each complete in itself, and perhaps a hint on what to do."""

    def __init__(self, messages: str | Sequence[str], hint: str | None = None) -> None:
        self.messages = (messages,) if isinstance(messages, str) else tuple(messages)
        self.hint = hint
        super().__init__("\n".join(self.messages))
        self._note()


class InputError(UserError):
    """The errors of an input file. `total` counts the errors, also those not listed."""

    def __init__(
        self, messages: str | Sequence[str], hint: str | None = None, total: int | None = None
    ) -> None:
        super().__init__(messages, hint)
        self.total = len(self.messages) if total is None else total


class OutputError(UserError):
    """Why results cannot be written."""
