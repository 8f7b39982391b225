"""Draws the routes as a diagram: streams arrive at the left, route tags follow by the number of
streams they carry, queries are at the right. An arrow to a tag shows the step that leads to it."""

from __future__ import annotations

from collections.abc import Iterator

from seustream.compiler.explain.facts.machine import areas
from seustream.compiler.explain.facts.names import View
from seustream.compiler.explain.facts.plan import requests
from seustream.compiler.explain.facts.routes import StepFacts, TagFacts, routes
from seustream.compiler.explain.facts.split import QuerySplit, queries
from seustream.compiler.explain.marks import clip, plural
from seustream.compiler.explain.picture.diagram import Arrow, Box, Diagram, Legend


def routes_diagram(scope: View) -> Diagram:
    return _Routes(scope, with_areas=False).diagram()


def machine_diagram(scope: View) -> Diagram:
    """Draws the routes with what the join areas add to them."""
    return _Routes(scope, with_areas=True).diagram()


class _Routes:
    def __init__(self, scope: View, with_areas: bool) -> None:
        self.name = scope.c.source.name
        self.requests, self.routes = requests(scope), routes(scope)
        self.queries = queries(scope)
        self.key = {query.query: f"query-{n}" for n, query in enumerate(self.queries)}
        # The tag of a raw tuple equals the number of its join area.
        self.area = {tag.carries[0]: tag.tag for tag in self.routes.tags if tag.inserts}
        self.known = {area.area: area for area in (areas(scope) if with_areas else ())}

    def diagram(self) -> Diagram:
        tags, steps = self.routes.tags, self.routes.steps
        last = max((len(tag.carries) for tag in tags), default=0)
        results = [
            Arrow(f"tag-{tag.tag}", self.key[name], kind="done")
            for tag in tags
            for name in tag.queries
        ]
        return Diagram(
            f"{self.name}: routes",
            [*map(self._tag, tags), *(self._query(query, last) for query in self.queries)],
            [*map(self._step, steps), *results],
            self._about(),
            [
                *(f"{n + 1} streams joined" if n else "arriving" for n in range(last)),
                "queries" if self.queries else "no queries",
            ],
            list(self._legend()),
        )

    def _tag(self, tag: TagFacts) -> Box:
        """Draws a tag: a raw tuple's stream and the columns that the device sees, or the tag and
        the streams it carries."""
        key, layer = f"tag-{tag.tag}", len(tag.carries) - 1
        if len(tag.carries) == 1:
            stream = tag.carries[0]
            seen = [a.column for a in self.requests.attributes if a.stream == stream]
            about = f"tag {tag.tag}: a tuple arrives on {stream}"
            kind, ink = f"box a{tag.tag}", f"t{tag.tag}"
            return Box(key, layer, clip(stream, 28), clip(", ".join(seen), 34), kind, ink, about)
        about = f"tag {tag.tag} carries {', '.join(tag.carries)}"
        if tag.queries:
            about += f"; result of {', '.join(tag.queries)}"
        return Box(key, layer, str(tag.tag), " ⋈ ".join(tag.carries), hint=about, flat=True)

    def _query(self, query: QuerySplit, layer: int) -> Box:
        how = clip(query.window if query.device else query.why, 34)
        if query.runs == "device, then host":
            how += ", then host"
        kind = "result" if query.device else "result crossed"
        key, name = self.key[query.query], clip(query.query, 28)
        return Box(key, layer, name, how, kind, hint=query.text)

    def _step(self, step: StepFacts) -> Arrow:
        number = self.area[step.area]
        hint = f"probe {step.area}: {' and '.join(step.conditions) or 'any tuple'}"
        if way := self._way(step):
            hint += f"; {way}"
        return Arrow(
            f"tag-{step.pre}",
            f"tag-{step.post}",
            f"{step.area} {step.marks}",
            "cross crossed" if step.cross_product else f"a{number}",
            "crosstext" if step.cross_product else f"t{number}",
            hint,
            f"step-{step.pre}-{step.post}-{step.area}",
        )

    def _way(self, step: StepFacts) -> str:
        """Names what finds the step's window tuples, once the areas are known."""
        if step.area not in self.known:
            return ""
        area = self.known[step.area]
        for index in area.indexes:
            if any(lookup.tag == step.pre for lookup in index.lookups):
                return f"looked up by {index.column}"
        return next(f"all are looked at: {s.why}" for s in area.scans if step.pre in s.tags)

    def _about(self) -> str:
        crossed = sum(step.cross_product for step in self.routes.steps)
        parts = (
            f"plan {self.routes.plan}",
            plural(len(self.requests.rows), "subquery", "subqueries"),
            plural(len(self.routes.tags), "route tag"),
            plural(len(self.routes.steps), "step"),
        )
        of_them = f", {crossed} of them cross product{'s' * (crossed > 1)}" if crossed else ""
        return ", ".join(parts) + of_them

    def _legend(self) -> Iterator[Legend]:
        for factor in self.requests.factors:
            yield Legend(f"{factor.mark} {factor.condition}")
        for selection in self.requests.selections:
            yield Legend(f"{selection.mark} {selection.condition}")
        for name, number in self.area.items():
            indexes = self.known[name].indexes if name in self.known else ()
            by = ", ".join(index.column for index in indexes)
            yield Legend(f"probes area {name}" + (f", indexed by {by}" if by else ""), f"a{number}")
        if self.routes.tags:
            yield Legend("delivers a result", "done")
        if any(step.cross_product for step in self.routes.steps):
            yield Legend("× cross product: meets every tuple", "cross crossed", "crosstext")
        if any(not query.device for query in self.queries):
            yield Legend("dashed box: no part in the device")
