"""EXPLAIN for MATCH_RECOGNIZE: the pattern as an automaton, and when each condition is decided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from seustream.compiler.explain.marks import hanging, section, table
from seustream.compiler.language import expressions as x
from seustream.compiler.pattern.fields import fields
from seustream.compiler.pattern.rows import RowQuery
from seustream.engine.pattern.recognize.conditions import Conditions
from seustream.engine.pattern.recognize.log import RowLog
from seustream.engine.pattern.recognize.program import Code, RowProgram

_MATCH = "match"
_MOST_STATES = 40


def row_facts(query: RowQuery) -> dict[str, Any]:
    """Everything as plain values, with the keys of a PATTERN query where they have a meaning."""
    states, edges = automaton(query)
    return {
        "name": query.name,
        "text": query.text,
        "stream": query.stream.name,
        "window_ms": query.window,
        "skip": query.skip.value,
        "gives": query.give.value,
        "partition": list(query.partition),
        "engine": "rows",
        "columns": [name for name, _, _ in fields(query)],
        "conditions": _decided(query),
        "automaton": {"runs": True, "states": states, "edges": edges, "on_match": []},
        "lists": {"searched": False, "elements": []},
    }


def automaton(query: RowQuery) -> tuple[list[str], list[dict[str, Any]]]:
    """The rows of the pattern as states, `A` and `A:2` where a variable stands twice, and the ways
    between them, the preferred ones first. A pattern with too many states has only the match."""
    steps = RowProgram(query.pattern).steps
    names: dict[int, str] = {}
    count: dict[int, int] = {}
    for place, (code, variable, _) in enumerate(steps):
        if code == Code.ROW:
            count[variable] = count.get(variable, 0) + 1
            number = f":{count[variable]}" if count[variable] > 1 else ""
            names[place] = query.variables[variable] + number
    if len(names) > _MOST_STATES:
        return [_MATCH], []
    names[len(steps) - 1] = _MATCH
    texts = {d.variable: d.text for d in query.definitions}
    edges = []
    for place, name in {-1: "", **names}.items():
        for to in _after(steps, place + 1) if name != _MATCH else ():
            condition = texts.get(steps[to][1]) if to != len(steps) - 1 else None
            kind = "take" if to == place else "begin"
            own = [condition] if condition else []
            edges.append({"kind": kind, "from": name, "to": names[to], "conditions": own})
    return list(names.values()), edges


def _after(steps: Sequence[tuple[int, int, int]], place: int) -> Iterator[int]:
    """The rows or the match that may come from a step on, in the order of preference."""
    waiting, seen = [place], set()
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        code, a, b = steps[at]
        if code in (Code.ROW, Code.ACCEPT):
            yield at
        elif code == Code.SPLIT:
            waiting += [b, a]
        else:
            waiting.append(a if code == Code.JUMP else at + 1)


def _decided(query: RowQuery) -> list[dict[str, Any]]:
    """The conditions of DEFINE, with the moment at which each is decided."""
    found = []
    for definition in query.definitions:
        own = Conditions(RowLog(), query, None, definition)
        terms = len(x.conjuncts(definition.condition))
        compared = len(own.tests)
        asked = sum(map(len, own.asked)) - compared
        ways = {
            "once a row": terms - compared - asked,
            "compared by the search": compared,
            "evaluated on each way": asked,
        }
        how = [f"{way} ({count})" if terms > 1 else way for way, count in ways.items() if count]
        name = query.variables[definition.variable]
        found.append({"class": ", ".join(how), "mentions": [name], "text": definition.text})
    return found


def row_text(query: RowQuery, stage: str | None = None) -> list[str]:
    """The overview, or one stage."""
    of = row_facts(query)
    edges = of["automaton"]["edges"]
    shown = [(e["from"] or "start", e["to"], " and ".join(e["conditions"])) for e in edges]
    ways = ["  automaton", *table(("from", "to", "if"), shown)]
    if stage == "automaton":
        return ways
    if stage == "lists":
        return ["  rows are searched one after the other: there are no ordered lists"]
    window = "unbounded" if query.window is None else f"{query.window:,} ms"
    by = f", by {', '.join(query.partition)}" if query.partition else ""
    lines = [
        *hanging("", of["text"]),
        "",
        *hanging("engine   ", "rows: by depth, the preferred way first, where it stood"),
        *hanging("gives    ", f"{of['gives']}, window {window}, after a match {of['skip']}"),
        *hanging("reads    ", of["stream"] + by),
        *hanging("returns  ", ", ".join(of["columns"])),
        "",
        *table(
            ("variable", "decided", "condition"),
            [(c["mentions"][0], c["class"], c["text"]) for c in of["conditions"]],
        ),
        "",
        *ways,
    ]
    return section(f"pattern {query.name}", lines)
