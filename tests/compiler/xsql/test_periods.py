"""Windows of groups in the spellings of X-SQL, Flink and Spark: their meaning, and spellings that
are refused."""

from __future__ import annotations

import pytest

from seustream.compiler.logical.program import PeriodGroups, Periodic, Sessions
from seustream.compiler.xsql import periods
from tests.compiler.xsql.relations import relation, wrong

MIN = 60_000


@pytest.mark.parametrize(
    ("call", "every"),
    [
        ("TUMBLE(ts, 1 minute)", Periodic(MIN, MIN, 0)),
        ("TUMBLE(ts, INTERVAL '1' MINUTE, 5 s)", Periodic(MIN, MIN, 5_000)),
        ("TUMBLE(ts, 1 minute, 65 s)", Periodic(MIN, MIN, 5_000)),
        ("HOP(ts, 20 s, 1 minute)", Periodic(MIN, 20_000, 0)),
        ("HOP(ts, 20 s, 1 minute, -5 s)", Periodic(MIN, 20_000, 15_000)),
        ("CUMULATE(ts, 20 s, 1 minute)", Periodic(MIN, 20_000, 0, cumulates=True)),
        ("SESSION(ts, 30 s)", Sessions(30_000)),
        ("window(ts, '1 minute')", Periodic(MIN, MIN, 0)),
        ("window(ts, '1 minute', '20 seconds')", Periodic(MIN, 20_000, 0)),
        ("session_window(R.ts, 30000)", Sessions(30_000)),
    ],
)
def test_every_spelling(call: str, every: Periodic | Sessions) -> None:
    found = relation(f"SELECT count(*) AS n FROM R GROUP BY {call}")
    assert isinstance(found, PeriodGroups)
    assert found.every == every


def test_functions_of_from_are_the_same() -> None:
    text = "SELECT window_start, count(*) AS n FROM {} GROUP BY window_start, window_end"
    found = relation(text.format("TUMBLE(TABLE R, DESCRIPTOR(ts), INTERVAL '1' MINUTE)"))
    assert isinstance(found, PeriodGroups)
    assert found.every == Periodic(MIN, MIN, 0)


@pytest.mark.parametrize(
    ("source", "every"),
    [
        ("(SELECT a, window_end FROM TUMBLE(TABLE R, DESCRIPTOR(ts), 20, 5) WHERE a > 1)", Periodic(20, 20, 5)),
        ("(SELECT DISTINCT window_end FROM TUMBLE(TABLE R, DESCRIPTOR(ts), 20) WINDOW RANGE 9)", Periodic(20, 20, 0)),
        ("(SELECT a, window_end FROM R GROUP BY a, HOP(ts, 5, 20))", periods.INSTANT),
        ("(SELECT a, window_end FROM R GROUP BY a, SESSION(ts, 5)) WHERE a > 1", periods.INSTANT),
    ],
)  # fmt: skip
def test_rows_that_have_the_end_of_their_window_are_grouped_by_it(
    source: str, every: Periodic
) -> None:
    found = relation(f"SELECT window_end, count(*) AS n FROM {source} GROUP BY window_end")
    assert isinstance(found, PeriodGroups)
    assert found.every == every


@pytest.mark.parametrize("kind", ["LEFT", "FULL"])
def test_rows_without_a_match_are_in_no_window_of_the_other_side(kind: str) -> None:
    rows = "(SELECT a, window_end FROM TUMBLE(TABLE R, DESCRIPTOR(ts), 20)) {}"
    text = f"SELECT count(*) AS n FROM {rows.format('x')} {kind} JOIN {rows.format('y')}"
    text += " ON x.window_end = y.window_end GROUP BY y.window_end"
    (problem,) = wrong(text)
    assert problem.message == "window_end is NULL in rows without a match, which are in no window"
    assert "USING" in (problem.hint or "")


@pytest.mark.parametrize(
    ("call", "message", "hint"),
    [
        ("TUMBLE(ts)", "TUMBLE wants a time and 1 to 2 lengths of time", "TUMBLE(ts, size)"),
        ("SESSION(ts, 1 s, 2 s)", "SESSION wants a time and 1 length of time", "SESSION(ts, gap)"),
        ("TUMBLE(b, 1 s)", "windows go by the stream's time", "write ts"),
        ("TUMBLE(ts, 0)", "a window that lasts no time holds no rows", "TUMBLE(ts, size)"),
        ("HOP(ts, 0, 5)", "a window that lasts no time holds no rows", "HOP(ts, slide, size)"),
        ("CUMULATE(ts, 3, 10)", "the size of these windows is not a number of steps", "CUMULATE(ts"),
        ("TUMBLE(ts, TRUE)", "a length of time is wanted here, such as 5 minutes", "TUMBLE("),
        ("TUMBLE(ts, 'soon')", "a length of time is wanted here, such as 5 minutes", "TUMBLE("),
        ("TUMBLE(ts, 2000000000000000000)", f"a window lasts at most {2**60 - 1:,} ms", "TUMBLE("),
    ],
)  # fmt: skip
def test_what_makes_no_windows(call: str, message: str, hint: str) -> None:
    (problem,) = wrong(f"SELECT count(*) AS n FROM R GROUP BY {call}")
    assert (problem.kind, problem.message) == ("group-window", message)
    assert hint in (problem.hint or "")


def test_one_window_a_select() -> None:
    found = wrong("SELECT count(*) AS n FROM R GROUP BY TUMBLE(ts, 5), TUMBLE(ts, 6)")
    assert "group-window" in [problem.kind for problem in found]


def test_of_a_join_windows_go_by_the_newest_component() -> None:
    text = "SELECT count(*) AS n FROM R, S WHERE R.a = S.a GROUP BY TUMBLE({}, 5) WINDOW RANGE 9"
    assert isinstance(relation(text.format("ts_newest")), PeriodGroups)
    (problem,) = wrong(text.format("R.ts"))
    assert problem.hint == "write ts_newest"


def test_edges_of_windows_are_columns() -> None:
    found = relation(
        "SELECT TUMBLE_START(ts, 5) AS s, TUMBLE_END(ts, 5) AS e FROM R GROUP BY TUMBLE(ts, 5)"
    )
    assert [getattr(item.expression, "name", "") for item in found.items] == [
        "window_start",
        "window_end",
    ]


def test_what_groups_read_are_columns_of_one_stream() -> None:
    found = relation(
        "SELECT a, sum(b + 1) AS s FROM R WHERE b > 3 GROUP BY a, TUMBLE(ts, 5) HAVING min(b) < 9"
        " ORDER BY s LIMIT 3"
    )
    assert isinstance(found, PeriodGroups)
    assert [column.name for column in found.columns] == ["a", "b"]
    assert (found.limit, len(found.order_by), found.having is not None) == (3, 1, True)
