"""Patterns as operators of the graph: rows that wait for an event that may end a match give the
same results as if they had not waited."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from seustream.compiler.pattern import ir
from seustream.compiler.pipeline import Options, compile_text
from seustream.engine.graph import GraphRun
from seustream.engine.pattern import output, stream
from seustream.engine.pattern.stream import PatternNode
from seustream.engine.stream.merge import END_OF_STREAM

CREATE = "CREATE STREAM E (type varchar, id int, v double);"
WAITING = (
    "PATTERN A; B; C FROM E WHERE a.id = c.id AND b.v > 1.1 * a.v WITHIN 50 ms RETURN a.id, c.v"
)


def query(text: str) -> ir.PatternQuery:
    (found,) = compile_text(f"{CREATE} {text};").program.patterns
    assert isinstance(found, ir.PatternQuery)
    return found


def events(chance: random.Random, count: int) -> pa.Table:
    ts = sorted(chance.randrange(4 * count) for _ in range(count))
    kinds = [chance.choice(["A", "B", "C", "D", "E", None]) for _ in range(count)]
    numbers = pa.array([chance.randrange(3) for _ in range(count)], pa.int32())
    values = [chance.choice([None, 0.5, 1.0, 2.0]) for _ in range(count)]
    return pa.table({"ts": ts, "type": kinds, "id": numbers, "v": values})


@pytest.mark.parametrize("seed", range(8))
def test_matches_come_at_the_step_at_which_they_are_certain(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compares with a node that examines every event at once; both are saved and restored now and
    then."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    monkeypatch.setattr(stream, "_MOST_WAIT", chance.choice([3, 50, 4096]))
    pattern, rows, done = query(WAITING), events(chance, 300), 0
    assert stream.ending(pattern) is not None
    one, two = PatternNode(pattern), PatternNode(pattern)
    two._ending = None
    total = 0
    while done < rows.num_rows:
        size = chance.randint(0, 4)
        some, done = rows.slice(done, size), done + size
        before = rows["ts"][done].as_py() if done < rows.num_rows else END_OF_STREAM
        reached = END_OF_STREAM if before == END_OF_STREAM else before - chance.randint(1, 6)
        given = []
        for node in (one, two):
            if some.num_rows:
                node.push("E", some)
            if reached > node.watermark:
                node.advance("E", reached)
            given.append([row for _, table in node.outputs() for row in table.to_pylist()])
        assert given[0] == given[1]
        assert one.watermark == two.watermark
        total += len(given[0])
        if chance.random() < 0.1:
            state = one.snapshot()
            one = PatternNode(pattern)
            one.restore(state)
            assert one.snapshot() == state
    assert total


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN A; B; !C FROM E WITHIN 50 ms RETURN a.id",
        "PATTERN A; B+ bs FROM E WITHIN 50 ms RETURN a.id",
        "PATTERN A; ANY b FROM E WITHIN 50 ms RETURN a.id",
        "PATTERN A; B? FROM E WITHIN 50 ms RETURN a.id",
    ],
)
def test_where_any_event_may_end_a_match_none_waits(text: str) -> None:
    assert stream.ending(query(text)) is None


MANY = [
    "PATTERN A a; B b; C c FROM E WITHIN 50 ms RETURN a.id, b.id AS b, c.id AS c",
    "PATTERN A a; B+ b; C c FROM E WITHIN 40 ms USING ANY SUBSETS RETURN a.id, b.id AS b, c.id AS c",
    "PATTERN A a; B b; !C c FROM E PARTITION BY id WITHIN 50 ms RETURN a.id, b.v",
    "PATTERN A a; B? b; C c FROM E WITHIN 40 ms RETURN a.id, c.id AS c",
    "PATTERN A a; B b FROM E WITHIN 50 ms AFTER MATCH SKIP PAST LAST EVENT RETURN a.id, b.id AS b",
    "SELECT * FROM E MATCH_RECOGNIZE (ORDER BY ts MEASURES FIRST(a.v) AS x, LAST(a.v) AS y"
    " PATTERN (a+) WITHIN INTERVAL '9' MS DEFINE a AS a.v >= PREV(a.v) OR PREV(a.v) IS NULL)",
]


@pytest.mark.parametrize("text", MANY)
@pytest.mark.parametrize("seed", range(3))
def test_many_matches_of_a_step_come_in_parts(
    seed: int, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are those of whole steps, in the same order, and no part is much larger than asked
    for."""
    print(f"seed {seed}")
    rows = events(random.Random(seed), 400)
    (pattern,) = compile_text(f"{CREATE} REGISTER QUERY q AS {text};").program.patterns

    def tables() -> list[pa.Table]:
        node = PatternNode(pattern)
        found = []
        for part in (rows.slice(0, 30), rows.slice(30)):
            node.push("E", part)
            node.advance("E", part["ts"][-1].as_py() - 1)
            found += [table for _, table in node.outputs()]
        node.advance("E", END_OF_STREAM)
        return found + [table for _, table in node.outputs()]

    whole = tables()
    monkeypatch.setattr(stream, "_FIRST", 5)
    monkeypatch.setattr(stream, "_MATCHES", 20)
    parts = tables()
    assert len(parts) > len(whole)
    assert pa.concat_tables(parts).to_pylist() == pa.concat_tables(whole).to_pylist()
    assert max(map(len, parts)) < max(map(len, whole)) or max(map(len, whole)) < 20


def test_what_a_step_finds_need_not_fit_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget is of what is in memory together: that of one event, or of a few."""
    monkeypatch.setattr("seustream.engine.pattern.operator.MAX_ROWS", 1_000)
    monkeypatch.setattr(stream, "_FIRST", 8)
    monkeypatch.setattr(stream, "_MATCHES", 100)
    text = "PATTERN A a; B+ b; C c FROM E WITHIN 9 ms USING ANY SUBSETS RETURN count(b) AS n"
    kinds = [
        *"ABBBBBBC..",
    ] * 100
    rows = pa.table(
        {
            "ts": range(1_000),
            "type": kinds,
            "id": pa.nulls(1_000, pa.int32()),
            "v": pa.nulls(1_000, pa.float64()),
        }
    )
    node = PatternNode(query(text))
    for ts in range(-50, 0):  # short steps without a match, which teach nothing
        node.push("E", rows.slice(7, 1).set_column(0, "ts", pa.array([ts])))
        node.advance("E", ts)
        assert not list(node.outputs())
    node.push("E", rows)
    node.advance("E", END_OF_STREAM)
    assert sum(table.num_rows for _, table in node.outputs()) == 100 * 63


def burst(kinds: str) -> pa.Table:
    count = len(kinds)
    return pa.table(
        {
            "ts": range(1, count + 1),
            "type": [*kinds],
            "id": pa.nulls(count, pa.int32()),
            "v": pa.array(range(count), pa.float64()),
        }
    )


def test_what_one_event_ends_streams_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """More matches than any memory has, of which the reader takes the first ones; and as many as a
    reader can count, none of whose parts is large."""
    within = "FROM E WITHIN 1 h"
    node = PatternNode(
        query(f"PATTERN A a; B+ b; C c {within} USING ANY SUBSETS RETURN b[1].v AS v")
    )
    node.push("E", burst("A" + 60 * "B" + "C"))
    node.advance("E", END_OF_STREAM)
    given = node.outputs()
    assert [next(given)[1]["v"][0].as_py() for _ in range(3)] == [1.0, 1.0, 1.0]
    monkeypatch.setattr(output, "PART", 1 << 14)
    node = PatternNode(query(f"PATTERN A a; B b; C c {within} RETURN a.v AS a, b.v AS b"))
    node.push("E", burst(300 * "A" + 300 * "B" + "C"))
    node.advance("E", END_OF_STREAM)
    parts = [table for _, table in node.outputs()]
    assert max(map(len, parts)) <= (1 << 14) // 3
    whole = pa.concat_tables(parts).to_pylist()
    assert whole == [{"a": a, "b": b} for a in range(300) for b in range(300, 600)]


ROWS = "SELECT * FROM {} MATCH_RECOGNIZE (ORDER BY ts MEASURES PREV(A.x) AS p, A.x AS x PATTERN (A{}) WITHIN INTERVAL '9' MS DEFINE A AS A.x >= PREV(A.x) OR PREV(A.x) IS NULL)"
PAIR = (
    "CREATE STREAM t (x int); CREATE STREAM u (x int);"
    f"REGISTER QUERY mt AS {ROWS.format('t', '')}; REGISTER QUERY mu AS {ROWS.format('u', '{2}')};"
    "CREATE STREAM w AS SELECT x FROM t WINDOW NOW UNION ALL SELECT x FROM u WINDOW NOW;"
    f"REGISTER QUERY mw AS {ROWS.format('w', '')};"
)


@pytest.mark.parametrize("first", ["t", "u"])
def test_a_run_is_saved_and_goes_on_after_one_of_two_streams_has_ended(first: str) -> None:
    compilation = compile_text(PAIR, "q", Options(devices=0))
    numbers = {"t": [3, 1, 2, 2], "u": [1, 1, 5, 7]}

    def rows(name: str, part: slice) -> pa.Table:
        x = pa.array(numbers[name][part], pa.int32())
        return pa.table({"ts": [1, 2, 4, 5][part], "x": x})

    def results(saved: bool) -> dict[str, list[object]]:
        """Returns the results of each query; with `saved` every step is in a new run."""
        run, found = GraphRun(compilation), {"mt": [], "mu": [], "mw": []}  # type: ignore[var-annotated]
        (other,) = {"t", "u"} - {first}
        steps = [
            (first, slice(0, 4), True),
            (other, slice(0, 3), False),
            (other, slice(3, 4), True),
        ]
        for name, part, ends in steps:
            run.push(name, rows(name, part))
            if ends:
                run.end(name)
            for query, table in run.advance():
                found[query] += table.to_pylist()
            if saved:
                state, run = run.state(), GraphRun(compilation)
                run.resume(state)
        return found

    want = results(saved=False)
    assert results(saved=True) == want
    assert [row["p"] for row in want["mt"]] == [None, 1, 2]
    assert [row["x"] for row in want["mu"]] == [1, 7]
    assert len(want["mw"]) >= 4
