"""Several threads use one connection: the results are those of one thread."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import seustream as ss
from seustream.cosim.bridge.limits import USUAL
from tests.cosim.bridge.serving import bridge

QUERIES = """
CREATE STREAM R (a int); CREATE STREAM S (a int); CREATE STREAM T (a int);
REGISTER QUERY pairs AS SELECT R.a, S.a AS b FROM R, S WHERE R.a = S.a WINDOW RANGE 5;
REGISTER QUERY high AS SELECT a FROM R WHERE a > 3 WINDOW NOW;
REGISTER QUERY sums AS SELECT a, count(*) AS n FROM T GROUP BY a WINDOW RANGE 4;
"""
ROWS = 90
Found = Counter[tuple[object, ...]]


@pytest.fixture(autouse=True)
def eager() -> Iterator[None]:
    """Lets threads take turns more often than they would."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(usual)


@contextlib.contextmanager
def connected(where: str, folder: Path) -> Iterator[ss.LiveQueries]:
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(bridge(folder))[1] if where == "bridge" else None
        yield stack.enter_context(ss.connect(url))


def fed(con: ss.LiveQueries, stream: str) -> None:
    for ts in range(0, ROWS, 2):
        con.push(stream, {"ts": [ts, ts + 1], "a": [ts % 7, ts % 5]})
        if ts % 6 == 0:
            con.watermark(stream, ts + 1)


def taken(results: Iterator[tuple[str, ss.QueryResult]]) -> Found:
    return Counter((name, *row) for name, part in results for row in part.rows())


def at_once(*calls: Callable[[], Any]) -> list[Future[Any]]:
    pool = ThreadPoolExecutor(len(calls))
    started = [pool.submit(call) for call in calls]
    pool.shutdown(wait=False)
    return started


@pytest.mark.parametrize("where", ["engine", "bridge"])
def test_threads_push_and_read_at_once(where: str, tmp_path: Path) -> None:
    with connected(where, tmp_path / "one") as con:
        con.sql(QUERIES)
        for stream in "RST":
            fed(con, stream)
        wanted = taken(con.finish())
    assert {name for name, *_ in wanted} == {"pairs", "high", "sums"}
    with connected(where, tmp_path / "several") as con:
        con.sql(QUERIES)
        found, all_fed = Found(), threading.Event()

        def read() -> Found:
            mine = Found()
            while not all_fed.is_set():
                mine += taken(con.results())
            return mine

        def come_and_go() -> None:
            for number in range(5):
                con.sql(f"REGISTER QUERY x{number} AS SELECT a FROM T WHERE a > 99")
                con.explain(f"x{number}")
                con.sql(f"DROP QUERY x{number}")
                assert len(con.queries()) == 3

        readers = at_once(read, read)
        try:
            for one in at_once(*(lambda s=s: fed(con, s) for s in "RST"), come_and_go):
                one.result(60)
        finally:
            all_fed.set()
        for reader in readers:
            found += reader.result(60)
        assert found + taken(con.finish()) == wanted


@pytest.mark.parametrize("where", ["engine", "bridge"])
def test_callers_between_results_and_in_their_rows_hold_nothing_up(
    where: str, tmp_path: Path
) -> None:
    def rows() -> Iterator[pa.RecordBatch]:
        (asked,) = at_once(con.queries)
        yield pa.record_batch({"ts": [5], "a": [5 + len(asked.result(30))]})

    with connected(where, tmp_path) as con:
        con.sql("CREATE STREAM R (a int); REGISTER QUERY high AS SELECT a FROM R WINDOW NOW")
        con.push("R", {"ts": [1], "a": [4]})
        con.watermark("R", 2)
        results = con.results()
        assert next(results)[1].rows() == [(4, 1, 1)]
        schema = pa.schema({"ts": pa.int64(), "a": pa.int64()})
        (pushed,) = at_once(
            lambda: con.push("R", pa.RecordBatchReader.from_batches(schema, rows()))
        )
        pushed.result(30)
        assert not [*results]
        assert taken(con.finish()) == {("high", 6, 5, 5): 1}


def test_a_push_that_waits_for_room_lets_another_thread_read(tmp_path: Path) -> None:
    limits = replace(USUAL, result_rows=50, waiting_rows=100, patience=5.0)
    with bridge(tmp_path, limits=limits) as (_, url), ss.connect(url) as con:
        con.sql("CREATE STREAM R (a int); REGISTER QUERY q AS SELECT a FROM R WINDOW NOW")

        def feed() -> None:
            for first in range(0, 400, 40):
                con.push("R", {"ts": [*range(first, first + 40)], "a": [*range(first, first + 40)]})

        (feeding,) = at_once(feed)
        seen: list[int] = []
        while not feeding.done():
            seen += [row[0] for _, part in con.results() for row in part.rows()]
        feeding.result()
        seen += [row[0] for _, part in con.finish() for row in part.rows()]
        assert seen == [*range(400)]
