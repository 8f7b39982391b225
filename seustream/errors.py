"""Errors that the user can cause. The command line prints them and exits with status 2; anything
else is a fault of the program."""

from __future__ import annotations

from collections.abc import Sequence


class Error(Exception):
    """Base of the errors that `run` and `connect` raise. `hint` suggests what to do. For a mistake
    in a text, `line` and `column`, both counted from 1, give its place.

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
        """Shows the hint in a traceback, unless the message contains it."""
        if self.hint and self.hint not in str(self):
            self.add_note(f"  hint: {self.hint}")


class QueryError(Error):
    """A mistake in a query, or a failure while it ran. A query of `connect` that fails takes no
    other with it: the error comes once, behind the results of the others.

    >>> import seustream as ss
    >>> with ss.connect(strict=True) as con:
    ...     con.push("R", {"ts": [1], "a": [0]})
    ...     con.sql("REGISTER QUERY part AS SELECT 6 / a AS b FROM R; REGISTER QUERY whole AS SELECT a FROM R")
    ...     con.push("R", {"ts": [2], "a": [0]})
    ...     try:
    ...         for name, rows in con.finish():
    ...             print(name, rows.rows())
    ...     except ss.QueryError:
    ...         print([query["phase"] for query in con.queries()])
    whole [(0, 2, 2)]
    ['FAILED', 'RUNNING']
    """

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
    """The errors of an input file. `total` also counts the errors that are not listed."""

    def __init__(
        self, messages: str | Sequence[str], hint: str | None = None, total: int | None = None
    ) -> None:
        super().__init__(messages, hint)
        self.total = len(self.messages) if total is None else total


class OutputError(UserError):
    """The reasons why results cannot be written."""
