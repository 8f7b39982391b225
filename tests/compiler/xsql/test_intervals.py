"""CREATE STREAM ... AS APAS: how the text is cut out, the columns of the stream, and refused
texts."""

from __future__ import annotations

import pytest

from seustream.compiler.errors import CompileError
from seustream.compiler.language.types import BIGINT, BOOLEAN, DOUBLE, TIMESTAMP, VARCHAR
from seustream.compiler.pipeline import compile_text

BASE = "CREATE STREAM i (te bigint, v int, r real, b boolean, t timestamp, n varchar(9), d date);\n"
READ = "SELECT * FROM m WINDOW 1;"


def program(query: str, after: str = READ):  # type: ignore[no-untyped-def]
    return compile_text(f"{BASE}CREATE STREAM m AS APAS $${query}$$;\n{after}").program


def test_columns_and_types() -> None:
    query = "where $i.v > 0 select m[v = $i.v, r = $i.r, b = $i.b, t = $i.t, n = $i.n]"
    (stream,) = (s for s in program(query).streams if s.name == "m")
    assert [(c.name, c.type) for c in stream.columns] == [
        ("te", BIGINT),
        ("v", BIGINT),
        ("r", DOUBLE),
        ("b", BOOLEAN),
        ("t", TIMESTAMP),
        ("n", VARCHAR),
    ]
    assert all(c.nullable for c in stream.columns)
    assert stream.defined_by is not None
    assert query in stream.defined_by


def test_semicolons_quotes_and_names_within_are_the_querys_own() -> None:
    query = """
    from o[n = "it's; -- not a comment", v = $i.v];
    where $o.v > 0 select m[n = $o.n, PATTERN = $o.v]
    """
    found = program(query)
    assert set(found.apas) == {"m"}
    assert [q.name for q in found.queries] == ["q0"]


def test_only_what_is_read_is_run() -> None:
    query = "where $i.v > 0 select m[v = $i.v]"
    assert program(query, "SELECT v FROM i WINDOW 1;").apas == {}
    assert set(program(query, "PATTERN ANY a FROM m WITHIN 1 s RETURN a.v;").apas) == {"m"}
    between = (
        "CREATE STREAM p AS PATTERN ANY a FROM m WITHIN 1 s RETURN a.v; SELECT v FROM p WINDOW 1;"
    )
    assert set(program(query, between).apas) == {"m"}


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("where $i.d > 0 select m[v = $i.v]", "NoOperator"),  # a date and a number do not compare
        ("where $j.v > 0 select m[v = $j.v]", "UnknownStream"),
        ("where $m.v > 0 select m[v = $m.v]", "UnknownStream"),
        ("where select", "Syntax"),
    ],
)
def test_mistakes_have_their_place_in_the_file(query: str, kind: str) -> None:
    with pytest.raises(CompileError) as error:
        program(query)
    assert kind in {problem.kind for problem in error.value.problems}
    begin = len(BASE) + len("CREATE STREAM m AS APAS $$")
    assert all(
        begin <= problem.span.start <= begin + len(query) for problem in error.value.problems
    )


def test_apas_is_a_name_elsewhere() -> None:
    found = compile_text("CREATE STREAM apas (apas int); SELECT apas FROM apas WINDOW 1;")
    assert found.program.names == ["q0"]


def test_the_end_of_an_interval_is_an_integer() -> None:
    """Otherwise tuples would silently be points."""
    text = "CREATE STREAM i (te timestamp, v int); CREATE STREAM j (te timestamp, v int);"
    with pytest.raises(CompileError, match="column te of stream i is timestamp, and") as caught:
        compile_text(f"{text} REGISTER QUERY q AS APAS $$where $i.v > 0 select m[v = $i.v]$$;")
    assert len(caught.value.problems) == 1


def test_a_table_is_no_stream() -> None:
    text = "CREATE TABLE t (v int); CREATE STREAM i (v int);"
    query = "REGISTER QUERY q AS APAS $$where $t.v > 0 select m[v = $t.v]$$;"
    with pytest.raises(CompileError) as caught:
        compile_text(f"{text} {query}")
    assert "t is a table, whose rows have no times" in {p.message for p in caught.value.problems}
