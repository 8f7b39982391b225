"""The graph of a query set: each result with its inputs, down to the streams.

before  REGISTER QUERY q AS SELECT a FROM R UNION ALL SELECT J.b FROM J WINDOW 5
after   q: union all
        ├─ q#1: select
        │  └─ stream R
        └─ q#2: select ─ J: join R.a = S.d ─ stream R, stream S

A node that several others read is drawn once, and only named after that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from seustream.compiler.apas.compile import Compiled
from seustream.compiler.errors import Span
from seustream.compiler.explain.facts.names import View, window_text
from seustream.compiler.explain.text import TreeNode
from seustream.compiler.language import expressions as x
from seustream.compiler.logical import program as logical
from seustream.compiler.logical.levels import Node as GraphNode
from seustream.compiler.logical.levels import definitions, nodes
from seustream.compiler.pattern import ir


@dataclass(frozen=True, slots=True)
class ResultNode(TreeNode):
    """A result or a stream with its inputs; `role` is the window over it."""

    @property
    def place(self) -> str:
        return ""

    @property
    def words(self) -> str:
        return " ".join(filter(None, (self.kind, self.text, self.role and f"[{self.role}]")))


def graph(scope: View) -> tuple[ResultNode, ...]:
    """Returns the results that are asked for, or the one that the scope covers."""
    program = scope.c.program
    asked = {name.lower() for name in ([scope.only] if scope.only else program.names)}
    shown: set[str] = set()
    return tuple(
        _node(scope, node, "", shown)
        for node in nodes(program)
        if not isinstance(node, Compiled) and node.name.lower() in asked
    )


def _node(scope: View, node: GraphNode, role: str, shown: set[str]) -> ResultNode:
    """Returns a node with everything it reads, unless it has been shown."""
    kind, text = _words(node)
    name = node.name if isinstance(node, Compiled) else node.defines or node.name
    made = ResultNode(*_place(scope, node), role, f"{name}: {kind}", text, ())
    if name in shown:
        return replace(made, text="as above")
    shown.add(name)
    defined, children = definitions(scope.c.program), []
    for stream, over in _inputs(node):
        definition = defined.get(stream)
        if definition is None:
            children.append(ResultNode(made.line, made.column, over, "stream", stream, ()))
        else:
            children.append(_node(scope, definition, over, shown))
    return replace(made, children=tuple(children))


def _inputs(node: GraphNode) -> list[tuple[str, str]]:
    """Returns the streams that a node reads, with the window over each."""
    if isinstance(node, logical.Query):
        return [
            (
                s.stream.name,
                window_text(s.window) if len(node.sources) > 1 or node.aggregated else "",
            )
            for s in node.sources
        ]
    if isinstance(node, logical.Operation):
        return [(stream.name, "") for stream in node.inputs]
    if isinstance(node, ir.MatchQuery):
        read = (node.stream, node.candidates)
        return [(stream.name, "") for stream in read if stream is not None]
    return [(name, "") for name in node.network.sources]


def _words(node: GraphNode) -> tuple[str, str]:
    """Returns the kind of a node and a description of what it does."""
    if isinstance(node, logical.Query):
        kind = "join" if len(node.sources) > 1 else "select"
        text = "" if node.where == x.TRUE else f"where {x.show(node.where)}"
        if node.aggregated:
            by = ", ".join(map(x.show, node.group_by))
            return f"{kind} and group", " ".join(filter(None, (f"by {by}" if by else "", text)))
        return kind, text
    if isinstance(node, logical.Operation):
        kind = re.sub(r"(?<!^)(?=[A-Z])", " ", type(node).__name__).lower()
        return kind, node.detail
    return ("pattern" if isinstance(node, ir.MatchQuery) else "APAS"), ""


def _place(scope: View, node: GraphNode) -> tuple[int, int]:
    span = Span(0, 0) if isinstance(node, Compiled) else node.span
    return scope.c.source.position(span.start)
