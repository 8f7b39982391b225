"""Windows that no device supports, and distinct rows within a window, compared with brute force
over the whole streams."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from tests.engine.relational.generate import rows_of
from tests.engine.relational.once import DEFINITIONS, Row, order, run, stream
from tests.engine.relational.running import at_once, in_pieces


def windows(chance: random.Random, keys: bool = True) -> tuple[str, Any]:
    """Returns a window, and which of the rows of its stream that have come by now it holds."""
    kind = chance.choice(
        ("partition", "since", "every", "range", "rows") if keys else ("range", "rows")
    )
    n = chance.randint(1, 4)
    if kind == "partition":
        key = chance.choice(("a", "a, {o}"))

        def last(came: list[Row], now: int) -> list[Row]:
            found: list[Row] = []
            for row in came:
                own = [
                    k if k == "a" else next(c for c in row if c in "bd") for k in key.split(", ")
                ]
                later = [x for x in came if [x[k] for k in own] == [row[k] for k in own]]
                if len(later) - [id(x) for x in later].index(id(row)) <= n:
                    found.append(row)
            return found

        return f"PARTITION BY {key} ROWS {n}", last
    if kind == "since":
        return f"SINCE {7 * n}", lambda came, now: [row for row in came if row["ts"] >= 7 * n]
    if kind == "every":
        size = 5 * n
        return (
            f"SINCE EVERY {size} ms",
            lambda came, now: [row for row in came if row["ts"] // size == now // size],
        )
    if kind == "rows":
        return f"ROWS {n}", lambda came, now: came[-n:]
    return f"RANGE {3 * n}", lambda came, now: [row for row in came if row["ts"] >= now - 3 * n]


@pytest.mark.parametrize("seed", range(40))
def test_a_join(seed: int) -> None:
    chance = random.Random(seed)
    rows = {"R": stream(chance, "b"), "S": stream(chance, "d")}
    (first, of_first), (second, of_second) = windows(chance), windows(chance)
    text = (
        f"{DEFINITIONS}REGISTER QUERY q AS SELECT x.b, y.d FROM R x, S y WHERE x.a = y.a AND x.b > 0"
        f" WINDOW {first.format(o='b')}, {second.format(o='d')}"
    )
    want: Counter[tuple[Any, ...]] = Counter()
    came: dict[str, list[Row]] = {"R": [], "S": []}
    for row in order(rows):
        came[row["of"]].append(row)
        for x in of_first(came["R"], row["ts"]):
            for y in of_second(came["S"], row["ts"]):
                latest = row is (x if row["of"] == "R" else y)
                if latest and x["a"] == y["a"] is not None and (x["b"] or 0) > 0:
                    want[x["b"], y["d"], min(x["ts"], y["ts"]), row["ts"]] += 1
    assert Counter(run(text, rows, seed)) == want


@pytest.mark.parametrize("seed", range(40))
def test_groups(seed: int) -> None:
    chance = random.Random(seed)
    rows = {"R": stream(chance, "b")}
    name, held = windows(chance)
    text = f"{DEFINITIONS}REGISTER QUERY q AS SELECT a, count(*) AS n, sum(b) AS s FROM R WHERE b < 2 GROUP BY a WINDOW {name.format(o='b')}"
    want, came = [], []
    for row in order(rows):
        came.append(row)
        now = [x for x in held(came, row["ts"]) if x["b"] is not None and x["b"] < 2]
        mine = [x for x in now if x["a"] == row["a"]]
        if any(x is row for x in mine):
            want.append(
                (
                    row["a"],
                    len(mine),
                    sum(x["b"] for x in mine),
                    min(x["ts"] for x in mine),
                    row["ts"],
                )
            )
    assert run(text, rows, seed) == want


@pytest.mark.parametrize("seed", range(30))
def test_steps(seed: int) -> None:
    """Gives the answer only at each step."""
    chance = random.Random(seed)
    rows = {"R": stream(chance, "b")}
    size, slide, by_rows = chance.randint(1, 12), chance.randint(1, 7), chance.random() < 0.5
    window = f"{'ROWS' if by_rows else 'RANGE'} {size} SLIDE {slide}"
    text = f"{DEFINITIONS}REGISTER QUERY q AS SELECT a, count(*) AS n FROM R WHERE b < 2 GROUP BY a WINDOW {window}"
    came, want = order(rows), []
    if by_rows:
        steps = [
            (came[n - 1]["ts"], came[max(n - size, 0) : n])
            for n in range(slide, len(came) + 1, slide)
        ]
    else:
        steps = [
            (at, [r for r in came if at - size <= r["ts"] <= at]) for at in range(0, 100, slide)
        ]
    for at, held in steps:
        groups: dict[Any, list[Row]] = {}
        for row in held:
            if row["b"] is not None and row["b"] < 2:
                groups.setdefault(row["a"], []).append(row)
        want += [(a, len(g), min(r["ts"] for r in g), at) for a, g in groups.items()]
    assert Counter(run(text, rows, seed)) == Counter(want)


def test_the_last_period_of_all_time() -> None:
    last = 2**63 - 1
    rows = {"R": pa.table({"ts": [0, last - 1, last], "a": pa.array([1, 2, 3], pa.int32())})}
    text = "CREATE STREAM R (a int); REGISTER QUERY q AS SELECT count(*) AS n FROM R WINDOW SINCE EVERY day"
    for found in (at_once(text, rows), in_pieces(text, rows, 1)):
        assert [row[0] for row in rows_of(found.get("q"))] == [1, 1, 2]
