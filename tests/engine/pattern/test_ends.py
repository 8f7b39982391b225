"""Sequences found from their newest events: random queries and streams in small epochs, compared
with the oracle; includes searches that give up and texts that are renumbered."""

from __future__ import annotations

import random

import pytest

from seustream.compiler.pattern import ir
from seustream.engine.pattern import ends
from seustream.engine.pattern.batch import needed, of_events
from seustream.engine.pattern.ends import sequence_ends
from seustream.engine.pattern.event import Event
from seustream.engine.pattern.kept import KeptEvents
from seustream.engine.pattern.links import PatternLink, link
from seustream.engine.pattern.meaning import Meaning
from tests.engine.pattern.differential import agree
from tests.engine.pattern.generate import Generator, query_of
from tests.engine.pattern.oracle import Oracle
from tests.engine.pattern.running import operate


@pytest.mark.parametrize("seed", range(8))
def test_random_sequences(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    monkeypatch.setattr(ends, "_MOST_WORK", chance.choice((1 << 22, 40)))
    monkeypatch.setattr(ends, "_MOST_FOUND", chance.choice((1 << 14, 2)))
    monkeypatch.setattr(ends, "_MOST_CODES", chance.choice((1 << 14, -1000)))
    taken = matches = others = 0
    while taken < 150:
        keyed = chance.random() < 0.3
        query = sequence_of(chance, keyed)
        search = sequence_ends(query)
        if search is None:
            continue
        taken += 1
        others += bool(search._rest)
        events = Generator(chance).events(30, keyed)
        cuts = [chance.randint(0, 50) for _ in range(chance.choice((0, 5, 25)))]
        want = Oracle(query).matches(events)
        got = [match.ids for match in operate(query, events, "columns", cuts)]
        agree("columns", query, events, cuts, got, want)
        matches += len(want)
    assert matches > 150
    assert others > 15


def sequence_of(chance: random.Random, keyed: bool) -> ir.PatternQuery:
    """Returns a sequence of single events, with conditions that mostly compare two of them."""
    names = "abcd"[: chance.randint(1, 4)]
    sequence = "; ".join(f"{chance.choice(('A', 'B', 'C', 'ANY'))} {name}" for name in names)
    attributes = ("x", "y", "type", "x + 1", "1 / x")
    parts = []
    for _ in range(chance.randint(0, 3)):
        left, right = chance.choice(names), chance.choice(names)
        if chance.random() < 0.3:  # conditions that no link decides
            one, other = f"{left}.{chance.choice('xy')}", f"{right}.{chance.choice('xy')}"
            forms = (
                f"{one} - {other} {chance.choice(('<', '>=', '='))} 1",
                f"abs({one} - {other}) <= 0.5",
                f"{one} * {other} > 1",
                f"{one} / {other} >= 1",
            )
            parts.append(chance.choice(forms))
            continue
        one = chance.choice(attributes)
        op = chance.choice(("=", "<>")) if one == "type" else chance.choice(("=", "<", ">=", "<>"))
        parts.append(f"{of(left, one)} {op} {of(right, one)}")
    where = f" WHERE {' AND '.join(parts)}" if parts else ""
    by = " PARTITION BY k" if keyed else ""
    within = chance.choice((3, 8, 20))
    return query_of(f"PATTERN {sequence}{by}{where} WITHIN {within} ms RETURN *", bounded=True)


def of(name: str, attribute: str) -> str:
    return f"{name}.{attribute}" if attribute != "1 / x" else f"1 / {name}.x"


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN A a; B+ b; C c WITHIN 5 ms RETURN *",
        "PATTERN A a; !B b; C c WITHIN 5 ms RETURN *",
        "PATTERN A a; B b WITHIN 5 ms USING NEXT RETURN *",
        "PATTERN A a; B b RETURN *",
        "PATTERN A a; B b; C c WHERE a.x + b.x = c.x WITHIN 5 ms RETURN *",
    ],
)
def test_what_it_does_not_run(text: str) -> None:
    assert sequence_ends(query_of(text, bounded=True)) is None


def test_the_order_follows_equal_values() -> None:
    query = query_of(
        "PATTERN A a; B b; C c; D d WHERE a.x = d.x AND a.y > b.y WITHIN 5 ms RETURN *"
    )
    links: list[PatternLink] = [one for c in query.conjuncts if (one := link(c)) is not None]
    assert ends._order(4, links) == [3, 0, 1, 2]


def test_keys_that_are_gone_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ends, "_MOST_CODES", 10)
    query = query_of("PATTERN A a; B b PARTITION BY k WITHIN 5 ms RETURN *")
    search, kept = sequence_ends(query), KeptEvents(Meaning(query))
    assert search is not None
    for ts in range(300):
        event = Event(ts, ts, "A", {"type": "A", "k": f"key {ts}"})
        search.add(kept, *kept.take(of_events([event], needed(query))))
        search.forget(kept.expire(ts))
        assert len(search._keys.known) < 100
