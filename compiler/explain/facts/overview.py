"""Collects a compilation's main facts in one record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from seustream.compiler.explain.facts.graph import graph
from seustream.compiler.explain.facts.machine import AreaFacts, areas
from seustream.compiler.explain.facts.names import View, marks
from seustream.compiler.explain.facts.plan import (
    RequestRow,
    RequestTable,
    SubqueryFacts,
    requests,
    subqueries,
)
from seustream.compiler.explain.facts.routes import Arrival, Routes, routes
from seustream.compiler.explain.facts.source import Predicate, predicates
from seustream.compiler.explain.facts.split import (
    QuerySplit,
    Split,
    Use,
    split,
)
from seustream.compiler.explain.marks import GLUE, WIDTH, clip, plural
from seustream.compiler.explain.text import Columns, NamedLines, TreeNode
from seustream.compiler.logical.endless import endless


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of everything in the whole set of queries."""

    queries: int
    streams: int
    subqueries: int
    shared: int
    factors: int
    tags: int
    areas: int
    instructions: int
    image_bytes: int
    devices: int

    @property
    def chain(self) -> str:
        """Lists the sizes in the order in which one stage turns into the next, or says that there is
        no device."""
        if not self.devices:
            return "the engine joins: no device is asked for"
        shared = f" ({self.shared} shared)" if self.shared else ""
        parts = (
            plural(self.queries, "query", "queries"),
            plural(self.subqueries, "subquery", "subqueries") + shared,
            plural(self.factors, "factor"),
            plural(self.tags, "route tag"),
            f"{plural(self.instructions, 'instruction')} in {plural(self.areas, 'area')}",
            plural(self.image_bytes, "byte"),
        )
        return " → ".join(part.replace(" ", GLUE) for part in parts)


ASKED: Columns = (
    ("#", lambda pair: pair[0].number),
    ("streams", lambda pair: pair[0].streams),
    ("checks", lambda pair: " ".join((marks(pair[1].factors), *pair[1].selections)).strip() or "–"),
    ("condition", lambda pair: pair[0].checked),
    ("window", lambda pair: pair[0].window),
    ("asked by", lambda pair: pair[0].parents),
    ("", lambda pair: pair[0].sharing),
)
"""Columns of a subquery shown beside its row of the join request table."""

AREAS: Columns = (
    ("area", "area"),
    ("columns", lambda area: tuple(a.column for a in area.attributes)),
    ("factors", lambda area: " ".join(f.mark for f in area.factors)),
    ("ways", lambda area: len(area.combinations)),
    ("index", lambda area: tuple(index.column for index in area.indexes)),
    ("scans", lambda area: "; ".join(scan.words for scan in area.scans)),
    ("code", lambda area: area.instructions or ""),
    ("keeps", "keeps"),
    ("admits", "admitted"),
)

WHERE: Columns = (
    ("query", "query"),
    ("runs on", "runs"),
    ("why", lambda one: "; ".join(dict.fromkeys(step.why for step in one.host)) or one.why),
    ("left to the host", lambda one: "; ".join(step.work for step in one.host)),
    ("columns", lambda one: _few(one.columns)),
)


def _few(names: tuple[str, ...]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} … {names[-1]} ({len(names)})"


@dataclass(frozen=True, slots=True)
class Asked:
    """The subqueries, followed by the meaning of their marks."""

    BELOW: ClassVar = (("", "rows", ASKED), ("", "legend"))

    rows: tuple[tuple[SubqueryFacts, RequestRow], ...]
    legend: NamedLines


@dataclass(frozen=True, slots=True)
class Overview:
    SECTIONS: ClassVar = (
        ("Graph", "composed"),
        ("Conditions", "predicates"),
        ("Subqueries", "asked"),
        ("Routes", "arrivals"),
        ("Cross products", "crossing"),
        ("Join areas", "areas", AREAS),
        ("What runs where", "queries", WHERE),
        ("Share of the device", "shares"),
        ("Over several devices", "several"),
        ("Warning: state without bound", "endless"),
    )

    name: str
    query: str | None
    plan: str
    configuration: str
    device: int
    counts: Sizes
    graph: tuple[TreeNode, ...]
    predicates: tuple[Predicate, ...]
    subqueries: tuple[SubqueryFacts, ...]
    requests: RequestTable
    routes: Routes
    areas: tuple[AreaFacts, ...]
    split: Split
    unbounded: tuple[tuple[str, str], ...]

    @property
    def title(self) -> str:
        counts = self.counts
        about = clip(f"query {self.query} of {self.name}" if self.query else self.name, WIDTH // 2)
        queries = plural(counts.queries, "query", "queries")
        return (
            f"{about}: {queries} over {plural(counts.streams, 'stream')}, plan {self.plan},"
            f" configuration {self.configuration}"
        )

    @property
    def labelled(self) -> tuple[tuple[str, str], ...]:
        several = self.counts.devices > 1
        hint = "" if self.query else ": --query shows one of another's"
        which = f"on device {self.device} of {self.counts.devices}{hint}"
        return (("", self.counts.chain), *((("", which),) if several else ()))

    @property
    def composed(self) -> tuple[TreeNode, ...]:
        """Returns the graph if some result reads other results, else nothing."""
        several = any(below.children for node in self.graph for below in node.children)
        return self.graph if several else ()

    @property
    def asked(self) -> Asked:
        rows = tuple(zip(self.subqueries, self.requests.rows, strict=True))
        return Asked(rows, self.requests.legend)

    @property
    def arrivals(self) -> tuple[Arrival, ...]:
        return self.routes.arrivals

    @property
    def crossing(self) -> NamedLines:
        return self.routes.crossing

    @property
    def queries(self) -> tuple[QuerySplit, ...]:
        return self.split.queries

    @property
    def shares(self) -> tuple[Use, ...]:
        return self.split.shares

    @property
    def several(self) -> NamedLines:
        return self.split.several

    @property
    def endless(self) -> NamedLines | tuple[()]:
        return NamedLines("", self.unbounded) if self.unbounded else ()


def overview(scope: View) -> Overview:
    c = scope.c
    return Overview(
        c.source.name,
        scope.name,
        c.options.plan,
        c.options.config.name,
        c.number + 1,
        Sizes(
            queries=len(c.program.queries),
            streams=sum(
                "#" not in stream.name for stream in c.streams
            ),  # of others, queries have parts
            subqueries=len(c.subqueries),
            shared=sum(len(s.parents) > 1 for s in c.subqueries),
            factors=len(c.requests.factors),
            tags=len(c.routes.tags),
            areas=len(c.layout.slots),
            instructions=sum(map(len, c.programs)),
            image_bytes=len(c.image),
            devices=0 if c.options.devices == 0 else max(len(c.placement.devices), 1),
        ),
        graph(scope),
        predicates(scope),
        subqueries(scope),
        requests(scope),
        routes(scope),
        areas(scope),
        split(scope),
        tuple(endless(c.program)),
    )
