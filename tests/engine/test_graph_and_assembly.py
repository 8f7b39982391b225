"""Query sets that run on, in pieces: they give the results of a run over whole files, which other
tests judge."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable

import pyarrow as pa
import pytest

from seustream.compiler.pipeline import Options, compile_text
from seustream.cosim.golden import GoldenDevice
from seustream.engine.assembly import answer_schemas, streams_read
from seustream.engine.graph import GraphRun, drive
from seustream.engine.host.errors import EvaluationError, RowsRefused
from seustream.engine.stream.operator import Answer
from tests.cosim.bridge.serving import EVERYTHING, QUERIES, Rows, compiled, multiset, streams


def by_a_run(rows: dict[str, pa.Table]) -> dict[str, Rows]:
    """Returns the results as `seustream run` computes them, from complete streams."""
    compilation = compiled(EVERYTHING)
    run = GraphRun(compilation, GoldenDevice(compilation.options.config))
    found: dict[str, Rows] = {name: Counter() for name in compilation.program.names}
    for name, table in drive(run, rows, 1_000):
        found[name] += multiset(table)
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("slack", [0, 30])
def test_in_pieces_as_at_once(seed: int, slack: int) -> None:
    """Pushes in pieces, through several runs one after the other; most results come before the
    end."""
    print(f"seed {seed}")
    chance, rows, compilation = random.Random(seed), streams(300, seed), compiled(EVERYTHING)

    def live() -> GraphRun:
        return GraphRun(compilation, GoldenDevice(compilation.options.config), slack=slack)

    one, found = live(), {name: Rows() for name in compilation.program.names}
    sent = dict.fromkeys(rows, 0)

    def take() -> None:
        for name, table in one.advance():
            assert table.schema == answer_schemas(compilation.program)[name]
            found[name] += multiset(table)

    while any(sent[name] < table.num_rows for name, table in rows.items()):
        name, size = chance.choice(sorted(rows)), chance.randint(0, 40)
        one.push(name, rows[name].slice(sent[name], size))
        sent[name] += size
        take()
        if chance.random() < 0.3:
            state, one = one.state(), live()
            one.resume(state)
    before = {name: count.total() for name, count in found.items()}
    for name in rows:
        one.end(name)
    take()
    want = by_a_run(rows)
    assert found == want
    for name, count in before.items():
        assert count > want[name].total() / 2, name


def test_what_waits_for_the_end_comes_at_the_end() -> None:
    """Uses rows of the last timestamp: until the end, derived streams could still have one more of
    it."""
    one = {
        "R": pa.table({"ts": [7], "a": [1], "b": [900]}),
        "S": pa.table({"ts": [7], "d": [1], "name": ["n3"]}),
    }
    live = GraphRun(compiled(EVERYTHING), GoldenDevice(compiled().options.config))
    found = {name: Rows() for name in live.compilation.program.names}
    for name, table in one.items():
        live.push(name, table)
        live.end(name)
    for name, table in live.advance():
        found[name] += multiset(table)
    assert found == by_a_run(one)
    assert found["again"].total() == found["top"].total() == 1


def test_a_pattern_does_not_wait_for_streams_it_does_not_read() -> None:
    text = (
        QUERIES + "REGISTER QUERY p AS PATTERN n1 x; n2 y FROM S TYPE BY name WITHIN 9 ms RETURN *;"
    )
    compilation = compiled(text)
    live = GraphRun(compilation, GoldenDevice(compilation.options.config))
    assert streams_read(compilation.program) == {"R", "S"}
    live.push("S", pa.table({"ts": [1, 2, 30], "d": [1, 1, 1], "name": ["n1", "n2", "n9"]}))
    assert [(name, rows.num_rows) for name, rows in live.advance()] == [("p", 1)]
    alone = compile_text(text.partition("REGISTER")[0] + "SELECT R.a FROM R WINDOW NOW;")
    assert streams_read(alone.program) == {"R"}


def test_a_stream_says_how_far_its_rows_fall_back() -> None:
    text = "CREATE STREAM R (a int) WITH (max_out_of_orderness = '5 ms', late = 'error'); SELECT a FROM R"
    run = GraphRun(compile_text(text))
    run.push("R", pa.table({"ts": [10, 5], "a": [1, 2]}))
    with pytest.raises(RowsRefused, match="late row"):
        run.push("R", pa.table({"ts": [11, 5], "a": [1, 2]}))
    run = GraphRun(compile_text(text.replace("error", "drop")))
    run.push("R", pa.table({"ts": [10, 5, 4], "a": [1, 2, 3]}))
    rows = [row for _, part in run.finish() for row in part.to_pylist()]
    assert [row["a"] for row in rows] == [2, 1]
    assert run.report.late == {"R": 1}


PATTERN_STREAM = """
CREATE STREAM s (type varchar, id bigint, k int);
CREATE STREAM m AS PATTERN A a; A b FROM s PARTITION BY k WITHIN 6 ms RETURN a.id AS a, b.id AS b;
REGISTER QUERY q AS SELECT a, b FROM m WINDOW NOW;
REGISTER QUERY deep AS SELECT x.a, y.b FROM m x, m y WHERE x.b = y.a WINDOW RANGE 9;
"""


@pytest.mark.parametrize("seed", range(3))
def test_rows_of_a_pattern_come_with_the_step_that_makes_them(seed: int) -> None:
    """Compares each step of a run whose device finds candidates with the engine alone."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    c = compile_text(PATTERN_STREAM)
    assert any(pattern.candidates is not None for pattern in c.program.patterns)
    alone = compile_text(PATTERN_STREAM, options=Options(devices=0))
    assert not any(pattern.candidates is not None for pattern in alone.program.patterns)
    runs = [GraphRun(alone), GraphRun(c, GoldenDevice(c.options.config)), GraphRun(c)]
    for step in range(30):
        count = chance.randint(2, 4)
        rows = pa.table(
            {
                "ts": [4 * step + number for number in range(count)],
                "type": [*chance.choices("AB", k=count - 2), "A", "A"],
                "id": [10 * step + number for number in range(count)],
                "k": pa.array([*chance.choices([1, 2], k=count - 2), 1, 1], pa.int32()),
            }
        )
        for run in runs:
            run.push("s", rows)
        mine, *others = [_by_query(run.advance()) for run in runs]
        assert all(other == mine for other in others), step
    mine, *others = [_by_query(run.finish()) for run in runs]
    assert mine["q"]
    assert all(other == mine for other in others)


def _by_query(answers: Iterable[Answer]) -> dict[str, Rows]:
    found: dict[str, Rows] = {}
    for name, rows in answers:
        found.setdefault(name, Rows()).update(multiset(rows))
    return found


def test_a_fault_in_a_part_of_a_query_is_that_query_s() -> None:
    text = """CREATE STREAM R (a int);
    REGISTER QUERY q AS SELECT a, count(*) AS n FROM R WHERE 1 / a > 0 GROUP BY a, TUMBLE(ts, 5)"""
    run = GraphRun(compile_text(text))
    run.push("R", pa.table({"ts": [1, 2, 3], "a": [0, 1, 0]}))
    assert sum(rows.num_rows for _, rows in run.finish()) == 1
    (places,) = (run.report.faults[name] for name in run.report.faults)
    assert [*run.report.faults] == ["q"]
    assert [count for count, _ in places.values()] == [2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT sum(a) / (sum(a) - 3) AS z FROM R WINDOW UNBOUNDED", "query q0: division by zero in sum(R.a) / (sum(R.a) - 3) at 2:15, "),
        ("SELECT sum(a) / (sum(a) - 3) AS z FROM R GROUP BY TUMBLE(ts, 9)", "query q0: division by zero in sum(R.a) / (sum(R.a) - 3) at 2:15, "),
        ("SELECT -(a + 1) / (count(*) - 1) AS z FROM R GROUP BY a + 1 WINDOW NOW", "query q0: division by zero in -(R.a + 1) / (count(*) - 1) at 2:17, "),
        ("SELECT 1 / (lag(a) OVER (ORDER BY ts) - 1) AS z FROM R", "query q0: division by zero in 1 / (lag(R.a) OVER (...) - 1) at "),
        ("CREATE STREAM s AS SELECT 1 / (sum(a) - 3) AS z FROM R GROUP BY TUMBLE(ts, 9) WITH (strict); SELECT z FROM s", "stream s: division by zero"),
        ("SELECT z FROM (SELECT 1 / (sum(a) - 3) AS z FROM R GROUP BY TUMBLE(ts, 9)) AS s", "q0: division by zero"),
    ],
)  # fmt: skip
def test_a_fault_names_its_query_and_what_is_written_there(text: str, said: str) -> None:
    strict = "" if "strict" in text else " WITH (strict)"
    text = text.replace(") AS s", f"{strict}) AS s") if "FROM (" in text else text + strict
    run = GraphRun(compile_text(f"CREATE STREAM R (a int);\n{text}"))
    run.push("R", pa.table({"ts": [1, 2, 3], "a": [1, 2, 4]}).slice(0, 2))
    with pytest.raises(EvaluationError) as caught:
        list(run.finish())
    assert str(caught.value).startswith(said)
    assert "without strict" in str(caught.value.hint)
