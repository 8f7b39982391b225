"""A file cut into statements: how long each query stays registered, in every language."""

from __future__ import annotations

import pytest

from seustream.compiler.errors import CompileError, Problems
from seustream.compiler.pipeline import compile_text
from seustream.compiler.xsql.statements import durations


@pytest.mark.parametrize(
    ("written", "ms"),
    [
        ("1 hour", 3_600_000),
        ("90 minutes", 5_400_000),
        ("1.5 s", 1_500),
        ("INTERVAL '2' DAY", 172_800_000),
        ("interval '1 hour 30 min'", 5_400_000),
        ("'20 ms'", 20),
    ],
)
def test_a_length(written: str, ms: int) -> None:
    text = f'REGISTER OR REPLACE QUERY "a b" FOR {written} AS SELECT x FROM R'
    plain, found = durations(text, Problems())
    assert found == {"a b": ms}
    assert len(plain) == len(text)
    assert "FOR" not in plain


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a FROM R WINDOW NOW",
        "APAS $$ select [x = $R.a] $$",
        "PATTERN A x; B y FROM R TYPE BY c WITHIN 5 s RETURN x.a",
    ],
)
def test_a_file_says_how_long_a_query_lasts(query: str) -> None:
    text = f"CREATE STREAM R (a int, c varchar); -- FOR 2 days\nREGISTER QUERY q FOR 1 hour AS {query};"
    compilation = compile_text(text)
    assert compilation.program.names == ["q"]
    assert compilation.source.text == text


@pytest.mark.parametrize("written", ["0 seconds", "0.5 ms", "'0 s'", "99999999999999 weeks"])
def test_a_length_of_no_time(written: str) -> None:
    problems = Problems()
    durations(f"REGISTER QUERY q FOR {written} AS SELECT a FROM R", problems)
    (problem,) = problems.found
    assert problem.hint == "a whole number of milliseconds above 0, such as FOR 1 hour"


def test_what_is_no_length() -> None:
    text = "CREATE STREAM R (a int);\nREGISTER QUERY q FOR 3 yaers AS SELECT a FROM R"
    with pytest.raises(CompileError) as caught:
        compile_text(text)
    (problem,) = caught.value.problems
    assert problem.message == "FOR 3 yaers is no time a query can last"
    assert text[problem.span.start : problem.span.end] == "3 yaers"
