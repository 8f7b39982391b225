"""The machine as a picture: streams arrive at the left, route tags in between by the number of
streams they carry, queries at the right. Before a tag stand the steps that lead to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seustream.compiler.explain.facts.overview import Machine
from seustream.compiler.explain.facts.routes import StepFacts, TagFacts
from seustream.compiler.explain.facts.split import QuerySplit
from seustream.compiler.explain.marks import clip, plural
from seustream.compiler.explain.picture import draw
from seustream.compiler.explain.picture.layout import PictureLayout, PicturePlace, lay_out

_MARGIN = 28.0
_TOP = 108.0
_STEP_HEIGHT = 20.0
_CURVE = 96.0
_LEGEND_LINE = 22.0


@dataclass(frozen=True, slots=True)
class _Column:
    """The place of a layer: where its steps begin, and its boxes begin and end."""

    steps: float
    boxes: float
    end: float


def machine(found: Machine) -> str:
    return _Machine(found).draw()


class _Machine:
    def __init__(self, found: Machine) -> None:
        self.found = found
        self.tags = {tag.tag: tag for tag in found.routes.tags}
        # A raw tuple's tag is the number of its join area.
        self.area = {tag.carries[0]: tag.tag for tag in found.routes.tags if tag.inserts}
        self.key = {query.query: f"query-{n}" for n, query in enumerate(found.queries)}
        self.into: dict[int, list[StepFacts]] = {number: [] for number in self.tags}
        for step in found.routes.steps:
            self.into[step.post].append(step)
        self.known = {area.area: area for area in found.areas}
        self.last = max((len(tag.carries) for tag in self.tags.values()), default=0)

    def draw(self) -> str:
        results = [
            (f"tag-{tag.tag}", self.key[name]) for tag in self.tags.values() for name in tag.queries
        ]
        steps = [(f"tag-{s.pre}", f"tag-{s.post}") for s in self.found.routes.steps]
        layout = lay_out(list(self._boxes()), [*steps, *results])
        columns = self._columns()
        body: list[str] = []
        # The last port of a box is the lowest one, so edges take ports from the top down.
        for post, arriving in self.into.items():
            box = layout.boxes[f"tag-{post}"]
            arriving.sort(key=lambda step: self._last_place(layout, step).y)
            for port, step in zip(self._ports(box, len(arriving)), arriving, strict=True):
                body += self._step(layout, columns, step, port)
        for query in self.found.queries:
            body += self._results(layout, columns, query)
        body += [self._tag(layout, columns, tag) for tag in self.tags.values()]
        body += [self._query(layout, columns, query) for query in self.found.queries]
        width = max(columns[-1].end + _MARGIN, 560.0)
        legend, bottom = self._legend(_TOP + layout.height + 36.0, width)
        head = self._head(columns, width)
        return draw.document(
            width, bottom + 16.0, f"{self.found.name}: routes", head + body + legend
        )

    # --- sizes ----------------------------------------------------------------

    def _boxes(self) -> Iterable[tuple[str, int, float]]:
        for tag in self.tags.values():
            height = 46.0 if tag.inserts else max(32.0, len(self.into[tag.tag]) * _STEP_HEIGHT + 10)
            yield f"tag-{tag.tag}", len(tag.carries) - 1, height
        for query in self.found.queries:
            arriving = sum(query.query in tag.queries for tag in self.tags.values())
            yield self.key[query.query], self.last, max(46.0, arriving * 8.0 + 10)

    def _columns(self) -> list[_Column]:
        columns: list[_Column] = []
        at = _MARGIN
        for layer in range(self.last + 1):
            if layer == self.last:
                named = [_query_lines(query) for query in self.found.queries]
                wide = [max(draw.width_of(n), draw.width_of(a, 11)) for n, a in named]
                steps = [0.0]
            else:
                tags = [tag for tag in self.tags.values() if len(tag.carries) == layer + 1]
                wide = [self._tag_width(tag) for tag in tags]
                steps = [_step_width(step) for tag in tags for step in self.into[tag.tag]]
            start = at + (0.0 if layer == 0 else _CURVE)
            boxes = start + max(steps, default=0.0)
            columns.append(_Column(start, boxes, boxes + max(wide, default=60.0) + 24))
            at = columns[-1].end
        return columns

    def _ports(self, box: PicturePlace, count: int, apart: float = _STEP_HEIGHT) -> list[float]:
        first = _TOP + box.y - (count - 1) * apart / 2
        return [first + number * apart for number in range(count)]

    # --- edges ----------------------------------------------------------------

    def _route(self, layout: PictureLayout, source: str, target: str) -> list[PicturePlace]:
        ends = (layout.boxes[source], layout.boxes[target])
        return next(r for r in layout.routes if r[0] is ends[0] and r[-1] is ends[1])

    def _last_place(self, layout: PictureLayout, step: StepFacts) -> PicturePlace:
        return self._route(layout, f"tag-{step.pre}", f"tag-{step.post}")[-2]

    def _curve(self, columns: Sequence[_Column], route: Sequence[PicturePlace], port: float) -> str:
        """From the right of the first box, between those it passes, to the port of the last."""
        x, y = columns[route[0].layer].end, _TOP + route[0].y
        parts = [f"M{x:.1f},{y:.1f}"]
        for place in route[1:]:
            last = place is route[-1]
            to_x, to_y = columns[place.layer].steps, port if last else _TOP + place.y
            bend = (to_x - x) / 2
            parts.append(
                f"C{x + bend:.1f},{y:.1f} {to_x - bend:.1f},{to_y:.1f} {to_x:.1f},{to_y:.1f}"
            )
            x, y = (to_x if last else columns[place.layer].end), to_y
            if not last:
                parts.append(f"H{x:.1f}")
        return "".join(parts)

    def _step(
        self, layout: PictureLayout, columns: Sequence[_Column], step: StepFacts, port: float
    ) -> list[str]:
        route = self._route(layout, f"tag-{step.pre}", f"tag-{step.post}")
        number = self.area[step.area]
        edge = "edge cross crossed" if step.cross_product else f"edge a{number}"
        ink = "crosstext" if step.cross_product else f"t{number}"
        column = columns[route[-1].layer]
        width = _step_width(step)
        # Steps end at their box; the line goes on to a narrower one.
        left = column.boxes - width
        line = self._curve(columns, route, port) + f"H{left:.1f}"
        pill = edge.replace("edge", "pill")
        hint = f"probe {step.area}: {' and '.join(step.conditions) or 'any tuple'}"
        if way := self._way(step):
            hint += f"; {way}"
        return [
            draw.path(line, edge),
            draw.group(
                (
                    draw.rectangle(left, port - 9, width, 18, pill, 9),
                    draw.text(left + width / 2, port, _step_text(step), f"small {ink}", "middle"),
                ),
                f"step-{step.pre}-{step.post}-{step.area}",
                hint,
            ),
        ]

    def _way(self, step: StepFacts) -> str:
        """Returns how the step finds its window tuples, once that is known."""
        if step.area not in self.known:
            return ""
        area = self.known[step.area]
        for index in area.indexes:
            if any(lookup.tag == step.pre for lookup in index.lookups):
                return f"looked up by {index.column}"
        return next(f"all are looked at: {s.why}" for s in area.scans if step.pre in s.tags)

    def _probes(self, area: str) -> str:
        indexes = self.known[area].indexes if area in self.known else ()
        by = ", ".join(index.column for index in indexes)
        return f"probes area {area}" + (f", indexed by {by}" if by else "")

    def _results(
        self, layout: PictureLayout, columns: Sequence[_Column], query: QuerySplit
    ) -> list[str]:
        tags = [tag for tag in self.tags.values() if query.query in tag.queries]
        routes = [self._route(layout, f"tag-{t.tag}", self.key[query.query]) for t in tags]
        routes.sort(key=lambda route: route[-2].y)
        box = layout.boxes[self.key[query.query]]
        ports = self._ports(box, len(routes), 8.0)
        return [
            draw.path(self._curve(columns, route, port), "edge done")
            for route, port in zip(routes, ports, strict=True)
        ]

    # --- boxes ----------------------------------------------------------------

    def _tag_lines(self, tag: TagFacts) -> tuple[str, str]:
        """A raw tuple's stream and the columns the device sees, or the tag and what it carries."""
        if not tag.inserts:
            return str(tag.tag), " ⋈ ".join(tag.carries)
        stream = tag.carries[0]
        seen = [a.column for a in self.found.requests.attributes if a.stream == stream]
        return clip(stream, 28), clip(", ".join(seen), 34)

    def _tag_width(self, tag: TagFacts) -> float:
        first, second = self._tag_lines(tag)
        if tag.inserts:
            return max(draw.width_of(first), draw.width_of(second, 11), 40.0)
        return draw.width_of(first + second) + 20

    def _tag(self, layout: PictureLayout, columns: Sequence[_Column], tag: TagFacts) -> str:
        place, column = layout.boxes[f"tag-{tag.tag}"], columns[len(tag.carries) - 1]
        y, width = _TOP + place.y, column.end - column.boxes
        first, second = self._tag_lines(tag)
        if tag.inserts:
            middle = column.boxes + width / 2
            inside = [
                draw.text(middle, y - 8 if second else y, first, f"strong t{tag.tag}", "middle"),
                draw.text(middle, y + 10, second, "small soft", "middle"),
            ]
            hint = f"tag {tag.tag}: a tuple arrives on {tag.carries[0]}"
            kind = f"box a{tag.tag}"
        else:
            inside = [
                draw.text(column.boxes + 12, y, first, "strong"),
                draw.text(column.end - 12, y, second, "soft", "end"),
            ]
            hint = f"tag {tag.tag} carries {', '.join(tag.carries)}"
            if tag.queries:
                hint += f"; result of {', '.join(tag.queries)}"
            kind = "box"
        box = draw.rectangle(column.boxes, y - place.height / 2, width, place.height, kind)
        return draw.group([box, *inside], f"tag-{tag.tag}", hint, "tag")

    def _query(self, layout: PictureLayout, columns: Sequence[_Column], query: QuerySplit) -> str:
        place, column = layout.boxes[self.key[query.query]], columns[self.last]
        y, width = _TOP + place.y, column.end - column.boxes
        kind = "result" if query.device else "result crossed"
        name, about = _query_lines(query)
        return draw.group(
            [
                draw.rectangle(column.boxes, y - place.height / 2, width, place.height, kind),
                draw.text(column.boxes + 12, y - 8, name, "strong"),
                draw.text(column.boxes + 12, y + 10, about, "small soft"),
            ],
            self.key[query.query],
            query.text,
            "query",
        )

    # --- around ---------------------------------------------------------------

    def _head(self, columns: Sequence[_Column], width: float) -> list[str]:
        found = self.found
        crossed = sum(step.cross_product for step in found.routes.steps)
        about = ", ".join(
            (
                f"plan {found.routes.plan}",
                plural(len(found.requests.rows), "subquery", "subqueries"),
                plural(len(self.tags), "route tag"),
                plural(len(found.routes.steps), "step"),
            )
        )
        if crossed:
            about += f", {crossed} of them cross product{'s' if crossed > 1 else ''}"
        title = clip(found.name, round((width - 2 * _MARGIN) / 10))
        return [
            draw.text(_MARGIN, 32, title, "title"),
            draw.text(_MARGIN, 54, about, "soft"),
            *self._column_titles(columns),
        ]

    def _column_titles(self, columns: Sequence[_Column]) -> Iterable[str]:
        for layer, column in enumerate(columns):
            if layer == self.last:
                title = "queries" if self.found.queries else "no queries"
            else:
                title = f"{layer + 1} streams joined" if layer else "arriving"
            yield draw.text(column.boxes, _TOP - 20, title, "small soft")

    def _legend(self, top: float, width: float) -> tuple[list[str], float]:
        """Returns what the signs mean, in lines as wide as the picture; and where they end."""
        entries: list[tuple[str, str, str]] = [
            (f"{factor.mark} {factor.condition}", "", "") for factor in self.found.requests.factors
        ]
        for selection in self.found.requests.selections:
            entries.append((f"{selection.mark} {clip(selection.condition, 60)}", "", ""))
        if self.tags:
            name, number = next(iter(self.area.items()))
            entries.append((self._probes(name), f"a{number}", ""))
            entries += [(self._probes(n), f"a{a}", "") for n, a in list(self.area.items())[1:]]
            entries.append(("delivers a result", "done", ""))
        if any(step.cross_product for step in self.found.routes.steps):
            entries.append(("× cross product: meets every tuple", "cross crossed", "crosstext"))
        if any(not query.device for query in self.found.queries):
            entries.append(("dashed box: no part in the device", "", ""))
        parts: list[str] = []
        x, y = _MARGIN, top
        for content, line, ink in entries:
            room = draw.width_of(content, 12) + (34 if line else 0)
            if x > _MARGIN and x + room > width - _MARGIN:
                x, y = _MARGIN, y + _LEGEND_LINE
            if line:
                parts.append(draw.path(f"M{x:.1f},{y:.1f}h26", f"edge {line}"))
            parts.append(draw.text(x + (34 if line else 0), y, content, f"small {ink}".strip()))
            x += room + 14
        return parts, y + _LEGEND_LINE / 2


def _step_text(step: StepFacts) -> str:
    return f"{step.area} {step.marks}"


def _step_width(step: StepFacts) -> float:
    return draw.width_of(_step_text(step), 11) + 16


def _query_lines(query: QuerySplit) -> tuple[str, str]:
    how = clip(query.window if query.device else query.why, 34)
    if query.runs == "device, then host":
        how += ", then host"
    return clip(query.query, 28), how
