"""EMIT CHANGES of ranks compared with its definition: DuckDB evaluates the query over the rows up
to each time, and takes the differences. Results of frames, ASOF joins and single streams are only
added."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from seustream.compiler.pipeline import compile_text
from seustream.engine.graph import GraphRun
from seustream.engine.relational import slots, told
from seustream.engine.relational.rank_changes import RankChangeOperator
from tests.engine.relational.generate import (
    DEFINITIONS,
    judged,
    r_stream,
    rows_of,
    s_stream,
    same,
)
from tests.engine.relational.running import at_once, in_pieces
from tests.engine.relational.test_ranks import RANKS, order

TIMES = "(SELECT R.*, t FROM R JOIN (SELECT DISTINCT ts AS t FROM R) ON ts <= t)"
"""The rows up to each time t."""


@pytest.fixture(autouse=True)
def _places_are_soon_given_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "FEW", 2)
    monkeypatch.setattr(told, "_FEW", 2)


def _check(found: pa.Table | None, sql: str, rows: dict[str, pa.Table]) -> None:
    """Checks changes against what DuckDB has up to each time; the time comes first in `sql`."""
    want, before = list[tuple[Any, ...]](), Counter[tuple[Any, ...]]()
    by_time: dict[int, Counter[tuple[Any, ...]]] = {ts.as_py(): Counter() for ts in rows["R"]["ts"]}
    for time, *row in judged(sql, R=rows["R"]):
        by_time[time][tuple(row)] += 1
    for time, now in sorted(by_time.items()):
        want += [("-", *row, time) for row in (before - now).elements()]
        want += [("+", *row, time) for row in (now - before).elements()]
        before = now
    same([(*row[:-2], row[-1]) for row in rows_of(found)], want)


def check(seed: int) -> None:
    """Checks a random query that ranks, in one of the possible forms."""
    chance = random.Random(seed)
    rows = {"R": r_stream(chance, chance.randint(1, 45))}
    key = chance.choice(["", "a", "a, c"])
    by, most, rank = order(chance), chance.randint(0, 3), chance.choice(RANKS)
    keys, with_time = f"PARTITION BY {key}" * bool(key), f"PARTITION BY t{', ' * bool(key)}{key}"
    ties = ", rn" if rank == "row_number" else ""
    ours = f"{rank}() OVER ({keys} ORDER BY {by})"
    theirs = f"{rank}() OVER ({with_time} ORDER BY {by}{ties})"
    match chance.choice(["qualify", "outer", "order", "whole", "windows", "groups", "groups"]):
        case "qualify":
            mine = f"SELECT b, {ours} AS n FROM R WHERE b > -1 QUALIFY {ours} <= {most}"
            other = f"SELECT t, b, {theirs} FROM {TIMES} WHERE b > -1 QUALIFY {theirs} <= {most}"
        case "outer":
            mine = f"SELECT b + 1 AS x, n FROM (SELECT *, {ours} AS n FROM R) t WHERE n <= {most} AND b > -1"
            other = f"SELECT t, b + 1, n FROM (SELECT *, {theirs} AS n FROM {TIMES}) WHERE n <= {most} AND b > -1"
        case "order":
            mine = f"SELECT c, b, a + 1 AS x FROM R ORDER BY {by} LIMIT {most}"
            number = f"row_number() OVER (PARTITION BY t ORDER BY {by}, rn)"
            other = f"SELECT t, c, b, a + 1 FROM {TIMES} QUALIFY {number} <= {most}"
        case "whole":
            forms = ["ntile(2)", "percent_rank()", "lag(b)", "lead(c, 2)", "rank()"]
            of = chance.sample(forms, 2)
            mine = ", ".join(f"{f} OVER ({keys} ORDER BY {by}) AS f{n}" for n, f in enumerate(of))
            untied = ("percent_rank", "rank")
            other = ", ".join(
                f"{f} OVER ({with_time} ORDER BY {by}{'' if f.startswith(untied) else ', rn'})"
                for f in of
            )
            mine = f"SELECT b, sum(b) OVER ({keys}) AS s, {mine} FROM R"
            other = f"SELECT t, b, sum(b) OVER ({with_time}), {other} FROM {TIMES}"
        case "groups":
            # row_number breaks ties in the order in which the groups have changed.
            of, window = ("", "WINDOW UNBOUNDED"), "''"
            if chance.random() < 0.4:
                of, window = (", TUMBLE(ts, 9)", ""), "floor(ts / 9)"
            rank = f"{chance.choice(RANKS[1:])}() OVER ({{}} ORDER BY n DESC, top NULLS FIRST)"
            inner = f"SELECT a, count(*) AS n, max(b) AS top FROM R GROUP BY a{of[0]} {of[1]}"
            mine = f"SELECT a, n, {rank.format('')} AS r FROM ({inner}) AS g QUALIFY r <= {most}"
            if chance.random() < 0.5:
                ranked = f"SELECT *, {rank.format('')} AS r FROM ({inner}) AS g"
                mine = f"SELECT a, n, r FROM ({ranked}) AS w WHERE r <= {most}"
            theirs = (
                f"SELECT t, a, count(*) AS n, max(b) AS top FROM {TIMES} GROUP BY t, a, {window}"
            )
            other = f"SELECT t, a, n, {rank.format('PARTITION BY t')} AS r FROM ({theirs}) QUALIFY r <= {most}"
        case _:
            size = chance.choice([2, 5, 9])
            of = "PARTITION BY window_start, window_end"
            mine = f"""SELECT a, window_end AS e, n FROM (SELECT *, {rank}() OVER ({of} ORDER BY {by}) AS n
            FROM TUMBLE(TABLE R, DESCRIPTOR(ts), {size})) w WHERE n <= {most}"""
            end = f"(floor(ts / {size})::bigint + 1) * {size}"
            number = f"{rank}() OVER (PARTITION BY t, e ORDER BY {by}{ties})"
            other = f"SELECT t, a, e, {number} AS n FROM (SELECT *, {end} AS e FROM {TIMES}) QUALIFY n <= {most}"
    text = f"{DEFINITIONS}REGISTER QUERY q AS {mine} EMIT CHANGES"
    print(f"seed {seed}\n{text}")
    found = at_once(text, rows).get("q")
    _check(found, other, rows)
    same(rows_of(in_pieces(text, rows, seed).get("q")), rows_of(found))


@pytest.mark.parametrize("seed", range(20))
def test_changes_of_ranks(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("shown", ["b", "b, rank() OVER (PARTITION BY a ORDER BY c) AS n"])
def test_of_equal_rows_the_one_that_goes_has_its_own_time(shown: str) -> None:
    """The other one stays, in a partition that changes at the same time."""
    rows = pa.table(
        {"ts": [1, 2, 10, 10], "a": pa.array([3, 4, 3, 4], pa.int32()), "b": [5.0, 5.0, 1.0, 2.0],
         "c": ["y", "a", "x", "b"]}
    )  # fmt: skip
    text = f"""{DEFINITIONS}REGISTER QUERY q AS
    SELECT {shown} FROM R QUALIFY rank() OVER (PARTITION BY a ORDER BY c) <= 1 EMIT CHANGES"""
    found = [(row[0], row[1], *row[-2:]) for row in rows_of(at_once(text, {"R": rows})["q"])]
    assert found == [("+", 5, 1, 1), ("+", 5, 2, 2), ("-", 5, 1, 10), ("+", 1, 10, 10)]


@pytest.mark.parametrize("seed", range(24))
def test_changes_of_the_first_rows_that_functions_and_qualify_give(seed: int) -> None:
    chance = random.Random(seed)
    rows = {"R": r_stream(chance, chance.randint(1, 40))}
    key = chance.choice(["", "a"])
    ours, theirs = chance.choice(
        [
            ("sum(b) OVER ({} ORDER BY ts ROWS 1 PRECEDING)", "sum(b) OVER ({} ORDER BY rn ROWS 1 PRECEDING)"),
            ("count(*) OVER ({} ORDER BY ts)", "count(*) OVER ({} ORDER BY ts)"),
            ("rank() OVER ({} ORDER BY b DESC)", "rank() OVER ({} ORDER BY b DESC)"),
            ("row_number() OVER ({} ORDER BY b)", "row_number() OVER ({} ORDER BY b, rn)"),
            ("count(*) OVER ({})", "count(*) OVER ({})"),
        ]
    )  # fmt: skip
    ours = ours.format(f"PARTITION BY {key}" * bool(key))
    theirs = theirs.format(f"PARTITION BY t{', ' * bool(key)}{key}")
    asked = chance.choice(["", "QUALIFY f <= 2", "QUALIFY f > 1"])
    by, most = chance.choice(["", order(chance), "f", "f DESC, a"]), chance.randint(0, 4)
    text = f"""{DEFINITIONS}REGISTER QUERY q AS SELECT a, b, {ours} AS f FROM R {asked}
    {"ORDER BY" * bool(by)} {by} LIMIT {most} EMIT CHANGES"""
    print(f"seed {seed}\n{text}")
    place = f"row_number() OVER (PARTITION BY t ORDER BY {by}{', ' * bool(by)}rn)"
    inner = f"SELECT *, {theirs} AS f FROM {TIMES} {asked}"
    found = at_once(text, rows).get("q")
    _check(found, f"SELECT t, a, b, f FROM ({inner}) QUALIFY {place} <= {most}", rows)
    same(rows_of(in_pieces(text, rows, seed).get("q")), rows_of(found))


@pytest.mark.parametrize("seed", range(12))
def test_changes_of_the_first_groups_that_a_rank_admits(seed: int) -> None:
    chance = random.Random(seed)
    rows = {"R": r_stream(chance, chance.randint(1, 40))}
    most, few = chance.randint(1, 4), chance.randint(0, 4)
    of, window = ("", "WINDOW UNBOUNDED"), "''"
    if chance.random() < 0.4:
        of, window = (", TUMBLE(ts, 9)", ""), "floor(ts / 9)"
    groups = "SELECT {} a, count(*) AS n, max(b) AS top FROM {} GROUP BY {} a"
    inner = f"{groups.format('', 'R', '')}{of[0]} {of[1]}"
    by = chance.choice(["top DESC, a, n", "r DESC, a, n, top", "n, a NULLS FIRST, top"])
    rank = "rank() OVER ({} ORDER BY n DESC)"
    text = f"""{DEFINITIONS}REGISTER QUERY q AS SELECT a, n, top, {rank.format("")} AS r
    FROM ({inner}) AS g QUALIFY r <= {most} ORDER BY {by} LIMIT {few} EMIT CHANGES"""
    print(f"seed {seed}\n{text}")
    theirs = f"{groups.format('t,', TIMES, 't,')}, {window}"
    ranked = f"SELECT *, {rank.format('PARTITION BY t')} AS r FROM ({theirs}) QUALIFY r <= {most}"
    place = f"row_number() OVER (PARTITION BY t ORDER BY {by})"
    found = at_once(text, rows).get("q")
    _check(found, f"SELECT t, a, n, top, r FROM ({ranked}) QUALIFY {place} <= {few}", rows)
    same(rows_of(in_pieces(text, rows, seed).get("q")), rows_of(found))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a, b FROM R WHERE b > 0 ",
        "SELECT a, b FROM R WINDOW UNBOUNDED ",
        "SELECT a, lag(b) OVER (PARTITION BY c ORDER BY ts) AS x FROM R ",
        "SELECT a, sum(b) OVER (ORDER BY ts) AS s FROM R QUALIFY s > 1 ",
        "SELECT a, b FROM R LIMIT 7 ",
        "SELECT a FROM R UNION ALL SELECT k FROM S ",
        "SELECT R.b, S.v FROM R LEFT ASOF JOIN S ON R.a = S.k AND R.ts >= S.ts ",
    ],
)
def test_what_comes_once_only_comes(text: str) -> None:
    """The rows equal those without EMIT CHANGES."""
    chance = random.Random(3)
    rows = {"R": r_stream(chance, 40), "S": s_stream(chance, 20)}
    plain = rows_of(at_once(f"{DEFINITIONS}REGISTER QUERY q AS {text}", rows)["q"])
    changes = at_once(f"{DEFINITIONS}REGISTER QUERY q AS {text}EMIT CHANGES", rows)["q"]
    assert rows_of(changes) == [("+", *row) for row in plain]
    assert len(plain) > 5


def test_rows_that_cannot_count_are_let_go_of() -> None:
    text = f"""{DEFINITIONS}REGISTER QUERY q AS SELECT a, b FROM R
    QUALIFY row_number() OVER (PARTITION BY a ORDER BY b DESC) <= 2 EMIT CHANGES"""
    run, found = GraphRun(compile_text(text)), 0
    rows = r_stream(random.Random(1), 5_000)
    for start in range(0, 5_000, 500):
        run.push("R", rows.slice(start, 500))
        found += sum(table.num_rows for _, table in run.advance())
    (operator,) = [one for one in run.operators.values() if isinstance(one, RankChangeOperator)]
    assert len(operator.kept.places(None)) == 12
    assert 12 < found < 500


def test_faults_count_once_however_often_a_row_is_looked_at() -> None:
    text = f"""{DEFINITIONS}REGISTER QUERY q AS SELECT a, 1 / (a - 1) AS x,
    rank() OVER (ORDER BY 1 / (b - 1)) AS n FROM R EMIT CHANGES"""
    run = GraphRun(compile_text(text))
    columns = {"ts": [1, 2, 3], "a": [1, 2, 3], "b": [1.0, 2.0, 3.0], "c": ["", "", ""]}
    run.push("R", pa.table(columns))
    list(run.finish())
    (faults,) = run.report.faults.values()
    assert [count for count, _ in faults.values()] == [1, 1]
