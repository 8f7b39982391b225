"""EXPLAIN of any result of a compilation, in whichever language it is written.

X-SQL has the stages of the compiler, patterns those of their matchers, and joins across sites one
of their own; an APAS query is shown whole. Without a query, the overview covers all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from seustream.compiler import explain as compiler
from seustream.compiler.apas.compile import Compiled
from seustream.compiler.errors import suggest
from seustream.compiler.explain.facts.apas import apas
from seustream.compiler.explain.text import NamedLines
from seustream.compiler.pattern import ir
from seustream.compiler.pipeline import STAGES, Compilation
from seustream.engine.host.explain import JoinSearches, search_facts
from seustream.engine.pattern import explain as patterns
from seustream.engine.pattern.choice import Sample
from seustream.engine.sites.errors import SitesError
from seustream.engine.sites.explain import Block
from seustream.engine.sites.outline import outline

SITES, SEARCHES = "sites", "searches"
SHOWN = (*compiler.SHOWN, SEARCHES, *patterns.STAGES, SITES)
"""Every stage that can be shown."""
FORMATS = compiler.FORMATS


class ExplainRefused(ValueError):
    """A stage or a picture that does not exist."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def last_stage(stage: str | None) -> str:
    """Returns the stage of the pipeline after which this one is known."""
    early = {SITES: "predicate", SEARCHES: "predicate", "graph": "tree"}
    return early.get(stage or "", stage if stage in STAGES else STAGES[-1])


def explain(
    c: Compilation,
    stage: str | None = None,
    format: str = "text",
    query: str | None = None,
    *,
    seen: Mapping[str, Sample] | None = None,
    record: Mapping[str, Sequence[Block]] | None = None,
) -> str:
    """Returns a stage as text, JSON or SVG, without a newline at the end; `None` is the overview.
    `seen` holds samples of the streams of patterns, `record` the blocks of a run across sites, by
    query. Raises `ExplainRefused`."""
    if stage is not None and stage not in SHOWN:
        raise ExplainRefused(f"there is no stage {stage!r}", suggest(stage, SHOWN, "stages"))
    program = c.program
    every = {q.name.lower(): q for q in program.patterns}
    networks = {q.name.lower(): q for q in (*program.apas.values(), *program.asked_apas)}
    relations = {q.name.lower(): q for q in program.relations}
    wanted = None if query is None else query.lower()
    if stage == SITES:
        return _sites(c, format, wanted, record or {})
    if wanted is not None and stage == "tokens":
        raise ExplainRefused("stage tokens comes before queries are known", "leave out --query")
    if wanted is not None and wanted not in {**every, **networks, **relations}:
        known = [one.name for one in (*relations.values(), *every.values(), *networks.values())]
        if stage in patterns.STAGES:
            known = [one.name for one in every.values()]
            raise ExplainRefused(
                f"there is no pattern {query!r}", suggest(query or "", known, "patterns")
            )
        raise ExplainRefused(f"there is no query {query!r}", suggest(query or "", known, "queries"))
    if wanted in networks:
        if stage is not None:
            raise ExplainRefused(f"{query} is an APAS query, which is shown whole")
        return _apas(networks[wanted], format)
    if stage in patterns.STAGES or wanted in every:
        some = [one for name, one in every.items() if wanted in (None, name)]
        if wanted is not None and not some:
            raise ExplainRefused(
                f"there is no pattern {query!r}",
                suggest(query or "", [one.name for one in every.values()], "patterns"),
            )
        return _patterns(some, stage, format, seen or {}, c.source.name)
    found = search_facts(one for name, one in relations.items() if wanted in (None, name))
    if stage == SEARCHES:
        if format == "svg":
            raise ExplainRefused("the stage searches has no picture", "--format text")
        return compiler.shown(found, format, "no streams are joined")
    parts = []
    if stage is not None or wanted is not None or relations or not (every or networks):
        name = None if wanted is None else relations[wanted].name
        try:
            parts.append(compiler.explain(c, stage, format, query=name))
        except ValueError as error:
            raise ExplainRefused(str(error)) from None
        if found and (stage, format) == (None, "text") and not c.devices:
            parts.append(compiler.shown(JoinSearches(found), format))
        if stage is not None or wanted is not None or format != "text":
            return "\n\n".join(parts)
    if every:
        parts.append(_patterns(list(every.values()), None, format, seen or {}, c.source.name))
    if format == "text" or not every:
        asked = program.asked_apas if format == "text" else program.asked_apas[:1]
        parts += [_apas(one, format) for one in asked]
    return "\n\n".join(parts)


def _apas(query: Compiled, format: str) -> str:
    found = apas(query)
    return compiler.shown(found.diagram if format == "svg" else found, format)


def _patterns(
    queries: Sequence[ir.MatchQuery],
    stage: str | None,
    format: str,
    seen: Mapping[str, Sample],
    source: str,
) -> str:
    if not queries:
        raise ExplainRefused(f"{source}: there are no patterns in it")
    if stage is not None and stage not in patterns.STAGES:
        raise ExplainRefused(f"a pattern has no stage {stage!r}", f"{', '.join(patterns.STAGES)}")
    ways = [way for query in queries for way in query.ways]
    facts = [patterns.pattern(way, seen.get(way.name)) for way in ways]
    part: Callable[[Any], Any] = lambda one: one if stage is None else getattr(one, stage)  # noqa: E731
    if format != "svg":
        none = "rows are searched one after the other: there are no ordered lists"
        shown = tuple(found for one in facts if (found := part(one)) is not None)
        return compiler.shown(shown, format, none)
    if len(queries) > 1:
        names = ", ".join(query.name for query in queries)
        raise ExplainRefused("a picture is of one pattern", f"--query one of {names}")
    drawn = facts[0].lists if stage == "lists" else facts[0].automaton
    if drawn is None:
        raise ExplainRefused("rows are searched one after the other: there are no ordered lists")
    return compiler.shown(drawn.diagram, format)


def _sites(
    c: Compilation, format: str, wanted: str | None, record: Mapping[str, Sequence[Block]]
) -> str:
    """Shows queries as joins across sites; queries that are not are left out, unless asked for."""
    queries = [q for q in c.program.queries if wanted in (None, q.name.lower())]
    if not queries:
        hint = suggest(wanted or "", [q.name for q in c.program.queries], "queries")
        raise ExplainRefused(f"there is no query {wanted!r}", hint)
    facts: list[Any] = []
    problems: dict[str, SitesError] = {}
    for query in queries:
        try:
            facts.append(outline(query, record.get(query.name)))
        except SitesError as error:
            problems[query.name] = error
    if not facts:
        first = next(iter(problems.values()))
        raise ExplainRefused("\n".join(f"{k}: {v}" for k, v in problems.items()), first.hint)
    for one in facts:
        strangers = {block.stream for block in one.blocks or ()} - {s.alias for s in one.sites}
        if strangers:
            what = f"a run with the site {min(strangers)}, which query {one.query} has not"
            raise ExplainRefused(what)
    if format == "svg":
        shown = [one for one in facts if one.blocks is not None]
        if len(shown) != 1:
            what = "of one query" if shown else "of a run"
            hint = f"--query {shown[0].query}" if shown else "--record FILE"
            raise ExplainRefused(f"a picture of the stage sites is {what}", hint)
        return compiler.shown(shown[0].bars, format)
    if format == "text" and problems:
        left = tuple((f"left out  {name}", str(error)) for name, error in problems.items())
        facts.append(NamedLines("", left))
    return compiler.shown(tuple(facts), format)
