"""Draws a floor plan as SVG: where each component lies on the die, and how full the part is."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from xml.sax.saxutils import escape

from seustream.hdl.boards.flow.report import NAMES, BuildReport, component

_BEL = re.compile(r"X(\d+)/Y(\d+)/")
_TILE = 8
_COLOURS = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee8866", "#44bb99",
    "#99ddff", "#ffaabb", "#aaaa00", "#77aadd", "#997700", "#6699cc", "#994455", "#225555",
)  # fmt: skip
_OTHER = "#bbbbbb"

Tiles = dict[tuple[int, int], Counter[str]]


def tiles(placed: Path) -> Tiles:
    """Counts the cells of each component in each tile, from the design that nextpnr wrote."""
    modules = json.loads(placed.read_text())["modules"]
    found: Tiles = defaultdict(Counter)
    for module in modules.values():
        for name, cell in module["cells"].items():
            place = _BEL.match(cell.get("attributes", {}).get("NEXTPNR_BEL", ""))
            if place:
                found[int(place[1]), int(place[2])][component(name).split(".")[0]] += 1
    return found


def svg(report: BuildReport, placed: Tiles) -> str:
    """Draws each tile in the colour of the component that has most cells in it."""
    whole = Counter[str]()
    for inside in placed.values():
        whole.update(inside)
    colours = dict(zip((name for name, _ in whole.most_common()), _COLOURS, strict=False))
    right = max((x for x, _ in placed), default=0) + 1
    bottom = max((y for _, y in placed), default=0) + 1
    top, side = 60, 210
    width, height = right * _TILE + side, max(bottom * _TILE, 22 * len(colours) + 130) + top
    title = f"{report.board.title}, configuration {report.config.name}: {report.best.clock:.1f} MHz"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        ' font-family="sans-serif" font-size="13">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="10" y="26" font-size="17">{escape(title)}</text>',
        f'<rect x="10" y="{top - 10}" width="{right * _TILE}" height="{bottom * _TILE}"'
        ' fill="#f4f4f4" stroke="#888"/>',
    ]
    edge = _TILE - 1
    squares: dict[str, list[str]] = defaultdict(list)
    for (x, y), inside in sorted(placed.items()):
        colour = colours.get(inside.most_common(1)[0][0], _OTHER)
        squares[colour].append(f"M{10 + x * _TILE} {top - 10 + y * _TILE}h{edge}v{edge}h-{edge}z")
    lines += [f'<path fill="{colour}" d="{"".join(d)}"/>' for colour, d in squares.items()]
    left = right * _TILE + 24
    y = top
    for name, colour in colours.items():
        lines.append(f'<rect x="{left}" y="{y - 10}" width="12" height="12" fill="{colour}"/>')
        lines.append(f'<text x="{left + 18}" y="{y}">{escape(name)}: {whole[name]:,}</text>')
        y += 22
    y += 10
    for cell, (used, of) in report.best.used.items():
        if cell in NAMES:
            full = 170 * used // max(of, 1)
            lines += [
                f'<text x="{left}" y="{y}">{NAMES[cell]}: {used:,} of {of:,}</text>',
                f'<rect x="{left}" y="{y + 5}" width="170" height="9" fill="#eee"/>',
                f'<rect x="{left}" y="{y + 5}" width="{full}" height="9" fill="#4477aa"/>',
            ]
            y += 34
    return "\n".join([*lines, "</svg>"]) + "\n"
