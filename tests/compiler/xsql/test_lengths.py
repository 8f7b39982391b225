"""Named lengths of windows: in any order they mean the same as in the function; other names are
refused."""

from __future__ import annotations

import pytest

from seustream.compiler.logical.program import PeriodGroups, Periodic, Sessions
from tests.compiler.xsql.relations import relation, wrong

TEXT = "SELECT window_start, count(*) AS n FROM {} GROUP BY window_start, window_end"
GIVEN = "DATA => TABLE R, TIMECOL => DESCRIPTOR(ts)"


@pytest.mark.parametrize(
    ("call", "every"),
    [
        (f"TUMBLE({GIVEN}, SIZE => 1 minute)", Periodic(60_000, 60_000, 0)),
        (f"TABLE(TUMBLE({GIVEN}, offset => 5 s, size => 20 s))", Periodic(20_000, 20_000, 5_000)),
        (f"HOP({GIVEN}, SIZE => INTERVAL '10' SECONDS, SLIDE => 5 s)", Periodic(10_000, 5_000, 0)),
        (f"HOP({GIVEN}, SLIDE => 5 s, SIZE => 10 s)", Periodic(10_000, 5_000, 0)),
        (f"CUMULATE({GIVEN}, SIZE => 10, STEP => 5)", Periodic(10, 5, 0, cumulates=True)),
        (f"SESSION({GIVEN}, GAP => 30 s)", Sessions(30_000)),
        ("HOP(TABLE R, TIMECOL => DESCRIPTOR(ts), 5 s, 10 s)", Periodic(10_000, 5_000, 0)),
    ],
)
def test_they_are_those_of_the_function(call: str, every: Periodic | Sessions) -> None:
    found = relation(TEXT.format(call))
    assert isinstance(found, PeriodGroups)
    assert found.every == every


def test_a_partition_may_stand_in_front_of_them() -> None:
    call = "SESSION(DATA => TABLE R PARTITION BY a, TIMECOL => DESCRIPTOR(ts), GAP => 30 s)"
    found = relation(f"SELECT a, count(*) AS n FROM {call} GROUP BY a, window_start, window_end")
    assert isinstance(found, PeriodGroups)
    assert found.every == Sessions(30_000)


@pytest.mark.parametrize(
    "lengths",
    ["SIZE => 5", "SLIDE => 5, STEP => 5", "SLIDE => 5, OFFSET => 1", "SLIDE => 5, 10"],
)
def test_others_are_refused_with_the_form(lengths: str) -> None:
    (problem,) = wrong(TEXT.format(f"HOP(TABLE R, DESCRIPTOR(ts), {lengths})"))
    assert problem.message == "HOP wants a time and 2 to 3 lengths of time"
    assert (problem.hint or "").startswith("write HOP(ts, slide, size)")
