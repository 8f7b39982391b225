"""The logical plan: what is asked, apart from how a target does it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from seustream.compiler.apas.compile import Compiled
from seustream.compiler.catalogue import Stream
from seustream.compiler.errors import Span
from seustream.compiler.language.expressions import (
    TRUE,
    AggregateCall,
    ColumnReference,
    Expression,
    Leaf,
    show,
)
from seustream.compiler.language.types import BIGINT, Type
from seustream.compiler.pattern import ir
from seustream.hdl.device import Window

RESULT_TIMES = ("ts_oldest", "ts_newest")
"""The two columns that follow each result's own."""


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
    """One continuous query; `where` is TRUE when absent, `text` its source text.

    If the query defines a derived stream, `defines` names it; its rows are not asked for as results
    then. With `keeps_oldest`, rows of that stream end in a column ts_oldest. Under `strict` its
    first fault is an error. If there is a `last` source, only its tuples need complete results:
    later tuples of the other sources make no result that is of use.
    """

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
    keeps_oldest: bool = False
    last: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A relational operator over whole streams: the part of a SELECT beyond a join of windows.

    before  SELECT a FROM R UNION ALL SELECT b FROM S
    after   queries q#1 and q#2, each of which defines a stream; an operation q over both streams

    `inputs` are the streams it reads, once each. Those defined by queries of its own are *hidden*:
    named after it with a #, with a last column ts_oldest. `items` are its result columns over the
    inputs by their position; ts_oldest and ts_newest follow them, as with a query. A subclass defines
    what else it does, and when a result is certain.
    """

    name: str
    inputs: tuple[Stream, ...]
    items: tuple[Item, ...]
    text: str
    span: Span
    defines: str | None = None
    strict: bool = False
    keeps_oldest: bool = False

    @property
    def detail(self) -> str:
        """Returns the parameters of the operation, for EXPLAIN."""
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnionAll(Operation):
    """Merges the rows of all inputs, which have the same columns, by time, then by input. A row is
    certain once the watermark of every input has passed it."""


WINDOW_START = ColumnReference(-1, "window_start", BIGINT, False, "window")
WINDOW_END = ColumnReference(-1, "window_end", BIGINT, False, "window")
"""Leaves for the window of a group, half open, in milliseconds."""


@dataclass(frozen=True, slots=True)
class Periodic:
    """TUMBLE and HOP: windows of `size` that begin at `offset` and every `slide` before and after.
    With `by_rows` these are row numbers of the stream, from 0. If it `cumulates`, CUMULATE: windows
    that begin at `offset` and every `size`, one for each `slide` until the next begins."""

    size: int
    slide: int
    offset: int
    by_rows: bool = False
    cumulates: bool = False


@dataclass(frozen=True, slots=True)
class Sessions:
    """SESSION: groups rows that are less than `gap` apart; a session ends `gap` after its last row."""

    gap: int


@dataclass(frozen=True, slots=True)
class OrderKey:
    """One expression of ORDER BY."""

    expression: Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodGroups(Operation):
    """Gives a row for each group of each window of `every`. A row is certain once the watermark has
    reached the last instant of the window, `window_end` - 1, which is its ts_newest.

    `columns` are the leaves as written; the one input has their values in this order. The other
    expressions are over them, `WINDOW_START` and `WINDOW_END`. Each window gives the first `limit`
    rows by `order_by`. With `changes`, the first item states whether a row comes or goes: at each
    time at which a group of an open window has a new row, the old row goes.
    """

    columns: tuple[ColumnReference, ...]
    every: Periodic | Sessions
    group_by: tuple[Expression, ...]
    having: Expression | None
    order_by: tuple[OrderKey, ...] = ()
    limit: int | None = None
    where: Expression = TRUE
    """Selects the rows that count; all others are numbered too."""

    changes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Distinct(Operation):
    """Gives each row of the input, at its arrival, unless an equal one was given within the window,
    which counts rows of the input."""

    window: Window

    @property
    def detail(self) -> str:
        return f"within {self.window}"


@dataclass(frozen=True, slots=True)
class Frame:
    """The rows of a partition that a row looks back on: itself and the `size` rows before it, or
    with `by_time` the rows of its own time and of the `size` milliseconds before it; None means all
    rows before it."""

    by_time: bool
    size: int | None


@dataclass(frozen=True, slots=True)
class Over(Leaf):
    """A function OVER a frame: an aggregate of `arguments`, or one of row_number, rank, dense_rank,
    lag, first_value and last_value by name; lag looks `offset` rows back. With an `order` it covers
    a whole partition: a rank, ntile (into `offset` parts), percent_rank, cume_dist, lag or lead."""

    function: str
    aggregate: AggregateCall | None
    arguments: tuple[Expression, ...]
    offset: int
    partition: tuple[Expression, ...]
    frame: Frame
    type: Type
    order: tuple[OrderKey, ...] = ()

    def show(self) -> str:
        if self.aggregate is not None:
            return f"{show(self.aggregate)} OVER (...)"
        return f"{self.function}({', '.join(map(show, self.arguments))}) OVER (...)"


@dataclass(frozen=True, slots=True, kw_only=True)
class OverRows(Operation):
    """Gives each row of the input for which `qualify` holds, with the values of its functions OVER
    frames. A row is certain once the watermark has passed its time.

    `columns` are the leaves as written; the one input has their values in this order. The other
    expressions are over them and `Over`.
    """

    columns: tuple[ColumnReference, ...]
    qualify: Expression | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedRows(OverRows):
    """Gives each row of the input for which `qualify` holds, with its ranks in a whole partition,
    in the order of `order_by`. A row is certain when its partition is: once the watermark has
    reached the last instant of the window that ends at `end`, or without a window at the end of the
    stream.

    Rows of a partition whose `best[0]` is greater than `best[1]` do not count. With `ahead`, rows
    look at most that many rows ahead in their partition, and are certain once these are.
    """

    order_by: tuple[OrderKey, ...] = ()
    end: ColumnReference | None = None
    best: tuple[Over, int] | None = None
    ahead: int | None = None

    @property
    def detail(self) -> str:
        when = "at the end of the stream" if self.end is None else "at the end of each window"
        if self.ahead is not None:
            later = "the next row" if self.ahead == 1 else f"the next {self.ahead} rows"
            when = f"with {later} of the partition, or {when}"
        kept = "" if self.best is None else f", the best {self.best[1]} kept"
        return f"{when}{kept}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RankChanges(RankedRows):
    """Gives the changes of the ranked rows up to each time; the first item states whether a row
    comes or goes. A change is certain once the watermark has reached its time. The rows of a window
    remain when it is over. If the input has a column `signed`, its rows come and go as that column
    states."""

    signed: ColumnReference | None = None

    @property
    def detail(self) -> str:
        return "as rows come" + ("" if self.best is None else f", the best {self.best[1]} kept")


Relation = Query | Operation
"""A statement of X-SQL, bound."""


@dataclass(frozen=True, slots=True)
class ShowRequest:
    """A SHOW, EXPLAIN or, as "analyze", EXPLAIN ANALYZE in the text: prints something instead of
    running it. SHOW has its answer in `lines`, as of its place in the text; EXPLAIN names the query
    in `target`."""

    verb: str
    target: str
    span: Span
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """The outcome of all statements of a text, executed in order: one graph of streams and queries
    of all three languages, and what the text asks to be shown.

    `queries` and `operations` (X-SQL), `patterns`, `apas`, by the stream it defines, and
    `asked_apas` are the queries registered at the end, with the definitions of the derived streams
    that they read. A query reads streams by name; one that `defines` a stream feeds the readers of
    that stream. `levels` orders them so that each comes after what it reads.
    """

    streams: tuple[Stream, ...] = ()
    queries: tuple[Query, ...] = ()
    requests: tuple[ShowRequest, ...] = ()
    patterns: tuple[ir.MatchQuery, ...] = ()
    apas: Mapping[str, Compiled] = field(default_factory=dict)
    operations: tuple[Operation, ...] = ()
    asked_apas: tuple[Compiled, ...] = ()

    @property
    def asked(self) -> tuple[Query, ...]:
        """Returns the queries whose results are asked for."""
        return tuple(query for query in self.queries if query.defines is None)

    @property
    def names(self) -> list[str]:
        """Returns the names of the queries of all kinds whose results are asked for."""
        patterns = [pattern.name for pattern in self.asked_patterns]
        apas = [compiled.name for compiled in self.asked_apas]
        return [*(r.name for r in self.asked_relations), *patterns, *apas]

    @property
    def relations(self) -> tuple[Relation, ...]:
        """Returns all relations of X-SQL: the queries, then the operations."""
        return (*self.queries, *self.operations)

    @property
    def asked_relations(self) -> tuple[Relation, ...]:
        """Returns the queries and operations whose results are asked for."""
        return tuple(relation for relation in self.relations if relation.defines is None)

    @property
    def asked_patterns(self) -> tuple[ir.MatchQuery, ...]:
        """Returns the patterns whose results are asked for."""
        return tuple(pattern for pattern in self.patterns if pattern.defines is None)

    @property
    def base(self) -> tuple[Stream, ...]:
        """Returns the streams that come from outside."""
        return tuple(stream for stream in self.streams if stream.defined_by is None)
