"""Traces of matchers: runs, lists and matches, step by step."""

from __future__ import annotations

import random

import pytest

from seustream.compiler.pattern.statements import compile_pattern
from seustream.engine.pattern.errors import EngineRefused
from seustream.engine.pattern.planner import supports
from seustream.engine.pattern.trace import trace
from seustream.engine.pattern.versions import Numbering
from tests.engine.pattern.generate import Generator, query_of
from tests.engine.pattern.running import events_of, operate
from tests.engine.pattern.stock import S_TEXT, STOCK, S

S_ROWS = (
    "A#0@1 | B#4@5 | C#6@7 | D#7@9",
    "A#3@4 | B#4@5 | C#6@7 | D#7@9",
    "A#3@4 | B#4@5 | C#6@7 | D#10@12",
)


@pytest.mark.parametrize("numbering", Numbering)
def test_trace_shows_runs_versions_and_matches(numbering: Numbering) -> None:
    query = query_of("PATTERN A; B+ k; C WITHIN 9 ms USING NEXT RETURN *")
    lines = list(trace(query, events_of("a1@1 b1@2 b2@3 c1@4"), numbering))
    text = "\n".join(lines)
    assert "start: a run begins at a.A#0@1 (version 1.0, edge 1)" in text
    assert "take: k[i].B#2@3" in text
    assert "entry a.A#0@1: refs 1, edges −@1" in text
    assert lines[-1].strip() == "A#0@1 | B#1@2 B#2@3 | C#3@4"


def test_trace_of_nothing() -> None:
    query = query_of("PATTERN A; B WITHIN 9 ms RETURN *")
    assert list(trace(query, [])) == ["── matches", "   none"]


def test_trace_of_lists_is_the_worked_example() -> None:
    """Example S in the order of the paper: the ranges and candidates that the specification
    names."""
    query = compile_pattern(S_TEXT, STOCK)
    lines = list(trace(query, events_of(S), engine="optiseq"))
    assert "   keep: in A" in lines
    assert any("drop: it fits no element" in line for line in lines)  # a5, f1 and f2
    assert lines[-4:] == ["── matches", *(f"   {row}" for row in S_ROWS)]
    told = [line.strip() for line in lines]
    assert "search: D, C, B, A" in told or "search: B, C, D, A" in told
    for row in S_ROWS:
        assert f"match: {row}" in told
    assert "A#1@2 fails a condition" in told  # 1050 > 1104 does not hold
    assert "bind A#1@2" not in told


def test_trace_of_lists_says_why_not() -> None:
    query = query_of("PATTERN A; B+ k; C; !D WHERE count(k) > 1 WITHIN 9 ms RETURN *")
    lines = [
        line.strip()
        for line in trace(query, events_of("a1@1 b1@2 c1@3 a2@20 b2@21 b3@22 c2@23 d1@25"))
    ]
    assert "no match: A#0@1 | B#1@2 | C#2@3: a condition on its groups does not hold" in lines
    assert "no match: A#3@20 | B#4@21 B#5@22 | C#6@23: an event forbids it" in lines
    assert lines[-1] == "none"


@pytest.mark.parametrize("engine", ["nfa", "optiseq"])
@pytest.mark.parametrize("seed", range(15))
def test_a_trace_ends_with_the_matches_of_every_key(engine: str, seed: int) -> None:
    generator = Generator(random.Random(seed))
    query = generator.query(keys=True)
    while supports(query)[engine] is not None:
        query = generator.query(keys=True)
    events = generator.events(keys=True)
    lines = list(trace(query, events, engine=engine))
    want = operate(query, events)
    rows = [" | ".join(" ".join(map(repr, g)) for g in m.groups if g) for m in want]
    assert lines[lines.index("── matches") + 1 :] == [f"   {row}" for row in rows or ["none"]]
    for event in events:
        assert any(line.startswith(f"── k={event.attrs['k']}: {event!r}") for line in lines)


@pytest.mark.parametrize("engine", ["columns", "compact"])
def test_what_has_no_steps_has_no_trace(engine: str) -> None:
    with pytest.raises(EngineRefused, match="no trace"):
        list(trace(query_of("PATTERN A; B WITHIN 9 ms RETURN *"), [], engine=engine))
    strict = query_of("PATTERN A; B WITHIN 9 ms USING STRICT RETURN *")
    with pytest.raises(EngineRefused, match="P016"):
        list(trace(strict, [], engine="optiseq"))
