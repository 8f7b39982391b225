"""The examples' queries in DuckDB's SQL over the same tuples, with `ts` in milliseconds.

Written by hand from the definition of a window, independently of the compiler: every component lies
within its own stream's RANGE of the newest.
"""

from __future__ import annotations

from typing import Any

EIGHT = {
    "q0": ("R, S", "R.a = S.d", 100),
    "q1": ("R, S, T", "R.a = S.d AND S.e = T.f", 200),
    "q2": ("S, T", "S.e = T.f", 100),
    "q3": ("R, S", "R.b > S.e", 200),
    "q4": ("R, S", "R.a = S.d OR R.c = S.e", 100),
    "q5": ("R, S", "R.a = S.d AND R.c = S.e", 200),
    "q6": ("R, S, T", "R.a = S.d OR S.e = T.f", 100),
    "q7": ("R, S, T", "(R.c = S.e OR S.e = T.f) AND R.a = S.d", 300),
}
_COLUMNS = {"R": "R.a, R.b, R.c", "S": "S.d, S.e", "T": "T.f, T.g"}


def in_milliseconds(connection: Any, got: str, want: str) -> str:
    """Returns results as a subquery, with times as numbers in milliseconds where the judge has such
    numbers."""
    found = connection.sql(f"SELECT * FROM {got}")
    wanted = connection.sql(f"SELECT * FROM {want}")
    columns = [
        f'epoch_us("{name}") // 1000 AS "{name}"'
        if str(kind) == "TIMESTAMP" and str(as_wanted) == "BIGINT"
        else f'"{name}"'
        for name, kind, as_wanted in zip(found.columns, found.types, wanted.types, strict=True)
    ]
    return f"(SELECT {', '.join(columns)} FROM {got})"


def _times(windows: dict[str, int]) -> tuple[str, str]:
    """Returns the columns ts_oldest and ts_newest, and the window condition."""
    times = ", ".join(f"{alias}.ts" for alias in windows)
    newest = f"greatest({times})"
    inside = " AND ".join(f"{newest} - {a}.ts <= {size}" for a, size in windows.items())
    return f"least({times}), {newest}", inside


def _eight(sources: str, condition: str, size: int) -> str:
    names = sources.split(", ")
    times, inside = _times(dict.fromkeys(names, size))
    columns = ", ".join(_COLUMNS[name] for name in names)
    return f"SELECT {columns}, {times} FROM {sources} WHERE ({condition}) AND {inside}"


def _query(columns: str, sources: str, condition: str, windows: dict[str, int]) -> str:
    times, inside = _times(windows)
    return f"SELECT {columns}, {times} FROM {sources} WHERE {condition} AND {inside}"


_CHANGED = "x.vehicleId = y.vehicleId AND x.xPos // 5280 <> y.xPos // 5280"

# Tolls: SQL has no order of arrival, so the place in the file tells which reports have been seen.
_PLACED = """(SELECT *, xPos // 5280 AS seg, row_number() OVER () AS n FROM
             (SELECT * FROM PosSpeedStr))"""
_FOLLOWED = f"""SELECT *, lag(hwy || dir || seg) OVER mine AS before, lead(ts) OVER mine AS next
             FROM {_PLACED} WINDOW mine AS (PARTITION BY vehicleId ORDER BY n)"""
# Vehicles whose latest report before an entry is from its segment; the speeds of 5 minutes.
_AROUND = """count(*) FILTER (WHERE r.next IS NULL OR r.next > e.ts) AS vehicles,
             avg(r.speed::DOUBLE) FILTER (WHERE r.ts >= e.ts - 300000) AS speed"""

_TOLLS = {
    "congested": f"""SELECT * FROM (SELECT r.hwy, r.dir, r.seg::DOUBLE,
        (SELECT avg(s.speed::DOUBLE) FROM {_PLACED} s WHERE {{same}}) AS speed,
        (SELECT count(*) FROM {_PLACED} s WHERE {{same}}) AS reports,
        (SELECT min(s.ts) FROM {_PLACED} s WHERE {{same}}), r.ts
        FROM {_PLACED} r) WHERE speed < 40""".format(
        same="s.hwy = r.hwy AND s.dir = r.dir AND s.seg = r.seg AND s.n <= r.n"
        " AND s.ts >= r.ts - 300000"
    ),
    "toll": f"""WITH followed AS MATERIALIZED ({_FOLLOWED})
        SELECT vehicleId, hwy, dir, seg::DOUBLE, speed, vehicles,
        0.02::DOUBLE * (vehicles - 150) * (vehicles - 150), ts AS oldest, ts FROM (
        SELECT e.vehicleId, e.hwy, e.dir, e.seg, e.ts, {_AROUND} FROM followed e JOIN followed r
        ON r.hwy = e.hwy AND r.dir = e.dir AND r.seg = e.seg AND r.ts <= e.ts
        WHERE e.before IS DISTINCT FROM e.hwy || e.dir || e.seg
        GROUP BY e.vehicleId, e.hwy, e.dir, e.seg, e.ts) WHERE speed < 40""",
}

# Fraud: each rule, then all of them as alarms, grouped by card.
_FRAUD = {
    "abroad": """SELECT p.card, p.id, l.country, p.country, p.ts AS oldest, p.ts FROM Payment p JOIN Login l
        ON p.card = l.card AND p.country <> l.country AND l.ts BETWEEN p.ts - 600000 AND p.ts""",
    "unconfirmed": """SELECT card, id, cents, ts AS oldest, ts FROM Payment p WHERE cents >= 50000 AND NOT EXISTS
        (SELECT 1 FROM Confirmation c WHERE c.payment = p.id AND c.ts BETWEEN p.ts AND p.ts + 30000)""",
    "probed": """SELECT card, first_id, cents, ts AS oldest, ts FROM (SELECT *, lag(id, 2) OVER own AS first_id,
        greatest(lag(known, 1, 500) OVER own, lag(known, 2, 500) OVER own) AS small,
        ts - lag(ts, 2) OVER own AS lasts FROM (SELECT *, coalesce(cents, 500) AS known FROM Payment) WINDOW own AS (PARTITION BY card ORDER BY ts))
        WHERE small < 500 AND cents > 20000 AND lasts <= 600000""",
    "bursts": """SELECT card, count(*), sum(cents)::BIGINT, since, since + 59999 AS oldest, since + 59999 AS ts
        FROM (SELECT *, (ts // 20000 - unnest([0, 1, 2])) * 20000 AS since FROM Payment)
        GROUP BY card, since HAVING count(*) > 4""",
}
_ALARMS = " UNION ALL ".join(f"SELECT card, '{rule}' AS rule, ts FROM ({sql})" for rule, sql in _FRAUD.items())  # fmt: skip
_FRAUD[
    "suspicious"
] = f"""SELECT card, count(DISTINCT rule), count(*), ts // 3600000 * 3600000 AS since, min(ts),
    ts // 3600000 * 3600000 + 3599999 FROM ({_ALARMS}) GROUP BY card, ts // 3600000
    HAVING count(DISTINCT rule) > 1"""

JUDGED: dict[str, dict[str, str]] = {
    "eight": {name: _eight(*query) for name, query in EIGHT.items()},
    "road": {
        "slow": _query(
            "p.vehicleId, p.speed, a.seg, a.id, a.kind, a.day, a.clock, a.blocked, a.cost",
            "PosSpeedStr p, AccidentStr a",
            "p.speed < 25.5 AND p.hwy = a.hwy AND p.dir = a.dir AND p.xPos // 5280 = a.seg",
            {"p": 300_000, "a": 300_000},
        ),
        "warn": _query(
            "a.id, p.vehicleId, a.seg::BIGINT * 5280 - p.xPos",
            "PosSpeedStr p, AccidentStr a",
            "p.hwy = a.hwy AND p.dir = 'east' AND a.dir = 'east' AND a.blocked"
            " AND a.clock >= '06:00:00'::TIME AND a.clock <= '09:59:59'::TIME"
            " AND a.seg::BIGINT * 5280 >= p.xPos AND a.seg::BIGINT * 5280 <= p.xPos + 10560",
            {"p": 0, "a": 600_000},
        ),
        "entered": _query(
            "y.vehicleId, y.hwy, y.dir, (y.xPos // 5280)::DOUBLE",
            "PosSpeedStr x, PosSpeedStr y",
            _CHANGED,
            {"x": 30_000, "y": 0},
        ),
        "close": _query(
            "p.vehicleId, q.vehicleId, abs(p.xPos - q.xPos), p.speed::DOUBLE - q.speed::DOUBLE",
            "PosSpeedStr p, PosSpeedStr q",
            "p.hwy = q.hwy AND p.dir = q.dir AND p.vehicleId < q.vehicleId"
            " AND p.xPos - q.xPos BETWEEN -299 AND 299",
            {"p": 10_000, "q": 10_000},
        ),
        "owes": _query(
            "y.vehicleId, t.hwy, t.dir, t.seg, floor(t.toll * 100 + 0.5) / 100, t.validUntil",
            "PosSpeedStr x, PosSpeedStr y, TollStr t",
            f"{_CHANGED} AND y.hwy = t.hwy AND y.dir = t.dir AND y.xPos // 5280 = t.seg"
            " AND t.toll > 0",
            {"x": 30_000, "y": 0, "t": 120_000},
        ),
    },
    "tolls": _TOLLS,
    "fraud": _FRAUD,
    # Patterns: only the one that is a join on the order of the rows.
    "stocks": {
        "cross": """SELECT a.ts, a.price, b.price, c.price, d.price
            FROM _ a, _ b, _ c, _ d WHERE a.type = 'A' AND b.type = 'B' AND c.type = 'C'
            AND d.type = 'D' AND a.n < b.n AND b.n < c.n AND c.n < d.n AND d.ts - a.ts <= 120000
            AND a.price > 20 AND b.price > a.price * 1.1 AND c.price < d.price * 0.9""".replace(
            " _ ", " (SELECT *, row_number() OVER () AS n FROM stocks) "
        ),
    },
    "network": {
        "named": _query(
            "f.src, d.name, f.dst, f.port, f.bytes // f.packets",
            "dns d, flow f",
            "d.client = f.src AND d.answer = f.dst",
            {"d": 30_000, "f": 0},
        ),
        "odd": _query(
            "f.src, lower(d.name), f.port, f.proto, d.ttl",
            "dns d, flow f",
            "d.client = f.src AND d.answer = f.dst AND d.name ILIKE '%.example.net'"
            " AND f.port <> 80 AND f.port <> 443 AND f.port <> 25 AND f.port <> 587",
            {"d": 30_000, "f": 0},
        ),
        "scan": _query(
            "a.rule, a.severity, a.raised, f.src, f.dst, f.port, f.bytes, f.packets, f.proto",
            "alert a, flow f",
            "a.host = f.src AND a.rule = 'port scan' AND f.bytes >= 100000",
            {"a": 60_000, "f": 60_000},
        ),
        "leak": _query(
            "a.host, a.rule, d.name, f.dst, f.bytes",
            "alert a, dns d, flow f",
            "a.severity >= 3 AND a.host = d.client AND a.host = f.src AND d.answer = f.dst"
            " AND f.bytes >= 100000"  # for speed: implied by the windows
            " AND d.ts BETWEEN f.ts - 30000 AND f.ts AND a.ts BETWEEN f.ts - 120000 AND f.ts",
            {"a": 120_000, "d": 30_000, "f": 0},
        ),
    },
}
