"""FROM and the subqueries of WHERE as one tree of joins, and the parts of a SELECT as written."""

from __future__ import annotations

import pytest

from seustream.compiler.language import expressions as x
from seustream.compiler.logical.joins import JoinSide, JoinTree
from seustream.compiler.xsql import tree
from seustream.compiler.xsql.joins import (
    conditions,
    inner_only,
    selects,
    subqueries,
    subquery,
)
from tests.compiler.xsql.relations import relation, wrong
from tests.compiler.xsql.shapes import parsed, select, shape


def shown(select: str) -> tuple[str, str]:
    """Returns the tree of a SELECT, and the rest of its WHERE."""
    found = relation(select + " WINDOW RANGE 9")
    assert isinstance(found, JoinTree)

    def side(of: JoinSide) -> str:
        if isinstance(of, int):
            return found.sources[of].alias
        return f"{of.kind.name}({side(of.left)}, {side(of.right)}, {x.show(of.condition)})"

    return side(found.tree), x.show(found.where)


@pytest.mark.parametrize(
    ("text", "joins", "where"),
    [
        ("SELECT * FROM R LEFT JOIN S ON R.a = S.a WHERE R.b > 1", "LEFT(R, S, R.a = S.a)", "R.b > 1"),
        ("SELECT * FROM R FULL JOIN S USING (a)", "FULL(R, S, R.a = S.a)", "TRUE"),
        (
            "SELECT * FROM R JOIN S ON R.a = S.a LEFT JOIN T ON S.d = T.e",
            "LEFT(INNER(R, S, R.a = S.a), T, S.d = T.e)",
            "TRUE",
        ),
        (
            "SELECT * FROM R LEFT JOIN (S JOIN T ON S.a = T.a) ON R.a = S.a",
            "LEFT(R, INNER(S, T, S.a = T.a), R.a = S.a)",
            "TRUE",
        ),
        (
            "SELECT a FROM R WHERE b > 1 AND NOT EXISTS (SELECT * FROM T WHERE T.a = R.a)",
            "ANTI(R, T, T.a = R.a)",
            "R.b > 1",
        ),
        ("SELECT a FROM R WHERE b IN (SELECT d FROM S)", "SEMI(R, S, R.b = S.d)", "TRUE"),
        (
            "SELECT a FROM R WHERE EXISTS (SELECT * FROM S WHERE S.a = R.a AND"
            " NOT EXISTS (SELECT * FROM T WHERE T.e = S.d))",
            "SEMI(R, ANTI(S, T, T.e = S.d), S.a = R.a)",
            "TRUE",
        ),
    ],
)  # fmt: skip
def test_a_from_is_a_tree(text: str, joins: str, where: str) -> None:
    assert shown(text) == (joins, where)


@pytest.mark.parametrize(
    ("text", "kind", "hint"),
    [
        ("SELECT a FROM R WHERE a IN (SELECT a, d FROM S) WINDOW 9", "subquery-form", "write EXISTS"),
        ("SELECT a FROM R WHERE a IN (SELECT max(d) FROM S GROUP BY a) WINDOW 9", "subquery-form",
         "CREATE STREAM"),
        ("SELECT a FROM R WHERE a NOT IN (SELECT d FROM S) WINDOW 9", "not-in-null", "NOT EXISTS"),
        ("SELECT R.a FROM R JOIN S USING (nope) WINDOW 9", "unknown-column", None),
        ("SELECT a FROM R WHERE a IN (SELECT rank() OVER (ORDER BY ts) FROM S) WINDOW 9", "over", None),
        ("SELECT a FROM R WHERE EXISTS (SELECT rank() OVER (ORDER BY ts) FROM S) WINDOW 9", "over", None),
        ("SELECT R.a FROM R WHERE EXISTS (SELECT nope FROM S) WINDOW 9", "unknown-column", None),
    ],
)  # fmt: skip
def test_what_no_tree_says_is_refused(text: str, kind: str, hint: str | None) -> None:
    found = wrong(text)
    assert kind in [problem.kind for problem in found]
    if hint is not None:
        assert hint in (found[0].hint or "")


def test_a_subquery_is_negated_as_often_as_is_written() -> None:
    for text, negated in {"EXISTS (SELECT * FROM S)": False, "NOT EXISTS (SELECT * FROM S)": True,
                          "NOT (NOT EXISTS (SELECT * FROM S))": False, "a NOT IN (SELECT a FROM S)": True,
                          "NOT (a NOT IN (SELECT a FROM S))": False}.items():  # fmt: skip
        where = select(f"SELECT * FROM R WHERE {text} WINDOW 1").where
        assert where is not None
        found = subquery(where)
        assert found is not None
        assert found[1] is negated, text


def test_conditions_and_subqueries_in_their_order() -> None:
    text = (
        "SELECT * FROM R WHERE a > 1 AND (EXISTS (SELECT * FROM S WHERE NOT EXISTS"
        " (SELECT * FROM T)) AND b IN (SELECT d FROM T)) WINDOW 1"
    )
    whole = select(text)
    assert len(conditions(whole.where)) == 3
    assert shape(conditions(whole.where)[0]) == "(> a 1)"
    assert conditions(None) == ()
    read = [[item.stream.text for item in tree.from_items(one.sources)] for one in selects(whole)]
    assert read == [["R"], ["S"], ["T"], ["T"]]
    assert len(subqueries(whole.where)) == 2


def test_a_list_of_streams_and_an_outer_join() -> None:
    found = relation("SELECT R.a FROM R LEFT JOIN S ON R.a = S.a WINDOW 9")
    assert isinstance(found, JoinTree)
    assert not inner_only(found.tree)


@pytest.mark.parametrize(
    ("operand", "given"),
    [
        ("coalesce(a, 0)", "coalesce(d, 0) FROM S"),
        ("ifnull(a, b * 2, 1)", "1 FROM S"),
        ("a", "d FROM S WHERE d IS NOT NULL"),
        ("a", "d FROM S WHERE d > 3 AND S.a IS NULL"),
        ("coalesce(b, a)", "coalesce(d, S.a) FROM S WHERE coalesce(d, S.a) = 1"),
        ("a", "R.a FROM S"),
        ("a", "S.d FROM S LEFT JOIN T ON S.a = T.a WHERE T.e = S.d"),
    ],
)
def test_not_in_of_what_cannot_be_null(operand: str, given: str) -> None:
    text = f"SELECT a FROM R WHERE a IS NOT NULL AND {operand} NOT IN (SELECT {given})"
    assert shown(text)[0].startswith("ANTI(")


@pytest.mark.parametrize(
    "where",
    [
        "a NOT IN (SELECT d FROM S WHERE d IS NOT NULL)",
        "(a IS NOT NULL OR b = 1) AND a NOT IN (SELECT d FROM S WHERE d IS NOT NULL)",
        "a = 1 AND a NOT IN (SELECT d FROM S WHERE d IS NULL)",
        "a = 1 AND a NOT IN (SELECT d FROM S WHERE d = 1 OR S.a = 1)",
        "a = 1 AND a NOT IN (SELECT d FROM S WHERE d IS NOT DISTINCT FROM S.a)",
        "b IS NOT NULL AND coalesce(a, NULL) NOT IN (SELECT 1 FROM S)",
    ],
)
def test_not_in_of_what_may_be_null_all_the_same(where: str) -> None:
    found = wrong(f"SELECT a FROM R WHERE {where} WINDOW 9")
    assert [problem.kind for problem in found] == ["not-in-null"]


@pytest.mark.parametrize("limit", ["LIMIT 1", "LIMIT 7", "FETCH FIRST 1 ROWS ONLY"])
@pytest.mark.parametrize("negated", ["", "NOT "])
def test_a_limit_changes_nothing_in_exists(limit: str, negated: str) -> None:
    text = f"SELECT a FROM R WHERE {negated}EXISTS (SELECT 1 FROM S WHERE S.a = R.a{{}})"
    assert shown(text.format(f" {limit}")) == shown(text.format(""))


def test_a_limit_in_in_is_refused() -> None:
    (problem,) = wrong("SELECT a FROM R WHERE a IN (SELECT d FROM S LIMIT 1) WINDOW 9")
    assert problem.message == "the subquery of IN groups, limits or unites rows"


def test_an_order_in_a_subquery_names_what_there_is() -> None:
    (problem,) = wrong(
        "SELECT a FROM R WHERE EXISTS (SELECT 1 FROM S ORDER BY nothing LIMIT 1) WINDOW 9"
    )
    assert problem.kind == "unknown-column"


def test_streams_of_from_as_they_are_written() -> None:
    text = "SELECT * FROM R ASOF JOIN S ON R.a = S.a JOIN T FOR SYSTEM_TIME AS OF R.ts ON T.a = R.a, R x WINDOW 1"
    sources = select(text).sources
    assert [item.stream.text for item in tree.from_items(sources)] == ["R", "S", "T", "R"]
    assert [item.stream.text for item in tree.looked_up(sources)] == ["S", "T"]


def test_stars_and_options() -> None:
    for items, stars in {"*": True, "R.*, a": True, "a, count(*)": False}.items():
        assert select(f"SELECT {items} FROM R WINDOW 1").stars is stars
    (union,) = parsed("SELECT a FROM R WITH (strict) UNION ALL SELECT a FROM S WITH (priority = 2)")
    assert isinstance(union, tree.UnionClause)
    assert [option.name.text for option in tree.options_of(union)] == ["strict", "priority"]
