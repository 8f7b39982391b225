"""Joins that find candidates for patterns: their conditions, and the patterns that have no such
join."""

from __future__ import annotations

import json
import re

import pytest

from seustream.compiler.errors import CompileError
from seustream.compiler.language import expressions as x
from seustream.compiler.pipeline import Compilation, Options, compile_text, without
from seustream.compiler.plan.statistics import Statistics
from seustream.engine.explain import explain
from tests.compiler.plan.cases import Case, cases

CREATE = """CREATE STREAM E (type varchar(8), k int, v int, c char(3), price double precision);
CREATE STREAM T (type varchar(8), ts2 int);
CREATE STREAM D AS SELECT type, k FROM E WHERE v > 3;
"""
KEYED = "PATTERN A a; B b FROM E PARTITION BY k WITHIN 5 s"


def compiled(pattern: str, options: Options | None = None) -> Compilation:
    return compile_text(f"{CREATE}REGISTER QUERY p AS {pattern};", options=options)


def asked(pattern: str) -> str:
    """Returns the condition of the join for a pattern."""
    (one,) = (q for q in compiled(pattern).program.queries if q.last is not None)
    return x.show(one.where)


@pytest.mark.parametrize("case", cases("candidates"), ids=str)
def test_case(case: Case) -> None:
    *before, pattern = case.before
    c = compile_text(f"{' '.join(before)} REGISTER QUERY p AS {pattern};")
    shown = [
        f"{query.name}: FROM {', '.join(f'{s.stream.name} {s.alias}' for s in query.sources)}"
        f" WHERE {x.show(query.where)} WINDOW {query.sources[0].window}, last {query.last}"
        for query in c.program.queries
    ]
    assert shown + [f"p: {one.whole}" for one in c.program.patterns if one.whole] == list(
        case.after
    )


@pytest.mark.parametrize(
    ("pattern", "condition"),
    [
        (KEYED + " RETURN a.v", "a.type = 'A' AND b.type = 'B' AND a.k = b.k"),
        (
            "PATTERN A a; X+ x; B b; !Y; (C | D) d FROM E WHERE a.k = d.k AND b.k = d.k AND x[i].v > 1"
            " AND b.v < a.v AND a.v = 3 AND b.v + 1 = d.v WITHIN 5 s RETURN a.v",
            "a.type = 'A' AND b.type = 'B' AND (d.type = 'C' OR d.type = 'D') AND a.k = d.k"
            " AND b.k = d.k AND b.v < a.v AND a.v = 3 AND b.v + 1 = d.v",
        ),
        (
            "PATTERN A a; B b FROM E PARTITION BY k, c WHERE b.ts - a.ts > 3 AND a.v IS NOT NULL"
            " WITHIN 5 s RETURN a.v",
            "a.type = 'A' AND b.type = 'B' AND a.k = b.k AND b.TimeStamp > a.TimeStamp + 3 AND a.v IS NOT NULL",
        ),
    ],
)
def test_a_join_asks_for_nothing_that_the_pattern_does_not(pattern: str, condition: str) -> None:
    assert asked(pattern) == condition


def test_a_join_has_as_many_attributes_as_an_area() -> None:
    text = "PATTERN A a; B b FROM E WHERE a.k = b.k AND a.v < b.v AND a.price < b.price AND a.ts < b.ts"
    assert asked(text + " AND a.v = 3 WITHIN 5 s RETURN a.v").endswith(
        "a.price < b.price AND a.v = 3"
    )


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("PATTERN A a; B b FROM D PARTITION BY k WITHIN 5 s RETURN a.k", "it reads a derived stream"),
        ("PATTERN A a; B? b FROM E PARTITION BY k WITHIN 5 s RETURN a.k", "it has optional parts"),
        ("PATTERN A a; B+ b FROM E PARTITION BY k WITHIN 5 s USING NEXT RETURN a.k",
         "it does not end with a single event"),
        ("PATTERN A a; !B FROM E PARTITION BY k WITHIN 5 s RETURN a.k",
         "it does not end with a single event"),
        ("PATTERN A+ a; B b FROM E PARTITION BY k WITHIN 5 s RETURN b.k", "it has one single event"),
        (KEYED + " RETURN a.k WITH (strict)", "its first fault is an error"),
        ("PATTERN A a; B b FROM E WITHIN 5 s RETURN a.k",
         "a join would find 10 candidates for an event"),
        ("FROM_ROWS", "MATCH_RECOGNIZE is matched row by row"),
    ],
)  # fmt: skip
def test_patterns_without_candidates(pattern: str, why: str) -> None:
    if pattern == "FROM_ROWS":
        pattern = (
            "SELECT * FROM E MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES a.v AS w"
            " PATTERN (a b) WITHIN INTERVAL '5' SECOND DEFINE a AS type = 'A', b AS type = 'B')"
        )
    c = compiled(pattern)
    (query,) = c.program.patterns
    assert (query.candidates, query.whole) == (None, why)
    assert all(query.last is None for query in c.program.queries)


def test_statistics_decide() -> None:
    pattern = "PATTERN A a; B b FROM E WHERE a.v = b.v WITHIN 5 s RETURN a.k"
    assert compiled(pattern).devices
    few = Statistics(distinct={("e", "v"): 3.0}, rows={"e": 1e6})
    (query,) = compiled(pattern, Options(statistics=few)).program.patterns
    assert query.whole == "a join would find 3.33e+03 candidates for an event"


def test_only_arrivals_of_the_last_event_probe() -> None:
    c = compiled("PATTERN A a; B b; C d FROM E PARTITION BY k WITHIN 5 s RETURN a.v")
    for plan in ("cost", "thesis"):
        c = compile_text(c.source.text, options=Options(plan=plan))
        raw = [c.tables.routes[slot] for slot in range(3)]
        assert [bool(route.probes) for route in raw] == [False, False, True]
        assert [route.insert for route in raw] == [True, True, False]


def test_no_device_or_no_room_leaves_the_pattern_whole() -> None:
    c = compiled(KEYED + " RETURN a.v", Options(devices=0))
    assert (c.program.patterns[0].candidates, c.program.patterns[0].whole) == (None, "")
    streams = "".join(f"CREATE STREAM R{n} (a int);" for n in range(4))
    join = "SELECT R0.a FROM R0, R1, R2, R3 WHERE R0.a = R1.a AND R1.a = R2.a AND R2.a = R3.a WINDOW 9;"
    text = f"{CREATE}{streams}REGISTER QUERY p AS {KEYED} RETURN a.v;{join}"
    for fit in ("auto", "strict"):
        c = compile_text(text, options=Options(fit=fit))
        assert [one.division.query.name for one in c.device_queries] == ["q1"]
        (query,) = c.program.patterns
        assert query.candidates is None
        assert query.whole.startswith("streams: 6 needed, at most 4")
        assert not c.placement.software
    # A join that does not fit is still an error.
    with pytest.raises(CompileError, match="query q2 exceeds"):
        compile_text(text + "SELECT x.a FROM R0 x, R0 y WHERE x.a = y.a WINDOW 9;",
                     options=Options(fit="strict"))  # fmt: skip


def test_a_smaller_program_has_no_more_joins_than_patterns() -> None:
    text = (
        f"{CREATE}REGISTER QUERY p AS {KEYED} RETURN a.v; REGISTER QUERY q AS {KEYED} RETURN b.v;"
    )
    c = without(compile_text(text), {"p"})
    assert [query.name for query in c.program.queries if query.last is not None] == ["q#1"]
    assert [s.name for s in c.program.streams] == ["E", "T", "D", "q#1"]


def test_explain_says_what_is_looked_at() -> None:
    c = compiled(KEYED + " RETURN a.v")
    assert re.search("looks at +events between those that p#1 joins", explain(c, query="p"))
    assert json.loads(explain(c, "automaton", "json", "p"))
    whole = compiled("PATTERN A a; B b FROM E WITHIN 5 s RETURN a.k")
    assert re.search("looks at +all events: a join would find 10 ", explain(whole, query="p"))
