"""Writes SVG by hand: shapes, text, and one style that reads on light and on dark paper."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

from seustream.compiler.explain.marks import printable

AREA_COLOURS = ("#2563eb", "#b45309", "#7c3aed", "#0e7490")
"""One colour per join area."""

_DARK_AREA_COLOURS = ("#60a5fa", "#fbbf24", "#a78bfa", "#22d3ee")

_FONT = "ui-sans-serif, system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', sans-serif"

_LIGHT = {
    "paper": "#ffffff",
    "ink": "#1f2937",
    "soft": "#64748b",
    "box": "#f8fafc",
    "line": "#94a3b8",
    "result": "#ecfdf5",
    "result-line": "#34a06f",
    "cross": "#dc2626",
    "predicted": "#93c5fd",
    "actual": "#1d4ed8",
}
_DARK = {
    "paper": "#0f172a",
    "ink": "#e2e8f0",
    "soft": "#94a3b8",
    "box": "#1e293b",
    "line": "#64748b",
    "result": "#06302a",
    "result-line": "#34d399",
    "cross": "#f87171",
    "predicted": "#334155",
    "actual": "#60a5fa",
}


_SHAPES = f"""\
text {{ font: 13px {_FONT} }}
.small {{ font-size: 11px }}
.title {{ font-size: 17px; font-weight: 600 }}
.strong {{ font-weight: 600 }}
.edge {{ fill: none; stroke-width: 1.4 }}
.crossed {{ stroke-dasharray: 5 4 }}
"""


def _colours(c: dict[str, str], areas: Iterable[str]) -> str:
    rules = [
        f".paper {{ fill: {c['paper']} }}",
        f"text {{ fill: {c['ink']} }}",
        f".soft {{ fill: {c['soft']} }}",
        f".box {{ fill: {c['box']}; stroke: {c['line']} }}",
        f".result {{ fill: {c['result']}; stroke: {c['result-line']} }}",
        f".pill {{ fill: {c['paper']} }}",
        f".edge {{ stroke: {c['line']} }}",
        f".done {{ stroke: {c['result-line']} }}",
        f".predicted {{ fill: {c['predicted']} }} .actual {{ fill: {c['actual']} }}",
    ]
    for number, colour in enumerate(areas):
        rules.append(f".a{number} {{ stroke: {colour} }} .t{number} {{ fill: {colour} }}")
    rules.append(f".cross {{ stroke: {c['cross']} }} .crosstext {{ fill: {c['cross']} }}")
    return "\n".join(rules)


_STYLE = "\n".join(
    (
        "<style>",
        _SHAPES + _colours(_LIGHT, AREA_COLOURS),
        # A viewer that prefers dark gets dark paper.
        "@media (prefers-color-scheme: dark) {",
        _colours(_DARK, _DARK_AREA_COLOURS),
        "}",
        "</style>",
    )
)


def document(width: float, height: float, title: str, body: Iterable[str]) -> str:
    w, h = round(width), round(height)
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}"'
            f' height="{h}" role="img">',
            f"<title>{escape(printable(title))}</title>",
            _STYLE,
            f'<rect class="paper" width="{w}" height="{h}" rx="8"/>',
            *body,
            "</svg>",
        )
    )


def group(inside: Iterable[str], key: str, hint: str = "", kind: str = "") -> str:
    """Groups parts that belong together; `hint` is shown on hover."""
    about = f"<title>{escape(printable(hint))}</title>" if hint else ""
    of = f" class={quoteattr(kind)}" if kind else ""
    return f"<g id={quoteattr(key)}{of}>{about}{''.join(inside)}</g>"


def between(shape: str, source: str, target: str) -> str:
    """Marks a shape with the arrow it is part of, by the boxes that the arrow joins."""
    tag, space, rest = shape.partition(" ")
    return f"{tag} data-from={quoteattr(source)} data-to={quoteattr(target)}{space}{rest}"


def rectangle(
    x: float, y: float, width: float, height: float, kind: str = "box", radius: float = 7
) -> str:
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}"'
        f' height="{height:.1f}" rx="{radius:g}"/>'
    )


def text(x: float, y: float, content: str, kind: str = "", anchor: str = "start") -> str:
    """Draws a line of text whose middle is at height y."""
    of = f' class="{kind}"' if kind else ""
    at = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{x:.1f}" y="{y + 4.5:.1f}"{of}{at}>{escape(printable(content))}</text>'


def path(points: str, kind: str) -> str:
    return f'<path class="{kind}" d="{points}"/>'


def width_of(content: str, size: float = 13) -> float:
    """Estimates the room that a text needs in any of the fonts; errs on the wide side."""
    wide = sum(
        0.95 if unicodedata.east_asian_width(c) in "WFA" and not c.isascii() else 0.62
        for c in content
    )
    return wide * size
