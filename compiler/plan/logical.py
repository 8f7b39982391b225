"""Logical plan: what is asked, apart from how a target does it."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.catalogue import Stream
from compiler.errors import Span
from compiler.plan.expressions import Expression
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
    read (each before its readers), and what it asks to be shown."""

    streams: tuple[Stream, ...] = ()
    queries: tuple[Query, ...] = ()
    requests: tuple[Request, ...] = ()

    @property
    def asked(self) -> tuple[Query, ...]:
        """The queries whose results somebody wants."""
        return tuple(query for query in self.queries if query.defines is None)
