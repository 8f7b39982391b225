"""Runs one random case, a query and a stream, through every matcher and the operator, and compares
with the oracle. A failure shows the case."""

from __future__ import annotations

import dataclasses
import random

from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Mode, Strategy
from seustream.engine.pattern.event import Event, Ids
from seustream.engine.pattern.planner import supports
from tests.engine.pattern.generate import Generator
from tests.engine.pattern.oracle import Oracle
from tests.engine.pattern.running import by_every_matcher, in_turns, operate


def check(chance: random.Random) -> int:
    """Runs a case; returns its number of matches."""
    generator = Generator(chance)
    keyed = chance.random() < 0.2
    query = generator.query(keys=keyed)
    events = generator.events(keys=keyed)
    cuts = [chance.randint(0, 24) for _ in range(chance.choice((0, 1, 2, 5, 25)))]
    want = Oracle(query).matches(events)
    if not keyed:
        for name, matches in by_every_matcher(query, events, cuts).items():
            got = [match.ids for match in matches]
            agree(name, query, events, cuts, got, want)
    shuffled = list(events)
    found = operate(query, shuffled, cuts=cuts)
    agree("operator", query, events, cuts, [match.ids for match in found], want)
    turns = in_turns(query, events, chance, cuts)
    agree("turns", query, events, cuts, [match.ids for match in turns], want)
    for name in [name for name, reason in supports(query).items() if reason is None]:
        parts = operate(query, shuffled, name, cuts, chance.choice((1, 3, 8)))
        got = [match.ids for match in parts]
        assert got == [m.ids for m in found], case(f"{name} in parts", query, events, cuts)
    if query.window is not None:
        times = {match.ids: match.D for match in found}
        assert times == want, case("D", query, events, cuts)
    laws(query, events, want)
    return len(want)


def agree(
    name: str,
    query: ir.PatternQuery,
    events: list[Event],
    cuts: list[int],
    got: list[Ids],
    want: dict[Ids, int],
) -> None:
    about = case(name, query, events, cuts)
    assert set(got) == set(want), (
        f"{about}\nmissing {set(want) - set(got)}\nextra {set(got) - set(want)}"
    )
    assert len(got) == len(want), f"{about}\na match twice"


def case(name: str, query: ir.PatternQuery, events: list[Event], cuts: list[int]) -> str:
    rows = "\n".join(f"  {e!r} {dict(e.attrs)}" for e in events)
    return f"{name}, epochs {sorted(set(cuts))}\n{query.text}\n{rows}"


def laws(query: ir.PatternQuery, events: list[Event], want: dict[Ids, int]) -> None:
    """Checks the laws between strategies and modes."""
    if query.strategy is not Strategy.ANY:
        # 24: NEXT and STRICT select from the matches of ANY SUBSETS.
        every = Oracle(dataclasses.replace(query, strategy=Strategy.ANY)).matches(events)
        assert set(want) <= set(every), query.text
    elif query.grouped and _plain(query) and not query.partition:
        # 23: a group is the union of the subsets with the same single events.
        subsets = Oracle(dataclasses.replace(query, mode=Mode.SUBSETS)).matches(events)
        unions: dict[Ids, list[set[int]]] = {}
        for ids in subsets:
            key = tuple(() if query.elements[i].kleene else g for i, g in enumerate(ids))
            known = unions.setdefault(key, [set() for _ in ids])
            for one, group in zip(known, ids, strict=True):
                one.update(group)
        order = {event.seq: event.order for event in events}
        united = {
            tuple(tuple(sorted(group, key=order.__getitem__)) for group in groups)
            for groups in unions.values()
        }
        assert united == set(want), query.text


def _plain(query: ir.PatternQuery) -> bool:
    """Returns whether the query has no absences, no maximum, groups only inside, and conditions
    only on single events and members."""
    kinds = {c.cls for c in query.conjuncts}
    return (
        not any(e.negated or e.most is not None for e in query.elements)
        and kinds <= {ir.Class.CONSTANT, ir.Class.PAIR, ir.Class.MEMBER}
        and not query.elements[0].kleene
        and not query.elements[-1].kleene
    )
