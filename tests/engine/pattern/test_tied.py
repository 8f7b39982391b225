"""Equalities that tie all elements: which queries have them, and random ones against the definition."""

from __future__ import annotations

import random

import pytest

from seustream.compiler.pattern import ir
from seustream.engine.pattern.choice import EngineChooser
from seustream.engine.pattern.event import Event
from seustream.engine.pattern.explain import pattern
from seustream.engine.pattern.tied import tied
from tests.engine.pattern.generate import Generator, query_of
from tests.engine.pattern.oracle import Oracle
from tests.engine.pattern.running import in_turns, operate

TIED = {
    "PATTERN A a; B b WHERE a.k = b.k WITHIN 9 ms USING NEXT": ("k",),
    "PATTERN A a; B b WHERE a.k = b.k AND b.x = a.x WITHIN 9 ms USING NEXT": ("k", "x"),
    "PATTERN A a; !B b WHERE b.x = a.x WITHIN 9 ms": ("x",),
    "PATTERN A a; B+ b; C c WHERE b.x = a.x AND c.x = a.x WITHIN 9 ms": ("x",),
    "PATTERN A a; !B b; C c PARTITION BY k WHERE b.y = a.y AND a.y = c.y WITHIN 9 ms": ("k", "y"),
    "PATTERN A a; B b; C c WHERE a.x = b.x WITHIN 9 ms USING NEXT": (),
    "PATTERN A a; !B b; C c WHERE a.x = c.x WITHIN 9 ms": (),
    "PATTERN A a; B b; C c WHERE a.x = c.x AND b.x = c.x WITHIN 9 ms USING NEXT": (),
    "PATTERN A a; B+ b; C+ c WHERE a.x = b.x AND b.x = c.x WITHIN 9 ms USING NEXT": (),
    "PATTERN A+ a; B b WHERE a.x = b.x WITHIN 9 ms USING NEXT": (),
    "PATTERN A a; !B b; C c WHERE a.x = b.x AND b.x = c.x WITHIN 9 ms": (),
    "PATTERN A+ a; !B b WHERE a.x = b.x WITHIN 9 ms USING NEXT": (),
    "PATTERN A a; B b WHERE a.x = b.x WITHIN 9 ms": (),
    "PATTERN A a; B b WHERE a.x = b.x WITHIN 9 ms USING STRICT": (),
    "PATTERN A a; B b WHERE a.x = b.x WITHIN 999 d USING NEXT": (),
    "PATTERN A a; B b WHERE a.x = b.y WITHIN 9 ms USING NEXT": (),
    "PATTERN A a; B b WHERE a.x = b.x + 1 WITHIN 9 ms USING NEXT": (),
    "PATTERN A a; B b WHERE a.x <= b.x WITHIN 9 ms USING NEXT": (),
    "PATTERN A a; B+ b WHERE a.x = b[1].x WITHIN 9 ms USING NEXT": (),
    "PATTERN A a; B b WHERE a.x = b.x WITHIN 9 ms USING NEXT AFTER MATCH SKIP TO NEXT EVENT": (),
}


@pytest.mark.parametrize("text", TIED)
def test_which_queries_are_tied(text: str) -> None:
    query = query_of(f"{text} RETURN *")
    found = tied(query)
    assert found.partition == TIED[text]
    if found is not query:
        assert tied(found) == found
        assert pattern(query).partition == found.partition


def test_next_by_an_equality_is_a_matter_of_the_automaton() -> None:
    query = query_of("PATTERN A a; B b WHERE a.k = b.k WITHIN 9 ms USING NEXT RETURN *")
    assert EngineChooser(query, "auto").choice.engine == "columns"
    assert pattern(query).engine == "compiled"


def _case(chance: random.Random) -> tuple[ir.PatternQuery, list[Event]]:
    """Returns a random query with its elements tied by an attribute, which may be NULL."""
    generator = Generator(chance)
    while True:
        query = generator.query(chance.choice(("", "ANY SUBSETS", "NEXT", "NEXT")), keys=True)
        if len(query.elements) < 2 or query.window is None or query.partition != ("k",):
            continue
        names = [element.variable for element in query.elements]
        positives = query.positives
        ends = [(e, chance.choice(positives[:at])) for at, e in enumerate(positives) if at]
        ends += [
            (e, chance.choice(positives)) for e in range(len(names)) if query.elements[e].negated
        ]
        if not ends:
            continue
        chance.shuffle(ends)
        ties = " AND ".join(f"{names[a]}.k = {names[b]}.k" for a, b in ends)
        where = [ties, *(f"({c.text})" for c in query.conjuncts if chance.random() < 0.4)]
        sequence, _, _ = query.text.partition(" PARTITION BY k")
        _, _, within = query.text.rpartition(" WITHIN ")
        found = query_of(f"{sequence} WHERE {' AND '.join(where)} WITHIN {within}")
        if tied(found) is not found:
            return found, generator.events(28, keys=True)


def test_random_queries() -> None:
    matches = 0
    for seed in range(200):
        chance = random.Random(seed)
        query, events = _case(chance)
        want = Oracle(query).matches(events)
        cuts = sorted(chance.randint(0, 30) for _ in range(chance.choice((0, 2, 10))))
        about = f"seed {seed}: {query.text}"
        found = operate(query, events, cuts=cuts)
        assert [match.ids for match in found] == [
            m.ids for m in sorted(found, key=lambda m: m.order)
        ]
        assert {match.ids for match in found} == set(want), about
        assert len(found) == len(want), about
        assert {match.ids for match in in_turns(query, events, chance, cuts)} == set(want), about
        matches += len(want)
    assert matches > 300
