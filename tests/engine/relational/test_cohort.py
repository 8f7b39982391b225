"""Windows of groups held together: each query has the results and faults of a run by itself."""

from __future__ import annotations

import random
from collections.abc import Iterable

import numpy as np
import pytest

from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.engine import assembly
from seustream.engine.analyze import seconds_of
from seustream.engine.graph import GraphRun
from seustream.engine.meters import RunMeters
from seustream.engine.relational.cohort import PeriodCohort
from seustream.engine.relational.periods import PeriodOperator
from tests.engine.host.test_candidates_and_cohorts import Found, added
from tests.engine.host.test_families import STREAMS, condition, faulty, rows

LISTS = (
    ("R.k, count(*) AS n, sum(R.x) AS s, min(R.t) AS t", ", R.k"),
    ("window_start, R.k, max(R.v) - min(R.v) AS s", ", R.k HAVING count(*) > 1"),
    ("count(DISTINCT R.v) AS n, avg(R.d) AS s, window_end", ""),
    ("R.v / R.k AS q, sum(R.x / R.k) AS s", ", R.v / R.k"),
    ("R.k, 6 / (count(*) - 2) AS q, sum(R.v) AS s", ", R.k HAVING 8 / (sum(R.v) - 3) < 9"),
    ("R.k, sum(cast(1000000000 AS bigint) * 1000000000 * R.v) AS s", ", R.k"),
    ("R.k, count(*) AS n", ", R.k ORDER BY count(*) DESC, R.k LIMIT 2"),
    ("R.k, sum(R.v) AS s", ", R.k ORDER BY R.k"),
)
"""SELECT lists with the rest of the text; some have a fault in a key, an argument, HAVING, an item
or a sum."""
WINDOWS = ("TUMBLE(ts, 9)", "HOP(ts, 4, 12)", "CUMULATE(ts, 5, 10)", "SESSION(ts, 2)")


def query(number: int, dice: random.Random) -> str:
    what, rest = dice.choice(LISTS)
    terms = [f"R.v {dice.choice(['=', '>', '<'])} {dice.randint(-7, 7)}"]
    terms += [condition(dice)] if dice.random() < 0.3 else []
    terms += [faulty(dice)] if dice.random() < 0.05 else []
    window = dice.choice(WINDOWS[:3])
    if "window_" not in what and dice.random() < 0.3:
        window = WINDOWS[3]
    emit = " EMIT CHANGES" if dice.random() < 0.1 and "ORDER" not in rest else ""
    return (
        f"REGISTER QUERY q{number} AS SELECT {what} FROM R WHERE {' AND '.join(terms)}"
        f" GROUP BY {window}{rest}{emit};\n"
    )


def cohorts(run: GraphRun) -> set[PeriodCohort]:
    """Returns the cohorts with several queries."""
    operators = run.operators.values()
    found = {one.cohort for one in operators if isinstance(one, PeriodOperator)}
    return {one for one in found if one.several}


def apart(operators: Iterable[object]) -> None:
    """Replaces `hold_together`, and holds nothing together."""
    assert list(operators)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_together_as_apart(seed: int, strict: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    print(f"seed {seed}, strict {strict}")
    chance, dice = np.random.default_rng(seed), random.Random(seed)
    count = dice.choice([60, 250])
    streams = rows(chance, count)
    text = STREAMS + "".join(query(number, dice) for number in range(50))
    c = compile_text(text, options=Options(devices=0))
    cuts = [*sorted(dice.sample(range(count), dice.randint(0, 6))), count]
    found: list[Found] = []
    told = []
    for alone in (False, True):
        if alone:
            monkeypatch.setattr(assembly, "hold_together", apart)
        run = GraphRun(c, strict=strict, contained=True)
        assert (sum(len(one.members) for one in cohorts(run)) > 25) == (not alone)
        found.append({})
        begin = 0
        for end in cuts:
            run.push("R", streams["R"].slice(begin, end - begin))
            added(found[-1], run)
            begin = end
        added(found[-1], run, end=True)
        told.append((run.report.faults, run.failures.why))
    assert sum(map(len, found[0].values())) > 100
    assert bool(told[0][1]) == strict
    assert found[0] == found[1]
    assert told[0] == told[1]


@pytest.mark.parametrize("living", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_queries_come_and_go(seed: int, living: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In place, or through states; after a state the cohorts differ."""
    print(f"seed {seed}, living {living}")
    chance, dice = np.random.default_rng(seed), random.Random(seed)
    streams = rows(chance, 200)
    standing = {number: query(number, dice) for number in range(30)}
    always = "REGISTER QUERY keeper AS SELECT R.v FROM R, S WHERE R.k = S.k WINDOW RANGE 20;\n"
    c = compile_text(STREAMS + always + "".join(standing.values()), options=Options(devices=0))
    steps: list[tuple[int, Compilation]] = []
    number, after = len(standing), c
    for end in sorted(dice.sample(range(200), 12)):
        said = ""
        for gone in [n for n in standing if dice.random() < 0.15]:
            said += f"DROP QUERY q{gone};\n"
            del standing[gone]
        for _ in range(dice.randint(0, 4)):
            standing[number] = query(number, dice)
            said += standing[number]
            number += 1
        after = compile_text(said, after=after) if said else after
        steps.append((end, after))
    ways = [dice.random() < 0.5 for _ in steps]  # true: through a state
    found: list[Found] = []
    held = 0
    for alone in (False, True):
        if alone:
            assert held > 12
            monkeypatch.setattr(assembly, "hold_together", apart)
            held = 0
        run, begin = GraphRun(c, contained=True, living=living), 0
        found.append({})
        for (end, following), by_state in zip(steps, ways, strict=True):
            for stream in run.streams:
                run.push(stream.name, streams[stream.name].slice(begin, end - begin))
            added(found[-1], run)
            begin = end
            if by_state or not run.change(following):
                late = GraphRun(following, contained=True, living=living)
                late.resume(run.state())
                run = late
            held += len(cohorts(run))
        added(found[-1], run, end=True)
    assert held == 0
    assert sum(map(len, found[0].values())) > 300
    assert found[0] == found[1]


def test_streams_of_other_watermarks() -> None:
    """Queries of one form, over a stream and over the results of a join, form two cohorts."""
    text = (
        STREAMS
        + "CREATE STREAM J AS SELECT R.k, R.v FROM R, S WHERE R.k = S.k WINDOW RANGE 5;\n"
        + "".join(
            f"REGISTER QUERY q{stream}{n} AS SELECT k, count(*) AS n FROM {stream} WHERE v > {n}"
            " GROUP BY TUMBLE(ts, 10), k;\n"
            for stream in ("R", "J")
            for n in range(3)
        )
    )
    run = GraphRun(compile_text(text, options=Options(devices=0)))
    assert sorted(len(one.members) for one in cohorts(run)) == [3, 3]


def test_rows_of_a_query_that_ends_are_let_go_of() -> None:
    text = "".join(
        f"REGISTER QUERY q{n} AS SELECT k, count(*) AS n FROM R WHERE v > {n - 3} GROUP BY TUMBLE(ts, 1000), k;\n"
        for n in range(3)
    )
    c = compile_text(STREAMS + text, options=Options(devices=0))
    run = GraphRun(c)
    run.push("R", rows(np.random.default_rng(1), 50)["R"])
    list(run.advance())
    (cohort,) = cohorts(run)
    assert cohort.held is not None
    held, mine = len(cohort.held.places(None)), len(cohort.held.places([1]))
    assert run.change(compile_text("DROP QUERY q1;", after=c))
    assert 0 < mine < held
    assert len(cohort.held.places(None)) == held - mine
    assert not len(cohort.held.places([1]))


def test_time_is_shared() -> None:
    """The time that one member spends on the whole cohort is not all its own."""
    text = STREAMS + "".join(
        f"REGISTER QUERY q{n} AS SELECT k, count(*) AS n FROM R WHERE v > {n} GROUP BY TUMBLE(ts, 10), k;\n"
        for n in range(3)
    )
    clock = iter(range(10_000))
    meters = RunMeters(lambda: float(next(clock)))
    run = GraphRun(compile_text(text, options=Options(devices=0)), meters=meters)
    run.push("R", rows(np.random.default_rng(1), 50)["R"])
    list(run.finish())
    spent = seconds_of(run)
    operations = [own for own in run.operators if own.startswith("operation")]
    assert len(operations) == 3
    assert len({spent[own] for own in operations}) == 1
    assert sum(spent.values()) == pytest.approx(sum(meters.seconds.values()))


def test_who_goes_takes_its_own_part_of_the_time_alone() -> None:
    """The first member asked works for all; when it leaves, the time of the others does not
    fall."""
    text = STREAMS + "".join(
        f"REGISTER QUERY q{n} AS SELECT k, count(*) AS n FROM R WHERE v > {n} GROUP BY TUMBLE(ts, 10), k;\n"
        for n in range(3)
    )
    clock = iter(range(10_000))
    c, meters = (
        compile_text(text, options=Options(devices=0)),
        RunMeters(lambda: float(next(clock))),
    )
    run = GraphRun(c, meters=meters)
    run.push("R", rows(np.random.default_rng(1), 50)["R"])
    list(run.advance())
    meters.seconds["operation q0"] += 90
    before = seconds_of(run)
    assert run.change(compile_text("DROP QUERY q0;", after=c))
    after = seconds_of(run)
    assert all(after[own] >= before[own] > 0 for own in run.operators)
