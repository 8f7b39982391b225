"""Sequences found from their newest events: random queries and streams in small epochs, compared
with the oracle; includes searches that give up and texts that are renumbered."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest

from seustream.compiler.pattern import ir
from seustream.engine.pattern import ends
from seustream.engine.pattern.batch import needed, of_events
from seustream.engine.pattern.ends import sequence_ends
from seustream.engine.pattern.event import END_OF_STREAM, Event
from seustream.engine.pattern.kept import KeptEvents
from seustream.engine.pattern.meaning import Meaning
from seustream.engine.pattern.operator import PatternOperator
from seustream.engine.pattern.vector import ColumnSearch
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


@pytest.mark.parametrize(
    ("where", "sure"),
    [
        ("a.x < b.x AND b.y >= c.y", True),
        ("a.x = b.x AND b.y = c.y AND a.y < b.y AND c.x < b.x", True),
        ("a.k = b.k AND a.x = b.x AND b.k = c.k", True),
        ("a.x < c.x AND b.x < c.x", True),
        ("a.x > b.x AND a.y > c.y", True),
        ("a.k = b.k AND a.k = c.k AND a.x < c.x AND b.x < c.x", True),
        ("abs(a.y - b.y) <= 1 AND abs(c.y - b.y) <= 1", True),
        ("abs(a.y - b.y) <= 1 AND abs(c.y - a.y) <= 1", True),
        ("a.x < c.x AND b.y BETWEEN a.x AND a.y", False),  # a waits for b by one bound alone
        ("c.y BETWEEN b.x AND b.y", False),
        ("b.y BETWEEN c.x AND c.y", True),
        ("a.x < b.x AND b.x < c.x AND a.y < c.y", False),
        ("a.x <> b.x", False),
        ("a.x < b.x AND a.x * b.x > c.x", False),
    ],
)
def test_where_there_are_no_dead_ends(where: str, sure: bool) -> None:
    text = f"PATTERN A a; B b; C c WHERE {where} WITHIN 5 ms RETURN *"
    search = sequence_ends(query_of(text, bounded=True))
    assert search is not None
    assert search.sure is sure


ARRANGED = {
    "a.x < b.x AND b.y < c.y": ((1, 0), ((2, 2), (0, 0)), (0, 1)),
    "a.x = b.x AND b.y = c.y": ((1, 0), ((1, 0), (0, 1)), (0, 1)),
    "a.k = b.k AND b.k = c.k AND a.x < b.x AND b.y < c.y": ((1, 0), ((2, 2), (0, 0)), (0, 1)),
    "a.x < c.x AND b.y < c.y": ((1, 0), ((0, 1), (0, 1)), (2, 0)),
    "a.x < b.x AND a.y < c.y": ((1, 0), ((0, 1), (0, 1)), (0, 1)),
}
"""By condition x and y of each A, of the even and odd Bs, and of each C: each B fits the As or the
Cs, none fits both."""


@pytest.mark.parametrize("where", ARRANGED)
@pytest.mark.parametrize("steps", [1, 40])
def test_dead_ends_are_not_looked_at(where: str, steps: int) -> None:
    """Counts the events that are looked at, also those that columns test: they grow with the events,
    not with their pairs."""
    a, bs, c = ARRANGED[where]
    text = f"PATTERN A a; B b; C c WHERE {where} WITHIN 1 h RETURN *"
    none_quadratic(text, lambda place, ts: ("ABC"[place], *(a, bs[ts % 2], c)[place]), 3, steps, 12)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        # A B is less than a window from an A, or from a C, but no A is that near to a C.
        ("PATTERN A a; B b; C c WHERE a.x = b.x AND b.x = c.x WITHIN {} ms RETURN *", "ABC"),
        # Each A has a B and a C, but no C comes after a B.
        (
            "PATTERN A a; B b; C c; D d WHERE a.x = b.x AND a.y = c.y AND a.k = d.k"
            " WITHIN 1 h RETURN *",
            "ACBD",
        ),
    ],
)
@pytest.mark.parametrize("steps", [1, 40])
def test_dead_ends_in_time_are_not_looked_at(text: str, kinds: str, steps: int) -> None:
    none_quadratic(text, lambda place, ts: (kinds[place], 0, 0), len(kinds), steps, 32)


Arranged = Callable[[int, int], tuple[str, float, float]]
"""Returns the type, x and y of an event, by the part of the stream in which it is, and its time."""


def none_quadratic(text: str, arranged: Arranged, parts: int, steps: int, times: int) -> None:
    """Checks that with eight times the events, less than so many times is looked at."""
    tested = []
    for count in (1_200, 9_600):
        query = query_of(text.format(count // 3))
        tested.append(looked_at(query, count, arranged, parts, steps))
    print(tested)
    assert tested[-1] < times * tested[0]
    assert tested[-1] < 60 * 9_600


def looked_at(
    query: ir.PatternQuery, count: int, arranged: Arranged, parts: int, steps: int
) -> int:
    """Returns how many events are looked at in a stream of several parts without a match."""
    events = []
    for ts in range(count):
        kind, x, y = arranged(parts * ts // count, ts)
        attrs = {"type": kind, "x": x, "y": float(y), "k": "p"}
        events.append(Event(ts, ts, kind, attrs))
    search = ColumnSearch(Meaning(query))
    assert search._ends is not None
    size, tested = count // steps, 0
    for begin in range(0, count, size):
        batch = of_events(events[begin : begin + size], needed(query))
        assert not search.advance(batch, begin - 1, begin + size - 1)
        tested += sum(search.levels)
    return tested + search._ends.looked_at


@pytest.mark.parametrize("seed", range(12))
def test_long_windows(seed: int) -> None:
    """Windows of hundreds of events, in small steps, out of order, continued from a snapshot;
    compared with `optiseq`."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    matches = 0
    while matches < 50:
        query = long_sequence_of(chance)
        events = [
            Event(ts, ts, kind, {"type": kind, "x": x, "y": y, "k": k})
            for ts in range(900)
            for kind in [chance.choice("ABC")]
            for x, y, k in [(chance.randrange(150), 10 * chance.random(), chance.choice("pqrst"))]
        ]
        want = [match.ids for match in operate(query, events, "optiseq")]
        late = chance.choice((0, 20))
        arriving = sorted(events, key=lambda event: event.ts + chance.random() * late)
        operator, found, done = PatternOperator(query), [], -1
        for event in arriving:
            operator.push(event)
            if chance.random() < 0.05:
                done = max(done, event.ts - late)
                found += operator.advance(done)
            if chance.random() < 0.005:
                stored = json.loads(json.dumps(operator.snapshot()))
                operator = PatternOperator(query)
                operator.restore(stored)
        found += operator.advance(END_OF_STREAM)
        got = [tuple(tuple(arriving[i].seq for i in group) for group in m.ids) for m in found]
        assert sorted(got) == sorted(want), query.text
        matches += len(got)


def long_sequence_of(chance: random.Random) -> ir.PatternQuery:
    """Returns a sequence with a selective condition for each element but one."""
    names = "abcd"[: chance.randint(2, 4)]
    sequence = "; ".join(f"{chance.choice(('A', 'B', 'C', 'ANY'))} {name}" for name in names)
    parts = []
    for place, one in enumerate(names[1:], 1):
        other = chance.choice(names[:place])
        forms = (
            f"{one}.x = {other}.x",
            f"{one}.x = {other}.x AND {one}.y < {other}.y",
            f"abs({one}.y - {other}.y) < 0.1",
            f"{one}.k = {other}.k AND {one}.x = {other}.x",
        )
        parts.append(chance.choice(forms))
    by = chance.choice(("", " PARTITION BY k"))
    where = " AND ".join(parts)
    return query_of(f"PATTERN {sequence}{by} WHERE {where} WITHIN 600 ms RETURN *")


def test_keys_that_are_gone_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ends, "_MOST_CODES", 10)
    query = query_of("PATTERN A a; B b PARTITION BY k WITHIN 5 ms RETURN *")
    search, kept = sequence_ends(query), KeptEvents(Meaning(query))
    assert search is not None
    for ts in range(300):
        event = Event(ts, ts, "A", {"type": "A", "k": f"key {ts}"})
        search.add(kept, *kept.take(of_events([event], needed(query))))
        search.forget(kept.expire(ts))
        assert len(search._keys) < 100
