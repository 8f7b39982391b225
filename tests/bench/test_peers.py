"""The works of the engines beside ours against their definitions, and what becomes of an engine
that is not there, is slow or is wrong. Starts no Java."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import feather

from bench import peer_engines, peers
from bench.peer_engines import ENGINES, SEED, WORKS, columns, digest, python, rows, transposed
from seustream.commands import bench

WINDOW, COUNT = 40, 600


def defined(work: str, streams: dict[str, pa.Table], window: int) -> Iterator[tuple[int, ...]]:
    """Yields the results by nested loops."""
    lists = {n: list(zip(*rows.to_pydict().values(), strict=True)) for n, rows in streams.items()}
    r, s = lists["R"], lists.get("S", [])
    for ts, a, b in r:
        if work == "sum":
            yield ts, a, sum(v for t, k, v in r if k == a and ts - window <= t <= ts)
        for other, key, c in s:
            if a == key and abs(ts - other) <= window:
                yield a, b, c, min(ts, other), max(ts, other)


@pytest.mark.parametrize("work", WORKS)
@pytest.mark.parametrize("engine", python.ENGINES)
def test_engines_find_what_is_defined(
    engine: str, work: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine not in ("seustream", "steps"):
        pytest.importorskip(engine)
    print(f"seed {SEED}")
    monkeypatch.setattr("sys.argv", ["", engine, str(tmp_path)])
    monkeypatch.setattr(peer_engines, "KEYS", 7)  # so that a sum is of several rows
    monkeypatch.setattr(python, "STEP", 64)
    streams = rows(work, COUNT, WINDOW)
    found = python.ENGINES[engine](work, streams, WINDOW)()()
    want = sorted(defined(work, streams, WINDOW))
    assert len(want) > COUNT / 2
    assert sorted(zip(*(column.tolist() for column in found), strict=True)) == want
    assert digest(found) == digest(transposed(want, work))


def test_a_digest_is_of_the_rows_in_any_order() -> None:
    rows = [(1, 2, 3), (4, 5, 6), (-7, 8, 9)]
    assert (
        digest(transposed(rows, "sum"))
        == digest(transposed(rows[::-1], "sum"))
        == sum(mixed(row) for row in rows) % (1 << 64)
    )
    for others in ([(1, 2, 3), (4, 5, 6), (-7, 9, 8)], rows[:2], [*rows, rows[0]]):
        assert digest(transposed(others, "sum")) != digest(transposed(rows, "sum"))
    table = pa.table({"s": [3], "ts": [1], "a": [2]})
    assert digest(columns(table, "sum")) == mixed(rows[0])


def mixed(row: tuple[int, ...]) -> int:
    """Returns the hash of a row as Rows.java has it."""
    whole = (1 << 64) - 1
    found = 0
    for value in row:
        found = (found ^ (value & whole)) * 0x9E3779B97F4A7C15 & whole
        found ^= found >> 32
    return found


def test_others_are_compared_with_what_takes_rows_as_they_do() -> None:
    def of(name: str, takes: str, cpu: float | None, size: int = 100) -> peers.Row:
        return (name, "1", takes, "join", 10, size, 7, cpu, 9.0, None, "")

    found = peers.compared(
        [
            of("seustream", "at once", 1.0),
            of("seustream, live", "in steps", 2.0),
            of("Polars", "at once", 0.5),
            of("Esper", "one by one", 8.0),
            of("Siddhi", "one by one", None),
            of("Polars", "at once", 0.5, 1_000),
        ]
    )
    assert [row[9] for row in found] == [None, None, 0.5, 4.0, None, None]


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sets small sizes; returns the file of results before."""
    monkeypatch.setattr(peers, "SIZES", (100, 200))
    monkeypatch.setattr(peers, "WINDOWS", (10,))
    monkeypatch.setattr(bench, "folder", lambda: tmp_path)
    (tmp_path / "results").mkdir()
    return tmp_path / "results" / "peers.json"


def says(cpu: float, change: int = 0) -> Callable[[list[str]], str]:
    """Returns a program that finds what DuckDB does."""

    def run(command: list[str]) -> str:
        *_, folder, work, window = command
        streams = {p.stem: feather.read_table(p) for p in Path(folder).glob("*.arrow")}
        found = python.ENGINES["duckdb"](work, streams, int(window))()()
        return "a remark\n" + json.dumps(["9", len(found[0]), digest(found) + change, cpu, 2.0])

    return run


def test_an_engine_is_measured_and_others_keep_their_rows(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def before(name: str, size: int) -> list[object]:
        return [name, "1", "at once", "join", 10, size, 3, 1e4, 1.0, None, ""]

    kept = [before("DuckDB", 100), before("Polars", 100), before("DuckDB", 999)]
    small.write_text(json.dumps({"head": peers.HEAD, "rows": kept}))
    monkeypatch.setattr(peers, "_run", says(0.5))
    found = peers.measure(("seustream", "polars"))
    assert [row[0] for row in found.rows] == ["seustream"] * 4 + ["DuckDB"] + ["Polars"] * 4
    assert [row[9] for row in found.rows] == [None] * 4 + [2.0] + [1.0] * 4
    assert found.rows[0][7:9] == (5_000.0, 20_000.0)
    assert {row[1] for row in found.rows} == {"1", "9"}


def test_an_engine_that_is_wrong_is_an_error(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "_run", says(0.5, change=1))
    with pytest.raises(AssertionError, match=r"Polars: .* of join with 100 rows and window 10"):
        peers.measure(("polars",))


def test_an_engine_that_is_slow_gets_no_more_rows(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "_run", says(peers.LIMIT * 0.6))
    found = peers.measure(("bytewax",))
    assert [row[10] for row in found.rows] == ["", peers.SLOW] * 2
    assert [row[7] is None for row in found.rows] == [False, True] * 2


@pytest.mark.parametrize(
    ("code", "remark"),
    [
        ("import no_such_engine", "not installed: ModuleNotFoundError: No module named 'no_such"),
        ("raise MemoryError('full')", "failed: MemoryError: full"),
        ("import time; time.sleep(30)", peers.SLOW),
    ],
)
def test_an_engine_without_figures_has_a_remark(
    code: str, remark: str, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "_command", lambda part, scratch: [sys.executable, "-c", code])
    if remark == peers.SLOW:
        monkeypatch.setattr(peers, "LIMIT", 0.2)
    found = peers.measure(("bytewax",))
    assert all(str(row[10]).startswith(remark) for row in found.rows)
    assert [row[6:10] for row in found.rows] == [(None,) * 4] * 4


def test_java_that_is_missing_is_a_remark(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    found = peers.measure(("esper",))
    assert {row[10] for row in found.rows} == {"not installed: java is not there"}
    assert {row[0] for row in found.rows} == {"Esper"}


def test_a_short_run_does_without_java() -> None:
    assert set(peers.SHORT["PARTS"]) == set(ENGINES) - {"kafka", "esper", "siddhi"}
