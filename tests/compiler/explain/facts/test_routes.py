"""Route tags and cross products."""

from __future__ import annotations

from tests.compiler.explain.programs import facts


def test_cross_products_are_asked_for_or_made_by_the_plan() -> None:
    def found(plan: str) -> list[tuple[str, int, bool]]:
        crossed = facts("eight", "routes", plan)["cross_products"]
        return [(c["query"], c["subquery"], c["asked_for"]) for c in crossed]

    unavoidable = [("q6", 6, True), ("q6", 7, True), ("q7", 8, True)]
    assert found("cost") == unavoidable
    assert sorted(found("thesis")) == sorted([*unavoidable, ("q1", 1, False), ("q7", 9, False)])


def test_one_query_sees_only_its_own() -> None:
    whole, alone = facts("eight", "routes", "thesis"), facts("eight", "routes", "thesis", "q1")
    assert [tag["tag"] for tag in alone["tags"]] == [0, 1, 2, 5, 6, 7, 8, 9, 10]
    assert {name for tag in alone["tags"] for name in tag["queries"]} == {"q1"}
    assert len(whole["tags"]) == 43
    assert [row["subquery"] for row in facts("eight", "requests", query="q7")["rows"]] == [8, 9]
    assert {token["line"] for token in facts("eight", "tokens", query="q2")} == {8}
