"""EXPLAIN for patterns: what a query says, which matcher runs it, its automaton and its lists."""

from __future__ import annotations

from typing import Any

from seustream.compiler.explain.marks import hanging, section, table
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.fields import fields
from seustream.compiler.pattern.ir import Class, Strategy
from seustream.compiler.pattern.rows import RowQuery
from seustream.engine.pattern.automaton import Automaton
from seustream.engine.pattern.choice import EngineChooser, Sample, candidates, costs
from seustream.engine.pattern.meaning import Meaning
from seustream.engine.pattern.planner import cost_order, supports
from seustream.engine.pattern.recognize.explain import row_facts, row_text

_ANEW = "chosen each epoch from the lists' lengths and sampled selectivities"
STAGES = ("automaton", "lists")
Facts = dict[str, Any]


def facts(query: ir.MatchQuery, seen: Sample | None = None) -> Facts:
    """Everything as plain values, for JSON; with a sample of its stream also what each matcher
    would cost, and the order of a search."""
    if isinstance(query, RowQuery):
        return row_facts(query)
    assert isinstance(query, ir.PatternQuery)
    chooser = EngineChooser(query, "auto")
    if seen is not None and chooser.open:
        chooser.by_cost(costs(query, seen))
    choice = chooser.choice
    meaning = Meaning(query)
    automaton = Automaton(meaning)
    return {
        "name": query.name,
        "text": query.text,
        "stream": query.stream.name,
        "window_ms": query.window,
        "strategy": query.strategy.value,
        "mode": query.mode.value if query.kleene and query.strategy is Strategy.ANY else None,
        "skip": query.skip.value,
        "partition": list(query.partition),
        "never": query.empty,
        "engine": choice.engine,
        "why": choice.why,
        "can": candidates(query),
        "costs_us": dict(choice.costs),
        "order": None if seen is None else _order(query, seen),
        "cannot": {name: reason for name, reason in supports(query).items() if reason is not None},
        "columns": [name for name, _, _ in fields(query)],
        "conditions": [_condition(c, query) for c in query.conjuncts],
        "automaton": {
            "runs": supports(query)["nfa"] is None,
            "states": automaton.states,
            "edges": [
                {
                    "kind": edge.kind,
                    "from": edge.source,
                    "to": edge.target,
                    "conditions": list(edge.conditions),
                }
                for edge in automaton.edges
            ],
            "on_match": [
                f"no {query.elements[i]}" + _on_absence(query, i) for i in meaning.forbidding
            ],
        },
        "lists": {
            "searched": supports(query)["optiseq"] is None,
            "elements": [_list(query, number) for number in range(len(query.elements))],
            "horizon_ms": query.horizon,
            "certain": "one window after the first event" if query.waits else "with the last event",
        },
    }


def _order(query: ir.PatternQuery, seen: Sample) -> list[str]:
    order = cost_order(seen.anchors)[1] if seen.anchors.counts else ()
    return [str(query.elements[query.anchors[place]]) for place in order]


def _condition(c: ir.Conjunct, query: ir.PatternQuery) -> Facts:
    names = [query.elements[i].variable for i in c.refs]
    return {"class": c.cls.value, "mentions": names, "text": c.text}


def _on_absence(query: ir.PatternQuery, element: int) -> str:
    texts = [c.text for c in query.conjuncts if c.cls is Class.NEGATED and element in c.refs]
    return f" where {' and '.join(texts)}" if texts else ""


def _list(query: ir.PatternQuery, number: int) -> Facts:
    element = query.elements[number]
    role = "absence" if element.negated else "group" if element.kleene else "anchor"
    filters = [element.filter] if element.filter else []
    filters += [c.text for c in query.conjuncts if c.cls is Class.CONSTANT and c.refs == (number,)]
    later = [
        c.text
        for c in query.conjuncts
        if c.cls is not Class.CONSTANT and number in c.refs and number == max(c.refs)
    ]
    return {"name": str(element), "role": role, "filter": filters, "then": later}


def as_text(
    query: ir.MatchQuery, stage: str | None = None, seen: Sample | None = None
) -> list[str]:
    """The overview, or one stage."""
    if isinstance(query, RowQuery):
        return row_text(query, stage)
    of = facts(query, seen)
    if stage == "automaton":
        return _automaton(of)
    if stage == "lists":
        return _lists(of)
    return section(f"pattern {query.name}", [*_overview(of), "", *_automaton(of), "", *_lists(of)])


def _overview(of: Facts) -> list[str]:
    window = "unbounded" if of["window_ms"] is None else f"{of['window_ms']:,} ms"
    how = of["strategy"] + (f" {of['mode']}" if of["mode"] else "")
    lines = [
        *hanging("", of["text"]),
        "",
        *hanging("engine   ", f"{of['engine']}: {of['why']}"),
        *hanging("strategy ", f"{how}, window {window}, after a match {of['skip']}"),
        *hanging("reads    ", of["stream"] + _by(of["partition"])),
        *hanging("returns  ", ", ".join(of["columns"])),
    ]
    if of["never"]:
        lines += hanging("no match: ", f"{of['never']} is never true")
    others = [name for name in of["can"] if name != of["engine"]]
    if others and not of["costs_us"]:
        text = f"{', '.join(others)}, where an epoch's sample shows that it costs far less"
        lines += hanging("or       ", text)
    for name, reason in of["cannot"].items():
        lines += hanging(f"not {name}: ", reason)
    rows = [(c["class"], ", ".join(c["mentions"]), c["text"]) for c in of["conditions"]]
    return [*lines, "", *table(("class", "mentions", "condition"), rows)] if rows else lines


def _by(partition: list[str]) -> str:
    return f", by {', '.join(partition)}" if partition else ""


def _automaton(of: Facts) -> list[str]:
    automaton = of["automaton"]
    head = "automaton" if automaton["runs"] else "automaton (for the picture: it cannot run groups)"
    rows = [
        (e["from"] or "start", e["kind"], e["to"], " and ".join(e["conditions"]))
        for e in automaton["edges"]
    ]
    lines = [f"  {head}", *table(("from", "edge", "to", "if"), rows)]
    for absence in automaton["on_match"]:
        lines += hanging("on a match: ", absence)
    return lines


def _lists(of: Facts) -> list[str]:
    lists = of["lists"]
    head = "ordered lists" if lists["searched"] else "ordered lists (not searched by this strategy)"
    rows = [
        (e["name"], e["role"], " and ".join(e["filter"]), " and ".join(e["then"]))
        for e in lists["elements"]
    ]
    horizon = "everything" if lists["horizon_ms"] is None else f"{lists['horizon_ms']:,} ms"
    return [
        f"  {head}",
        *table(("list", "role", "keeps", "then tested"), rows),
        *hanging("kept: ", f"{horizon}; a match is certain {lists['certain']}"),
        *hanging("order: ", ", ".join(of["order"]) if of["order"] else _ANEW),
    ]
