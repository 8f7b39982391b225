"""The stages of the text itself: tokens, syntax tree, conditions."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import ClassVar

from seustream.compiler.errors import Span
from seustream.compiler.explain.facts.names import View
from seustream.compiler.explain.marks import plural
from seustream.compiler.explain.text import Columns, TreeNode
from seustream.compiler.language import expressions as x
from seustream.compiler.language import syntax
from seustream.compiler.language.indexable import indexable
from seustream.compiler.plan.simplify import computed
from seustream.compiler.xsql.tree import WindowClause


@dataclass(frozen=True, slots=True)
class Token:
    COLUMNS: ClassVar[Columns] = (
        ("place", lambda token: f"{token.line}:{token.column}"),
        ("kind", "kind"),
        ("text", "text"),
    )

    line: int
    column: int
    kind: str
    text: str


def tokens(scope: View) -> tuple[Token, ...]:
    found = tuple(Token(line, column, kind, text) for kind, text, line, column in scope.c.tokens)
    if scope.only is None:
        return found
    spans = [query.span for query in scope.queries]
    position = scope.c.source.position
    return tuple(
        token
        for token in found
        if any(position(s.start) <= (token.line, token.column) < position(s.end) for s in spans)
    )


# --- syntax tree --------------------------------------------------------------


_ROLES = {
    "items": "item",
    "sources": "from",
    "windows": "window",
    "columns": "column",
    "operands": "operand",
    "group_by": "group by",
}
_FLAGS = {("negated", True): ["NOT"], ("nullable", False): ["NOT NULL"]}


def tree(scope: View) -> tuple[TreeNode, ...]:
    wanted = {query.span for query in scope.queries}
    return tuple(
        _node(scope, statement, "")
        for statement in scope.c.statements
        if scope.only is None or statement.span in wanted
    )


def _node(scope: View, node: object, role: str) -> TreeNode:
    """Builds a tree node from any syntax node: members that are nodes become children, all others
    its words."""
    span = getattr(node, "span", Span(0, 0))
    words: list[str] = []
    children: list[TreeNode] = []
    match node:
        case syntax.Reference():
            words.append(str(node))
        case (
            syntax.Constant()
            | syntax.Typed()
            | syntax.Quantity()
            | syntax.Placeholder()
            | syntax.TypeName()
            | WindowClause()
        ):
            words.append(" ".join(scope.c.source.text[span.start : span.end].split()))
        case syntax.FunctionCall():
            words.append(node.name + ("(*)" if node.star else " DISTINCT" * node.distinct))
            children = [_node(scope, part, "argument") for part in node.arguments]
            if node.where is not None:
                children.append(_node(scope, node.where, "filter"))
        case syntax.CaseWhen():
            if node.operand is not None:
                children.append(_node(scope, node.operand, "operand"))
            for when, then in node.branches:
                children += [_node(scope, when, "when"), _node(scope, then, "then")]
            if node.otherwise is not None:
                children.append(_node(scope, node.otherwise, "else"))
        case syntax.ComparisonChain():
            words += node.operators
            children = [_node(scope, part, "operand") for part in node.operands]
        case _ if is_dataclass(node):
            for member in fields(node):
                value, name = getattr(node, member.name), _ROLES.get(member.name, member.name)
                if isinstance(value, syntax.Name):
                    words.append(value.text if member.name != "alias" else f"AS {value.text}")
                elif member.name == "options":
                    words += [f"WITH {_option(option)}" for option in value]
                elif isinstance(value, tuple):
                    children += [_node(scope, part, name) for part in value]
                elif isinstance(value, str):
                    words.append(value)
                elif isinstance(value, bool):
                    words += _FLAGS.get((member.name, value), [])
                elif member.name not in ("span", "at") and value is not None:
                    children.append(_node(scope, value, name))
    line, column = scope.c.source.position(span.start)
    return TreeNode(
        line, column, role, type(node).__name__, " ".join(filter(None, words)), tuple(children)
    )


def _option(option: syntax.Option) -> str:
    value = f"'{option.value}'" if isinstance(option.value, str) else option.value
    return option.name.text if value is None else f"{option.name.text} = {value}"


# --- conditions ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Predicate:
    """A condition as written and simplified; `changes` describes the simplification in words."""

    COLUMNS: ClassVar[Columns] = (
        ("query", "query"),
        ("as written", "written"),
        ("simplified", lambda p: p.simplified if p.changes else "unchanged"),
        ("", "changes"),
    )

    query: str
    written: str
    simplified: str
    changes: tuple[str, ...]


def predicates(scope: View) -> tuple[Predicate, ...]:
    written = {query.name: query.where for query in scope.c.written.queries}
    return tuple(
        Predicate(
            query.name,
            x.show(written[query.name]),
            x.show(query.where),
            _changes(written[query.name], query.where),
        )
        for query in scope.queries
        if query.name in written
    )


def _changes(before: x.Expression, after: x.Expression) -> tuple[str, ...]:
    if before == after:
        return ()
    if after in (x.TRUE, x.FALSE):
        return (f"always {x.show(after).lower()}" if after == x.TRUE else "never true",)
    found = []
    pushed = x.push_not(before)
    if x.show(pushed) != x.show(before):  # IS NOT DISTINCT FROM has none to move
        found.append("NOT moved into comparisons")
    constant = computed(pushed)
    if constant != pushed:
        found.append("constants computed")
    pushed = indexable(constant)
    if pushed != constant:
        found.append("made fit for an index")
    leaves, fewer = _leaves(pushed), _leaves(after)
    if len(fewer) < len(leaves):
        found.append(f"{plural(len(leaves), 'comparison')} made {len(fewer)}")
    elif set(fewer) != set(leaves):
        found.append("sides put in order")
    elif after != pushed:
        found.append("parentheses removed")
    return tuple(found)


def _leaves(e: x.Expression) -> list[x.Expression]:
    if isinstance(e, (x.And, x.Or)):
        return [leaf for term in e.terms for leaf in _leaves(term)]
    return [e]
