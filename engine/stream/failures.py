"""Failures: queries of a run that cannot go on, and why.

A query fails when its first fault is an error under `strict`, when a function of a user raises, or when
what it asks for has no room. In a run of files that ends the run. In a bridge it ends that query and
those that read its results; all others go on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from seustream.engine.stream.errors import EngineError


class Failures:
    """Why queries failed, by name. Unless they are `contained`, a failure is raised."""

    def __init__(self, contained: bool = False) -> None:
        self.contained = contained
        self.why: dict[str, str] = {}

    @contextlib.contextmanager
    def of(self, query: str) -> Iterator[None]:
        """Contains what fails meanwhile: it is a failure of this query."""
        try:
            yield
        except Exception as error:
            if not self.contained:
                raise
            self.why.setdefault(query, reason(error))

    def __contains__(self, query: str) -> bool:
        return query in self.why


def reason(error: Exception) -> str:
    """An error in one line, with its hint."""
    hint = getattr(error, "hint", None)
    kind = "" if isinstance(error, EngineError) else f"{type(error).__name__}: "
    return f"{kind}{error!s:.2000}{f' ({hint})' if hint else ''}"
