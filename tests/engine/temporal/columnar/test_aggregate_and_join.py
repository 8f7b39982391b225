"""Aggregates and joins on columns compared with brute force at each instant, for any cut of the
input."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import pytest

from seustream.engine.stream.merge import END_OF_STREAM
from seustream.engine.temporal.aggregates.index import ListIndex
from seustream.engine.temporal.aggregates.suffix import SuffixIndex
from seustream.engine.temporal.columnar import join
from seustream.engine.temporal.columnar.aggregate import IndexedAggregate
from seustream.engine.temporal.elements import StreamElement
from tests.engine.temporal.reference.elements import insertion
from tests.engine.temporal.running import compiled, node, results_of, schemas, table

OF = schemas(A=[["k", "INTEGER"], ["v", "INTEGER"]], B=[["k", "INTEGER"], ["v", "INTEGER"]])
LAST = 45


def stream(chance: random.Random) -> list[StreamElement]:
    now, found = 0, []
    for _ in range(25):
        now += chance.choice([0, 0, 1, 2])
        value = chance.choice([None, 0, 1, 2, -5])
        found.append(insertion(now, now + chance.randint(1, 6), chance.choice([None, 1, 2]), value))
    return sorted(found, key=lambda one: (one.ts, one.te))


def rows_of(
    query: str, streams: dict[str, list[StreamElement]], step: int
) -> list[tuple[Any, ...]]:
    one = node(compiled(query, OF), OF, step)
    return results_of(one, {name: table(rows, OF[name].tree) for name, rows in streams.items()})


def at_each_instant(rows: list[tuple[Any, ...]]) -> list[Counter[tuple[Any, ...]]]:
    return [Counter(row[2:] for row in rows if row[0] <= now < row[1]) for now in range(LAST)]


@pytest.mark.parametrize("step", [1, 4, 1000])
@pytest.mark.parametrize("seed", range(4))
def test_an_aggregate_is_that_of_the_tuples_that_live(seed: int, step: int) -> None:
    print(f"seed {seed}")
    rows = stream(random.Random(seed))
    query = (
        "where $A.k == 1 select [n = agg.count($A), s = agg.sum($A.v), lo = agg.min($A.v),"
        " m = median($A.v), d = count(distinct $A.v)]"
    )
    found = rows_of(query, {"A": rows}, step)
    want = []
    for now in range(LAST):
        live = [one.values[1] for one in rows if one.ts <= now < one.te and one.values[0] == 1]
        known = sorted(v for v in live if isinstance(v, int))
        if not live:
            want.append(Counter())
            continue
        half = len(known) // 2
        middle = None
        if known:
            middle = float(known[half]) if len(known) % 2 else (known[half - 1] + known[half]) / 2
        value = (len(live), sum(known) if known else None, known[0] if known else None, middle,
                 len(set(known)))  # fmt: skip
        want.append(Counter([value]))
    assert at_each_instant(found) == want
    for before, after in itertools.pairwise(found):
        assert before[1] <= after[0], "results of an aggregate are disjoint"


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("window", ["", "window.range($A, 5), "])
def test_a_list_of_an_older_release_is_taken_up(window: str, seed: int) -> None:
    """Aggregates that need the order of rows were in a list."""
    print(f"seed {seed}")
    rows = stream(random.Random(seed))
    query = compiled(f"where {window}$A.k == 1 select [a = first($A.v), b = array_agg($A.v)]", OF)
    want = results_of(node(query, OF), {"A": table(rows, OF["A"].tree)})
    older, one = node(query, OF), node(query, OF)
    for operator in older.operators:
        if isinstance(operator, IndexedAggregate):
            assert isinstance(operator.index, SuffixIndex)
            operator.index = ListIndex(*operator._of)
    early = [row for row in rows if row.ts < 12]
    found = results_of(older, {"A": table(early, OF["A"].tree)}, 11)
    one.restore(older.snapshot())
    found += results_of(one, {"A": table(rows[len(early) :], OF["A"].tree)})
    assert [row[2:] for row in found] != []
    assert as_told(found) == as_told(want)


def as_told(rows: list[tuple[Any, ...]]) -> list[list[tuple[Any, ...]]]:
    return [[row[2:] for row in rows if row[0] <= now < row[1]] for now in range(LAST)]


@pytest.mark.parametrize("median", ["", ", m = median($A.v)"])
@pytest.mark.parametrize("seed", range(8))
def test_a_watermark_gives_what_has_ended(seed: int, median: str) -> None:
    """Results do not depend on watermarks. If nothing lives any more, all of them are there: a
    stream that is quiet keeps nothing back."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    rows = stream(chance)
    query = f"select [n = agg.count($A), s = agg.sum($A.v){median}]"  # with an index, and without
    one = node(compiled(query, OF), OF, 1000)
    found: list[tuple[Any, ...]] = []
    quiet, came = 0, list[StreamElement]()
    for watermark in [*sorted(chance.sample(range(LAST), 9)), END_OF_STREAM]:
        some, rows = [[r for r in rows if (r.ts <= watermark) == now] for now in (True, False)]
        found += results_of(one, {"A": table(some, OF["A"].tree)}, watermark)
        came += some
        if all(row.te <= watermark for row in came):
            quiet += 1
            assert one.watermark >= watermark
    assert quiet > 1
    assert found == rows_of(query, {"A": stream(random.Random(seed))}, 1000)


@pytest.mark.parametrize("at_once", [3, None])
@pytest.mark.parametrize("few", [0, None])
@pytest.mark.parametrize("equal", ["$A.k == $B.k", "$A.k - $B.k == 0"])
@pytest.mark.parametrize("step", [1, 4, 1000])
@pytest.mark.parametrize("seed", range(4))
def test_a_pair_lives_while_both_do(
    seed: int,
    step: int,
    equal: str,
    few: int | None,
    at_once: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Holds whether or not the search for pairs uses lifetimes, and however few pairs are made at
    once."""
    print(f"seed {seed}")
    if few is not None:
        monkeypatch.setattr(join, "_FEW_PAIRS", few)
    if at_once is not None:
        monkeypatch.setattr(join, "_PAIRS_AT_ONCE", at_once)
    chance = random.Random(50 + seed)
    streams = {"A": stream(chance), "B": stream(chance)}
    query = f"where {equal}, $A.v <= $B.v + 1 select [a = $A.v, b = $B.v]"
    found = rows_of(query, streams, step)
    want: Counter[tuple[Any, ...]] = Counter()
    for a in streams["A"]:
        for b in streams["B"]:
            ts, te = max(a.ts, b.ts), min(a.te, b.te)
            if (
                None in (a.values[0], *a.values, *b.values)
                or a.values[0] != b.values[0]
                or ts >= te
            ):
                continue
            x, y = a.values[1], b.values[1]
            assert isinstance(x, int)
            assert isinstance(y, int)
            if x <= y + 1:
                want[ts, te, x, y] += 1
    assert Counter(found) == want
    assert [row[:2] for row in found] == sorted(row[:2] for row in found)
    assert want
