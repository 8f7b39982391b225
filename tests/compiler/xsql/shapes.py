"""Writes syntax trees as short texts, so that a test states its expectation on one line."""

from __future__ import annotations

from fractions import Fraction

from seustream.compiler.errors import Problems, SourceText
from seustream.compiler.language import syntax as s
from seustream.compiler.xsql import tree
from seustream.compiler.xsql.parse import parse


def parsed(text: str) -> list[tree.Statement]:
    """Returns the statements of a text without mistakes."""
    problems = Problems()
    statements = parse(SourceText(text), problems)
    assert problems.found == []
    return statements


def select(text: str) -> tree.Select:
    (statement,) = parsed(text)
    assert isinstance(statement, tree.Select)
    return statement


def condition(text: str) -> str:
    """Returns the shape of a condition in WHERE."""
    where = select(f"SELECT * FROM R WHERE {text} WINDOW 1").where
    assert where is not None
    return shape(where)


def shape(e: s.Expression | s.Name | None) -> str:
    """Writes an expression in parentheses, the operator first."""
    match e:
        case None:
            return "-"
        case s.Name():
            return e.text
        case s.Reference():
            return str(e)
        case s.Constant(value=Fraction()):
            return repr(float(e.value))
        case s.Constant():
            return repr(e.value)
        case s.Typed():
            return f"{e.type.text} {e.text!r}" + (f" {e.unit.text}" if e.unit else "")
        case s.Quantity():
            return f"{e.number} {e.unit.text}"
        case s.Placeholder():
            return f":{e.name}{'%' * e.percent}"
        case s.OperatorCall():
            return f"({e.operator} {' '.join(map(shape, e.operands))})"
        case s.ComparisonChain():
            return f"({' '.join(e.operators)} {' '.join(map(shape, e.operands))})"
        case s.Connective():
            return f"({e.operator} {' '.join(map(shape, e.operands))})"
        case s.Negation():
            return f"(NOT {shape(e.operand)})"
        case s.Between():
            return f"({_not(e)}BETWEEN {shape(e.operand)} {shape(e.low)} {shape(e.high)})"
        case s.InList():
            return f"({_not(e)}IN {shape(e.operand)} {' '.join(map(shape, e.items))})"
        case s.NullTest():
            return f"({_not(e)}NULL? {shape(e.operand)})"
        case s.IsDistinct():
            return f"({_not(e)}DISTINCT? {shape(e.left)} {shape(e.right)})"
        case s.Like():
            escape = f" {shape(e.escape)}" if e.escape else ""
            return f"({_not(e)}{e.function.upper()} {shape(e.operand)} {shape(e.pattern)}{escape})"
        case s.CaseWhen():
            parts = [shape(e.operand)] if e.operand else []
            parts += [f"{shape(when)}: {shape(then)}" for when, then in e.branches]
            return f"(CASE {', '.join([*parts, shape(e.otherwise)])})"
        case s.FunctionCall():
            inner = " *" if e.star else " DISTINCT" * e.distinct
            inner += "".join(f" {shape(argument)}" for argument in e.arguments)
            where = f" FILTER {shape(e.where)}" if e.where else ""
            return f"({e.name}{inner}{where})"
        case s.TypeCast():
            return f"({'TRY_' * e.quiet}CAST {shape(e.operand)} {type_shape(e.to)})"
    raise AssertionError(f"X-SQL has no {type(e).__name__}")


def _not(e: s.Between | s.InList | s.NullTest | s.IsDistinct | s.Like) -> str:
    return "NOT " if e.negated else ""


def type_shape(t: s.TypeName) -> str:
    return t.text + (f"[{','.join(map(str, t.arguments))}]" if t.arguments else "")


def windows(text: str) -> list[tuple[str, int | float | None, str | None]]:
    """Returns kind, size and unit of the windows written after WINDOW."""
    clauses = select(f"SELECT * FROM R WINDOW {text}").windows
    return [(w.kind, w.size, w.unit and w.unit.text) for w in clauses]
