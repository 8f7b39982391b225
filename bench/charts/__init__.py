"""Line charts as SVG, for what benchmarks measure: several lines over one axis, linear or
logarithmic. They read on light and on dark paper."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 640, 380
LEFT, RIGHT, TOP, BOTTOM = 76, 150, 48, 52
LETTER = 7.5
"""How wide a letter of the legend may be; the margin on the right grows with the longest name."""

_COLOURS = ("#2563eb", "#b45309", "#7c3aed", "#0e7490", "#be185d", "#4d7c0f", "#475569", "#dc2626")
_DARK_COLOURS = (
    "#60a5fa",
    "#fbbf24",
    "#a78bfa",
    "#22d3ee",
    "#f472b6",
    "#a3e635",
    "#94a3b8",
    "#f87171",
)
_FONT = "ui-sans-serif, system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


def lines(
    title: str,
    across: str,
    up: str,
    x: Sequence[float],
    series: Mapping[str, Sequence[float]],
    logarithmic: bool = False,
) -> str:
    """A chart of one line per series, each with as many values as `x`. On a logarithmic axis what
    is not above 0 is left out."""
    shown = [v for values in series.values() for v in values if v > 0 or not logarithmic]
    low, high = _range(shown, logarithmic)
    right = max(RIGHT, 44 + LETTER * max(map(len, series), default=0))
    inner_width, inner_height = WIDTH - LEFT - right, HEIGHT - TOP - BOTTOM

    def place_x(value: float) -> float:
        return LEFT + inner_width * (value - x[0]) / ((x[-1] - x[0]) or 1)

    def place_y(value: float) -> float:
        if logarithmic:
            part = (math.log10(value) - math.log10(low)) / (math.log10(high) - math.log10(low))
        else:
            part = (value - low) / (high - low)
        return TOP + inner_height * (1 - part)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{_style()}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
        f'<text class="title" x="{LEFT}" y="26">{escape(title)}</text>',
        f'<text x="{LEFT + inner_width / 2:.1f}" y="{HEIGHT - 12}" text-anchor="middle">'
        f"{escape(across)}</text>",
        f'<text transform="translate(16 {TOP + inner_height / 2:.1f}) rotate(-90)" '
        f'text-anchor="middle">{escape(up)}</text>',
    ]
    for value in _ticks(low, high, logarithmic):
        y = place_y(value)
        out.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - right}"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{_short(value)}</text>')
    for value in x if len(x) <= 12 else x[:: math.ceil(len(x) / 10)]:
        out.append(
            f'<text x="{place_x(value):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">'
            f"{value:g}</text>"
        )
    for number, (name, values) in enumerate(series.items()):
        points = [
            f"{place_x(a):.1f},{place_y(b):.1f}"
            for a, b in zip(x, values, strict=True)
            if b > 0 or not logarithmic
        ]
        again = " dashed" if number >= len(_COLOURS) else ""
        colour = f"c{number % len(_COLOURS)}{again}"
        out.append(f'<polyline class="line {colour}" points="{" ".join(points)}"/>')
        y = TOP + 14 + 20 * number
        out.append(f'<path class="line {colour}" d="M{WIDTH - right + 12} {y - 4}h18"/>')
        out.append(f'<text x="{WIDTH - right + 36}" y="{y}">{escape(name)}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def _range(values: Sequence[float], logarithmic: bool) -> tuple[float, float]:
    low, high = min(values, default=0.0), max(values, default=1.0)
    if logarithmic:
        low = 10 ** math.floor(math.log10(low)) if low > 0 else 0.1
        high = 10 ** math.ceil(math.log10(max(high, low)))
        return low, high if high > low else low * 10
    step = _step(min(low, 0), high)
    low = math.floor(min(low, 0) / step) * step
    return low, max(math.ceil(high / step) * step, low + step)


def _step(low: float, high: float) -> float:
    """A round number that divides a range into five or so."""
    rough = (high - low) / 5 or 1
    power: float = 10 ** math.floor(math.log10(rough))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= rough)


def _ticks(low: float, high: float, logarithmic: bool) -> list[float]:
    if logarithmic:
        decades = round(math.log10(high / low))
        every = math.ceil(decades / 8)
        return [low * 10**k for k in range(0, decades + 1, every)]
    step = _step(low, high)
    return [low + k * step for k in range(round((high - low) / step) + 1)]


def _short(value: float) -> str:
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:g}{letter}"
    return f"{value:g}"


def _style() -> str:
    def colours(paper: str, ink: str, grid: str, own: Sequence[str]) -> str:
        each = "".join(f".c{k}{{stroke:{colour}}}" for k, colour in enumerate(own))
        return f".paper{{fill:{paper}}}text{{fill:{ink}}}.grid{{stroke:{grid}}}{each}"

    return (
        f"text{{font:12px {_FONT}}}.title{{font-size:15px;font-weight:600}}"
        ".line{fill:none;stroke-width:2}.dashed{stroke-dasharray:5 4}.grid{stroke-width:.6}"
        + colours("#ffffff", "#1f2937", "#cbd5e1", _COLOURS)
        + "@media(prefers-color-scheme:dark){"
        + colours("#0f172a", "#e2e8f0", "#334155", _DARK_COLOURS)
        + "}"
    )
