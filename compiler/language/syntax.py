"""The syntax tree of expressions in all languages: what was written, before any name is looked up.

A language adds nodes of its own below `Expression` (APAS: brackets as arguments), which only its
own scope sees.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from seustream.compiler.errors import Span


@dataclass(frozen=True, slots=True)
class Name:
    """A name as written, quotes removed."""

    text: str
    span: Span

    @property
    def is_quoted(self) -> bool:
        """Returns whether the name stood in quotes."""
        return self.span.end - self.span.start > len(self.text)


@dataclass(frozen=True, slots=True)
class Option:
    """`name = value` behind WITH, or a name alone."""

    name: Name
    value: str | int | None
    span: Span


class Expression:
    """Anything that can stand in place of a value."""

    __slots__ = ()
    span: Span


@dataclass(frozen=True, slots=True)
class Reference(Expression):
    """A name, dotted or not: `a`, `R.a`, `cs[i].x`, `$S.a.b`. `index` is the text in brackets after
    the first part, without spaces; `rooted` marks the `$`; `everything` the `.*`, or `*` without
    any part."""

    parts: tuple[Name, ...]
    span: Span
    index: str | None = None
    rooted: bool = False
    everything: bool = False

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(part.text for part in self.parts)

    def __str__(self) -> str:
        if not self.parts:
            return "*"
        first = "$" * self.rooted + self.parts[0].text
        index = "" if self.index is None else f"[{self.index}]"
        return ".".join((first + index, *self.path[1:])) + ".*" * self.everything


@dataclass(frozen=True, slots=True)
class Constant(Expression):
    """A constant; a number that is not an integer stays exact until it is used."""

    value: int | Fraction | str | bool | None
    span: Span


@dataclass(frozen=True, slots=True)
class Typed(Expression):
    """`DATE '2006-03-01'`, `INTERVAL '5' MINUTE`, `INTERVAL 5 MINUTE`."""

    type: Name
    text: str
    unit: Name | None
    span: Span


@dataclass(frozen=True, slots=True)
class Quantity(Expression):
    """`5 min`."""

    number: Fraction
    unit: Name
    span: Span


@dataclass(frozen=True, slots=True)
class Placeholder(Expression):
    """`:x`, or `:x%` with `percent`."""

    name: str
    percent: bool
    span: Span


@dataclass(frozen=True, slots=True)
class OperatorCall(Expression):
    """An operator of the registry (+ - * / DIV || and the sign) over one operand or two; `at` is
    the operator's place."""

    operator: str
    operands: tuple[Expression, ...]
    at: Span
    span: Span


@dataclass(frozen=True, slots=True)
class ComparisonChain(Expression):
    """`a < b`; with more than two operands, a chain, which is refused."""

    operators: tuple[str, ...]
    operands: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Connective(Expression):
    """AND, OR or XOR over two or more operands."""

    operator: str
    operands: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Negation(Expression):
    operand: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Between(Expression):
    operand: Expression
    low: Expression
    high: Expression
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class InList(Expression):
    operand: Expression
    items: tuple[Expression, ...]
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class NullTest(Expression):
    """`x IS NULL`, or of a `condition` `x IS UNKNOWN`."""

    operand: Expression
    negated: bool
    span: Span
    condition: bool = False


@dataclass(frozen=True, slots=True)
class IsDistinct(Expression):
    """`a IS DISTINCT FROM b`; `a IS NOT DISTINCT FROM b` with `negated`."""

    left: Expression
    right: Expression
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Like(Expression):
    """LIKE and its variants; `function` is like, ilike or glob."""

    function: str
    operand: Expression
    pattern: Expression
    escape: Expression | None
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class CaseWhen(Expression):
    operand: Expression | None
    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None
    span: Span


@dataclass(frozen=True, slots=True)
class FunctionCall(Expression):
    """A function call; `star` for count(*), `where` is the condition of its FILTER, `attribute` for
    `last(v).x`, `extracts` for the form `f(field FROM x)`."""

    function: tuple[Name, ...]
    arguments: tuple[Expression, ...]
    span: Span
    star: bool = False
    distinct: bool = False
    where: Expression | None = None
    attribute: Name | None = None
    extracts: bool = False

    @property
    def name(self) -> str:
        return ".".join(part.text for part in self.function)

    @property
    def at(self) -> Span:
        """Returns where the function's name is written."""
        return Span(self.function[0].span.start, self.function[-1].span.end)


@dataclass(frozen=True, slots=True)
class TypeName:
    text: str
    arguments: tuple[int, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class TypeCast(Expression):
    operand: Expression
    to: TypeName
    quiet: bool
    span: Span
