"""Syntax trees as short texts, so that a test shows what it expects on one line."""

from __future__ import annotations

from compiler.errors import Problems, Source
from compiler.xsql import tree
from compiler.xsql.parse import parse


def parsed(text: str) -> list[tree.Statement]:
    """The statements of a text without mistakes."""
    problems = Problems()
    statements = parse(Source(text), problems)
    assert problems.found == []
    return statements


def select(text: str) -> tree.Select:
    (statement,) = parsed(text)
    assert isinstance(statement, tree.Select)
    return statement


def condition(text: str) -> str:
    """What a condition in WHERE is read as."""
    where = select(f"SELECT * FROM R WHERE {text} WINDOW 1").where
    assert where is not None
    return shape(where)


def shape(e: tree.Expression | tree.Name | None) -> str:
    """An expression in brackets, the operator first."""
    match e:
        case None:
            return "-"
        case tree.Name():
            return e.text
        case tree.ColumnName():
            return (f"{e.qualifier.text}." if e.qualifier else "") + e.name.text
        case tree.AllOf():
            return f"{e.qualifier.text}.*"
        case tree.Constant():
            return (f"{e.type_name.text} " if e.type_name else "") + repr(e.value)
        case tree.Arithmetic() | tree.Comparison():
            return f"({e.operator} {shape(e.left)} {shape(e.right)})"
        case tree.Signed():
            return f"({e.sign} {shape(e.operand)})"
        case tree.Connective():
            return f"({e.operator} {' '.join(map(shape, e.operands))})"
        case tree.Negation():
            return f"(NOT {shape(e.operand)})"
        case tree.Between():
            return f"({_not(e)}BETWEEN {shape(e.operand)} {shape(e.low)} {shape(e.high)})"
        case tree.InList():
            return f"({_not(e)}IN {shape(e.operand)} {' '.join(map(shape, e.items))})"
        case tree.IsNull():
            return f"({_not(e)}NULL? {shape(e.operand)})"
        case tree.Like():
            return f"({_not(e)}LIKE {shape(e.operand)} {shape(e.pattern)})"
        case tree.Call():
            inner = " *" if e.star else "".join(f" {shape(argument)}" for argument in e.arguments)
            return f"({e.function.text}{inner})"
        case tree.Cast():
            return f"(CAST {shape(e.operand)} {type_shape(e.to)})"


def _not(e: tree.Between | tree.InList | tree.IsNull | tree.Like) -> str:
    return "NOT " if e.negated else ""


def type_shape(t: tree.TypeName) -> str:
    return t.text + ("" if t.length is None else f"[{t.length}]")


def windows(text: str) -> list[tuple[str, int | float | None, str | None]]:
    """Kind, size and unit of the windows written after WINDOW."""
    clauses = select(f"SELECT * FROM R WINDOW {text}").windows
    return [(w.kind, w.size, w.unit and w.unit.text) for w in clauses]
