"""Tests streams that patterns define: whatever the steps, and however early a later match is certain,
their rows come in one order, by time, and by the arrival of the rows they are about."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.engine.graph import GraphRun
from seustream.engine.pattern.release import Release

CREATE = "CREATE STREAM s (id int, type varchar, k int, x int);"
_MATCH = "SELECT * FROM s MATCH_RECOGNIZE ({} WITHIN INTERVAL '0.012' SECOND{})"
DEFINITIONS = {
    "one row": _MATCH.format(
        "PARTITION BY k ORDER BY ts MEASURES A.id AS i, LAST(B.id) AS j PATTERN (A B+ C+)",
        " DEFINE B AS B.x <= PREV(B.x), C AS C.x > PREV(C.x)",
    ),
    "overlapping": _MATCH.format(
        "ORDER BY ts MEASURES A.id AS i, LAST(B.id) AS j AFTER MATCH SKIP TO NEXT ROW PATTERN (A B+)",
        " DEFINE B AS B.x >= A.x",
    ),
    "all rows": _MATCH.format(
        "PARTITION BY k ORDER BY ts MEASURES A.id AS i, id AS j ALL ROWS PER MATCH PATTERN (A B)",
        " DEFINE B AS B.x > A.x",
    ),
    "unmatched rows": _MATCH.format(
        "PARTITION BY k ORDER BY ts MEASURES A.id AS i, id AS j ALL ROWS PER MATCH WITH UNMATCHED ROWS"
        " AFTER MATCH SKIP TO NEXT ROW PATTERN (A C)",
        " DEFINE A AS A.x = 1, C AS C.type = 'C'",
    ),
    "skip to next": "PATTERN A a; B b FROM s PARTITION BY k WITHIN 12 ms AFTER MATCH SKIP TO NEXT EVENT"
    " RETURN a.id AS i, b.id AS j",
    "skip past last": "PATTERN A a; B b FROM s PARTITION BY k WITHIN 12 ms"
    " AFTER MATCH SKIP PAST LAST EVENT RETURN a.id AS i, b.id AS j",
    "ways": "PATTERN A a; B? b; C c FROM s PARTITION BY k WITHIN 12 ms AFTER MATCH SKIP TO NEXT EVENT"
    " RETURN a.id AS i, c.id AS j",
}


def compiled(definition: str) -> Compilation:
    return compile_text(
        f"{CREATE} REGISTER QUERY direct AS {definition}; CREATE STREAM m AS {definition};"
        " REGISTER QUERY q AS SELECT i, j FROM m; REGISTER QUERY w AS SELECT sum(j) AS s FROM m WINDOW ROWS 2",
        options=Options(devices=0),
    )


def events(chance: random.Random, count: int) -> pa.Table:
    ts = np.cumsum([chance.choice([0, 0, 1, 2, 5]) for _ in range(count)])
    columns = {name: pa.array([chance.randrange(3) for _ in ts], pa.int32()) for name in "kx"}
    kinds = [chance.choice("ABC") for _ in ts]
    numbers = pa.array(range(count), pa.int32())
    return pa.table({"ts": pa.array(ts, pa.int64()), "id": numbers, "type": kinds, **columns})


def results(
    c: Compilation, rows: pa.Table, chance: random.Random, most: int
) -> dict[str, list[dict[str, int]]]:
    """Returns the results of each query; the run is saved and continued in another one now and
    then."""
    run, done = GraphRun(c), 0
    found: dict[str, list[dict[str, int]]] = {name: [] for name in c.program.names}
    while done < rows.num_rows:
        size = chance.randint(1, most)
        run.push("s", rows.slice(done, size))
        done += size
        for name, some in run.advance():
            found[name] += some.to_pylist()
        if chance.random() < 0.1:
            state, run = run.state(), GraphRun(c)
            run.resume(state)
    for name, some in run.finish():
        found[name] += some.to_pylist()
    return found


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_steps_do_not_change_a_defined_stream(definition: str) -> None:
    total = 0
    for seed in range(12):
        print(f"seed {seed}")
        chance = random.Random(seed)
        c, rows = compiled(DEFINITIONS[definition]), events(chance, 60)
        whole = results(c, rows, chance, 1_000)
        for most in (1, 4, 20):
            cut = results(c, rows, chance, most)
            assert (cut["q"], cut["w"]) == (whole["q"], whole["w"])
        times = [row["ts_newest"] for row in whole["q"]]
        assert times == sorted(times)
        mine, direct = (
            Counter((row["i"], row["j"]) for row in whole[name]) for name in ("q", "direct")
        )
        assert mine == direct
        total += len(times)
    assert total


def test_rows_wait_for_the_watermark() -> None:
    release = Release(pa.schema([("v", pa.string())]))
    ints = [np.array(some, np.int64) for some in ([5, 2, 5], [9, 1, 7])]
    release.add(pa.table({"v": ["c", "a", "b"]}), *ints)
    release.add(pa.table({"v": ["d"]}), np.array([5]), np.array([7]))
    rows, times = release.released(4)
    assert (rows.to_pylist(), times.tolist()) == ([{"v": "a"}], [2])
    other = Release(pa.schema([("v", pa.string())]))
    other.resume(release.waiting)
    for one in (release, other):
        rows, times = one.released(5)
        assert ([row["v"] for row in rows.to_pylist()], times.tolist()) == (
            ["b", "d", "c"],
            [5, 5, 5],
        )
        assert not one.waiting.num_rows
