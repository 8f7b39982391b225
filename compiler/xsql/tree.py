"""The syntax tree of X-SQL's statements as written, before any name is looked up. Their expressions
are those of all languages (`seustream.compiler.language.syntax`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from seustream.compiler.errors import Span
from seustream.compiler.language.syntax import (
    Expression,
    FunctionCall,
    Name,
    Option,
    Reference,
    TypeName,
)


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    name: Name
    type: TypeName
    nullable: bool
    span: Span


@dataclass(frozen=True, slots=True)
class CreateStream:
    """CREATE STREAM, or with `table` CREATE TABLE. The `mode` of statements that create or drop
    something is "replace" (OR REPLACE), "unless" (IF NOT EXISTS), "if" (IF EXISTS) or empty."""

    name: Name
    columns: tuple[ColumnDefinition, ...]
    span: Span
    settings: tuple[Option, ...] = ()
    table: bool = False
    mode: str = ""


@dataclass(frozen=True, slots=True)
class CreateStreamAs:
    name: Name
    query: Query
    span: Span
    mode: str = ""


@dataclass(frozen=True, slots=True)
class CreateStreamApas:
    """A stream that an APAS query defines; `text` is the place of the query, without the $$ around
    it."""

    name: Name
    text: Span
    options: tuple[Option, ...]
    span: Span
    mode: str = ""


@dataclass(frozen=True, slots=True)
class DropStream:
    name: Name
    span: Span
    mode: str = ""


@dataclass(frozen=True, slots=True)
class SelectItem:
    """One item of SELECT; `*` is a reference to everything that names no stream."""

    expression: Expression
    alias: Name | None
    span: Span


def is_star(e: Expression) -> TypeGuard[Reference]:
    """Returns whether an item is `*` or `R.*`."""
    return isinstance(e, Reference) and e.everything


@dataclass(frozen=True, slots=True)
class FromItem:
    """An item of FROM. `windows` is the function of `TUMBLE(TABLE stream, DESCRIPTOR(ts), size)`,
    as the call `TUMBLE(ts, size)`; `partition` holds the columns of its PARTITION BY. `query` is
    that of `(SELECT …) alias`; its `stream` is a name that no text can contain. `as_of` is the time
    after FOR SYSTEM_TIME AS OF."""

    stream: Name
    alias: Name | None
    span: Span
    windows: FunctionCall | None = None
    partition: tuple[Expression, ...] = ()
    query: Query | None = None
    as_of: Expression | None = None


@dataclass(frozen=True, slots=True)
class OrderItem:
    """An item of ORDER BY; `nulls_first` is None if the order of NULLs is not given."""

    expression: Expression
    descending: bool
    nulls_first: bool | None


@dataclass(frozen=True, slots=True)
class FrameClause:
    """ROWS or RANGE of OVER; `size` is None for UNBOUNDED."""

    kind: str
    size: Expression | None
    span: Span


@dataclass(frozen=True, slots=True)
class OverWindow:
    """The content of the parentheses of OVER, or of those of `WINDOW name AS (…)`."""

    partition: tuple[Expression, ...]
    order_by: tuple[OrderItem, ...]
    frame: FrameClause | None


@dataclass(frozen=True, slots=True)
class OverCall(Expression):
    """`f(x) OVER (PARTITION BY k ORDER BY ts ROWS 3 PRECEDING)`, or OVER the name of a window."""

    call: FunctionCall
    window: OverWindow | Name
    span: Span


@dataclass(frozen=True, slots=True)
class JoinClause:
    """`kind` is INNER, LEFT, RIGHT, FULL, SEMI, ANTI, ASOF, LEFT_ASOF or CROSS; `using` are the columns of USING."""

    left: FromPart
    right: FromPart
    kind: str
    condition: Expression | None
    using: tuple[Name, ...]
    span: Span

    @property
    def looks_up(self) -> bool:
        """Returns whether the right side is looked up as of a time of the left."""
        by_item = isinstance(self.right, FromItem) and self.right.as_of is not None
        return by_item or self.kind.endswith("ASOF")


FromPart = FromItem | JoinClause


def from_items(parts: Sequence[FromPart]) -> Iterator[FromItem]:
    """Yields the streams of a FROM clause in written order."""
    for part in parts:
        if isinstance(part, FromItem):
            yield part
        else:
            yield from from_items((part.left, part.right))


def looked_up(parts: Sequence[FromPart]) -> Iterator[FromItem]:
    """Yields the streams on the right of an ASOF join."""
    for part in parts:
        if isinstance(part, JoinClause):
            yield from looked_up((part.left, part.right))
            if part.looks_up:
                yield from from_items((part.right,))


@dataclass(frozen=True, slots=True)
class WindowClause:
    """One window: `kind` is range, rows, now, unbounded, partition (rows of each of `keys`), since
    (a time as written) or every. `size` is the number as written, `unit` only for a time. `slide`
    is a number and a unit."""

    kind: str
    size: int | float | None
    unit: Name | None
    span: Span
    keys: tuple[Name, ...] = ()
    since: str | int = 0
    slide: WindowClause | None = None


@dataclass(frozen=True, slots=True)
class Select:
    """A SELECT. `options` are those of WITH, `changes` is the place of EMIT CHANGES;
    `named_windows` are for OVER. The columns of an `unnamed` one, a later part of a UNION, have
    their names from elsewhere."""

    items: tuple[SelectItem, ...]
    sources: tuple[FromPart, ...]
    where: Expression | None
    group_by: tuple[Expression, ...]
    having: Expression | None
    windows: tuple[WindowClause, ...]
    options: tuple[Option, ...]
    span: Span
    order_by: tuple[OrderItem, ...] = ()
    limit: tuple[int, Span] | None = None
    qualify: Expression | None = None
    distinct: bool = False
    changes: Span | None = None
    named_windows: tuple[tuple[Name, OverWindow], ...] = ()
    unnamed: bool = False

    @property
    def stars(self) -> bool:
        """Returns whether an item stands for several columns."""
        return any(is_star(item.expression) for item in self.items)


@dataclass(frozen=True, slots=True)
class UnionClause:
    """UNION ALL, or UNION, which is `distinct`."""

    first: Select | UnionClause
    second: Select
    span: Span
    distinct: bool


@dataclass(frozen=True, slots=True)
class Common:
    """`name AS (query)` after WITH."""

    name: Name
    query: Query
    span: Span


@dataclass(frozen=True, slots=True)
class With:
    common: tuple[Common, ...]
    query: Query
    span: Span


Query = Select | UnionClause | With


def options_of(query: Query) -> tuple[Option, ...]:
    """Returns the options after WITH in a query, or in each branch of a UNION."""
    if isinstance(query, With):
        return options_of(query.query)
    if isinstance(query, UnionClause):
        return (*options_of(query.first), *query.second.options)
    return query.options


@dataclass(frozen=True, slots=True)
class Exists(Expression):
    query: Query
    span: Span


@dataclass(frozen=True, slots=True)
class InQuery(Expression):
    operand: Expression
    query: Query
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class RegisterQuery:
    name: Name
    query: Query
    span: Span
    mode: str = ""


@dataclass(frozen=True, slots=True)
class RegisterApas:
    """Registers an APAS query; `text` is its place."""

    name: Name
    text: Span
    options: tuple[Option, ...]
    span: Span
    mode: str = ""


@dataclass(frozen=True, slots=True)
class DropQuery:
    name: Name
    span: Span
    mode: str = ""


@dataclass(frozen=True, slots=True)
class Describe:
    """DESCRIBE name, or with `create` SHOW CREATE STREAM name; with `query` SHOW CREATE QUERY name."""

    name: Name
    create: bool
    span: Span
    query: bool = False


@dataclass(frozen=True, slots=True)
class Show:
    what: str
    span: Span


@dataclass(frozen=True, slots=True)
class Explain:
    target: Name | Query
    span: Span
    analyze: bool = False


Statement = (
    CreateStream
    | CreateStreamAs
    | CreateStreamApas
    | DropStream
    | Query
    | RegisterQuery
    | RegisterApas
    | DropQuery
    | Describe
    | Show
    | Explain
)
