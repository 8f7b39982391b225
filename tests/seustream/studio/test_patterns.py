"""A pattern, event by event: the page shows what the trace reports, and the matches are the
product's."""

from __future__ import annotations

import re
from typing import Any

import pytest

import seustream as ss
from seustream.compiler.pipeline import Compilation
from seustream.engine.pattern.errors import EngineRefused
from seustream.errors import InputError, UserError
from seustream.studio.compiled import Settings, compilation
from seustream.studio.data import rows
from seustream.studio.patterns import kinds, watched

TEXT = """CREATE STREAM E (type varchar, id smallint, x int);
REGISTER QUERY gap AS PATTERN A a; !B; C+ c; D d FROM E WHERE d.x > a.x WITHIN 60 ms
  RETURN a.id, count(c) AS many;
REGISTER QUERY up AS PATTERN A a; C+ c; D FROM E WHERE c[i].x >= c[i-1].x
  WITHIN 60 ms USING NEXT RETURN a.id, count(c) AS many;"""


def given(seed: int, count: int = 80) -> tuple[Compilation, dict[str, list[dict[str, Any]]]]:
    c = compilation(TEXT, Settings())
    return c, rows(c.program.base, seed, count, kinds(c))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("query", "engine"), [("gap", "optiseq"), ("up", "nfa")])
def test_the_matches_are_those_of_a_run(seed: int, query: str, engine: str) -> None:
    c, some = given(seed)
    found = watched(c, some, query, engine)
    expected = ss.run(TEXT, E=some["E"])[query].rows()
    shown = []
    for match in found["matches"]:
        groups = {group["element"][0]: group["events"] for group in match["groups"]}
        number = int(re.findall(r"#(\d+)@", groups["A"][0][0])[0])
        shown.append((some["E"][number]["id"], len(groups["C"])))
    assert sorted(shown) == sorted(expected)
    assert found["matches"], f"seed {seed} finds nothing"


def test_every_event_is_a_step_and_what_is_kept_has_a_place() -> None:
    c, some = given(1)
    for query, engine in (("gap", "optiseq"), ("up", "nfa")):
        found = watched(c, some, query, engine)
        places = {place["name"] for place in found["places"]}
        titles = [step["title"] for step in found["steps"]]
        assert sum("#" in title for title in titles) == 80
        assert {place for step in found["steps"] for place in step["kept"]} <= places
        assert any(step["kept"] for step in found["steps"])


def test_runs_stand_where_the_trace_says() -> None:
    c, some = given(2)
    found = watched(c, some, "up", "nfa")
    for step in found["steps"]:
        standing = [said for kept in step["kept"].values() for _, said in kept if "run " in said]
        told = [line for line in step["lines"] if line.startswith("run on ")]
        assert sum(said.count("run ") for said in standing) == len(told)


def test_types_of_events_are_those_the_patterns_look_for() -> None:
    c, some = given(3)
    assert kinds(c) == {("E", "type"): ("A", "B", "C", "D")}
    assert {row["type"] for row in some["E"]} == {"A", "B", "C", "D"}


@pytest.mark.filterwarnings("ignore:stream E. 1 late row")
def test_late_events_match_nothing() -> None:
    c, _ = given(1)
    types, ids = ["A", "C", "D", "C"], [1, 2, 3, 4]
    some = {"ts": [10, 20, 30, 15], "type": types, "id": ids, "x": [1, 2, 3, 2]}
    found = watched(c, {"E": some}, "up", "nfa")
    counted = [len(group["events"]) for match in found["matches"] for group in match["groups"]]
    assert counted == [1, 1, 1]
    assert ss.run(TEXT, E=some)["up"].rows() == [(1, 1)]
    assert found["left_out"]["E"]["rows"] == [[15, "C", 4, 2]]


def test_what_cannot_be_watched() -> None:
    c, some = given(1)
    with pytest.raises(UserError, match="no pattern 'upp'") as refused:
        watched(c, some, "upp", "auto")
    assert refused.value.hint == "did you mean up?"
    with pytest.raises(EngineRefused, match="P016"):
        watched(c, some, "gap", "nfa")
    with pytest.raises(InputError, match="no rows for stream E"):
        watched(c, {}, "gap", "auto")
    none = compilation("CREATE STREAM R (a int); REGISTER QUERY q AS SELECT a FROM R;", Settings())
    with pytest.raises(UserError, match="no pattern"):
        watched(none, {}, "", "auto")
