"""EXPLAIN: every stage of a compilation, for people as text and pictures, for programs as JSON.

print(explain(compile_text(text), None, "text"))           the overview
print(explain(compile_text(text), "routes", "svg", "q7"))  one stage, for one query
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from seustream.compiler.explain.facts import (
    drawing,
    graph,
    machine,
    overview,
    plan,
    routes,
    source,
    split,
)
from seustream.compiler.explain.facts.names import View
from seustream.compiler.explain.marks import printable
from seustream.compiler.explain.picture.diagram import Diagram, of_trees, picture
from seustream.compiler.explain.text import plain, write
from seustream.compiler.pipeline import STAGES, Compilation

FORMATS = ("text", "json", "svg")


@dataclass(frozen=True, slots=True)
class _Stage:
    """The facts of a stage, and for some stages a picture of them. The facts use only what the
    compilation holds at that stage; `ready` checks whether the compilation got that far. `nothing`
    is the text for no facts."""

    ready: Callable[[Compilation], bool]
    facts: Callable[[View], Any]
    picture: Callable[[View], Diagram] | None = None
    nothing: str = "none"


def _programs(c: Compilation) -> bool:
    return len(c.programs) == len(c.layout.slots)


# In the order of the pipeline; None is the overview.
_VIEWS: dict[str | None, _Stage] = {
    "tokens": _Stage(lambda c: True, source.tokens),
    "tree": _Stage(
        lambda c: c.analysis is not None,
        source.tree,
        lambda scope: of_trees("Syntax tree", source.tree(scope)),
        nothing="no statements",
    ),
    "graph": _Stage(
        lambda c: True,
        graph.graph,
        lambda scope: of_trees("Graph", graph.graph(scope)),
        nothing="no queries",
    ),
    "predicate": _Stage(lambda c: True, source.predicates),
    "dnf": _Stage(
        lambda c: len(c.normalised) == len(c.program.queries), plan.dnf, nothing="no queries"
    ),
    "subqueries": _Stage(lambda c: bool(c.subqueries) or not c.device_queries, plan.subqueries),
    "requests": _Stage(lambda c: len(c.requests.rows) == len(c.subqueries), plan.requests),
    "routes": _Stage(
        lambda c: len(c.routes.tags) >= len(c.layout.slots),
        routes.routes,
        drawing.routes_diagram,
        nothing="no stream is joined",
    ),
    "areas": _Stage(
        lambda c: len(c.tables.areas) == len(c.layout.slots),
        machine.areas,
        drawing.machine_diagram,
        nothing="no join areas: no query joins streams in the device",
    ),
    "listing": _Stage(
        _programs,
        machine.listings,
        nothing="no programs: no query joins streams in the device",
    ),
    "split": _Stage(_programs, split.split, drawing.machine_diagram),
    None: _Stage(lambda c: bool(c.image), overview.overview, drawing.machine_diagram),
}
SHOWN = tuple(name for name in _VIEWS if name is not None)
"""The stages that can be shown: those of the pipeline, and the graph after the tree."""
assert tuple(name for name in SHOWN if name != "graph") == STAGES


def explain(c: Compilation, stage: str | None, format: str, query: str | None = None) -> str:
    """Shows a stage as text, JSON or SVG, without a trailing newline; `None` is the overview.
    `query` restricts the output to what concerns that query. Raises `ValueError` for an unknown
    stage, format or query, and lists the known ones."""
    if stage not in _VIEWS:
        raise ValueError(f"no stage {stage!r}; stages: {', '.join(SHOWN)}")
    if format not in FORMATS:
        raise ValueError(f"no format {format!r}; formats: {', '.join(FORMATS)}")
    view = _VIEWS[stage]
    if format == "svg" and view.picture is None:
        pictures = ", ".join(name for name, v in _VIEWS.items() if name and v.picture)
        raise ValueError(f"no picture of stage {stage!r}; pictures: {pictures}, and the overview")
    _must_be_ready(c, stage)
    scope = View(c, query)
    if format == "svg" and view.picture is not None:
        return picture(view.picture(scope))
    return shown(view.facts(scope), format, view.nothing)


def shown(facts: Any, format: str, nothing: str = "none") -> str:
    """Shows facts of any language as text, JSON or SVG, without a trailing newline; a picture needs
    a `Diagram` or `Bars`."""
    if format == "svg":
        return picture(facts)
    if format == "json":
        return json.dumps(plain(facts), indent=2, ensure_ascii=False)
    return "\n".join(map(printable, write(facts) or [nothing]))


def _must_be_ready(c: Compilation, stage: str | None) -> None:
    """Refuses a stage that a compilation stopped early has not reached, instead of showing nothing."""
    for name, view in _VIEWS.items():
        if not view.ready(c):
            last = name or STAGES[-1]
            what = "the overview" if stage is None else f"stage {stage!r}"
            raise ValueError(f"{what} cannot be explained: the compilation stopped before {last!r}")
        if name == stage:
            return
