"""Tokens, syntax tree and conditions as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seustream.compiler.explain.facts.source import Predicate, Token, TreeNode
from seustream.compiler.explain.marks import WIDTH, branches, clip, table


def tokens(found: Sequence[Token]) -> list[str]:
    places = (f"{token.line}:{token.column}" for token in found)
    return table(
        ("place", "kind", "text"),
        [(place, token.kind, token.text) for place, token in zip(places, found, strict=True)],
        indent=0,
    )


def tree(found: Sequence[TreeNode]) -> list[str]:
    """One statement after the other; what a node is to its parent stands before its kind."""
    lines = []
    for statement in found:
        rows = list(_rows(statement, 0))
        places = [f"{node.line}:{node.column}" for _, node in rows]
        width = max(map(len, places))
        for place, lead, (_, node) in zip(
            places, branches([depth for depth, _ in rows]), rows, strict=True
        ):
            role = f"{node.role}: " if node.role else ""
            lines.append(f"{place:>{width}}  {lead}{role}{node.kind} {node.text}".rstrip())
        lines.append("")
    return lines[:-1] or ["no statements"]


def _rows(node: TreeNode, depth: int) -> Iterator[tuple[int, TreeNode]]:
    yield depth, node
    for child in node.children:
        yield from _rows(child, depth + 1)


def graph(found: Sequence[TreeNode]) -> list[str]:
    """One result after the other, each above what it is made of; windows in brackets."""
    rows = [row for result in found for row in _rows(result, 0)]
    leads = branches([depth for depth, _ in rows])
    lines = []
    for lead, (_, node) in zip(leads, rows, strict=True):
        words = (node.kind, node.text, node.role and f"[{node.role}]")
        lines.append(clip(lead + " ".join(filter(None, words)), WIDTH - 2))
    return lines or ["no queries"]


def predicates(found: Sequence[Predicate]) -> list[str]:
    rows = [
        (p.query, p.written, p.simplified if p.changes else "unchanged", ", ".join(p.changes))
        for p in found
    ]
    return table(("query", "as written", "simplified", ""), rows)
