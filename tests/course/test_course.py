"""The lab course: every sheet exists, and its solution agrees with the product."""

from __future__ import annotations

import random
import re
import runpy

import pytest

from tests.course import solutions as s
from tests.docs.blocks import ROOT

SHEETS = ROOT / "docs" / "course"


def test_seven_sheets_are_listed_and_each_has_tasks() -> None:
    listed = re.findall(r"\(sheet-(\d)\.md\)", (SHEETS / "index.md").read_text("utf-8"))
    assert listed == list("1234567")
    for number in listed:
        page = (SHEETS / f"sheet-{number}.md").read_text("utf-8")
        assert len(re.findall(r"^\*\*\d\.\*\*", page, re.MULTILINE)) >= 3


def test_sheet_1_a_join_by_its_definition() -> None:
    one = [(ts, 0, ts) for ts in (1, 4, 9)], [(ts, 0, ts) for ts in (2, 8, 9)]
    assert s.pairs(*one, 5) == s.pairs_of_seustream(*one, 5)
    chance = random.Random(1)
    r, t = (
        [(ts, chance.randrange(9), chance.randrange(99)) for ts in sorted(chance.sample(range(900), 200))]
        for _ in range(2)
    )  # fmt: skip
    for window in (0, 50, 200):
        assert s.pairs(r, t, window) == s.pairs_of_seustream(r, t, window)


@pytest.mark.parametrize(
    ("condition", "where"),
    [
        ("R.name = S.name", "both"),
        ("R.name LIKE 'A%'", "host"),
        ("R.a > 3", "device"),
    ],
)
def test_sheet_2_where_conditions_are_decided(condition: str, where: str) -> None:
    assert s.placed(condition) == where


def test_sheet_3_programs_by_hand() -> None:
    rows = [(1, 5, 3), (1, 5, 9), (1, 6, 6), (0, 5, 6)]  # stream, k, v
    assert s.joined(s.GREATER, rows) == 1
    assert s.joined(s.EITHER, rows) == 3


def test_sheet_4_plans() -> None:
    text = (ROOT / "examples" / "eight" / "eight.xsql").read_text("utf-8")
    streams = runpy.run_path(str(ROOT / "examples/eight/generate.py"))["streams"](120, 4)
    thesis, cost = (s.circulated(text, plan, streams) for plan in ("thesis", "cost"))
    assert thesis[1] == cost[1] > 0
    assert cost[0] < thesis[0]


def test_sheet_5_matches_by_their_definition() -> None:
    chance = random.Random(5)
    events = [(ts, chance.choice("AABBCCN"), chance.randrange(20)) for ts in range(80)]
    found = s.matches(events, 20)
    assert found
    assert found == s.matches_of_seustream(events, 20)


def test_sheet_6_late_rows() -> None:
    times = s.arrivals(400, 20, 6)
    lost = [s.late(times, slack) for slack in (0, 5, 10, 20)]
    assert lost == sorted(lost, reverse=True)
    assert (lost[0] > 50, lost[-1]) == (True, 0)
    assert [400 - s.kept_of_seustream(times, slack) for slack in (0, 5, 10, 20)] == lost


def test_sheet_7_looking_into_the_machine() -> None:
    page = (SHEETS / "sheet-7.md").read_text("utf-8")
    costly, planted = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    eight = (ROOT / "examples" / "eight" / "eight.xsql").read_text("utf-8")
    assert s.busiest(eight, 120) == ("T", "q6")
    before, after = s.found(costly, 400), s.found(s.CHEAPER, 400)
    assert before[1] == after[1]
    assert after[0] * 10 < before[0]
    assert s.first_wrong(planted, s.MENDED, 120) == 7


@pytest.mark.campaign
def test_sheet_7_lanes() -> None:
    band, join = (
        {c: s.busy(name, c, 200) for c in ("tiny", "default")} for name in ("band", "join")
    )
    # An inequality meets every row of lanes in the window; the index of an equality, what is equal.
    assert band["default"]["scanner"] < 0.95 * band["tiny"]["scanner"]
    assert join["default"]["scanner"] > 0.95 * join["tiny"]["scanner"]
