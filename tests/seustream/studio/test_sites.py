"""Joins across sites, message by message: the arriving results are the join, and the cost is that
of the messages sent."""

from __future__ import annotations

import pytest

import seustream as ss
from seustream.errors import InputError, UserError
from seustream.studio.compiled import Settings, compilation
from seustream.studio.data import rows
from seustream.studio.sites import crossing

TEXT = """CREATE STREAM R (a int, b int); CREATE STREAM S (d int, e int); CREATE STREAM T (f int);
REGISTER QUERY two AS SELECT R.b FROM R, S WHERE R.a = S.d WINDOW RANGE 30;
REGISTER QUERY three AS SELECT R.b FROM R, S, T WHERE R.a = S.d AND S.e = T.f WINDOW RANGE 20;"""


def test_what_arrives_is_the_join_and_costs_what_was_sent() -> None:
    c = compilation(TEXT, Settings())
    given = rows(c.program.base, 5, 90)
    found = crossing(c, given)
    expected = ss.run(TEXT, **given)
    assert found["results"] == sum(len(expected[q].rows()) for q in ("two", "three")) > 0
    assert found["sites"] == ["R", "S", "T", "queries"]
    assert found["shipped"] == 90
    arrived = [one for one in found["messages"] if one["kind"] == "Deliver"]
    assert {one["to"] for one in arrived} == {3}
    assert sum(one["rows"] for one in arrived) == found["results"]
    for one in found["messages"]:
        assert one["from"] != one["to"]
        assert one["cost"] == one["rows"] + one["entries"] / 4


@pytest.mark.filterwarnings("ignore:stream R. 1 late row")
def test_late_rows_are_not_sent() -> None:
    some = {
        "R": {"ts": [10, 5], "a": [1, 1], "b": [1, 2]},
        "S": {"ts": [7], "d": [1], "e": [1]},
        "T": {"ts": [8], "f": [1]},
    }
    found = crossing(compilation(TEXT, Settings()), some)
    expected = ss.run(TEXT, **some)
    assert found["results"] == sum(len(expected[q].rows()) for q in ("two", "three")) == 2
    assert found["shipped"] == 3
    assert found["left_out"]["R"]["rows"] == [[5, 1, 2]]


def test_what_cannot_be_shown() -> None:
    none = compilation("CREATE STREAM R (a int); SELECT a FROM R WINDOW NOW;", Settings())
    with pytest.raises(UserError, match="no query of the text joins at sites"):
        crossing(none, {"R": {"ts": [1], "a": [2]}})
    with pytest.raises(InputError, match="no rows for stream S"):
        crossing(compilation(TEXT, Settings()), {"R": {"ts": [1], "a": [2], "b": [3]}})
