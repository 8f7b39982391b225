"""Failures: queries of a run that cannot go on, and the reasons.

A query fails when its first fault is an error under `strict`, when a user's function raises, or
when it needs more room than there is. In a run of files, that ends the run. In a bridge, it ends
that query and those that read its results; all others go on.
"""

from __future__ import annotations

from collections.abc import Iterable

from seustream.engine.stream.errors import EngineError


class Containment:
    """A part of a run in which an error is a failure of some queries."""

    __slots__ = ("_failures", "_queries")

    def __init__(self, failures: Failures, queries: Iterable[str]) -> None:
        self._failures, self._queries = failures, queries

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> bool:
        if not self._failures.contained or not isinstance(error, Exception):
            return False
        for query in self._queries:
            self._failures.why.setdefault(query, reason(error))
        return True


class Failures:
    """The reasons why queries failed, by name. Unless `contained`, a failure is raised."""

    def __init__(self, contained: bool = False) -> None:
        self.contained = contained
        self.why: dict[str, str] = {}

    def of(self, *queries: str) -> Containment:
        """Contains errors in its block: they are failures of these queries."""
        return Containment(self, queries)

    def __contains__(self, query: str) -> bool:
        return query in self.why


def reason(error: Exception) -> str:
    """Returns an error as one line, with its hint."""
    hint = getattr(error, "hint", None)
    kind = "" if isinstance(error, EngineError) else f"{type(error).__name__}: "
    return f"{kind}{error!s:.2000}{f' ({hint})' if hint else ''}"
