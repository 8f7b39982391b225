"""Names in quotes, and headers, in PATTERN and MATCH_RECOGNIZE."""

from __future__ import annotations

import pytest

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.errors import Problems, SourceText, Span
from seustream.compiler.language.types import INT, VARCHAR
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.fields import fields
from seustream.compiler.pattern.parse import parse_statement
from seustream.compiler.pattern.statements import compile_pattern

S = Stream("my s", (Column("the type", VARCHAR), Column("a b", INT), Column("from", INT)))


def columns(text: str) -> list[str]:
    return [name for name, _, _ in fields(compile_pattern(text, S, bounded=True))]


@pytest.mark.parametrize("quote", ['"', "`"])
def test_a_pattern_takes_names_in_quotes(quote: str) -> None:
    text = """PATTERN "card debit" a; !"b b"; "card" "my c"+ FROM "my s" TYPE BY "the type" PARTITION BY "a b"
        WHERE a."a b" = "b b"."a b" AND "my c"[i].from > "a"."from" RETURN a."a b" AS "my x", last("my c")."a b" """
    text = text.replace('"my c"+', '"card"+ "my c"').replace('"card" "card"', '"card"')
    query = compile_pattern(text.replace('"', quote), S, bounded=True)
    assert isinstance(query, ir.PatternQuery)
    assert [element.types for element in query.elements] == [("card debit",), ("b b",), ("card",)]
    assert (query.type_column, query.partition) == ("the type", ("a b",))
    assert [name for name, _, _ in fields(query)] == ["my x", "a b"]


def test_an_event_type_that_is_no_name_is_a_variable_too() -> None:
    text = 'PATTERN "card debit"; ("x y" | B) b TYPE_BY FROM "my s"'.replace(" TYPE_BY", "")
    text += (
        ' TYPE BY "the type" WHERE "card debit".from > 1 RETURN "card debit".from, b.from AS "to"'
    )
    assert columns(text) == ["from", "to"]


def test_rows_take_names_in_quotes() -> None:
    text = """SELECT "m m"."my x" AS "their x", "a b" FROM "my s" MATCH_RECOGNIZE (PARTITION BY "a b" ORDER BY "ts"
        MEASURES LAST("A A"."a b") AS "my x", count("A A".*) AS `n n`
        AFTER MATCH SKIP TO LAST "A A" PATTERN (B "A A"*) SUBSET "U U" = (B, "A A")
        DEFINE "A A" AS "A A"."from" > PREV("from") AND "U U"."from" > 0) AS "m m" """
    assert columns(text) == ["their x", "a b"]


def test_a_quote_in_a_name_is_written_twice() -> None:
    text = 'PATTERN ANY x FROM "my s" RETURN x.from AS "a ""b"""'
    assert columns(text) == ['a "b"']


@pytest.mark.parametrize(
    ("header", "name", "mode", "creates"),
    [
        ("", None, "", False),
        ("EXPLAIN ", None, "", False),
        ("REGISTER QUERY q AS ", "q", "", False),
        ('register or  replace query "my q" AS ', "my q", "replace", False),
        ("CREATE STREAM IF NOT EXISTS `match` AS /* what follows */ ", "match", "unless", True),
    ],
)
@pytest.mark.parametrize(
    "body",
    ["PATTERN ANY a FROM s RETURN *", "SELECT * FROM s MATCH_RECOGNIZE (ORDER BY ts PATTERN (A))"],
)
def test_a_header_has_a_name_and_a_mode(
    header: str, name: str | None, mode: str, creates: bool, body: str
) -> None:
    text = header + body
    found = parse_statement(SourceText(text), Span(0, len(text)), Problems())
    assert found is not None
    assert (None if found.name is None else found.name.text, found.mode) == (name, mode)
    assert found.creates == creates
    assert text[found.body.start : found.body.end].endswith(body)
    assert "AS" not in text[found.body.start : found.body.end].split()
