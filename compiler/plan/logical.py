"""Logical plan: what is asked, apart from how a target does it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from compiler.apas.compile import Compiled
from compiler.catalogue import Stream
from compiler.errors import Span
from compiler.language.expressions import Expression
from compiler.pattern import ir
from hdl.device import Window

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
    derived stream its results are, if it is one's definition; nobody asked for these as results."""

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
    """What a text amounts to once all its statements have been carried out in order:
    the streams, the queries registered at the end with the definitions of the derived streams they
    read (each before its readers), the patterns, and what it asks to be shown.

    A pattern comes after those whose results it reads. `feeds` gives the name of the query or
    pattern that defines a derived stream some pattern reads; its results are that stream's.
    `between` are the patterns whose derived streams, their names, some query reads. `apas` are the
    queries of intervals whose results are streams, by stream; those run before all others."""

    streams: tuple[Stream, ...] = ()
    queries: tuple[Query, ...] = ()
    requests: tuple[Request, ...] = ()
    patterns: tuple[ir.Query, ...] = ()
    feeds: Mapping[str, str] = field(default_factory=dict)
    between: Mapping[str, ir.Query] = field(default_factory=dict)
    apas: Mapping[str, Compiled] = field(default_factory=dict)

    @property
    def asked(self) -> tuple[Query, ...]:
        """The queries whose results somebody wants."""
        return tuple(
            query
            for query in self.queries
            if query.defines is None and query.name not in self.feeds.values()
        )

    @property
    def names(self) -> list[str]:
        """The queries and patterns whose results are asked for."""
        fed = set(self.feeds.values())
        patterns = [pattern.name for pattern in self.patterns if pattern.name not in fed]
        return [*(query.name for query in self.asked), *patterns]
