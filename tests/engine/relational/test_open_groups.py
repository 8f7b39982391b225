"""Groups of windows as states, beside the same windows with all their rows kept, whatever is forgotten on the way."""

from __future__ import annotations

import random
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.pipeline import Options, compile_text
from seustream.engine.graph import GraphRun
from seustream.engine.relational import closed, cohort, open_groups, slots
from seustream.engine.relational.held import HeldRows
from seustream.engine.relational.open_groups import OpenGroups, PaneGroups, SessionGroups
from seustream.engine.relational.periods import PeriodOperator
from seustream.engine.stream import snapshot
from tests.engine.relational.generate import r_stream, s_stream
from tests.engine.relational.running import at_once, in_pieces

STREAMS = """CREATE STREAM R (a int, b double precision, c varchar(9));
CREATE STREAM S (k int, v bigint);
"""
WINDOWS = (
    "TUMBLE(ts, 12)", "HOP(ts, 4, 12)", "HOP(ts, 9, 15)", "HOP(ts, 11, 5)", "CUMULATE(ts, 4, 12)", "SESSION(ts, 3)",
)  # fmt: skip
AGGREGATES = (
    "count(*)", "count(a)", "count(DISTINCT a)", "sum(DISTINCT b)", "sum(a)", "sum(b)", "avg(b)", "min(c)", "max(b)",
    "sum(cast(b AS decimal(20, 3)))", "stddev_pop(b)", "var_samp(DISTINCT a)", "covar_pop(a, b)", "bool_and(a > 1)",
    "bool_or(b > 2)", "bit_and(a)", "bit_or(a)", "first(b)", "last(c)", "min_by(c, b)", "max_by(a, c)",
    "sum(a) FILTER (WHERE b > 0)",
)  # fmt: skip
"""Those that need few rows of a group."""


def a_query(chance: random.Random, source: str) -> str:
    keys = chance.sample(["a", "c"], chance.randint(0, 2)) if source == "R" else ["a"]
    asked = (
        chance.sample(AGGREGATES, chance.randint(1, 6)) if source == "R" else ["sum(v)", "min(a)"]
    )
    listed = [*keys, "window_start", "window_end", *asked]
    items = ", ".join(f"{item} AS c{number}" for number, item in enumerate(listed))
    emit = " EMIT CHANGES" if chance.random() < 0.4 else ""
    having = chance.choice(["", "", " HAVING count(*) > 1"])
    groups = ", ".join([*keys, chance.choice(WINDOWS)])
    window = "" if source == "R" else " WINDOW RANGE 40"
    return f"SELECT {items} FROM {source} GROUP BY {groups}{having}{window}{emit}"


@pytest.mark.parametrize("seed", range(60))
def test_beside_rows(seed: int) -> None:
    """The same rows in the same order, with groups and members renumbered and results cut as often as possible. Rows
    of a join are older than they come."""
    chance = random.Random(seed)
    rows = {"R": r_stream(chance, chance.randint(0, 90)), "S": s_stream(chance, 30)}
    source = chance.choice(["R", "R JOIN S ON a = k"])
    text = f"{STREAMS}REGISTER QUERY q AS {a_query(chance, source)};\n"
    print(f"seed {seed}\n{text}")
    with (
        patch.object(open_groups, "_FEW", chance.choice([1, 5, 4096])),
        patch.object(slots, "FEW", 3),
        patch.object(closed, "_AT_ONCE", chance.choice([1, 3, 1 << 16])),
    ):
        found = [at_once(text, rows).get("q"), in_pieces(text, rows, seed).get("q")]
    with patch.object(cohort, "groups_for", lambda *_: None):
        want = at_once(text, rows).get("q")
    assert found == [want, want]


@pytest.mark.parametrize("seed", range(10))
def test_cohorts_beside_rows(seed: int) -> None:
    chance = random.Random(seed)
    rows = {"R": r_stream(chance, 80), "S": s_stream(chance, 1)}
    ask = f"SELECT a, {', '.join(chance.sample(AGGREGATES, 4))} FROM R WHERE b < {{}} GROUP BY a, "
    ask += chance.choice(WINDOWS)
    text = STREAMS + "".join(f"REGISTER QUERY q{n} AS {ask.format(n)};\n" for n in range(3))
    print(f"seed {seed}\n{text}")
    with patch.object(open_groups, "_FEW", 2):
        found = [at_once(text, rows), in_pieces(text, rows, seed)]
    with patch.object(cohort, "groups_for", lambda *_: None):
        want = at_once(text, rows)
    assert found == [want, want]
    assert any(want.values())


def operator_of(run: GraphRun) -> PeriodOperator:
    (operator,) = (one for one in run.operators.values() if isinstance(one, PeriodOperator))
    return operator


def held_by(run: GraphRun) -> Any:
    return operator_of(run).cohort.held


def running(query: str) -> GraphRun:
    return GraphRun(
        compile_text(f"{STREAMS}REGISTER QUERY q AS {query};", options=Options(devices=0))
    )


LONG = ("TUMBLE(ts, 9000)", "HOP(ts, 2000, 6000)", "CUMULATE(ts, 2000, 8000)", "SESSION(ts, 3)")


@pytest.mark.parametrize("window", LONG)
@pytest.mark.parametrize("emit", ["", " EMIT CHANGES"])
def test_a_group_keeps_few_of_its_rows(window: str, emit: str) -> None:
    """Of 3,000 rows with two keys, in windows of which none is over."""
    run = running(f"SELECT a, count(*) AS n, min(c) AS m FROM R GROUP BY a, {window}{emit}")
    with patch.object(open_groups, "_FEW", 10):
        for begin in range(0, 3000, 100):
            ts = np.arange(begin, begin + 100)
            columns = {"a": pa.array(ts % 2, pa.int32()), "b": ts / 2, "c": [f"{n:04}" for n in ts]}
            run.push("R", pa.table({"ts": ts, **columns}))
            list(run.advance())
    held = held_by(run)
    assert isinstance(held, OpenGroups)
    groups = len(held.places(None))
    assert 2 <= groups <= 16
    assert len(held.aggregates) <= 2 * groups + 10 + 100 * 4
    assert sum(len(rows.times) for rows in held.waiting) <= 1


def test_what_needs_all_rows_keeps_them() -> None:
    for query, groups in (
        ("SELECT count(*) AS n FROM R GROUP BY TUMBLE(ts, 5)", PaneGroups),
        ("SELECT count(*) AS n FROM R GROUP BY SESSION(ts, 5)", SessionGroups),
        ("SELECT median(b) AS n FROM R GROUP BY TUMBLE(ts, 5)", HeldRows),
        ("SELECT array_agg(b) AS n FROM R GROUP BY SESSION(ts, 5)", HeldRows),
        ("SELECT count(*) AS n FROM R GROUP BY HOP(ts, 1, 1024)", PaneGroups),
        ("SELECT count(*) AS n FROM R GROUP BY HOP(ts, 1, 1025)", HeldRows),
    ):
        run = running(query)
        run.push(
            "R",
            pa.table(
                {"ts": [1, 2], "a": pa.array([1, 2], pa.int32()), "b": [1.0, 2.0], "c": ["", ""]}
            ),
        )
        list(run.advance())
        assert isinstance(held_by(run), groups), query


@pytest.mark.parametrize("emit", ["", " EMIT CHANGES"])
@pytest.mark.parametrize("window", WINDOWS)
def test_rows_of_an_earlier_state_become_groups(window: str, emit: str) -> None:
    """Versions before 0431 kept rows, and saved them."""
    text = f"{STREAMS}REGISTER QUERY q AS SELECT a, count(*) AS n, max(c) AS m FROM R GROUP BY a, {window}{emit};"
    rows = r_stream(random.Random(5), 80)
    c = compile_text(text, options=Options(devices=0))
    for cut in (13, 40, 67):
        with patch.object(cohort, "groups_for", lambda *_: None):
            run = GraphRun(c)
            run.push("R", rows.slice(0, cut))
            found, state = list(run.advance()), run.state()
            run.push("R", rows.slice(cut))
            want = [*found, *run.finish()]
        run = GraphRun(c)
        run.resume(state)
        run.push("R", rows.slice(cut))
        found += run.finish()
        assert pa.concat_tables([table for _, table in found]) == pa.concat_tables(
            [table for _, table in want]
        )
        assert isinstance(held_by(run), OpenGroups)


def test_groups_are_refused_where_rows_are_wanted() -> None:
    """A version that knows rows only would begin with none."""
    run = running("SELECT count(*) AS n FROM R GROUP BY TUMBLE(ts, 5)")
    run.push("R", r_stream(random.Random(1), 9))
    list(run.advance())
    state = operator_of(run).snapshot()
    assert snapshot.unpack(state, "groups", 1, 2).version == 2
    with pytest.raises(
        snapshot.SnapshotDamaged, match="a snapshot of groups 2 where one of groups 1 is wanted"
    ):
        snapshot.unpack(state, "groups")
    run = running("SELECT median(b) AS n FROM R GROUP BY TUMBLE(ts, 5)")
    assert snapshot.unpack(operator_of(run).snapshot(), "groups").version == 1
