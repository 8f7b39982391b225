"""Interval joins: bounds on times instead of windows, judged by DuckDB over the whole streams."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

from tests.compiler.xsql.relations import STREAMS
from tests.engine.relational.generate import judged, rows_of
from tests.engine.relational.running import at_once, in_pieces

NAMES = {"R": "b", "S": "d", "T": "e"}


def stream(chance: random.Random, other: str) -> pa.Table:
    ts = sorted(chance.randint(0, 60) for _ in range(chance.randint(0, 40)))
    columns = {
        name: pa.array([chance.choice([None, 0, 1, 2]) for _ in ts], pa.int32())
        for name in ("a", other)
    }
    return pa.table({"ts": pa.array(ts, pa.int64()), **columns})


def bound(chance: random.Random, one: str, other: str) -> str:
    low, high = chance.randint(0, 8), chance.randint(0, 8)
    return chance.choice(
        (
            f"{one}.ts BETWEEN {other}.ts - {low} AND {other}.ts + {high}",
            f"abs({one}.ts - {other}.ts) <= {high}",
            f"{one}.ts - {other}.ts < {high} AND {other}.ts - {one}.ts <= {low}",
            f"{one}.ts + {low} >= {other}.ts AND {one}.ts <= {high} + {other}.ts",
            f"{one}.ts > {other}.ts + {low} AND {one}.ts - {low} - {high} <= {other}.ts",
            f"{one}.ts = {other}.ts",
        )
    )


def check(seed: int) -> int:
    """Uses the same text for both, because it contains no window."""
    chance = random.Random(seed)
    rows = {name: stream(chance, other) for name, other in NAMES.items()}
    first = f"x.a = y.a AND {bound(chance, 'x', 'y')}"
    kind = chance.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
    items, times = "x.a AS p, x.b AS q, y.d AS r", "x.ts, y.ts"
    text = f"FROM R x {kind} S y ON {first}"
    shape = chance.randint(0, 3)
    if shape == 1:
        second = (
            f"{chance.choice(('x', 'y'))}.a = z.a AND {bound(chance, chance.choice('xy'), 'z')}"
        )
        items, times = items + ", z.e AS s", times + ", z.ts"
        text += f" {chance.choice(('JOIN', 'LEFT JOIN', 'FULL JOIN'))} T z ON {second}"
    elif shape == 2:
        text += f" WHERE {'NOT ' * chance.randint(0, 1)}EXISTS (SELECT * FROM T z WHERE z.a = x.a AND {bound(chance, 'z', 'x')})"
    elif shape == 3:
        text = f"FROM R x, S y WHERE {first}"
        if chance.random() < 0.5:
            items, times, text = (
                items + ", z.e AS s",
                times + ", z.ts",
                text.replace("S y", "S y, T z"),
            )
            text += f" AND {bound(chance, 'y', 'z')}"
    return judge(items, times, text, rows, seed)


def judge(items: str, times: str, text: str, rows: dict[str, pa.Table], seed: int) -> int:
    """Compares a query without windows, at once and in pieces, with DuckDB; returns the number of
    results."""
    query = f"{STREAMS}REGISTER QUERY q AS SELECT {items} {text}"
    print(f"seed {seed}\n{query}")
    want = Counter(judged(f"SELECT {items}, least({times}), greatest({times}) {text}", **rows))
    for found in (at_once(query, rows), in_pieces(query, rows, seed)):
        assert Counter(rows_of(found.get("q"))) == want
    return want.total()


KINDS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
_CHAINS = [
    (first, second, last, link, at)
    for first in KINDS
    for second in KINDS
    for last in (*KINDS, "NOT EXISTS")
    for link in "xy"
    for at in "xyz"
]


@pytest.mark.parametrize("number", range(0, len(_CHAINS), 3))
def test_chains_of_joins_without_windows(number: int) -> None:
    """Each is bound to one before it. A row that is there was joined to others, or else it is alone:
    both are enough to bound what it may meet."""
    chance = random.Random(number)
    first, second, last, link, at = _CHAINS[number + chance.randrange(3)]
    rows = {name: stream(chance, other).slice(0, 12) for name, other in NAMES.items()}
    items, times = "x.b AS p, y.d AS q, z.e AS r", "x.ts, y.ts, z.ts"
    text = f"FROM R x {first} S y ON {bound(chance, 'x', 'y')}"
    text += f" {second} T z ON {bound(chance, link, 'z')}"
    if last == "NOT EXISTS":
        text += f" WHERE NOT EXISTS (SELECT * FROM S w WHERE {bound(chance, at, 'w')})"
    else:
        items, times = items + ", w.d AS s", times + ", w.ts"
        text += f" {last} S w ON {bound(chance, at, 'w')}"
    judge(items, times, text, rows, number)


@pytest.mark.parametrize("seed", range(60))
def test_as_duckdb_joins_without_windows(seed: int) -> None:
    check(seed)


def test_one_sided_bounds_with_a_window_for_the_other_side() -> None:
    text = f"{STREAMS}REGISTER QUERY q AS SELECT R.b, S.d FROM R, S WHERE S.ts <= R.ts + 3 WINDOW RANGE 3, RANGE 20"
    chance = random.Random(7)
    rows = {name: stream(chance, other) for name, other in NAMES.items()}
    want = judged(
        "SELECT R.b, S.d, least(R.ts, S.ts), greatest(R.ts, S.ts) FROM R, S WHERE S.ts BETWEEN R.ts - 20 AND R.ts + 3",
        **rows,
    )
    assert Counter(rows_of(at_once(text, rows)["q"])) == Counter(want)
