"""Logical plan: what is asked, apart from how a target does it."""

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
    derived stream its results are, if it is one's definition; these are not asked for as results.
    With `keeps_oldest`, rows of that stream end in a column ts_oldest. Under `strict` its first fault
    is an error. Where there is a `last` source, its tuples alone need complete results: those of others that
    come later make none that is of use."""

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
    """A relational operator over whole streams: what a SELECT has beyond a join of windows.

    before  SELECT a FROM R UNION ALL SELECT b FROM S
    after   queries q#1 and q#2, each of which defines a stream; an operation q over both streams

    `inputs` are the streams it reads, once each. Those it gets from queries of its own are *hidden*:
    named after it with a #, with a last column ts_oldest. `items` are its result columns over the
    inputs by their position; ts_oldest and ts_newest follow them, as with a query. A subclass says
    what else it does, and when a result is certain."""

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
        """The parameters of the operation, for EXPLAIN."""
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnionAll(Operation):
    """The rows of all inputs, which have the same columns, by time, then by input. A row is certain
    once the watermark of every input has passed it."""


WINDOW_START = ColumnReference(-1, "window_start", BIGINT, False, "window")
WINDOW_END = ColumnReference(-1, "window_end", BIGINT, False, "window")
"""Leaves that say which window a group is of, half open, in milliseconds."""


@dataclass(frozen=True, slots=True)
class Periodic:
    """TUMBLE and HOP: windows of `size` that begin at `offset` and every `slide` before and after. With
    `by_rows` these are numbers of rows of the stream, from 0. CUMULATE, which `cumulates`: windows that begin
    at `offset` and every `size`, one each `slide` until the next begins."""

    size: int
    slide: int
    offset: int
    by_rows: bool = False
    cumulates: bool = False


@dataclass(frozen=True, slots=True)
class Sessions:
    """SESSION: the rows of a group that are less than `gap` apart, and `gap` after the last."""

    gap: int


@dataclass(frozen=True, slots=True)
class OrderKey:
    """One of the expressions of ORDER BY."""

    expression: Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodGroups(Operation):
    """The groups of each window of `every`: a row for each, which is certain once the watermark has
    reached the last instant of the window, `window_end` - 1; that is its ts_newest.

    `columns` are the leaves as written, whose values the one input has in this order; the other
    expressions are over them, `WINDOW_START` and `WINDOW_END`. Of the rows of a window come the first
    `limit` by `order_by`. With `changes`, the first item says if a row comes or goes: at each time at which a
    group of a window that is not over has a new row, the old one goes."""

    columns: tuple[ColumnReference, ...]
    every: Periodic | Sessions
    group_by: tuple[Expression, ...]
    having: Expression | None
    order_by: tuple[OrderKey, ...] = ()
    limit: int | None = None
    where: Expression = TRUE
    """Holds for the rows that count; all others are numbered too."""

    changes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Distinct(Operation):
    """Each row of the input unless an equal one was given within the window, which counts rows of the
    input: at its arrival."""

    window: Window

    @property
    def detail(self) -> str:
        return f"within {self.window}"


@dataclass(frozen=True, slots=True)
class Frame:
    """The rows of a partition that a row looks back on: itself and the `size` rows before it, or with
    `by_time` those of its own time and of `size` milliseconds before it; all before it with None."""

    by_time: bool
    size: int | None


@dataclass(frozen=True, slots=True)
class Over(Leaf):
    """A function OVER a frame: an aggregate, or by its name row_number, rank, dense_rank, lag, first_value
    or last_value of `arguments`; lag looks `offset` rows back. With an `order` it is of a whole partition:
    a rank, ntile (into `offset` parts), percent_rank, cume_dist, lag or lead."""

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
    """Each row of the input for which `qualify` holds, with what functions OVER frames give there.
    It is certain once the watermark has passed its time.

    `columns` are the leaves as written, whose values the one input has in this order; the other
    expressions are over them and `Over`."""

    columns: tuple[ColumnReference, ...]
    qualify: Expression | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedRows(OverRows):
    """Each row of the input for which `qualify` holds, with its ranks among whole partitions; they come in
    the order of `order_by`. A row is certain when its partition is: once the watermark has reached the last
    instant of the window that ends at `end`, without one at the end of the stream.

    Of each partition no row counts that has a greater `best[0]` than `best[1]`. With `ahead`, rows look no
    further than so many later rows of their partition, and are certain with these."""

    order_by: tuple[OrderKey, ...] = ()
    end: ColumnReference | None = None
    best: tuple[Over, int] | None = None
    ahead: int | None = None

    @property
    def detail(self) -> str:
        when = "at the end of the stream" if self.end is None else "at the end of each window"
        if self.ahead is not None:
            when = f"once {self.ahead} later rows of the partition are there, or {when}"
        kept = "" if self.best is None else f", the best {self.best[1]} kept"
        return f"{when}{kept}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RankChanges(RankedRows):
    """The changes of what the rows up to each time give; the first item says if a row comes or goes. A change is
    certain once the watermark has reached its time. What a window gave stays when it is over. The rows of the
    input come and go as its column `signed` says, if it has one."""

    signed: ColumnReference | None = None

    @property
    def detail(self) -> str:
        return "as rows come" + ("" if self.best is None else f", the best {self.best[1]} kept")


Relation = Query | Operation
"""A statement of X-SQL, bound."""


@dataclass(frozen=True, slots=True)
class ShowRequest:
    """A SHOW, EXPLAIN or, as "analyze", EXPLAIN ANALYZE in the text: something to print, not to run. SHOW has its answer in
    `lines`, as things stood there; EXPLAIN names the query in `target`."""

    verb: str
    target: str
    span: Span
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """The outcome of all statements of a text, carried out in order: one graph of
    streams and queries of all three languages, and what the text asks to be shown.

    `queries` and `operations` (X-SQL), `patterns`, `apas`, by the stream it defines, and `asked_apas` are
    those registered at the end with the definitions of the derived streams they read. A query reads streams by name; one that `defines` a stream is
    what its readers read. `levels` has them in an order in which each comes after what it reads."""

    streams: tuple[Stream, ...] = ()
    queries: tuple[Query, ...] = ()
    requests: tuple[ShowRequest, ...] = ()
    patterns: tuple[ir.MatchQuery, ...] = ()
    apas: Mapping[str, Compiled] = field(default_factory=dict)
    operations: tuple[Operation, ...] = ()
    asked_apas: tuple[Compiled, ...] = ()

    @property
    def asked(self) -> tuple[Query, ...]:
        """The queries whose results are asked for."""
        return tuple(query for query in self.queries if query.defines is None)

    @property
    def names(self) -> list[str]:
        """The queries of all kinds whose results are asked for."""
        patterns = [pattern.name for pattern in self.asked_patterns]
        apas = [compiled.name for compiled in self.asked_apas]
        return [*(r.name for r in self.asked_relations), *patterns, *apas]

    @property
    def relations(self) -> tuple[Relation, ...]:
        """All of X-SQL: the queries, then the operations."""
        return (*self.queries, *self.operations)

    @property
    def asked_relations(self) -> tuple[Relation, ...]:
        """The queries and operations whose results are asked for."""
        return tuple(relation for relation in self.relations if relation.defines is None)

    @property
    def asked_patterns(self) -> tuple[ir.MatchQuery, ...]:
        """The patterns whose results are asked for."""
        return tuple(pattern for pattern in self.patterns if pattern.defines is None)

    @property
    def base(self) -> tuple[Stream, ...]:
        """The streams that come from outside."""
        return tuple(stream for stream in self.streams if stream.defined_by is None)
