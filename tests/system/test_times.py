"""Tests streams that name the column of their time: whatever takes the time of a row takes that column.

DuckDB judges each query over the whole streams; the query gives the same from files, from Python, in random
pieces and at a bridge.
"""

from __future__ import annotations

import datetime
import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import seustream
from seustream.compiler.errors import CompileError
from seustream.compiler.pipeline import compile_text
from tests.cosim.bridge.serving import Rows
from tests.system import mixed

DECLARED = """CREATE STREAM o (n int, k int, price int, order_time timestamp) WITH (time = 'order_time');
CREATE STREAM s (n int, k int, ship_time timestamp, WATERMARK FOR ship_time AS ship_time);
CREATE STREAM b (n int, k int, at bigint) WITH (time = 'at');
CREATE STREAM p (n int, k int);
"""
_START = datetime.datetime(2026, 3, 1)
_MS = datetime.timedelta(milliseconds=1)

ALIKE = (
    "SELECT o.n AS x, s.n AS y FROM o, s WHERE o.k = s.k"
    " AND o.order_time BETWEEN s.ship_time - INTERVAL '0.009' SECOND AND s.ship_time",
    "SELECT o.n AS x, s.n AS y FROM o JOIN s ON o.k = s.k AND s.ship_time >= o.order_time"
    " AND s.ship_time < o.order_time + INTERVAL '0.005' SECOND",
    "SELECT b.n AS x, p.n AS y FROM b JOIN p ON b.k = p.k AND p.ts BETWEEN b.at - 3 AND b.at + 6",
    "SELECT o.n AS x, o.k AS y FROM o WHERE NOT EXISTS (SELECT * FROM s WHERE s.k = o.k"
    " AND s.ship_time BETWEEN o.order_time AND o.order_time + INTERVAL '0.007' SECOND)",
    "SELECT x.n AS x, y.n AS y FROM (SELECT n, k, order_time AS t FROM o WHERE price > 1) x JOIN"
    " (SELECT * FROM s) y ON x.k = y.k AND y.ship_time BETWEEN x.t AND x.t + INTERVAL '0.006' SECOND",
)  # fmt: skip
"""Queries that DuckDB is asked as they stand."""

_LAST = (
    "SELECT l.n AS x, r.n AS y FROM {0} l {1} JOIN LATERAL (SELECT * FROM {2} r WHERE r.k = l.k"
    " AND {3} ORDER BY {4} DESC, rn DESC LIMIT 1) r ON TRUE"
)
JUDGED = {
    "SELECT o.n AS x, p.n AS y FROM o JOIN p ON o.k = p.k AND o.order_time BETWEEN p.ts - 5 AND p.ts + 5 ms": (
        "SELECT o.n AS x, p.n AS y FROM o JOIN p ON o.k = p.k AND abs(ms(order_time) - p.ts) <= 5"
    ),
    "SELECT o.n AS x, b.n AS y FROM o JOIN b ON o.k = b.k AND abs(o.order_time - b.at) < INTERVAL '0.006' SECOND": (
        "SELECT o.n AS x, b.n AS y FROM o JOIN b ON o.k = b.k AND abs(ms(order_time) - b.at) < 6"
    ),
    "SELECT o.n AS x, s.n AS y FROM o LEFT JOIN s ON o.k = s.k"
    " AND o.order_time - s.ship_time <= INTERVAL '0.004' SECOND AND s.ship_time <= o.order_time": (
        "SELECT o.n AS x, s.n AS y FROM o LEFT JOIN s ON o.k = s.k AND s.ship_time <= o.order_time"
        " AND (epoch_us(o.order_time) - epoch_us(s.ship_time)) // 1000 <= 4"
    ),
    "SELECT o.n AS x, b.n AS y FROM o FULL JOIN b ON o.k = b.k AND abs(epoch_ms(o.order_time) - b.at) <= 4": (
        "SELECT o.n AS x, b.n AS y FROM o FULL JOIN b ON o.k = b.k AND abs(ms(order_time) - b.at) <= 4"
    ),
    "SELECT o.n AS x, s.n AS y FROM o ASOF JOIN s ON o.k = s.k AND o.order_time >= s.ship_time": (
        _LAST.format("o", "", "s", "ms(ship_time) <= ms(l.order_time)", "ms(ship_time)")
    ),
    "SELECT o.n AS x, b.n AS y FROM o LEFT ASOF JOIN b ON o.k = b.k AND o.order_time > b.at": (
        _LAST.format("o", "LEFT", "b", "r.at < ms(l.order_time)", "r.at")
    ),
    "SELECT o.n AS x, s.n AS y FROM o LEFT JOIN s FOR SYSTEM_TIME AS OF o.order_time ON o.k = s.k": (
        _LAST.format("o", "LEFT", "s", "ms(ship_time) <= ms(l.order_time)", "ms(ship_time)")
    ),
    "SELECT p.n AS x, s.n AS y FROM p JOIN s FOR SYSTEM_TIME AS OF p.ts ON p.k = s.k": (
        _LAST.format("p", "", "s", "ms(ship_time) <= l.ts", "ms(ship_time)")
    ),
    "SELECT n AS x, sum(price) OVER (PARTITION BY k ORDER BY order_time"
    " RANGE BETWEEN INTERVAL '0.008' SECOND PRECEDING AND CURRENT ROW) AS y FROM o": (
        "SELECT n AS x, sum(price) OVER (PARTITION BY k ORDER BY ms(order_time) RANGE 8 PRECEDING) AS y FROM o"
    ),
    "SELECT k AS x, count(*) AS y FROM (SELECT * FROM o WHERE price > 0) GROUP BY k, TUMBLE(order_time, 7)": (
        "SELECT k AS x, count(*) AS y FROM o WHERE price > 0 GROUP BY k, ms(order_time) // 7"
    ),
    "SELECT o.k AS x, count(s.n) AS y FROM o LEFT JOIN s FOR SYSTEM_TIME AS OF o.order_time ON o.k = s.k"
    " GROUP BY o.k, HOP(o.order_time, 5 ms, 5 ms)": (
        f"SELECT k AS x, count(y) AS y FROM ({_LAST.format('o', 'LEFT', 's', 'ms(ship_time) <= ms(l.order_time)', 'ms(ship_time)')}) j"
        " JOIN o ON o.n = j.x GROUP BY k, ms(order_time) // 5"
    ),
    "SELECT sum(c) AS x, max(c) AS y FROM (SELECT k, window_start, window_end, count(*) AS c FROM o"
    " GROUP BY k, HOP(order_time, 3, 6)) GROUP BY window_start, window_end HAVING count(*) > 1": (
        "SELECT sum(c) AS x, max(c) AS y FROM (SELECT e, k, count(*) AS c FROM (SELECT k, unnest([(ms(order_time) // 3 + i)"
        " * 3 FOR i IN [1, 2]]) AS e FROM o) GROUP BY e, k) GROUP BY e HAVING count(*) > 1"
    ),
    "WITH w AS (SELECT window_end, k, sum(price) AS s FROM o GROUP BY k, TUMBLE(order_time, 5)), v AS (SELECT"
    " window_end, s, count(*) AS c FROM w WHERE s > 2 GROUP BY window_end, s) SELECT count(*) AS x, max(s) AS y"
    " FROM v GROUP BY v.window_end": (
        "SELECT count(DISTINCT s) AS x, max(s) AS y FROM (SELECT (ms(order_time) // 5 + 1) * 5 AS e, sum(price) AS s FROM o"
        " GROUP BY e, k) WHERE s > 2 GROUP BY e"
    ),
    "SELECT l.k AS x, count(*) AS y FROM TUMBLE(TABLE o, DESCRIPTOR(order_time), 9) AS l JOIN TUMBLE(TABLE s,"
    " DESCRIPTOR(ship_time), 9) AS r ON l.k = r.k AND l.window_start = r.window_start AND l.window_end = r.window_end"
    " GROUP BY l.k, l.window_start, l.window_end": (
        "SELECT o.k AS x, count(*) AS y FROM o JOIN s ON o.k = s.k AND ms(order_time) // 9 = ms(ship_time) // 9"
        " GROUP BY o.k, ms(order_time) // 9"
    ),
    "SELECT k AS x, sum(price) AS y FROM (SELECT k, price, window_end FROM TUMBLE(TABLE o, DESCRIPTOR(order_time), 9)"
    " WHERE price > 1) GROUP BY k, window_end": (
        "SELECT k AS x, sum(price) AS y FROM o WHERE price > 1 GROUP BY k, ms(order_time) // 9"
    ),
    "SELECT k AS x, y FROM o MATCH_RECOGNIZE (PARTITION BY k ORDER BY order_time MEASURES B.n AS y"
    " AFTER MATCH SKIP TO NEXT ROW PATTERN (A B) WITHIN INTERVAL '0.006' SECOND DEFINE B AS B.price > A.price)": (
        "SELECT k AS x, n AS y FROM o WINDOW w AS (PARTITION BY k ORDER BY ms(order_time), rn)"
        " QUALIFY price > lag(price) OVER w AND ms(order_time) - lag(ms(order_time)) OVER w <= 6"
    ),
}  # fmt: skip
"""Queries that DuckDB is asked in its own words; streams' times and intervals count whole
milliseconds."""


def streams(chance: random.Random) -> dict[str, pa.Table]:
    """Returns rows whose timestamps are finer than a millisecond now and then."""
    fine = chance.choice((0, 0, 999))

    def one(**more: int) -> dict[str, list[object]]:
        size = chance.randint(0, 40)
        at = sorted(chance.randint(0, 60) * 1000 + chance.randint(0, fine) for _ in range(size))
        made: dict[str, list[object]] = {"micros": list[object](at), "n": list(range(size))}
        for name, most in more.items():
            made[name] = [chance.randint(0, most) for _ in range(size)]
        return made

    def table(columns: Mapping[str, list[object]], time: str, counted: bool) -> pa.Table:
        at = [_START + int(str(us)) * _MS / 1000 for us in columns["micros"]]  # what a file has
        whole = [(t - datetime.datetime(1970, 1, 1)) // _MS for t in at]
        times = pa.array(whole, pa.int64()) if counted else pa.array(at, pa.timestamp("us"))
        rest = {c: pa.array(v, pa.int32()) for c, v in columns.items() if c != "micros"}
        return pa.table({**rest, time: times})

    return {
        "o": table(one(k=2, price=4), "order_time", False),
        "s": table(one(k=2), "ship_time", False),
        "b": table(one(k=2), "at", True),
        "p": table(one(k=2), "ts", True),
    }


def judged(query: str, rows: Mapping[str, pa.Table]) -> Rows:
    with duckdb.connect() as db:
        db.execute("CREATE MACRO ms(t) AS epoch_us(t) // 1000")  # its epoch_ms rounds
        for name, table in rows.items():
            db.register(name, table.append_column("rn", pa.array(range(table.num_rows))))
        return Counter(db.execute(query).fetchall())


def queries() -> dict[str, str]:
    """Returns by query what DuckDB is asked."""
    return {**{query: query for query in ALIKE}, **JUDGED}


def text() -> str:
    found = DECLARED
    for number, query in enumerate(queries(), start=1):
        recognizes = "MATCH_RECOGNIZE" in query
        if recognizes:  # its rows have one time only
            found += f"CREATE STREAM m{number} AS {query};\n"
        asked = f"SELECT x, y FROM m{number}" if recognizes else query
        found += f"REGISTER QUERY q{number} AS {asked};\n"
    return found


def own(rows: Mapping[str, Rows]) -> dict[str, Rows]:
    """Returns the results without the times of their components."""
    found = {name: Rows() for name in rows}
    for name, counted in rows.items():
        for row, times in counted.items():
            found[name][row[:2]] += times
    return found


@pytest.mark.parametrize("seed", range(6))
def test_a_named_time_is_the_time_everywhere(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    rows = streams(chance)
    print(f"seed {seed}")
    want = {f"q{n}": judged(duck, rows) for n, duck in enumerate(queries().values(), start=1)}
    of = mixed.MixedCase(seed, text(), rows)
    python = seustream.run(of.text, **rows)
    ways = {
        "Python": own({name: Rows(python[name].rows()) for name in want}),
        "files": own(mixed.by_files(of, tmp_path)),
        "a bridge": own(mixed.behind_a_bridge(of, tmp_path / "journal", chance)),
    }
    for way, found in ways.items():
        for name, query in zip(want, queries(), strict=True):
            assert found[name] == want[name], f"{way}: {query}"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT o.n FROM o, s WHERE o.k = s.k", "abs(o.order_time - s.ship_time) <= 5 minutes"),
        ("SELECT k, count(*) AS c FROM o GROUP BY k, TUMBLE(price, 5)", "write order_time"),
        ("SELECT o.n FROM o JOIN s ON o.order_time >= s.n", "timestamp_millis(s.n)"),
        ("SELECT k, count(*) AS c FROM (SELECT k, order_time + 1 s AS t FROM o) GROUP BY k, TUMBLE(t, 5)", "write ts"),
        ("SELECT * FROM o MATCH_RECOGNIZE (ORDER BY price PATTERN (A) DEFINE A AS A.price > 1)", "ORDER BY order_time"),
    ],
)  # fmt: skip
def test_what_is_not_the_time_is_told_which_is(query: str, said: str) -> None:
    with pytest.raises(CompileError) as error:
        compile_text(DECLARED + query)
    assert any(said in str(problem.hint) for problem in error.value.problems)
