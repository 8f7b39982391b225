"""Runs a query over events with every matcher that supports it, in any epochs."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from seustream.compiler.pattern import ir
from seustream.engine.pattern.batch import EventBatch, needed, of_events
from seustream.engine.pattern.choice import Choice, EngineChooser, HeldEvents
from seustream.engine.pattern.compact import Compact
from seustream.engine.pattern.compiled import CompiledSearch
from seustream.engine.pattern.event import BEGIN_OF_TIME, END_OF_STREAM, Event, Ids, Match
from seustream.engine.pattern.meaning import Meaning
from seustream.engine.pattern.nfa import Nfa
from seustream.engine.pattern.operator import PatternOperator
from seustream.engine.pattern.optiseq import OptiSeq
from seustream.engine.pattern.planner import Order, supports
from seustream.engine.pattern.vector import ColumnSearch
from seustream.engine.pattern.versions import Numbering

Names = dict[str, str]


def events_of(text: str, attribute: str = "price") -> list[Event]:
    """Reads `a1@3=310 b1@4`: events named by their type in lower case and a number, with one
    attribute."""
    found = []
    for seq, word in enumerate(text.split()):
        name, _, rest = word.partition("@")
        at, _, value = rest.partition("=")
        attrs = {"type": name[0].upper()} | ({attribute: float(value)} if value else {})
        found.append(Event(int(at), seq, name[0].upper(), attrs))
    return found


def named(text: str, matches: Iterable[Ids]) -> set[str]:
    """Returns matches as the names that their events have in such a text."""
    names = [word.partition("@")[0] for word in text.split()]
    return {" ".join(names[seq] for group in ids for seq in group) for ids in matches}


def epochs(cuts: Sequence[int]) -> list[int]:
    return [*sorted({c for c in cuts if c < END_OF_STREAM}), END_OF_STREAM]


def with_nfa(
    query: ir.PatternQuery,
    events: Sequence[Event],
    cuts: Sequence[int] = (),
    numbering: Numbering = Numbering.PER_TAKE,
) -> list[Match]:
    nfa = Nfa(Meaning(query), numbering)
    found, old = [], BEGIN_OF_TIME
    for cut in epochs(cuts):
        found += nfa.advance(between(events, old, cut), old, cut)
        nfa.check()
        old = cut
    assert not nfa.held
    return found


def with_optiseq(
    query: ir.PatternQuery,
    events: Sequence[Event],
    cuts: Sequence[int] = (),
    order: str | Order = "cost",
    tighten: bool = True,
) -> list[Match]:
    matcher = OptiSeq(Meaning(query), order, tighten)
    found, old = [], BEGIN_OF_TIME
    for cut in epochs(cuts):
        found += matcher.advance(between(events, old, cut), old, cut)
        old = cut
    assert not matcher.held
    return found


def with_columns(
    query: ir.PatternQuery,
    events: Sequence[Event],
    cuts: Sequence[int] = (),
    order: str | Order = "cost",
    tighten: bool = True,
    limit: int = 1000,
) -> list[Match]:
    matcher = ColumnSearch(Meaning(query), order, tighten, limit)
    found, old = [], BEGIN_OF_TIME
    for cut in epochs(cuts):
        batch = of_events(between(events, old, cut), needed(query))
        part = matcher.advance(batch, old, cut)
        found += [] if part is None else part.matches(query)
        old = cut
    assert not matcher.held
    return found


def with_compact(
    query: ir.PatternQuery, events: Sequence[Event], cuts: Sequence[int] = ()
) -> list[Match]:
    matcher = Compact(Meaning(query))
    found, old = [], BEGIN_OF_TIME
    for cut in epochs(cuts):
        found += matcher.advance(between(events, old, cut), old, cut)
        old = cut
    assert not matcher.held
    return found


def with_compiled(
    query: ir.PatternQuery, events: Sequence[Event], cuts: Sequence[int] = ()
) -> list[Match]:
    matcher = CompiledSearch(Meaning(query))
    found, old = [], BEGIN_OF_TIME
    for cut in epochs(cuts):
        batch = of_events(between(events, old, cut), needed(query))
        part = matcher.advance(batch, old, cut)
        found += [] if part is None else part.matches(query)
        old = cut
    assert not matcher.held
    return found


def between(events: Sequence[Event], old: int, new: int) -> list[Event]:
    """Returns the events of one epoch in order."""
    return sorted((e for e in events if old < e.ts <= new), key=lambda event: event.order)


def by_every_matcher(
    query: ir.PatternQuery, events: Sequence[Event], cuts: Sequence[int] = ()
) -> dict[str, list[Match]]:
    """Returns the matches of each matcher that supports the query; without PARTITION BY."""
    can = {name for name, reason in supports(query).items() if reason is None}
    found: dict[str, list[Match]] = {}
    if "nfa" in can:
        found["nfa"] = with_nfa(query, events, cuts)
        if query.strategy is not ir.Strategy.ANY:
            found["nfa per state"] = with_nfa(query, events, cuts, Numbering.PER_STATE)
    if "optiseq" in can:
        for order in ("paper", "cost"):
            found[f"optiseq {order}"] = with_optiseq(query, events, cuts, order)
    if "columns" in can:
        found["columns"] = with_columns(query, events, cuts)
        # With an order other than by cost, no match is searched from its end.
        found["columns in pieces"] = with_columns(query, events, cuts, "paper", limit=2)
    if "compiled" in can:
        found["compiled"] = with_compiled(query, events, cuts)
    if "compact" in can:
        found["compact"] = with_compact(query, events, cuts)
    return found


def operate(
    query: ir.PatternQuery,
    events: Iterable[Event],
    engine: str = "auto",
    cuts: Sequence[int] = (),
    part: int | None = None,
) -> list[Match]:
    """Gives everything to an operator at once, and then advances it step by step."""
    operator = PatternOperator(query, engine, part=part)
    for event in events:
        operator.push(event)
    found = [match for cut in epochs(cuts) for match in operator.advance(cut)]
    assert not operator.held
    return found


class Turns(EngineChooser):
    """Chooses another supported matcher at random in each epoch."""

    def __init__(self, query: ir.PatternQuery, chance: random.Random) -> None:
        super().__init__(query, "auto")
        self.chance = chance

    def due(self, events: int, kept: int = 0) -> bool:
        return events > 0

    def consider(
        self, batch: EventBatch, events: int, kept: int = 0, held: HeldEvents | None = None
    ) -> Choice:
        self.considered = (events, kept)
        can = [name for name, reason in supports(self.query).items() if reason is None]
        self.choice = Choice(self.chance.choice(can), "its turn")
        return self.choice


def in_turns(
    query: ir.PatternQuery, events: Iterable[Event], chance: random.Random, cuts: Sequence[int]
) -> list[Match]:
    """Runs an operator whose matchers take turns."""
    operator = PatternOperator(query)
    operator._chooser = Turns(query, chance)
    for event in events:
        operator.push(event)
    found = [match for cut in epochs(cuts) for match in operator.advance(cut)]
    assert not operator.held
    return found
