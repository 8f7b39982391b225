"""Windows of streams: units, sizes, one for all or one for each, and windows that are refused."""

from __future__ import annotations

import pytest

import seustream as ss
from seustream.compiler.errors import CompileError
from seustream.compiler.logical.program import PeriodGroups
from seustream.compiler.pipeline import compile_text
from seustream.hdl.device import Window, WindowKind
from tests.compiler.xsql.analysed import query
from tests.compiler.xsql.problems import STREAMS, reported
from tests.engine.relational.once import DEFINITIONS


def RANGE(size: int) -> Window:  # noqa: N802
    return Window(WindowKind.RANGE, size)


def ROWS(size: int) -> Window:  # noqa: N802
    return Window(WindowKind.ROWS, size)


UNBOUNDED = Window(WindowKind.UNBOUNDED)
UNITS = {
    1: ("ms", "millisecond", "milliseconds"),
    1_000: ("s", "second", "seconds"),
    60_000: ("min", "minute", "minutes"),
    3_600_000: ("h", "hour", "hours"),
    86_400_000: ("d", "day", "days"),
}


@pytest.mark.parametrize(
    ("unit", "ticks"), [(unit, ticks) for ticks, units in UNITS.items() for unit in units]
)
def test_unit(unit: str, ticks: int) -> None:
    for written in (f"RANGE 7 {unit}", f"7 {unit.upper()}"):
        assert query(f"SELECT a FROM R WINDOW {written}").sources[0].window == RANGE(7 * ticks)


@pytest.mark.parametrize(
    ("written", "window"),
    [
        ("100", ROWS(100)),
        ("ROWS 3", ROWS(3)),
        ("ROWS 9223372036854775807", ROWS((1 << 63) - 1)),
        ("RANGE 100", RANGE(100)),
        ("RANGE 0 s", RANGE(0)),
        ("NOW", RANGE(0)),
        ("UNBOUNDED", UNBOUNDED),
        ("1.5 s", RANGE(1500)),
        ("RANGE 2.0", RANGE(2)),
        # exact, though a float could hold neither
        ("1.001 min", RANGE(60_060)),
        ("4.0351 h", RANGE(14_526_360)),
        ("RANGE 9223372036854775807", RANGE((1 << 63) - 1)),
        ("1e3 ms", RANGE(1000)),
    ],
)
def test_window(written: str, window: Window) -> None:
    assert query(f"SELECT a FROM R WINDOW {written}").sources[0].window == window


def test_thousandths_of_every_unit_are_whole() -> None:
    for thousandths in range(1, 1000, 7):
        window = f"{thousandths / 1000} s, 0.{thousandths:03} h"
        got = query(f"SELECT R.a FROM R, S WINDOW {window}")
        assert [source.window for source in got.sources] == [
            RANGE(thousandths),
            RANGE(thousandths * 3600),
        ]


def test_one_window_is_for_all_streams() -> None:
    q = query("SELECT R.a FROM R, S, R AS x WINDOW 5 s")
    assert [source.window for source in q.sources] == [RANGE(5000)] * 3


def test_windows_stand_in_the_order_of_from() -> None:
    q = query("SELECT R.a FROM S, R, R AS x, S AS y WINDOW NOW, 7, UNBOUNDED, RANGE 3")
    assert [(source.alias, source.window) for source in q.sources] == [
        ("S", RANGE(0)),
        ("R", ROWS(7)),
        ("x", UNBOUNDED),
        ("y", RANGE(3)),
    ]


def test_every_hopeless_window_of_a_query_is_reported() -> None:
    text = "SELECT R.a FROM R, S, R AS x WINDOW 0, RANGE -1, 5 fortnights"
    assert [r.kind for r in reported(STREAMS + text)] == [
        "row-count",
        "negative-range",
        "unknown-unit",
    ]


@pytest.mark.parametrize(
    ("select", "kind"),
    [
        ("SELECT DISTINCT a FROM R", "missing-window"),
        ("SELECT a FROM R UNION SELECT a FROM S", "missing-window"),
        ("SELECT DISTINCT count(*) FROM R WINDOW RANGE 9 SLIDE 3", "distinct"),
        ("SELECT DISTINCT R.a FROM R, S WHERE R.a = S.a WINDOW RANGE 5, ROWS 5", "distinct"),
        ("SELECT count(*) FROM R WINDOW PARTITION BY c ROWS 1", "unknown-column"),
        ("SELECT count(*) FROM R WINDOW SINCE TIMESTAMP 'noon'", "constant-range"),
        ("SELECT count(*) FROM R WINDOW RANGE 5 SLIDE 0", "group-window"),
        ("SELECT a FROM R WINDOW RANGE 5 SLIDE 5", "group-window"),
        ("SELECT count(*) FROM R, S WHERE R.a = S.a WINDOW RANGE 5 SLIDE 5", "group-window"),
        ("SELECT count(*) FROM R WINDOW SINCE EVERY year", "unknown-unit"),
    ],
)
def test_windows_that_are_none(select: str, kind: str) -> None:
    with pytest.raises(CompileError) as error:
        compile_text(DEFINITIONS + select)
    assert kind in [problem.kind for problem in error.value.problems]


@pytest.mark.parametrize(
    ("window", "at", "hint"),
    [
        ("ROWS 5 SLIDE 2 min", "min", "ROWS 5 SLIDE 2, or RANGE 5 minutes SLIDE 1 minute"),
        ("5 SLIDE 2 ms", "ms", "ROWS 5 SLIDE 2, or RANGE 5 minutes SLIDE 1 minute"),
        ("UNBOUNDED SLIDE 1 minute", "UNBOUNDED SLIDE 1 minute", "RANGE 1 hour SLIDE 1 minute; "),
        ("RANGE 5 SLIDE 0 s", "RANGE 5 SLIDE 0 s", "SLIDE 1 minute"),
    ],
)
def test_steps_that_are_none(window: str, at: str, hint: str) -> None:
    (problem,) = reported(f"{STREAMS}SELECT count(*) AS n FROM R WINDOW {window}")
    assert (problem.kind, problem.text) == ("group-window", at)
    assert problem.hint.startswith(hint)


def test_steps_of_now_are_those_of_a_range_of_nothing() -> None:
    text = DEFINITIONS + "REGISTER QUERY q AS SELECT count(*) AS n FROM R WINDOW {} SLIDE 2 s"
    now, none = (compile_text(text.format(of)).program.operations for of in ("NOW", "RANGE 0"))
    assert [node.every for node in now if isinstance(node, PeriodGroups)] == [
        node.every for node in none if isinstance(node, PeriodGroups)
    ]


def test_distinct_rows_without_groups_have_one_mistake_in_their_steps() -> None:
    (problem,) = reported(f"{STREAMS}SELECT DISTINCT a FROM R WINDOW RANGE 10 SLIDE 5")
    assert problem.kind == "group-window"


def test_rows_stay_until_the_one_that_is_looked_up_has_come() -> None:
    """It may be the newest, and then the bounds of the others reach as far as it."""
    rows = {
        "R": {"ts": [8], "i": [1], "k": [1]},
        "T": {"ts": [0], "j": [2], "k": [1]},
        "S": {"ts": [10], "n": [3], "k": [1]},
    }
    asof = "ASOF JOIN S ON R.k = S.k AND S.ts <= R.ts + 2"
    near = "JOIN T ON R.k = T.k AND abs(R.ts - T.ts) <= 8"
    for joins in (f"{near} {asof}", f"{asof} {near}", f"LEFT {asof} LEFT {near}"):
        found = ss.run(f"SELECT i, j, n FROM R {joins}", **rows)["q0"].rows()
        assert [row[:3] for row in found] == [(1, 2, 3)], joins
