"""Logical plan: what is asked, apart from how a target does it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from seustream.compiler.apas.compile import Compiled
from seustream.compiler.catalogue import Stream
from seustream.compiler.errors import Span
from seustream.compiler.language.expressions import Expression
from seustream.compiler.pattern import ir
from seustream.hdl.device import Window

RESULT_TIMES = ("ts_oldest", "ts_newest")
"""The two columns that follow every result's own."""


@dataclass(frozen=True, slots=True)
class Source:
    """One stream of a FROM list with its window."""

    alias: str
    stream: Stream
    window: Window
    span: Span
    window_span: Span


@dataclass(frozen=True, slots=True)
class Item:
    """One column of the result."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Query:
    """One continuous query; `where` is TRUE when absent, `text` its source text. `defines` is the
    derived stream its results are, if it is one's definition; nobody asked for these as results.
    Under `strict` its first fault is an error."""

    name: str
    sources: tuple[Source, ...]
    where: Expression
    items: tuple[Item, ...]
    group_by: tuple[Expression, ...]
    having: Expression | None
    aggregated: bool
    text: str
    span: Span
    defines: str | None = None
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """A SHOW or EXPLAIN in the text: something to print, not to run. SHOW has its answer in
    `lines`, as things stood there; EXPLAIN names the query in `target`."""

    verb: str
    target: str
    span: Span
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """What a text amounts to once all its statements have been carried out in order: one graph of
    streams and queries of all three languages, and what the text asks to be shown.

    `queries` (X-SQL), `patterns` and `apas`, by the stream it defines, are those registered at the end with the definitions of
    the derived streams they read. A query reads streams by name; one that `defines` a stream is
    what its readers read. `levels` has them in an order in which each comes after what it reads."""

    streams: tuple[Stream, ...] = ()
    queries: tuple[Query, ...] = ()
    requests: tuple[Request, ...] = ()
    patterns: tuple[ir.Query, ...] = ()
    apas: Mapping[str, Compiled] = field(default_factory=dict)

    @property
    def asked(self) -> tuple[Query, ...]:
        """The queries whose results somebody wants."""
        return tuple(query for query in self.queries if query.defines is None)

    @property
    def names(self) -> list[str]:
        """The queries and patterns whose results are asked for."""
        return [*(query.name for query in self.asked), *(p.name for p in self.asked_patterns)]

    @property
    def asked_patterns(self) -> tuple[ir.Query, ...]:
        """The patterns whose results somebody wants."""
        return tuple(pattern for pattern in self.patterns if pattern.defines is None)

    @property
    def base(self) -> tuple[Stream, ...]:
        """The streams that come from outside."""
        return tuple(stream for stream in self.streams if stream.defined_by is None)
