"""EMIT CHANGES after groups of windows, compared with DuckDB; and the windows that a time is in."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from seustream.compiler.logical.program import Periodic
from seustream.engine.relational.times import edges, numbers, sessions
from tests.engine.relational.generate import (
    DEFINITIONS,
    asked,
    judged,
    r_stream,
    rows_of,
    s_stream,
    same,
)
from tests.engine.relational.running import at_once, in_pieces
from tests.engine.relational.test_periods_and_closed import windows


def check_changes(seed: int) -> None:
    """EMIT CHANGES: at each time with rows, gives the groups of those rows, computed from all rows
    up to that time."""
    chance = random.Random(seed)
    rows = {"R": r_stream(chance, chance.randint(0, 70)), "S": s_stream(chance, 5)}
    keys = chance.sample(["a", "c"], chance.randint(0, 2))
    form, expanded = windows(chance, "SELECT * FROM R")
    expanded = expanded.replace("KEYS", ", ".join(keys) if keys else "1")
    measures = asked(chance)
    having = chance.choice(["TRUE", "count(*) > 1", "max(b) > 1 OR window_start > 20"])
    ours = [*keys, "window_start", "window_end", *(mine for mine, _ in measures)]
    listed = ", ".join(f"{e} AS c{n}" for n, e in enumerate(ours))
    text = f"""{DEFINITIONS}REGISTER QUERY q AS SELECT {listed} FROM R
    GROUP BY {", ".join([*keys, form])} HAVING {having} EMIT CHANGES"""
    print(f"seed {seed}\n{text}")
    session = "session" in form.lower()
    gap = "".join(filter(str.isdigit, form))
    end = f"max(r.ts) + {gap}" if session else "r.we"
    named = [f"r.{key}" for key in keys]
    unit = ", ".join([*named, "r.ws", *([] if session else ["r.we"])])
    units = unit.split(", ")
    of_time = ", ".join(f"{e} AS i{n}" for n, e in enumerate(units))
    same_unit = " AND ".join(f"{e} IS NOT DISTINCT FROM i{n}" for n, e in enumerate(units))
    theirs = ", ".join([*named, "r.ws", f"{end} AS we", *(duck for _, duck in measures)])
    rows_of_times = judged(
        f"""WITH W AS ({expanded}) SELECT {unit}, i.t, coalesce({having.replace("window_start", "r.ws")}, FALSE),
        {theirs}, min(r.ts) FROM (SELECT DISTINCT {of_time}, ts AS t FROM W r) i JOIN W r ON {same_unit}
        AND r.ts <= i.t GROUP BY {unit}, i.t ORDER BY i.t""",
        R=rows["R"],
    )
    width, told, want = len(units), dict[Any, Any](), list[tuple[Any, ...]]()
    for row in rows_of_times:
        group, time, there, new = row[:width], row[width], row[width + 1], row[width + 2 :]
        old = told.pop(group, None)
        if there:
            told[group] = new
        if old is None or not there or old[:-1] != new[:-1]:
            want += [] if old is None else [("-", *old, time)]
            want += [("+", *new, time)] * there
    found = at_once(text, rows).get("q")
    same(rows_of(found), want)
    assert in_pieces(text, rows, seed).get("q") == found


@pytest.mark.parametrize("seed", range(30))
def test_changes_of_groups_of_windows(seed: int) -> None:
    check_changes(seed)


@pytest.mark.parametrize(
    "every",
    [Periodic(7, 7, 3), Periodic(9, 4, -2), Periodic(3, 8, 1), Periodic(12, 3, 5, cumulates=True)],
)
def test_windows_of_a_time(every: Periodic) -> None:
    ts = np.arange(-60, 60)
    first, last = numbers(every, ts)
    for window in range(-30, 30):
        start, end = edges(every, window)
        assert 0 < end - start <= every.size
        held = (start <= ts) & (ts < end)
        assert np.array_equal(held, (first <= window) & (window <= last))


def test_sessions_are_of_groups() -> None:
    ts, group = np.array([1, 2, 5, 6, 9]), np.array([0, 1, 0, 1, 0])
    rows, of, begins = sessions(4, group, ts)
    assert rows.tolist() == [0, 2, 4, 1, 3]
    assert of.tolist() == [0, 0, 0, 1, 1]
    assert begins.tolist() == [True, True, True, True, True]
    assert sessions(5, group, ts)[2].tolist() == [True, False, False, True, False]
