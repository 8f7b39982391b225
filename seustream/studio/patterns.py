"""Watches a pattern event by event: the automaton with its runs and shared buffer, or the ordered lists.

before  a text, rows of its streams, the name of a pattern, and of a matcher if not the usual one
after   the places where events are kept, the steps with what each place keeps, and the matches
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from seustream.compiler.errors import suggest
from seustream.compiler.pattern.ir import PatternQuery
from seustream.compiler.pipeline import Compilation
from seustream.engine.pattern.automaton import Automaton
from seustream.engine.pattern.event import Match
from seustream.engine.pattern.meaning import Meaning
from seustream.engine.pattern.trace import traced_engine, watch
from seustream.engine.pattern.versions import Numbering
from seustream.errors import UserError
from seustream.frames import Rows
from seustream.patterns import events_of
from seustream.studio.rows import left_out, page_rows
from seustream.studio.wanted import while_wanted


def watchable(c: Compilation) -> list[PatternQuery]:
    """Returns the patterns that read a stream of rows, not one of results."""
    base = {stream.name for stream in c.program.base}
    return [
        query
        for query in c.program.patterns
        if isinstance(query, PatternQuery) and query.stream.name in base
    ]


def kinds(c: Compilation) -> dict[tuple[str, str], tuple[str, ...]]:
    """Returns the types of the events that the patterns look for, by stream and column."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for query in watchable(c):
        if query.type_column is not None:
            types = {name: None for element in query.elements for name in element.types}
            at = (query.stream.name, query.type_column.lower())
            found[at] = tuple(dict.fromkeys((*found.get(at, ()), *types)))
    return found


def watched(c: Compilation, rows: Mapping[str, Rows], name: str, engine: str) -> dict[str, Any]:
    """Returns the steps of a pattern over these rows, as JSON. Without a name it takes the first."""
    queries = {query.name: query for query in watchable(c)}
    if not queries:
        raise UserError(
            ["no pattern reads a stream of the text"],
            hint="PATTERN A; B … WITHIN 10 s RETURN *: the gallery's text `pattern` is one",
        )
    query = queries.get(name or next(iter(queries)))
    if query is None:
        raise UserError([f"there is no pattern {name!r}"], hint=suggest(name, queries, "patterns"))
    come = page_rows(query.stream, rows, f"seustream run --trace {query.name}")
    chosen, found = traced_engine(query, engine), list[Match]()
    steps = watch(query, events_of(query, come.taken), Numbering.PER_TAKE, chosen, found)
    shown = [asdict(step) for step in while_wanted(steps)]
    return {
        "query": query.name,
        "queries": list(queries),
        "engine": chosen,
        "places": _places(query, chosen),
        "left_out": left_out(c.program, {query.stream.name: come}),
        "steps": shown,
        "matches": [
            {
                "at": match.D,
                "groups": [
                    {"element": str(element), "events": [[repr(e), e.ts] for e in events]}
                    for element, events in zip(query.elements, match.groups, strict=True)
                    if events
                ],
            }
            for match in found
        ],
    }


def _places(query: PatternQuery, engine: str) -> list[dict[str, Any]]:
    """Returns the places where events are kept, in the order of the pattern, and what leads there."""
    if engine == "optiseq":
        return [{"name": str(element), "from": []} for element in query.elements]
    automaton = Automaton(Meaning(query))
    return [
        {
            "name": state,
            "from": [
                f"{edge.kind} from {edge.source or 'start'}"
                for edge in automaton.edges
                if edge.target == state
            ],
        }
        for state in automaton.states
    ]
