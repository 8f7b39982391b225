"""Windows that no device has, and rows once within a window, by brute force over the whole streams."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from seustream.compiler.errors import CompileError
from seustream.compiler.pipeline import compile_text
from tests.engine.relational.generate import rows_of
from tests.engine.relational.running import at_once, in_pieces

DEFINITIONS = "CREATE STREAM R (a int, b int); CREATE STREAM S (a int, d int);\n"
Row = dict[str, Any]


def stream(chance: random.Random, other: str) -> pa.Table:
    ts = sorted(chance.randint(0, 60) for _ in range(chance.randint(1, 40)))
    columns = {
        name: pa.array([chance.choice([None, 0, 1, 2]) for _ in ts], pa.int32())
        for name in ("a", other)
    }
    return pa.table({"ts": pa.array(ts, pa.int64()), **columns})


def order(rows: dict[str, pa.Table]) -> list[Row]:
    """All rows in the order of all streams, each with its stream."""
    every = [row | {"of": name} for name in rows for row in rows[name].to_pylist()]
    return sorted(every, key=lambda row: row["ts"])


def windows(chance: random.Random, keys: bool = True) -> tuple[str, Any]:
    """A window, and what it holds of the rows of its stream that have come by now."""
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


def run(text: str, rows: dict[str, pa.Table], seed: int) -> list[tuple[Any, ...]]:
    print(f"seed {seed}\n{text}")
    found = at_once(text, rows).get("q")
    pieces = in_pieces(text, rows, seed).get("q")
    assert Counter(rows_of(pieces)) == Counter(rows_of(found))
    return rows_of(found)


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


@pytest.mark.parametrize("seed", range(40))
def test_groups_of_a_join(seed: int) -> None:
    """A member leaves when one of its rows is pushed out."""
    chance = random.Random(1000 + seed)
    rows = {"R": stream(chance, "b"), "S": stream(chance, "d")}
    n = chance.randint(1, 2)
    text = (
        f"{DEFINITIONS}REGISTER QUERY q AS SELECT x.a, count(*) AS n FROM R x, S y WHERE x.a = y.a"
        f" GROUP BY x.a WINDOW PARTITION BY a ROWS {n}"
    )
    want = []
    last: dict[str, dict[Any, list[Row]]] = {"R": {}, "S": {}}
    for row in order(rows):
        kept = last[row["of"]].setdefault(row["a"], [])
        kept.append(row)
        del kept[:-n]
        pairs = [(x, y) for x in last["R"].get(row["a"], []) for y in last["S"].get(row["a"], [])]
        if row["a"] is not None and pairs:
            oldest = min(min(x["ts"], y["ts"]) for x, y in pairs)
            want.append((row["a"], len(pairs), oldest, row["ts"]))
    assert run(text, rows, seed) == want


@pytest.mark.parametrize("seed", range(30))
def test_steps(seed: int) -> None:
    """The answer at each step only."""
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


@pytest.mark.parametrize("seed", range(40))
def test_distinct(seed: int) -> None:
    chance = random.Random(seed)
    rows = {"R": stream(chance, "b"), "S": stream(chance, "d")}
    window, size = chance.choice((("RANGE", 6), ("ROWS", 4), ("UNBOUNDED", 0), ("RANGE", 0)))
    said = f"WINDOW {window} {size}" if window != "UNBOUNDED" else "WINDOW UNBOUNDED"
    if union := chance.random() < 0.5:
        select = f"SELECT a, b FROM R WHERE b > 0 UNION SELECT a, d FROM S {said}"
    else:
        select = f"SELECT DISTINCT a, b FROM R WHERE b > 0 {said}"
    text = f"{DEFINITIONS}REGISTER QUERY q AS {select}"
    given: dict[Any, tuple[int, int]] = {}
    want, number = [], 0
    for row in order(rows if union else {"R": rows["R"]}):
        if row["of"] == "R" and not (row["b"] is not None and row["b"] > 0):
            continue
        key = (row["a"], row["b"] if row["of"] == "R" else row["d"])
        at, ts = given.get(key, (None, None))
        within = window == "UNBOUNDED" or (
            at is not None and (row["ts"] - ts <= size if window == "RANGE" else number - at < size)
        )
        if at is None or not within:
            given[key] = (number, row["ts"])
            want.append((*key, row["ts"], row["ts"]))
        number += 1
    assert run(text, rows, seed) == want


@pytest.mark.parametrize(
    ("select", "kind"),
    [
        ("SELECT DISTINCT a FROM R", "missing-window"),
        ("SELECT a FROM R UNION SELECT a FROM S", "missing-window"),
        ("SELECT DISTINCT a FROM R GROUP BY a, TUMBLE(ts, 5) WINDOW RANGE 5", "distinct"),
        ("SELECT DISTINCT R.a FROM R, S WHERE R.a = S.a WINDOW RANGE 5, ROWS 5", "distinct"),
        ("SELECT count(*) FROM R WINDOW PARTITION BY c ROWS 1", "unknown-column"),
        ("SELECT count(*) FROM R WINDOW SINCE TIMESTAMP 'noon'", "constant-range"),
        ("SELECT count(*) FROM R WINDOW RANGE 5 SLIDE 0", "group-window"),
        ("SELECT a FROM R WINDOW RANGE 5 SLIDE 5", "group-window"),
        ("SELECT count(*) FROM R, S WHERE R.a = S.a WINDOW RANGE 5 SLIDE 5", "group-window"),
        ("SELECT count(*) FROM R WINDOW SINCE EVERY year", "unknown-unit"),
    ],
)
def test_mistakes(select: str, kind: str) -> None:
    with pytest.raises(CompileError) as error:
        compile_text(DEFINITIONS + select)
    assert kind in [problem.kind for problem in error.value.problems]
