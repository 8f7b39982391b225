"""The options after WITH, in all three languages."""

from __future__ import annotations

import pytest

from seustream.compiler.errors import CompileError, Problems, Span
from seustream.compiler.language.options import QueryOptions, query_options
from seustream.compiler.language.syntax import Name, Option
from seustream.compiler.pipeline import Options, compile_text

STREAM = "CREATE STREAM R (a int, type text);"
FORMS = (
    "SELECT a FROM R WITH ({})",
    "SELECT a FROM R UNION ALL SELECT a FROM R WITH ({})",
    "PATTERN A x; B y FROM R WITHIN 1 s RETURN x.a WITH ({})",
    "SELECT * FROM R MATCH_RECOGNIZE (ORDER BY ts MEASURES A.a AS x PATTERN (A) DEFINE A AS A.a > 1) WITH ({})",
    "APAS $$ select [$R[T]] $$ WITH ({})",
)


def read(*given: tuple[str, str | int | None]) -> tuple[QueryOptions, list[str]]:
    problems, at = Problems(), Span(0, 1)
    options = [Option(Name(name, at), value, at) for name, value in given]
    return query_options(options, problems), [p.hint or "" for p in problems.found]


def test_options_are_read() -> None:
    assert read() == (QueryOptions(), [])
    given = ("strict", None), ("MAX_LATENCY", "1 min 5 s"), ("priority", 0)
    assert read(*given) == (QueryOptions(True, 65_000, 0), [])
    assert read(("max_latency", 200)) == (QueryOptions(max_latency=200), [])


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("strict", "yes", "WITH (strict)"),
        ("max_latency", None, "WITH (max_latency = '200 ms')"),
        ("max_latency", "soon", "WITH (max_latency = '200 ms')"),
        ("max_latency", 0, "WITH (max_latency = '200 ms')"),
        ("priority", 1001, "from 0 to 1000"),
        ("priority", "high", "from 0 to 1000"),
        ("prio", 2, "did you mean priority?"),
    ],
)
def test_what_is_no_option_says_what_to_write(
    name: str, value: str | int | None, hint: str
) -> None:
    _, hints = read((name, value))
    assert len(hints) == 1
    assert hint in hints[0]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        *(
            (
                f"{STREAM}REGISTER QUERY q AS " + f.format("priority = 3, PRIORITY = 3"),
                "PRIORITY = 3",
            )
            for f in FORMS
        ),
        ("CREATE STREAM R (a int, at timestamp) WITH (time = 'at', time = 'a')", "time = 'a'"),
        (
            "CREATE STREAM R (at timestamp, WATERMARK FOR at AS at) WITH (time = 'at')",
            "time = 'at'",
        ),
        ("CREATE TABLE R (a int) WITH (path = 'a.csv', path = 'b.csv')", "path = 'b.csv'"),
    ],
)
def test_an_option_is_given_once(text: str, place: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_text(text, options=Options(devices=0, bounded=True))
    (problem,) = caught.value.problems
    assert problem.kind == "repeated-option"
    assert text[problem.span.start : problem.span.end] == place


@pytest.mark.parametrize("form", FORMS)
def test_every_language_takes_them(form: str) -> None:
    options = Options(devices=0, bounded=True)
    given = form.format("strict, max_latency = '1 s', priority = 3")
    text = f"{STREAM}REGISTER QUERY q AS {given}"
    assert compile_text(text, options=options).program.names == ["q"]
    with pytest.raises(CompileError, match="did you mean priority"):
        compile_text(f"{STREAM}REGISTER QUERY q AS {form.format('prioritie = 3')}", options=options)
