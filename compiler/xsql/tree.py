"""Syntax tree of X-SQL: what was written, before any name is looked up."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.errors import Span


@dataclass(frozen=True, slots=True)
class Name:
    """A name as written, quotes removed."""

    text: str
    span: Span


# --- expressions --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ColumnName:
    qualifier: Name | None
    name: Name
    span: Span


@dataclass(frozen=True, slots=True)
class AllOf:
    """`R.*`"""

    qualifier: Name
    span: Span


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal; `type_name` is set in `DATE '2006-03-01'` and its like."""

    value: int | float | str | bool | None
    span: Span
    type_name: Name | None = None


@dataclass(frozen=True, slots=True)
class Arithmetic:
    operator: str
    left: Expression
    right: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Signed:
    sign: str
    operand: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Comparison:
    operator: str
    left: Expression
    right: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Connective:
    """AND or OR over two or more operands."""

    operator: str
    operands: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Negation:
    operand: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Between:
    operand: Expression
    low: Expression
    high: Expression
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class InList:
    operand: Expression
    items: tuple[Expression, ...]
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class IsNull:
    operand: Expression
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Like:
    operand: Expression
    pattern: Expression
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Call:
    """A function; `star` for count(*)."""

    function: Name
    arguments: tuple[Expression, ...]
    star: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Cast:
    operand: Expression
    to: TypeName
    span: Span


Expression = (
    ColumnName
    | AllOf
    | Constant
    | Arithmetic
    | Signed
    | Comparison
    | Connective
    | Negation
    | Between
    | InList
    | IsNull
    | Like
    | Call
    | Cast
)


# --- statements ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TypeName:
    text: str
    length: int | None
    span: Span


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    name: Name
    type: TypeName
    nullable: bool
    span: Span


@dataclass(frozen=True, slots=True)
class CreateStream:
    name: Name
    columns: tuple[ColumnDefinition, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class CreateStreamAs:
    name: Name
    select: Select
    span: Span


@dataclass(frozen=True, slots=True)
class CreateStreamApas:
    """`text` is where the APAS query stands, without the $$ around it."""

    name: Name
    text: Span
    span: Span


@dataclass(frozen=True, slots=True)
class DropStream:
    name: Name
    span: Span


@dataclass(frozen=True, slots=True)
class Item:
    expression: Expression
    alias: Name | None
    span: Span


@dataclass(frozen=True, slots=True)
class FromItem:
    stream: Name
    alias: Name | None
    span: Span


@dataclass(frozen=True, slots=True)
class WindowClause:
    """One window: `kind` is range, rows, now or unbounded; `size` is the number as
    written, `unit` only for a range."""

    kind: str
    size: int | float | None
    unit: Name | None
    span: Span


@dataclass(frozen=True, slots=True)
class Select:
    """`items` is None for `*`."""

    items: tuple[Item, ...] | None
    sources: tuple[FromItem, ...]
    where: Expression | None
    group_by: tuple[Expression, ...]
    having: Expression | None
    windows: tuple[WindowClause, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class RegisterQuery:
    name: Name
    select: Select
    span: Span


@dataclass(frozen=True, slots=True)
class DropQuery:
    name: Name
    span: Span


@dataclass(frozen=True, slots=True)
class Show:
    what: str
    span: Span


@dataclass(frozen=True, slots=True)
class Explain:
    target: Name | Select
    span: Span


Statement = (
    CreateStream
    | CreateStreamAs
    | CreateStreamApas
    | DropStream
    | Select
    | RegisterQuery
    | DropQuery
    | Show
    | Explain
)
