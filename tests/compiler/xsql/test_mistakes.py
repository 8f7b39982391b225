"""Every example of a mistake, and similar mistakes, lead to the right hint."""

from __future__ import annotations

import random
import re

import pytest
from lark.lexer import PatternStr

from seustream.compiler.apas import parse as apas
from seustream.compiler.errors import CompileError, Problem, Problems, SourceText
from seustream.compiler.language.parse import TOKEN_NAMES
from seustream.compiler.pattern import parse as patterns
from seustream.compiler.xsql.mistakes import FORMS, MISTAKES, sql_parser
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
        ("REGISTER QUERY q AS REGISTER QUERY p AS PATTERN A RETURN *", "leave REGISTER QUERY"),
        ("REGISTER QUERY q AS REGISTER OR REPLACE QUERY p AS APAS $$ select a.T $$", "leave REG"),
        ("REGISTER QUERY q AS CREATE TABLE t (a int)", "a query stands here"),
        ("REGISTER QUERY q AS DROP QUERY p", "the form is REGISTER QUERY"),
        ("REGISTER QUERY q AS 5", "the form is REGISTER QUERY"),
        ("SELECT a FROM R UNION ALL 5", "the form is SELECT"),
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


# --- what could stand there ------------------------------------------------------

STATEMENTS = [
    "CREATE OR REPLACE STREAM R (a int NOT NULL, at timestamp, WATERMARK FOR at AS at - INTERVAL '5' SECOND) WITH (late = 'side')",
    "CREATE TABLE IF NOT EXISTS t (a decimal(9, 2)) WITH (path = 't.csv')",
    "REGISTER QUERY q AS APAS $$ from n[g = agg.count($R)]; select full[$n[T]] $$ WITH (strict)",
    "DROP STREAM IF EXISTS R",
    "EXPLAIN ANALYZE SELECT TRY_CAST(a AS int), x::int FROM R LEFT JOIN S FOR SYSTEM_TIME AS OF R.ts ON R.a = S.a"
    " WHERE a BETWEEN 1 AND 2 OR b IN (1, 2) GROUP BY a HAVING count(*) > 1 WINDOW RANGE 5 minutes SLIDE 1 minute",
    "WITH w AS (SELECT * FROM TABLE(TUMBLE(DATA => TABLE R, DESCRIPTOR(ts), 5 min))) SELECT position('a' IN b) FROM w"
    " UNION ALL SELECT sum(a) OVER (PARTITION BY b ORDER BY ts DESC ROWS 3 PRECEDING) FROM R LIMIT 3 EMIT CHANGES",
    "REGISTER OR REPLACE QUERY p AS PATTERN A a; !B; (C | D)+ c; E{2,3} e; F^2 FROM R TYPE BY k PARTITION BY x, y"
    " WHERE c[i-1].x > a.x && 38% < :p AND avg(c[..i-1].x) = 1 WITHIN 5 s USING ANY SUBSETS AFTER MATCH SKIP TO NEXT EVENT"
    " RETURN a.x AS y, last(c).x WITH (strict)",
    "CREATE STREAM IF NOT EXISTS m AS SELECT m.x AS y FROM R MATCH_RECOGNIZE (PARTITION BY x ORDER BY ts ASC MEASURES"
    " FINAL LAST(A.x, 1) AS x, MATCH_NUMBER() AS n ALL ROWS PER MATCH SHOW EMPTY MATCHES AFTER MATCH SKIP TO LAST A"
    " PATTERN (^ A*? (B | PERMUTE(C, D)){2,} {- E -} $) WITHIN INTERVAL '5' MINUTE SUBSET U = (A, B)"
    " DEFINE A AS A.x > PREV(A.x) AND count(B.*) = 1) AS m",
]
TERMINALS = {
    terminal.name
    for grammar in (sql_parser(), patterns.parser("pattern"), patterns.parser("match_recognize"))
    for terminal in grammar.terminals
    if terminal.name in TOKEN_NAMES
    or (isinstance(terminal.pattern, PatternStr) and terminal.pattern.value != terminal.name)
}
"""Names of the grammars that nobody writes."""


def without_grammar(problem: Problem) -> None:
    said = set(re.findall(r"\w+", re.sub(r"'[^']*'", "", f"{problem.message} {problem.hint}")))
    assert not said & TERMINALS, problem
    assert not any("__" in word for word in said), problem


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_message_has_no_names_of_the_grammar(statement: str) -> None:
    """Breaks statements off after each token, leaves tokens out and puts others in their place."""
    assert parse(SourceText(statement), Problems())
    words = re.findall(r"\w+|\s+|\$\$.*\$\$|\{-|-\}|.", statement)
    chance = random.Random(statement)
    for number in range(len(words)):
        before, after = "".join(words[:number]), "".join(words[number + 1 :])
        for text in (
            before,
            before + after,
            f"{before} {chance.choice(words)}{after}",
            f"{before} * {after}",
        ):
            problems = Problems()
            parse(SourceText(text), problems)
            for problem in problems.found:
                without_grammar(problem)


def test_a_message_of_apas_has_no_names_of_the_grammar() -> None:
    text = "from n[g = agg.count($R), h = $R.a + 1 * 2 || 'x' < 3::int]; where not $n.g > 1 and :p select full[$n[T], x.T]"
    words = re.findall(r"\w+|\s+|.", text)
    for number in range(len(words)):
        for instead in ("", "*", "where", "]"):
            try:
                apas.parse(SourceText("".join((*words[:number], instead, *words[number + 1 :]))))
            except CompileError as error:
                for problem in error.problems:
                    without_grammar(problem)
                    assert "''" not in str(problem.hint)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM s MATCH_RECOGNIZE (ORDER BY ts PATTERN (S**))", "'$', '(', ')'"),
        ("SELECT * FROM s MATCH_RECOGNIZE (MEASURE A.x AS y PATTERN (S))", "ORDER"),
        ("SELECT * FROM s MATCH_RECOGNIZE (ORDER BY ts PATTERN (A {- B))", "'-}'"),
        ("SELECT * FROM s MATCH_RECOGNIZE (ORDER BY ts ts PATTERN (A))", "ASC"),
        ("PATTERN A b c RETURN a.x", "';', AFTER"),
        ("REGISTER QUERY q AS APAS from a", "expected '$$'"),
        ("REGISTER QUERY q AS 5", "expected APAS, PATTERN, SELECT or WITH"),
        ("CREATE STREAM q AS 5", "expected APAS, PATTERN, SELECT or WITH"),
        ("EXPLAIN 5", "PATTERN"),
        ("5", "PATTERN"),
    ],
)
def test_what_could_stand_there_is_shown_as_it_is_written(text: str, expected: str) -> None:
    problems = Problems()
    parse(SourceText(text), problems)
    (problem,) = problems.found
    assert expected in problem.message


def test_a_misspelt_pattern_is_recognized() -> None:
    assert hint_of("REGISTER QUERY q AS PATERN A") == "did you mean PATTERN?"
