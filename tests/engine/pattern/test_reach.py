"""Ranges without dead ends (section 6.2 of the specification)."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import numpy as np
import pytest

from seustream.compiler.language.types import INT
from seustream.compiler.pattern import ir
from seustream.engine.pattern.batch import of_events
from seustream.engine.pattern.event import BEGIN_OF_TIME, END_OF_STREAM, Event
from seustream.engine.pattern.fill import Rows
from seustream.engine.pattern.meaning import Meaning
from seustream.engine.pattern.reach import NEVER, reach
from seustream.engine.pattern.vector import ColumnSearch
from tests.engine.pattern.generate import query_of
from tests.engine.pattern.oracle import Oracle
from tests.engine.pattern.test_differential import orders


class Watched(ColumnSearch):
    """Keeps the partial matches of every step."""

    def __init__(self, query: ir.PatternQuery, order: Sequence[int], tighten: bool) -> None:
        super().__init__(Meaning(query), tuple(order), tighten)
        self.seen: list[set[tuple[tuple[int, int], ...]]] = []

    def _extend(self, rows: Rows, low: int, high: int, step: int) -> None:
        size = len(next(iter(rows.values())))
        while len(self.seen) < step:
            self.seen.append(set())
        log = self._ready
        for number in range(size):
            bound = sorted((e, int(log.log.seq[log.rows[e][r[number]]])) for e, r in rows.items())
            self.seen[step - 1].add(tuple(bound))
        super()._extend(rows, low, high, step)


def stream(chance: random.Random) -> list[Event]:
    ts, found = 0, []
    for seq in range(40):
        ts += chance.choice((0, 1, 1, 2, 4))
        found.append(Event(ts, seq, chance.choice("AABCD"), {"x": chance.randint(0, 3)}))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_every_partial_match_becomes_a_match(seed: int) -> None:
    """Holds for order, window and constants, whatever the order of the search."""
    query = query_of("PATTERN A; B; C; D WHERE b.x > 0 AND d.x < 3 WITHIN 9 ms RETURN *")
    events = stream(random.Random(seed))
    want = set(Oracle(query).matches(events))
    dead = 0
    for order in orders(4):
        search = Watched(query, order, tighten=True)
        found = search.advance(of_events(events, {"x": INT}), BEGIN_OF_TIME, END_OF_STREAM)
        assert {m.ids for m in found.matches(query)} == want if found else not want
        for step, seen in enumerate(search.seen, start=1):
            bound = sorted(order[:step])
            led = {tuple((e, ids[e][0]) for e in bound) for ids in want}
            assert seen == led, f"seed {seed}: order {order}, step {step}"
        loose = Watched(query, order, tighten=False)
        loose.advance(of_events(events, {"x": INT}), BEGIN_OF_TIME, END_OF_STREAM)
        dead += sum(map(len, loose.seen)) - sum(map(len, search.seen))
    assert dead > 0  # without tightening there are dead ends


@pytest.mark.parametrize("seed", range(20))
def test_bounds_are_those_of_the_best_chain(seed: int) -> None:
    chance = random.Random(seed)
    times = [
        np.array(sorted(chance.randint(0, 12) for _ in range(chance.randint(0, 6))))
        for _ in range(3)
    ]
    times = [t.astype(np.int64) for t in times]
    found = reach(times, (0, 1, 2))
    for element in range(3):
        for place, own in enumerate(times[element].tolist()):
            after = itertools.product(*(times[i].tolist() for i in range(element + 1, 3)))
            ends = [
                (own, *c)[-1] for c in after if all(a < b for a, b in itertools.pairwise((own, *c)))
            ]
            before = itertools.product(*(times[i].tolist() for i in range(element)))
            begins = [
                (*c, own)[0] for c in before if all(a < b for a, b in itertools.pairwise((*c, own)))
            ]
            assert found.ends[element][place] == min(ends, default=NEVER)
            assert found.begins[element][place] == max(begins, default=-NEVER)
        assert (np.diff(found.ends[element]) >= 0).all()
        assert (np.diff(found.begins[element]) >= 0).all()
