"""The compiled form of a text, as the page shows it."""

from __future__ import annotations

import json

import pytest

from seustream.studio.compiled import Settings, shown, words

TEXT = """CREATE STREAM R (a int); CREATE STREAM S (d int);
REGISTER QUERY q AS SELECT * FROM R, S WHERE R.a = S.d WINDOW RANGE 10;"""


def test_a_text_is_shown_with_every_stage() -> None:
    found = json.loads(json.dumps(shown(TEXT, Settings())))
    assert found["problems"] == []
    assert found["queries"] == ["q"]
    assert found["streams"] == {"R": [["a", "int"]], "S": [["d", "int"]]}
    assert found["areas"] == ["R", "S"]
    assert "JMPCT" in found["texts"]["listing"]
    assert found["pictures"]["routes"].startswith("<svg")
    ids = {part["id"] for part in found["parts"]}
    assert {end for link in found["links"] for end in link} <= ids


def test_patterns_have_their_stages_and_pictures() -> None:
    text = "CREATE STREAM E (x int); REGISTER QUERY p AS PATTERN ANY a; ANY+ b FROM E WITHIN 9 ms RETURN a.x;"
    found = shown(text, Settings())
    assert found["problems"] == []
    assert "automaton of p" in found["texts"]["automaton"]
    assert found["pictures"]["p"].startswith("<svg")


def test_problems_are_at_their_place_as_on_the_command_line() -> None:
    found = shown(TEXT.replace("R.a", "R.aa").replace("S.d W", "S.dd W"), Settings())
    assert list(found) == ["problems"]
    first, second = found["problems"]
    assert (first["line"], first["column"], first["hint"]) == (2, 48, "did you mean a?")
    assert (second["line"], second["kind"]) == (2, "unknown-column")


@pytest.mark.parametrize("before", ["", "-- 😀 ü 😀\n"])
def test_places_are_counted_as_the_editor_does(before: str) -> None:
    """It counts units of 16 bits."""

    def at(text: str, what: str) -> int:
        return len(text[: text.index(what)].encode("utf-16-le")) // 2

    wrong = before + TEXT.replace("R.a", "R.aa")
    (problem,) = shown(wrong, Settings())["problems"]
    assert problem["start"] == at(wrong, "R.aa") + 2
    assert problem["end"] - problem["start"] == 2
    right = before + TEXT
    (part,) = (p for p in shown(right, Settings())["parts"] if p["id"].startswith("query:"))
    (begin, _), *_ = part["spans"]
    assert begin == at(right, "REGISTER")


def test_a_query_of_the_engine_has_no_machine() -> None:
    found = shown(
        "CREATE STREAM R (a int); SELECT a FROM R WHERE a + 1 > 5 WINDOW NOW;", Settings()
    )
    assert found["problems"] == []
    assert found["areas"] == []
    assert [part["id"] for part in found["parts"]] == ["query:q0"]


def test_a_configuration_that_is_unknown() -> None:
    (problem,) = shown(TEXT, Settings(config="defualt"))["problems"]
    assert "defualt" in problem["message"]
    assert problem["hint"] == "did you mean default?"


def test_the_editor_has_the_words_of_the_grammars() -> None:
    found = words()
    wanted = {"SELECT", "STREAM", "REGISTER", "PATTERN", "WITHIN", "BETWEEN", "RANGE"}
    assert wanted <= set(found["keywords"])
    assert {"abs", "coalesce", "sum", "median"} <= set(found["functions"])
