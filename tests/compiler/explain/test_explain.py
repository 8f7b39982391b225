"""Explains every stage in every format, and tests the requests that EXPLAIN refuses."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from seustream.compiler.explain import FORMATS, SHOWN, explain
from seustream.compiler.explain.marks import WIDTH
from seustream.compiler.pipeline import STAGES, compile_text
from tests.compiler.explain.programs import CASES, compiled

PICTURES = ("tree", "graph", "routes", "areas", "split", None)


@pytest.mark.parametrize("stage", [*SHOWN, None])
@pytest.mark.parametrize(("name", "plan"), CASES)
def test_every_stage_has_text_and_json(name: str, plan: str, stage: str | None) -> None:
    c = compiled(name, plan)
    text = explain(c, stage, "text")
    assert text.strip()
    assert all(len(line) <= WIDTH for line in text.splitlines())
    assert not any(ord(sign) < 32 and sign != "\n" for sign in text)
    assert json.loads(explain(c, stage, "json")) is not None


@pytest.mark.parametrize("stage", PICTURES)
@pytest.mark.parametrize(("name", "plan"), CASES)
def test_pictures_are_well_formed(name: str, plan: str, stage: str | None) -> None:
    root = ElementTree.fromstring(explain(compiled(name, plan), stage, "svg"))
    assert root.tag.endswith("svg")


@pytest.mark.parametrize(("name", "plan"), CASES)
def test_every_query_is_explained_alone(name: str, plan: str) -> None:
    c = compiled(name, plan)
    for query in c.program.queries:
        for stage in (*SHOWN, None):
            for form in FORMATS:
                if form != "svg" or stage in PICTURES:
                    assert explain(c, stage, form, query.name.upper())


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_needs_no_later_one(stage: str) -> None:
    whole, stopped = compiled("eight"), compiled("eight", stage=stage)
    for form in FORMATS:
        if form != "svg" or stage in PICTURES:
            # Only `areas` may differ: its number of instructions comes with the programs.
            same = explain(stopped, stage, form) == explain(whole, stage, form)
            assert same or stage == "areas"


@pytest.mark.parametrize("stage", ["dnf", "subqueries", "requests", "routes", "areas", "listing"])
def test_a_stage_not_reached_is_refused(stage: str) -> None:
    before = STAGES[STAGES.index(stage) - 1]
    with pytest.raises(ValueError, match=f"stopped before '{stage}'"):
        explain(compiled("eight", stage=before), stage, "text")
    with pytest.raises(ValueError, match="the overview cannot be explained"):
        explain(compiled("eight", stage=before), None, "text")


def test_the_overview_wants_the_image() -> None:
    with pytest.raises(ValueError, match=r"the overview .* stopped before 'split'"):
        explain(compiled("eight", stage="listing"), None, "text")


def test_nothing_drawn_changes_between_runs() -> None:
    for stage in PICTURES:
        one, other = compiled("eight"), compiled("eight")
        assert explain(one, stage, "svg") == explain(other, stage, "svg")


def test_an_unknown_stage_is_refused_with_all_stages() -> None:
    with pytest.raises(ValueError, match=r"no stage 'code'; stages: tokens, tree, .*, split"):
        explain(compiled("empty"), "code", "text")


def test_an_unknown_format_is_refused_with_all_formats() -> None:
    with pytest.raises(ValueError, match="no format 'pdf'; formats: text, json, svg"):
        explain(compiled("empty"), None, "pdf")


def test_a_stage_without_a_picture_is_refused_with_those_that_have_one() -> None:
    with pytest.raises(
        ValueError, match="pictures: tree, graph, routes, areas, split, and the overview"
    ):
        explain(compiled("empty"), "listing", "svg")


def test_an_unknown_query_is_refused_with_all_queries() -> None:
    with pytest.raises(ValueError, match="no query 'q8'; queries: q0, q1"):
        explain(compiled("eight"), None, "text", "q8")


def test_the_deepest_expression_the_compiler_takes_can_be_shown() -> None:
    many = "R.a" + " + 1" * 120
    c = compile_text(f"CREATE STREAM R (a int); SELECT a FROM R WHERE {many} > 0 WINDOW NOW;")
    for stage in ("tree", "predicate", None):
        for form in FORMATS:
            if form != "svg" or stage in PICTURES:
                assert explain(c, stage, form)
