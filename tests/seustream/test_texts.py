"""Query texts as Python passes them."""

from __future__ import annotations

import pytest

from seustream.compiler.errors import CompileError
from seustream.compiler.pipeline import Options
from seustream.engine.stream.errors import EngineError
from seustream.errors import QueryError, UserError
from seustream.frames import declarations
from seustream.texts import compiled, lasting, translated


def test_the_streams_that_a_text_creates() -> None:
    text = """CREATE STREAM R (a int);
    CREATE STREAM "J" AS SELECT a FROM R WINDOW NOW;
    CREATE STREAM p AS PATTERN A x; B y FROM R TYPE BY a WITHIN 5 s RETURN x.a;
    CREATE STREAM m AS APAS $$ select m[v = $R.a] $$;
    REGISTER QUERY q AS PATTERN A x; B y FROM R TYPE BY a WITHIN 5 s RETURN x.a;
    SELECT nothing FROM nowhere WINDOW NOW; what is this"""
    assert declarations(text) == {"r", "j", "p", "m"}


def test_places_are_those_of_the_text_alone() -> None:
    before = compiled(None, "CREATE STREAM R (a int)", Options())
    with pytest.raises(CompileError) as caught:
        compiled(before, "SELECT a FROM R WINDOW NOW;\nSELECT b FROM R WINDOW NOW", Options())
    assert str(caught.value).startswith("<sql>:2:8: ")
    assert compiled(before, "SELECT a FROM R WINDOW NOW", Options()).program.names == ["q0"]


def test_errors_have_one_base() -> None:
    with pytest.raises(QueryError, match="slow") as caught, translated():
        raise EngineError("slow", "wait")
    assert caught.value.hint == "wait"
    with pytest.raises(UserError), translated():
        raise UserError("as it is")
    with pytest.raises(ZeroDivisionError), translated():
        raise ZeroDivisionError


def test_questions_do_not_last() -> None:
    text = "SELECT a FROM R; /* why */ explain SELECT 'x;' AS b FROM R; SHOW STREAMS"
    assert lasting(text).split() == ["SELECT", "a", "FROM", "R;", ";"]
    assert lasting("SELECT a FROM R -- SHOW") == "SELECT a FROM R -- SHOW"
