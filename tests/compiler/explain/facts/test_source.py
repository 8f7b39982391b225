"""Conditions before and after simplification, and the syntax tree."""

from __future__ import annotations

import json

from seustream.compiler.explain import explain
from seustream.compiler.pipeline import compile_text
from tests.compiler.explain.programs import facts


def test_conditions_before_and_after() -> None:
    (found,) = facts("simplified", "predicate")
    assert found["written"] == ("NOT (R.a <> S.d OR NOT S.d = R.a) AND TRUE AND S.note IS NOT NULL")
    assert found["simplified"] == "R.a = S.d AND S.note IS NOT NULL"
    assert found["changes"] == ["NOT moved into comparisons", "4 comparisons made 2"]
    never = {p["query"]: p for p in facts("host alone", "predicate")}["never"]
    assert (never["simplified"], never["changes"]) == ("FALSE", ["never true"])
    assert all(p["changes"] == [] for p in facts("eight", "predicate"))


def test_the_tree_knows_positions() -> None:
    (statement,) = facts("eight", "tree", query="q0")
    assert (statement["kind"], statement["line"], statement["column"]) == ("Select", 6, 1)
    where = next(child for child in statement["children"] if child["role"] == "where")
    assert (where["kind"], where["text"], where["column"]) == ("ComparisonChain", "=", 29)
    assert [child["text"] for child in where["children"]] == ["R.a", "S.d"]


def test_the_tree_shows_options() -> None:
    c = compile_text(
        "CREATE STREAM R (a int); SELECT 6 / a AS x FROM R WITH (strict, priority = 3, max_latency = '1 s')"
    )
    query = json.loads(explain(c, "tree", "json"))[-1]
    assert query["text"] == "WITH strict WITH priority = 3 WITH max_latency = '1 s'"
