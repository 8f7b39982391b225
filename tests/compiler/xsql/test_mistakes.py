"""Every example of a mistake, and similar mistakes, lead to the right hint."""

from __future__ import annotations

import pytest

from seustream.compiler.errors import Problems, SourceText
from seustream.compiler.xsql.mistakes import FORMS, MISTAKES
from seustream.compiler.xsql.parse import parse

EXAMPLES = [(example, hint) for hint, examples in MISTAKES.items() for example in examples]


def hint_of(text: str) -> str | None:
    problems = Problems()
    assert parse(SourceText(text), problems) == []
    (problem,) = problems.found
    assert problem.kind == "syntax"
    return problem.hint


@pytest.mark.parametrize(("example", "hint"), EXAMPLES)
def test_example(example: str, hint: str) -> None:
    assert hint_of(example) == hint


@pytest.mark.parametrize("ahead", ["REGISTER QUERY q AS ", "CREATE STREAM q AS ", "EXPLAIN "])
@pytest.mark.parametrize(("example", "hint"), EXAMPLES)
def test_example_within_a_statement(ahead: str, example: str, hint: str) -> None:
    if example.startswith("select"):
        assert hint_of(ahead + example) == hint


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SELECT * WHERE price > 5 WINDOW 1", "say which streams"),
        ("SELECT FROM Trade WHERE price > 5 WINDOW 1", "name the columns"),
        ("CREATE STREAM Trade {price real, symbol char(4)}", "a stream is written"),
        ("CREATE STREAM Trade (price, symbol)", "a stream is written"),
        ("SELECT * FROM Trade WINDOW RANGE hours", "a window is RANGE"),
        ("SELECT * FROM Trade t WHERE AND t.price > 5 WINDOW 1", "WHERE is followed by"),
        ("SELECT * FROM Trade WINDOW 5 minutes,", "remove the comma"),
        ("SELECT * FROM Trade JOIN Quote WINDOW 1", "a join says when rows match"),
        ("SELECT * FROM Trade, News t FULL JOIN Quote q WHERE a = b", "a join says when"),
        ("DELETE FROM Trade", "rows come from sources"),
        ("VALUES (1)", "rows come from sources"),
        ("WITH w AS (SELECT a, FROM R) SELECT a FROM w", "remove the comma"),
        ("SELECT a FROM R UNION SELECT k FROM S JOIN T WINDOW 1", "a join says when rows match"),
        (
            "REGISTER QUERY q AS SELECT x FROM (SELECT a AS x FROM R WINDOW 1,) t",
            "remove the comma",
        ),
        ("SELECT * FROM Trade t NATURAL JOIN Quote WINDOW 1", "name the columns that are equal"),
        (
            "SELECT * FROM Trade t RIGHT SEMI JOIN Quote q USING (a) WINDOW 1",
            "the rows of the left",
        ),
        ("CREATE QUERY q AS SELECT a FROM R", "REGISTER QUERY"),
        ("CREATE OR REPLACE QUERY q AS SELECT a FROM R", "REGISTER OR REPLACE QUERY"),
        ("PLEASE (1)", "a statement begins with"),
        ("SELECT agg.sum(price) FROM Trade WINDOW 1", "write sum"),
        ("SELECT mine.middle(price) FROM Trade WINDOW 1", "CREATE STREAM s AS APAS"),
    ],
)
def test_another_mistake_of_its_kind(text: str, hint: str) -> None:
    assert str(hint_of(text)).startswith(hint)


@pytest.mark.parametrize(
    ("text", "keyword"),
    [
        ("SELCT * FROM R WINDOW 1", "SELECT"),
        ("SELECT * FORM R WINDOW 1", "FROM"),
        ("REGISTER QEURY x AS SELECT * FROM R WINDOW 1", "QUERY"),
        ("CREATE STRAEM R (a int)", "STREAM"),
        ("SHOW STREAM", "STREAMS"),
        ("SELECT * FROM R WHERE a IS NUL WINDOW 1", "NULL"),
    ],
)
def test_a_misspelt_keyword_is_named(text: str, keyword: str) -> None:
    assert hint_of(text) == f"did you mean {keyword}?"


def test_one_letter_is_no_misspelt_keyword() -> None:
    assert hint_of("SELECT from R WINDOW 1") == "name the columns to select, or *"


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("create function R (a int)", "CREATE"),
        ("-- streams\nshow views", "SHOW"),
        ("drop everything", "DROP"),
        ("register q as select a from R window 1", "REGISTER"),
        ("explain 5", "EXPLAIN"),
        ("select a from R where a is 5 window 1", "SELECT"),
    ],
)
def test_otherwise_the_form_of_the_statement_is_the_hint(text: str, statement: str) -> None:
    assert hint_of(text) == f"the form is {FORMS[statement]}"
