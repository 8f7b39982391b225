"""The synopsis filter never drops a tuple of a result, leaves the output of the device behind it
unchanged, and stops tuples that can join nothing."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.pipeline import Compilation, compile_text
from seustream.cosim.golden import GoldenDevice
from seustream.engine.graph import GraphRun
from seustream.engine.sites.needs import needs
from seustream.engine.sites.prefilter import KeysOverTime, SynopsisFilter, places

STREAMS = "CREATE STREAM R (a int, b int); CREATE STREAM S (d int, e int); CREATE STREAM T (f int);"
QUERIES = {
    "two": "SELECT * FROM R, S WHERE R.a = S.d WINDOW RANGE 20;",
    "three": "SELECT * FROM R, S, T WHERE R.a = S.d AND S.d = T.f WINDOW RANGE 30, RANGE 5, RANGE 0;",
    "chain": "SELECT * FROM R, S, T WHERE R.a = S.d AND S.e = T.f AND R.b > 2 WINDOW RANGE 25;",
    "either": "SELECT * FROM R, S WHERE R.a = S.d AND (R.b = S.e OR R.b > 90) WINDOW RANGE 20;",
    "self": "SELECT * FROM R x, R y WHERE x.a = y.b WINDOW RANGE 10;",
    "unbounded": "SELECT * FROM R, S WHERE R.a = S.d WINDOW UNBOUNDED, RANGE 20;",
    "rows": "SELECT * FROM R, S WHERE R.a = S.d WINDOW RANGE 20, ROWS 3;",
    "several": "SELECT * FROM R, S WHERE R.a = S.d WINDOW RANGE 5;"
    "SELECT * FROM S, T WHERE S.e = T.f WINDOW RANGE 9;",
    "one of all": "SELECT b FROM R WHERE a > 3 WINDOW NOW;"
    "SELECT * FROM R, S WHERE R.a = S.d WINDOW RANGE 5;",
    "no equality": "SELECT * FROM R, S WHERE R.a < S.d WINDOW RANGE 3;",
}


def streams(seed: int, tuples: int = 120) -> dict[str, pa.Table]:
    chance = np.random.default_rng(seed)

    def column() -> pa.Array:
        values = chance.integers(0, 60, tuples).astype(np.int32)
        return pa.array(values, mask=chance.random(tuples) < 0.05)

    return {
        name: pa.table(
            {
                "ts": pa.array(np.sort(chance.integers(0, tuples * 3, tuples))),
                **{column_name: column() for column_name in columns},
            }
        )
        for name, columns in {"R": "ab", "S": "de", "T": "f"}.items()
    }


def output(c: Compilation, given: dict[str, list[pa.Table]]) -> list[tuple[str, list[object]]]:
    driver = GraphRun(c, GoldenDevice(c.options.config))
    names = {stream.name for stream in c.streams}
    for name, parts in given.items():
        if name in names:
            for part in parts:
                driver.push(name, part)
    found = []
    for query, rows in driver.finish():
        found += [(query, list(row.values())) for row in rows.to_pylist()]
    return sorted(found, key=repr)


@pytest.mark.parametrize("bits", [8, 1 << 14])
@pytest.mark.parametrize("name", QUERIES)
def test_statement_42_filtered_and_unfiltered_feeds_agree(name: str, bits: int) -> None:
    c = compile_text(STREAMS + QUERIES[name])
    for seed in range(4):
        given = streams(seed)
        synopses = SynopsisFilter(needs(c.program), list(given), bits)
        passed: dict[str, list[pa.Table]] = {stream: [] for stream in given}
        chance = random.Random(seed)
        left = dict(given)
        while left:
            stream = chance.choice(sorted(left))
            rows = left.pop(stream)
            count = chance.randint(1, 40)
            synopses.push(stream, rows.slice(0, count))
            if rows.num_rows > count:
                left[stream] = rows.slice(count)
            else:
                synopses.end(stream)
            for released, kept in synopses.release():
                passed[released].append(kept)
        for stream, rows in given.items():
            saved = synopses.saved[stream]
            assert saved.tuples == rows.num_rows
            assert sum(part.num_rows for part in passed[stream]) == saved.tuples - saved.dropped
        assert output(c, passed) == output(c, {k: [v] for k, v in given.items()}), seed


@pytest.mark.parametrize("name", ["two", "three", "chain"])
def test_what_cannot_join_stays(name: str) -> None:
    c = compile_text(STREAMS + QUERIES[name])
    given = streams(1)
    synopses = SynopsisFilter(needs(c.program), list(given))
    for stream, rows in given.items():
        synopses.push(stream, rows)
        synopses.end(stream)
    kept = dict(synopses.release())
    assert sum(saved.dropped for saved in synopses.saved.values()) > 100
    if name == "two":
        # By definition; synopses may add one stretch of time on either side.
        other = given["S"].to_pylist()
        sure = [
            row
            for row in given["R"].to_pylist()
            if any(o["d"] == row["a"] and abs(o["ts"] - row["ts"]) <= 20 for o in other)
        ]
        rough = [
            row
            for row in given["R"].to_pylist()
            if any(o["d"] == row["a"] and abs(o["ts"] - row["ts"]) <= 24 for o in other)
        ]
        passed = kept["R"].to_pylist()
        assert [row for row in sure if row not in passed and row["a"] is not None] == []
        assert len(passed) <= len(rough)


def test_nothing_is_decided_before_its_time() -> None:
    c = compile_text(STREAMS + QUERIES["two"])
    synopses = SynopsisFilter(needs(c.program), ["R", "S"])
    synopses.push("R", pa.table({"ts": [100, 110], "a": [1, 2], "b": [0, 0]}))
    synopses.push("S", pa.table({"ts": [120], "d": [7], "e": [0]}))
    assert list(synopses.release()) == []
    assert synopses.saved["R"].dropped == 0
    synopses.promise("S", 121)
    assert list(synopses.release()) == []
    assert synopses.saved["R"].dropped == 1
    synopses.push("S", pa.table({"ts": [125], "d": [2], "e": [0]}))
    synopses.end("S")
    synopses.end("R")
    found = {stream: rows.column("ts").to_pylist() for stream, rows in synopses.release()}
    assert found == {"R": [110], "S": [125]}


def test_memory_and_synopses_are_bounded() -> None:
    c = compile_text(STREAMS + QUERIES["two"])
    synopses = SynopsisFilter(needs(c.program), ["R", "S"], bits=64)
    for t in range(0, 5000, 50):
        for stream, columns in (("R", "ab"), ("S", "de")):
            synopses.push(stream, pa.table({"ts": [t], columns[0]: [t % 7], columns[1]: [0]}))
        list(synopses.release())
    assert all(len(keys) < 80 for keys in synopses.keys.values())
    assert synopses.saved["R"].synopsis_bytes > 0
    assert not any(part.num_rows > 5 for s in synopses.streams.values() for part in s.waiting)


def test_keys_over_time_never_miss() -> None:
    chance = np.random.default_rng(5)
    for _ in range(40):
        keys = KeysOverTime(64, int(chance.integers(1, 9)))
        at, ts = chance.integers(-1, 64, 50), chance.integers(-100, 100, 50)
        keys.add(at, ts)
        before, after = (int(v) for v in chance.integers(0, 30, 2))
        ask, when = chance.integers(-1, 64, 40), chance.integers(-120, 120, 40)
        found = keys.has(ask, when, before, after)
        for key, t, has in zip(ask, when, found, strict=True):
            near = (at == key) & (ts >= t - before) & (ts <= t + after)
            assert has or not (near.any() and key >= 0)
            assert not (has and key < 0)


def test_equal_values_of_different_types_have_one_place() -> None:
    small, large = pa.array([1, -5, None], pa.int16()), pa.array([1, -5, None], pa.int64())
    assert places(small, 1024).tolist() == places(large, 1024).tolist()
    assert places(small, 1024)[2] == -1
    texts = places(pa.array(["x", None, "y", "x"]), 1 << 16)
    assert texts[0] == texts[3] != texts[2]
    assert texts[1] == -1


@pytest.mark.parametrize("bits", [0, 7, 12])
def test_bits_are_a_power_of_two(bits: int) -> None:
    with pytest.raises(ValueError, match="power of two"):
        SynopsisFilter(needs(compile_text(STREAMS).program), [], bits)
    with pytest.raises(ValueError, match="slack"):
        SynopsisFilter(needs(compile_text(STREAMS).program), [], slack=-1)
