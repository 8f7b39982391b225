"""Matches whose groups are filled, compared with the definition: every choice of members, or the
largest groups."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any

import pytest

from seustream.compiler.pattern.ir import Class
from seustream.engine.pattern import fill
from seustream.engine.pattern.compact import Compact
from seustream.engine.pattern.errors import EngineRefused, PatternBudgetExceeded
from seustream.engine.pattern.event import BEGIN_OF_TIME, END_OF_STREAM, Event, Ids
from seustream.engine.pattern.lists import Bindings, Lists
from seustream.engine.pattern.meaning import Meaning
from tests.engine.pattern.generate import Generator, query_of
from tests.engine.pattern.oracle import Oracle
from tests.engine.pattern.running import operate, with_columns, with_compact
from tests.engine.pattern.stock import query


def stream(seed: int, count: int = 14) -> list[Event]:
    chance, now, found = random.Random(seed), 0, []
    for seq in range(count):
        now += chance.choice([0, 1, 1, 2])
        found.append(
            Event(now, seq, chance.choice("AABBBCN"), {"price": float(chance.randint(0, 3))})
        )
    return found


def subsets(events: Sequence[Event], least: int, window: int, absent: bool) -> set[Ids]:
    """Returns the matches of A; B{least,}; C with every choice of Bs, which never share a time;
    with `absent`, no N between the last B and C."""
    by = {kind: [e for e in events if e.type == kind] for kind in "ABCN"}
    found = set()
    for a, c in itertools.product(by["A"], by["C"]):
        between = [b for b in by["B"] if a.ts < b.ts < c.ts]
        if c.ts - a.ts > window:
            continue
        for size in range(least, len(between) + 1):
            for group in itertools.combinations(between, size):
                if absent and any(group[-1].ts < n.ts < c.ts for n in by["N"]):
                    continue
                found.add(((a.seq,), tuple(b.seq for b in group), (c.seq,)))
    return found


@pytest.mark.parametrize("absent", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_every_choice_of_members_is_a_match_once(seed: int, absent: bool) -> None:
    least = 1 + seed % 2
    gap = "!N; " if absent else ""
    q = query(f"PATTERN A; B{{{least},}} k; {gap}C WITHIN 9 ms USING ANY SUBSETS RETURN *")
    events = stream(seed)
    want = subsets(events, least, 9, absent)
    for cuts in ((), (3, 7), tuple(range(0, 20, 2))):
        found = [m.ids for m in with_compact(q, events, cuts)]
        shown = {tuple(group for group in ids if group) for ids in found}
        assert shown == want
        assert len(found) == len(want)


@pytest.mark.parametrize("seed", range(6))
def test_the_largest_groups_have_all_that_fits_between_their_neighbours(seed: int) -> None:
    q = query("PATTERN A; B+ k; C WHERE k.price >= a.price WITHIN 9 ms RETURN *")
    events = stream(seed)
    by = {kind: [e for e in events if e.type == kind] for kind in "ABC"}
    want = set()
    for a, c in itertools.product(by["A"], by["C"]):
        group = [b.seq for b in by["B"]
                 if a.ts < b.ts < c.ts and b.attrs["price"] >= a.attrs["price"]]  # fmt: skip
        if a.ts < c.ts <= a.ts + 9 and group:
            want.add(((a.seq,), tuple(group), (c.seq,)))
    for limit in (2, 1000):
        assert {m.ids for m in with_columns(q, events, (4, 9), limit=limit)} == want


def test_more_matches_than_may_be_are_an_error_that_says_so() -> None:
    events = [Event(0, 0, "A"), *(Event(n, n, "B") for n in range(1, 9)), Event(9, 9, "C")]
    text = "PATTERN A; B+; C WITHIN 9 ms USING ANY SUBSETS RETURN *"
    assert len(with_compact(query(text), events)) == 2**8 - 1
    few = Compact(Meaning(query(text)), max_matches=200)
    with pytest.raises(PatternBudgetExceeded, match="more than 200 matches at once") as caught:
        few.advance(events, BEGIN_OF_TIME, END_OF_STREAM)
    assert "narrow WITHIN" in (caught.value.hint or "")


def test_what_is_compared_is_not_for_compact_enumeration() -> None:
    q = query(
        "PATTERN A; B+ k; C WHERE k[i].price > k[i-1].price WITHIN 9 ms USING ANY SUBSETS RETURN *"
    )
    with pytest.raises(EngineRefused, match="P016 compact enumeration cannot run this query"):
        Compact(Meaning(q))


def test_an_absence_is_sought_a_few_events_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fill, "_TRIED_FIRST", 1)
    absences = 0
    for seed in range(400):
        generator = Generator(random.Random(seed))
        of = generator.query(random.Random(seed).choice(("", "NEXT", "STRICT")))
        if not any(c.cls is Class.NEGATED for c in of.conjuncts):
            continue
        events = generator.events(20)
        want = Oracle(of).matches(events)
        assert {m.ids for m in operate(of, events)} == set(want), (seed, of.text)
        absences += len(want)
    assert absences > 40


def test_a_match_that_is_forbidden_is_tried_with_no_more_events(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes, begun = [], Bindings.__init__

    def counting(self: Bindings, lists: Lists, size: int, *rest: Any, **more: Any) -> None:
        sizes.append(size)
        begun(self, lists, size, *rest, **more)

    monkeypatch.setattr(Bindings, "__init__", counting)
    of = query_of("PATTERN A a; !B b WHERE b.x >= a.x + a.y WITHIN 1 h USING NEXT RETURN *")
    kinds = ["A"] * 50 + ["B"] * 500
    events = [Event(t, t, kind, {"x": t, "y": 0.0}) for t, kind in enumerate(kinds)]
    assert not operate(of, events)
    assert sum(sizes) <= 50 * 16
    events = [Event(t, t, kind, {"x": -t, "y": 0.0}) for t, kind in enumerate(kinds)]
    sizes.clear()
    assert len(operate(of, events)) == 50
    assert sum(sizes) == 50 * 500
