"""Statements from streams and queries, which make the same again; and their columns."""

from __future__ import annotations

import pytest

from seustream.compiler.pipeline import Compilation, compile_text
from seustream.compiler.xsql.descriptions import (
    columns_of,
    quoted,
    registration_of,
    statement_of,
    text_of,
)

R = 'CREATE STREAM R (id int, type varchar, x int, "a b" int); '
QUERIES = [
    "SELECT x, id * 2 AS y FROM R WHERE x > 1 WINDOW RANGE 5 minutes WITH (strict)",
    "WITH t AS (SELECT x FROM R) SELECT x FROM t",
    "SELECT x FROM R UNION ALL SELECT id FROM R",
    'PATTERN A; -- the first\n "a card" c FROM R PARTITION BY "a b" WHERE c.x > a.x WITHIN 5 s'
    ' RETURN a.x AS "my x", c."a b" WITH (strict)',
    "SELECT * FROM R MATCH_RECOGNIZE (ORDER BY ts /* up */ MEASURES A.x AS y PATTERN (A B*)"
    " WITHIN INTERVAL '5' SECOND DEFINE B AS B.x > A.x)",
    "APAS $$ from n[g = agg.count($R)]; // each\n select full[$n[T]] $$",
]


def compiled(text: str) -> Compilation:
    return compile_text(text, stop_after="tree")


def shown(text: str) -> list[str]:
    return ["\n".join(request.lines) for request in compiled(text).program.requests]


@pytest.mark.parametrize(
    "text",
    [
        "STREAM R (a int NOT NULL, b varchar(9))",
        "TABLE t (a int) WITH (path = 't.csv')",
        "STREAM R (at timestamp) WITH (max_out_of_orderness = 5000, late = 'side', time = 'at')",
        'STREAM "my ""R""" ("a b" int, select decimal(9,2)) WITH (time = \'a b\', idle_timeout = 7)',
        "TABLE t (a int) WITH (path = 'it''s.csv')",
    ],
)
def test_a_stream_is_written_as_it_was(text: str) -> None:
    (one,) = compiled(f"CREATE {text}").program.streams
    assert statement_of(one) == f"CREATE {text}"


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("name", ["m", '"my m"', "match"])
def test_the_statement_that_is_shown_makes_the_same_query(query: str, name: str) -> None:
    (statement,) = shown(f"{R}REGISTER QUERY {name} AS {query}; SHOW CREATE QUERY {name}")
    again = f"{R}{statement}; SHOW CREATE QUERY {name}; DESCRIBE {name}"
    assert shown(again)[0] == statement
    assert shown(again)[1] == shown(f"{R}REGISTER QUERY {name} AS {query}; DESCRIBE {name}")[0]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("name", ["m", '"my m"', "match"])
def test_the_statement_that_is_shown_makes_the_same_stream(query: str, name: str) -> None:
    (statement,) = shown(f"{R}CREATE STREAM {name} AS {query}; SHOW CREATE STREAM {name}")
    again = f"{R}{statement}; SHOW CREATE STREAM {name}; DESCRIBE {name}"
    assert statement.startswith(f"CREATE STREAM {name} AS {query.split()[0]} ")
    assert shown(again)[0] == statement
    assert shown(again)[1] == shown(f"{R}CREATE STREAM {name} AS {query}; DESCRIBE {name}")[0]


def test_options_of_an_apas_query_are_shown() -> None:
    text = f"{R}REGISTER QUERY a AS {QUERIES[-1]} WITH (strict)"
    (query,) = compiled(text).program.asked_apas
    assert registration_of(query) == text.removeprefix(R)
    assert text_of(query) == f"{QUERIES[-1]} WITH (strict)"


def test_the_columns_of_a_query_are_described() -> None:
    text = f"""{R}REGISTER QUERY s AS SELECT x AS y FROM R;
    REGISTER QUERY p AS PATTERN A; B+ b FROM R WITHIN 5 s RETURN a.x, b.id, count(b);
    REGISTER QUERY m AS {QUERIES[4]};
    REGISTER QUERY a AS {QUERIES[5]};
    DESCRIBE s; DESCRIBE p; DESCRIBE m; DESCRIBE a"""
    assert [answer.split("\n") for answer in shown(text)] == [
        ["y int"],
        ["x int", "id list(int)", "c3 bigint"],
        ["y int"],
        ["ts bigint", "te bigint", "g bigint"],
    ]
    (select,) = compiled(text).program.asked
    assert columns_of(select) == ["y int"]


def test_a_query_may_share_its_name_with_a_stream() -> None:
    text = f"{R}REGISTER QUERY r AS SELECT x FROM R; SHOW CREATE QUERY r; SHOW CREATE STREAM r"
    assert [answer.split(" ")[0] for answer in shown(text)] == ["REGISTER", "CREATE"]


def test_queries_are_listed_without_their_names_in_front() -> None:
    text = "; ".join(
        f"REGISTER QUERY {name} AS {q}" for name, q in zip("abcdef", QUERIES, strict=True)
    )
    (answer,) = shown(f"{R}{text}; SHOW QUERIES")
    assert sorted(answer.split("\n")) == [
        f"query {name}: {' '.join(q.split())}" for name, q in zip("abcdef", QUERIES, strict=True)
    ]


@pytest.mark.parametrize(
    ("name", "written"), [("a", "a"), ("a b", '"a b"'), ('"', '""""'), ("ä", '"ä"')]
)
def test_other_names_are_quoted(name: str, written: str) -> None:
    assert quoted(name) == written
