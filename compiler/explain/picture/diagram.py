"""Draws facts as pictures: one writer for every stage of every language.

A picture is a `Diagram`, boxes in layers from left to right with arrows between them, or `Bars`,
rows of words with a bar for each number. The modules of the facts build these from what a stage
shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from seustream.compiler.explain.marks import clip
from seustream.compiler.explain.picture import draw
from seustream.compiler.explain.picture.layout import PicturePlace, lay_out
from seustream.compiler.explain.text import TreeNode

_MARGIN = 28.0
_CURVE = 72.0
_LEGEND_LINE = 22.0
_PILLS, _LINES = 20.0, 8.0
"""Vertical distance between arrows into one box, with words on them and without."""
_RETURN = 44.0
"""Height of an arrow that goes back, above or below its boxes."""


@dataclass(frozen=True, slots=True)
class Box:
    """Two texts, one under the other, or side by side if `flat`. `hint` is shown on hover; `kind`
    and `ink` are classes of the style."""

    key: str
    layer: int
    first: str
    second: str = ""
    kind: str = "box"
    ink: str = ""
    hint: str = ""
    flat: bool = False

    @property
    def width(self) -> float:
        one, other = draw.width_of(self.first, 14), draw.width_of(self.second, 11)
        return (one + other + 16 if self.flat else max(one, other, 40.0)) + 24


@dataclass(frozen=True, slots=True)
class Arrow:
    """A line between two boxes, with words before its end. An arrow to the same layer or an earlier
    one goes around them."""

    source: str
    target: str
    words: str = ""
    kind: str = ""
    ink: str = "soft"
    hint: str = ""
    key: str = ""

    @property
    def width(self) -> float:
        return draw.width_of(self.words, 11) + 16 if self.words else 0.0


@dataclass(frozen=True, slots=True)
class Legend:
    """The meaning of a sign, or a remark; `line` is the class of a line drawn before it."""

    words: str
    line: str = ""
    ink: str = ""


@dataclass(frozen=True, slots=True)
class Diagram:
    title: str
    boxes: Sequence[Box]
    arrows: Sequence[Arrow]
    about: str = ""
    heads: Sequence[str] = ()  # titles of the layers
    legend: Sequence[Legend] = ()


@dataclass(frozen=True, slots=True)
class Bars:
    """Rows of (words, numbers, text behind the bars); `names` of the numbers are classes too."""

    title: str
    heads: Sequence[str]
    names: Sequence[str]
    rows: Sequence[tuple[Sequence[str], Sequence[float], str]]


def picture(fact: Diagram | Bars) -> str:
    """Returns the SVG, without a trailing newline."""
    return _bars(fact) if isinstance(fact, Bars) else _Drawing(fact).draw()


def of_trees(title: str, roots: Iterable[TreeNode]) -> Diagram:
    """Stacks trees below each other, growing to the right."""
    boxes: list[Box] = []
    arrows: list[Arrow] = []

    def add(node: TreeNode, layer: int, key: str) -> None:
        role = f"{node.role}, " if node.role else ""
        hint = f"{role}line {node.line}, column {node.column}"
        boxes.append(Box(key, layer, node.kind, clip(node.text, 32), hint=hint, flat=True))
        for number, child in enumerate(node.children):
            arrows.append(Arrow(key, f"{key}-{number}"))
            add(child, layer + 1, f"{key}-{number}")

    for number, root in enumerate(roots):
        add(root, 0, f"node-{number}")
    return Diagram(title, boxes, arrows)


@dataclass(slots=True)
class _Column:
    """The position of a layer: where words on arrows begin, and where its boxes begin and end."""

    words: float
    boxes: float
    end: float


class _Drawing:
    def __init__(self, found: Diagram) -> None:
        self.found = found
        self.box = {box.key: box for box in found.boxes}
        self.forward: list[Arrow] = []
        self.back: list[Arrow] = []
        for arrow in found.arrows:
            ahead = self.box[arrow.source].layer < self.box[arrow.target].layer
            (self.forward if ahead else self.back).append(arrow)
        self.into: dict[str, list[Arrow]] = {key: [] for key in self.box}
        for arrow in self.forward:
            self.into[arrow.target].append(arrow)
        self.top = (
            64.0 + 22 * bool(found.about) + 24 * bool(found.heads) + _RETURN * bool(self.back)
        )
        boxes = [(box.key, box.layer, self._height(box)) for box in found.boxes]
        self.layout = lay_out(boxes, [(arrow.source, arrow.target) for arrow in self.forward])
        self.columns = list(self._columns())

    def draw(self) -> str:
        found = self.found
        body = [draw.text(_MARGIN, 32, clip(found.title, 70), "title")]
        if found.about:
            body.append(draw.text(_MARGIN, 54, clip(found.about, 110), "soft"))
        for head, column in zip(found.heads, self.columns, strict=False):
            body.append(draw.text(column.boxes, self.top - 20, head, "small soft"))
        for arrow, route, port in self._ports():
            body += _of(arrow, self._arrow(arrow, route, port))
        body += [part for arrow in self.back for part in _of(arrow, self._return(arrow))]
        body += [self._box(box) for box in found.boxes]
        right = self.columns[-1].end if self.columns else 0.0
        titles = (draw.width_of(clip(found.title, 70), 17), draw.width_of(clip(found.about, 110)))
        width = max(right + _MARGIN, *(2 * _MARGIN + title for title in titles), 240.0)
        below = self.top + self.layout.height + 24 + _RETURN * bool(self.back)
        legend, bottom = _legend(found.legend, below, max(width, 560.0))
        return draw.document(
            max(width, 560.0) if found.legend else width, bottom, found.title, body + legend
        )

    # --- places -----------------------------------------------------------------

    def _height(self, box: Box) -> float:
        least = 46.0 if box.second and not box.flat else 26.0
        return max(least, len(self.into[box.key]) * self._apart(box.key) + 10)

    def _apart(self, key: str) -> float:
        return _PILLS if any(arrow.words for arrow in self.into[key]) else _LINES

    def _columns(self) -> Iterator[_Column]:
        at = _MARGIN
        for layer in range(max((box.layer for box in self.found.boxes), default=-1) + 1):
            boxes = [box for box in self.found.boxes if box.layer == layer]
            words = [arrow.width for box in boxes for arrow in self.into[box.key]]
            start = at + (_CURVE if layer else 0.0)
            left = start + max(words, default=0.0)
            at = left + max((box.width for box in boxes), default=60.0)
            yield _Column(start, left, at)

    def _ports(self) -> Iterator[tuple[Arrow, Sequence[PicturePlace], float]]:
        """Yields arrows with the places they pass and the height at which each ends. Ports are
        given from the top down, so that arrows into one box do not cross."""
        routes = dict(zip(map(id, self.forward), self.layout.routes, strict=True))
        for key, arriving in self.into.items():
            ordered = sorted(arriving, key=lambda arrow: routes[id(arrow)][-2].y)
            port = self.top + self.layout.boxes[key].y - (len(ordered) - 1) * self._apart(key) / 2
            for arrow in ordered:
                yield arrow, routes[id(arrow)], port
                port += self._apart(key)

    # --- shapes -----------------------------------------------------------------

    def _arrow(self, arrow: Arrow, route: Sequence[PicturePlace], port: float) -> Iterator[str]:
        """Draws an arrow from the right of the first box, between the boxes it passes, to the port
        of the last."""
        x, y = self.columns[route[0].layer].end, self.top + route[0].y
        parts = [f"M{x:.1f},{y:.1f}"]
        for place in route[1:]:
            last, column = place is route[-1], self.columns[place.layer]
            to_x, to_y = column.words, port if last else self.top + place.y
            bend = (to_x - x) / 2
            parts.append(
                f"C{x + bend:.1f},{y:.1f} {to_x - bend:.1f},{to_y:.1f} {to_x:.1f},{to_y:.1f}"
            )
            x, y = (to_x if last else column.end), to_y
            if not last:
                parts.append(f"H{x:.1f}")
        left = column.boxes - arrow.width
        yield draw.path("".join(parts) + f"H{left:.1f}", f"edge {arrow.kind}".rstrip())
        if arrow.words:
            middle = left + arrow.width / 2
            pill = draw.rectangle(left, port - 9, arrow.width, 18, f"pill {arrow.kind}".rstrip(), 9)
            words = draw.text(middle, port, arrow.words, f"small {arrow.ink}", "middle")
            yield draw.group((pill, words), arrow.key, arrow.hint)

    def _return(self, arrow: Arrow) -> Iterator[str]:
        """Draws a returning arrow above the boxes, or below them if there is one above already."""
        same = [one for one in self.back if one.source == arrow.source]
        up = -1 if same.index(arrow) % 2 == 0 else 1
        (x, y), (to_x, to_y) = (self._edge(key, up) for key in (arrow.source, arrow.target))
        x, to_x = x + 14, to_x - 14
        far = (min if up < 0 else max)(y, to_y) + up * _RETURN
        yield draw.path(
            f"M{x:.1f},{y:.1f}C{x + 12:.1f},{far:.1f} {to_x - 12:.1f},{far:.1f} {to_x:.1f},{to_y:.1f}",
            f"edge {arrow.kind}".rstrip(),
        )
        tip = to_y + up * 7
        yield draw.path(f"M{to_x - 5:.1f},{tip:.1f}L{to_x:.1f},{to_y:.1f}l4,{up * 8}", "edge")
        height = (y + to_y) / 8 + far * 3 / 4 + up * 11
        yield draw.text((x + to_x) / 2, height, arrow.words, f"small {arrow.ink}", "middle")

    def _edge(self, key: str, up: int) -> tuple[float, float]:
        """Returns the middle of the upper or lower side of a box."""
        place, column = self.layout.boxes[key], self.columns[self.box[key].layer]
        return (column.boxes + column.end) / 2, self.top + place.y + up * place.height / 2

    def _box(self, box: Box) -> str:
        place, column = self.layout.boxes[box.key], self.columns[box.layer]
        y, width = self.top + place.y, column.end - column.boxes
        parts = [
            draw.rectangle(column.boxes, y - place.height / 2, width, place.height, box.kind),
            draw.text(
                column.boxes + 12,
                y - 8 if box.second and not box.flat else y,
                box.first,
                f"strong {box.ink}".rstrip(),
            ),
        ]
        if box.second and box.flat:
            parts.append(draw.text(column.end - 12, y, box.second, "small soft", "end"))
        elif box.second:
            parts.append(draw.text(column.boxes + 12, y + 10, box.second, "small soft"))
        return draw.group(parts, box.key, box.hint)


def _of(arrow: Arrow, shapes: Iterable[str]) -> Iterator[str]:
    """Marks the shapes of an arrow with the boxes that it joins."""
    return (draw.between(shape, arrow.source, arrow.target) for shape in shapes)


def _legend(entries: Sequence[Legend], top: float, width: float) -> tuple[list[str], float]:
    """Lays out entries in lines as wide as the picture; also returns where they end."""
    parts: list[str] = []
    x, y = _MARGIN, top
    for entry in entries:
        words = clip(entry.words, round((width - 2 * _MARGIN) / 8))
        room = draw.width_of(words, 12) + (34 if entry.line else 0)
        if x > _MARGIN and x + room > width - _MARGIN:
            x, y = _MARGIN, y + _LEGEND_LINE
        if entry.line:
            parts.append(draw.path(f"M{x:.1f},{y:.1f}h26", f"edge {entry.line}"))
        parts.append(
            draw.text(x + (34 if entry.line else 0), y, words, f"small {entry.ink}".rstrip())
        )
        x += room + 14
    return parts, y + (_LEGEND_LINE if entries else 0.0)


_LINE, _LEFT, _LONGEST = 22.0, 16.0, 380.0


def _bars(found: Bars) -> str:
    """Draws one line per row: its words, and a bar for each number, one under the other."""
    cells = [found.heads, *(words for words, _, _ in found.rows)]
    starts = [_LEFT]
    for column in zip(*cells, strict=True):
        starts.append(starts[-1] + max(map(draw.width_of, column)) + 16)
    left = starts[-1]
    most = max((number for _, numbers, _ in found.rows for number in numbers), default=0.0) or 1.0
    out = [draw.text(_LEFT, 24, found.title, "title")]
    out += [draw.text(x, 50, h, "soft") for x, h in zip(starts, found.heads, strict=False)]
    for number, name in enumerate(found.names):
        x = left + 100 * number
        out += [draw.rectangle(x, 45, 12, 10, name, 0), draw.text(x + 18, 50, name, "soft")]
    thick = 17 / max(len(found.names), 1)
    for line, (words, numbers, behind) in enumerate(found.rows):
        y = 74 + _LINE * line
        out += [draw.text(x, y + 8, word) for x, word in zip(starts, words, strict=False)]
        for place, (name, value) in enumerate(zip(found.names, numbers, strict=True)):
            length = _LONGEST * value / most
            out.append(draw.rectangle(left, y + thick * place, length, thick - 1, name, 0))
        end = left + _LONGEST * max(numbers, default=0.0) / most
        out.append(draw.text(end + 6, y + 8, behind, "soft"))
    return draw.document(left + _LONGEST + 80, 90 + _LINE * len(found.rows), found.title, out)
