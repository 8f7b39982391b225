"""Errors of a job, in terms of the user's streams and options."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from seustream.compiler.errors import CompileError
from seustream.cosim.bridge.errors import BridgeError
from seustream.engine.host.errors import RowsRefused
from seustream.engine.stream.errors import EngineError
from seustream.errors import InputError


class FeedError(Exception):
    """Base of these errors; `hint` suggests what might help."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


@contextlib.contextmanager
def as_feed_errors() -> Iterator[None]:
    """Converts errors of the bridge, or of a run, to the text that Spark will show, with their
    kind."""
    try:
        yield
    except (CompileError, BridgeError, FeedError, EngineError, InputError) as error:
        # The worker ends with this error; Spark would show the worker's stack before it.
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        if isinstance(error, FeedError):
            raise
        if isinstance(error, CompileError):
            raise FeedError(f"compile: {error}") from None
        if isinstance(error, BridgeError):
            kind, hint = error.kind, error.hint
        elif isinstance(error, InputError):
            # Spark's message is searched for the line with the kind, so the rest is only counted.
            more = f", and {error.total - 1} more errors" if error.total > 1 else ""
            said = f"{error.messages[0]}{more}"
            hint = f" ({error.hint})" if error.hint else ""
            raise FeedError(f"schema: {said}{hint}") from None
        else:
            kind, hint = "schema", getattr(error, "hint", None)
            if not isinstance(error, RowsRefused):
                kind = "failed"
        raise FeedError(f"{kind}: {error}{f' ({hint})' if hint else ''}") from None


def cause_of(error: Exception) -> tuple[str | None, str]:
    """Extracts the kind of an error of Spark, if it is known, and what to tell the user. A file that
    Spark cannot read is of the kind `schema`, unless its innermost reason is one of the network or
    the disk, which may pass."""
    kind, message = cause(str(error))
    chain = [error]
    while (inner := getattr(chain[-1], "_cause", None)) is not None:
        chain.append(inner)
    said = [cause(str(one))[1] for one in chain]
    reading = next((text for text in said[1:] if "FAILED_READ_FILE" in text), None)
    if kind is not None or reading is None:
        return kind, message
    passes = getattr(chain[-1], "_stackTrace", "").startswith(("java.io.", "java.net."))
    more = f": {said[-1]}" if said[-1] != reading else ""
    return None if passes else "schema", reading + more


def cause(text: str) -> tuple[str | None, str]:
    """Extracts from Spark's message the kind of bridge error, if there is one, and the line that
    contains it."""
    lines = [line.strip() for line in text.splitlines()]
    for line in reversed(lines):
        _, found, said = line.partition("FeedError: ")
        kind, colon, _ = said.partition(": ")
        if found and colon:
            return kind, said
    return None, lines[0] if lines else text
