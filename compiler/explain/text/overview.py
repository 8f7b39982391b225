"""Writes what runs where, and the overview, as text."""

from __future__ import annotations

from collections.abc import Sequence

from seustream.compiler.explain.facts.names import marks
from seustream.compiler.explain.facts.overview import Overview, Sizes
from seustream.compiler.explain.facts.plan import RequestTable, SubqueryFacts
from seustream.compiler.explain.facts.split import QuerySplit, Split, Use
from seustream.compiler.explain.marks import WIDTH, bar, clip, hanging, plural, section, table
from seustream.compiler.explain.text.machine import area_summary, cross_products, graph
from seustream.compiler.explain.text.plan import attributes, legend
from seustream.compiler.explain.text.source import graph as graph_tree
from seustream.compiler.explain.text.source import predicates
from seustream.compiler.plan.keys import Keys


def split(found: Split) -> list[str]:
    lines: list[str] = []
    for one in found.queries:
        lines += [*_query(one), ""]
    if found.attributes:
        lines += ["what the device sees of each stream", *attributes(found.attributes), ""]
    lines += ["share of the device", *uses(found.uses), ""]
    return [*lines, "over several devices", *several(found.keys)]


def several(found: Keys) -> list[str]:
    """Returns whether and how tuples can be divided by key."""
    if found.columns is None:
        return hanging("no key    ", found.why)
    keys = ", ".join(f"{stream} by {column}" for stream, column in found.columns)
    return hanging(
        "by key    " if keys else "any way   ", f"{keys}: {found.why}" if keys else found.why
    )


def _query(one: QuerySplit) -> list[str]:
    lines = [f"{one.query}  {one.runs}: {one.why}", *hanging("text      ", one.text)]
    aliased = ", ".join(
        source.alias + (f" in area {source.area}" if source.area else f" of {source.stream}")
        for source in one.sources
        if source.alias != (source.area or source.stream)
    )
    lines += hanging("streams   ", aliased) if aliased else []
    lines += hanging("window    ", one.window)
    for number, work in enumerate(one.device):
        lines += hanging("device    " if number == 0 else "       or ", work)
    for number, step in enumerate(one.host):
        label = "host      " if number == 0 else "    then  "
        lines += hanging(label, f"{step.work}   ({step.why})")
    lines += hanging("columns   ", ", ".join(one.columns))
    for found in one.cross_products:
        lines += hanging("  ×       ", f"subquery {found.subquery}: {found.text}")
    for note in one.notes:
        lines += hanging("note      ", note)
    return lines


def uses(found: Sequence[Use]) -> list[str]:
    return table(
        ("", "used", "of", "", "", ""),
        [
            (
                use.resource,
                f"{use.used:,}",
                f"{use.limit:,}",
                bar(use.share),
                f"{use.share:.0%}",
                f"area {use.where}" if use.where else "",
            )
            for use in found
        ],
    )


# --- overview -----------------------------------------------------------------


def overview(found: Overview) -> list[str]:
    lines = [*_head(found), ""]
    if any(below.children for node in found.graph for below in node.children):
        lines += section("Graph", [f"  {line}" for line in graph_tree(found.graph)])
    lines += section("Conditions", predicates(found.predicates))
    lines += section("Subqueries", _subqueries(found.subqueries, found.requests))
    lines += section("Routes", graph(found.routes))
    if found.routes.cross_products:
        lines += section("Cross products", cross_products(found.routes.cross_products))
    lines += section("Join areas", area_summary(found.areas))
    lines += section("What runs where", _where(found.split.queries))
    lines += section("Share of the device", uses(found.split.uses))
    lines += section("Over several devices", several(found.split.keys))
    return lines[:-1]


def _head(found: Overview) -> list[str]:
    counts = found.counts
    about = f"query {found.query} of {found.name}" if found.query else found.name
    return [
        clip(about, WIDTH // 2)
        + f": {plural(counts.queries, 'query', 'queries')} over {plural(counts.streams, 'stream')},"
        f" plan {found.plan}, configuration {found.configuration}",
        _chain(counts),
    ]


def _chain(counts: Sizes) -> str:
    """Returns how one thing becomes the next."""
    shared = f" ({counts.shared} shared)" if counts.shared else ""
    return " → ".join(
        (
            plural(counts.queries, "query", "queries"),
            plural(counts.subqueries, "subquery", "subqueries") + shared,
            plural(counts.factors, "factor"),
            plural(counts.tags, "route tag"),
            f"{plural(counts.instructions, 'instruction')} in {plural(counts.areas, 'area')}",
            plural(counts.image_bytes, "byte"),
        )
    )


def _subqueries(found: Sequence[SubqueryFacts], requests: RequestTable) -> list[str]:
    """Subqueries beside their rows of the join request table."""
    lines = table(
        ("#", "streams", "checks", "condition", "window", "asked by", ""),
        [
            (
                s.number,
                ", ".join(s.streams),
                " ".join((marks(row.factors), *row.selections)).strip() or "–",
                s.condition or "every combination",
                s.window,
                ", ".join(s.parents),
                "shared" if s.shared else "",
            )
            for s, row in zip(found, requests.rows, strict=True)
        ],
    )
    return [*lines, *(["", *legend(requests)] if requests.factors else [])]


def _where(found: Sequence[QuerySplit]) -> list[str]:
    return table(
        ("query", "runs on", "why", "left to the host", "columns"),
        [
            (
                one.query,
                one.runs,
                "; ".join(dict.fromkeys(step.why for step in one.host)) or one.why,
                "; ".join(step.work for step in one.host),
                _few(one.columns),
            )
            for one in found
        ],
    )


def _few(columns: Sequence[str]) -> str:
    """All columns if they are few, else the ends of the list."""
    if len(columns) <= 3:
        return ", ".join(columns)
    return f"{columns[0]} … {columns[-1]} ({len(columns)})"
