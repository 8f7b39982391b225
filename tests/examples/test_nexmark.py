"""Nexmark's queries compared with DuckDB over the ended streams."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import seustream as ss
from examples.nexmark.generate import streams

TEXT = (Path(__file__).parents[2] / "examples" / "nexmark" / "nexmark.xsql").read_text("utf-8")

_JOINED = "auction A JOIN bid B ON A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires"
_WINNING = f"""(SELECT A.id, A.itemName, A.seller, A.category, B.auction, B.bidder, B.price, B.dateTime AS bid_time,
  B.rn, row_number() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.dateTime, B.rn) AS place FROM {_JOINED})"""
_TUMBLE = "epoch_us({0}dateTime) // 10000000 * 10000"
_BY = "auction, bidder, price, channel"
_CHANNEL = r"(&|^)channel_id=([^&]*)"

JUDGED = {
    "q0": "SELECT auction, bidder, price, dateTime, extra FROM bid",
    "q1": "SELECT auction, bidder, 0.908 * price, dateTime, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    "q3": """SELECT P.name, P.city, P.state, A.id FROM auction A JOIN person P ON A.seller = P.id
        WHERE A.category = 10 AND P.state IN ('OR', 'ID', 'CA')""",
    "q4": f"""SELECT category, avg(final) FROM (SELECT max(B.price) AS final, A.category
        FROM {_JOINED} GROUP BY A.id, A.category) GROUP BY category""",
    "q5": """WITH counts AS (SELECT auction, count(*) AS num, e FROM bid, range(0, 5) o(o),
        LATERAL (SELECT epoch_us(dateTime) // 2000000 * 2000 - o * 2000 + 10000 AS e) GROUP BY auction, e)
        SELECT auction, num, e FROM counts QUALIFY rank() OVER (PARTITION BY e ORDER BY num DESC) = 1""",
    "q6": f"""SELECT seller, price, avg(price) OVER (PARTITION BY seller ORDER BY bid_time, id
        ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) FROM {_WINNING} WHERE place = 1""",
    "q7": f"""SELECT auction, price, bidder, dateTime FROM bid
        QUALIFY price = max(price) OVER (PARTITION BY {_TUMBLE.format("")})""",
    "q8": f"""SELECT DISTINCT P.id, P.name, {_TUMBLE.format("P.")} FROM person P JOIN auction A
        ON P.id = A.seller AND {_TUMBLE.format("P.")} = {_TUMBLE.format("A.")}""",
    "q9": f"""SELECT id, itemName, seller, category, auction, bidder, price, bid_time FROM {_WINNING}
        WHERE place = 1""",
    "q10": "SELECT auction, bidder, price, dateTime, dateTime::DATE, hour(dateTime) FROM bid",
    "q11": """WITH b AS (SELECT bidder, epoch_us(dateTime) // 1000 AS t, rn FROM bid), s AS (SELECT *, coalesce(t -
        lag(t) OVER (PARTITION BY bidder ORDER BY t, rn) >= 10000, true)::INT AS first FROM b), n AS (SELECT *,
        sum(first) OVER (PARTITION BY bidder ORDER BY t, rn) AS session FROM s)
        SELECT bidder, count(*), min(t), max(t) + 10000 FROM n GROUP BY bidder, session""",
    "q12": f"""SELECT bidder, count(*), {_TUMBLE.format("")} AS s, s + 10000 FROM bid GROUP BY ALL""",
    "q13": "SELECT B.auction, bidder, price, dateTime, value FROM bid B JOIN side_input S ON B.auction % 100 = key",
    "q14": """SELECT auction, bidder, 0.908 * price AS euros, CASE WHEN hour(dateTime) BETWEEN 8 AND 18 THEN
        'dayTime' WHEN hour(dateTime) <= 6 OR hour(dateTime) >= 20 THEN 'nightTime' ELSE 'otherTime' END,
        dateTime, length(extra) - length(replace(extra, 'c', '')) FROM bid
        WHERE euros > 1000000 AND euros < 50000000""",
    "q15": """SELECT dateTime::DATE, count(*), count(*) FILTER (price < 10000),
        count(*) FILTER (price >= 10000 AND price < 1000000), count(*) FILTER (price >= 1000000),
        count(DISTINCT bidder), count(DISTINCT auction), count(DISTINCT bidder) FILTER (price >= 1000000)
        FROM bid GROUP BY ALL""",
    "q16": """SELECT channel, dateTime::DATE, max(dateTime), count(*), count(*) FILTER (price < 10000),
        count(DISTINCT bidder) FROM bid GROUP BY ALL""",
    "q17": """SELECT auction, dateTime::DATE, count(*), count(*) FILTER (price < 10000), min(price), max(price),
        avg(price), sum(price)::BIGINT FROM bid GROUP BY ALL""",
    "q18": f"""SELECT {_BY}, dateTime FROM bid QUALIFY
        row_number() OVER (PARTITION BY bidder, auction ORDER BY dateTime DESC, rn) = 1""",
    "q19": """SELECT auction, bidder, price, row_number() OVER (PARTITION BY auction ORDER BY price DESC, rn)
        AS place FROM bid QUALIFY place <= 10""",
    "q20": """SELECT B.auction, B.bidder, B.price, B.dateTime, A.itemName, A.seller, A.category
        FROM bid B JOIN auction A ON B.auction = A.id WHERE A.category = 10""",
    "q21": f"""SELECT {_BY}, CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook'
        THEN '2' WHEN 'baidu' THEN '3' ELSE regexp_extract(url, '{_CHANNEL}', 2) END FROM bid
        WHERE url LIKE '%&channel_id=%' OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')""",
    "q22": f"SELECT {_BY}, url.split('/')[4], url.split('/')[5], url.split('/')[6] FROM bid",
}
TABLES = streams(3_000, 7)


@pytest.fixture(scope="module")
def results() -> dict[str, ss.QueryResult]:
    return dict(ss.run(TEXT, **TABLES))


def plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns a row with times as milliseconds, and reals and decimals rounded."""
    return tuple(
        int(v.timestamp() * 1000) if hasattr(v, "timestamp") else float(f"{float(v):.9g}")
        if not isinstance(v, (str, int)) and hasattr(v, "__float__") else v
        for v in row
    )  # fmt: skip


def test_every_query_is_judged(results: dict[str, ss.QueryResult]) -> None:
    assert {*results} == {*JUDGED} == {f"q{number}" for number in range(23)}


@pytest.mark.parametrize("name", JUDGED)
def test_query(name: str, results: dict[str, ss.QueryResult]) -> None:
    duck = duckdb.connect()
    for stream, table in TABLES.items():
        duck.register(stream, table.append_column("rn", pa.array(range(table.num_rows))))
    want = Counter(plain(row) for row in duck.execute(JUDGED[name]).fetchall())
    found = Counter[tuple[Any, ...]]()
    table = results[name].arrow()
    changes = table.column_names[0] == "op"
    for row in results[name].rows():
        sign, own = (1 if row[0] == "+" else -1, row[1:-2]) if changes else (1, row[:-2])
        found[plain(own)] += sign
    assert {row: n for row, n in found.items() if n} == dict(want)
    assert want
