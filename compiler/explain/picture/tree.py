"""Trees as pictures: those of statements or of results, below each other, growing to the right."""

from __future__ import annotations

from collections.abc import Sequence

from seustream.compiler.explain.marks import clip
from seustream.compiler.explain.picture import draw
from seustream.compiler.explain.text import TreeNode

_MARGIN = 28.0
_LINE = 34.0
_BOX = 26.0
_GAP = 44.0


def tree(statements: Sequence[TreeNode], title: str = "Syntax tree") -> str:
    widths: list[float] = []
    for statement in statements:
        _measure(statement, 0, widths)
    lefts = [_MARGIN]
    for width in widths:
        lefts.append(lefts[-1] + width + _GAP)
    body = [draw.text(_MARGIN, 32, title, "title")]
    below = 70.0
    for number, statement in enumerate(statements):
        _, parts, below = _draw(statement, 0, below, lefts, widths, f"node-{number}")
        body += parts
        below += _LINE / 3
    width = max(lefts[-1] - _GAP + _MARGIN, 240.0)
    return draw.document(width, below, title, body)


def _measure(node: TreeNode, depth: int, widths: list[float]) -> None:
    """Every depth is as wide as its widest node."""
    if depth == len(widths):
        widths.append(0.0)
    kind, words = _words(node)
    bold = draw.width_of(words, 15) + 12 if words else 0.0
    widths[depth] = max(widths[depth], draw.width_of(kind, 11) + bold + 20)
    for child in node.children:
        _measure(child, depth + 1, widths)


def _draw(
    node: TreeNode,
    depth: int,
    top: float,
    lefts: Sequence[float],
    widths: Sequence[float],
    key: str,
) -> tuple[float, list[str], float]:
    """A node with all below it, from a height on: its middle, the parts, the next free height."""
    parts: list[str] = []
    middles = []
    below = top
    for number, child in enumerate(node.children):
        middle, drawn, below = _draw(child, depth + 1, below, lefts, widths, f"{key}-{number}")
        middles.append(middle)
        parts += drawn
    if not middles:
        below += _LINE
    y = (middles[0] + middles[-1]) / 2 if middles else top + _LINE / 2
    x, width = lefts[depth], widths[depth]
    for middle in middles:
        to, bend = lefts[depth + 1], (lefts[depth + 1] - x - width) / 2
        curve = f"M{x + width:.1f},{y:.1f}"
        curve += (
            f"C{x + width + bend:.1f},{y:.1f} {to - bend:.1f},{middle:.1f} {to:.1f},{middle:.1f}"
        )
        parts.append(draw.path(curve, "edge"))
    kind, words = _words(node)
    inside = [
        draw.rectangle(x, y - _BOX / 2, width, _BOX),
        draw.text(x + 10, y, kind, "small soft"),
    ]
    if words:
        inside.append(draw.text(x + width - 10, y, words, "strong", "end"))
    role = f"{node.role}, " if node.role else ""
    parts.append(draw.group(inside, key, f"{role}line {node.line}, column {node.column}"))
    return y, parts, below


def _words(node: TreeNode) -> tuple[str, str]:
    return node.kind, clip(node.text, 32)
