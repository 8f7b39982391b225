"""EXPLAIN finds a result by its name, whichever language it is written in."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from seustream.compiler.pipeline import compile_text
from seustream.engine.explain import SHOWN, ExplainRefused, explain, last_stage

TEXT = """
CREATE STREAM R (a int, b int);
CREATE STREAM T (type varchar, x int);
CREATE STREAM sums AS APAS $$where window.range($R, 5) select s[n = agg.count($R)]$$;
REGISTER QUERY joined AS SELECT * FROM R, T WHERE R.a = T.x WINDOW RANGE 10;
REGISTER QUERY rising AS PATTERN A; B FROM T WHERE b.x > a.x WITHIN 1 s RETURN b.x;
REGISTER QUERY twice AS APAS $$select [d = $sums.n * 2]$$;
REGISTER QUERY rows AS SELECT * FROM T MATCH_RECOGNIZE (ORDER BY ts MEASURES count(*) AS n PATTERN (P+) WITHIN INTERVAL '1' SECOND DEFINE P AS P.x > 1);
"""
C = compile_text(TEXT)


@pytest.mark.parametrize(
    ("name", "says", "key"),
    [
        ("JOINED", "R.a = T.x", "routes"),
        ("rising", "automaton of rising", "automaton"),
        ("rows", "automaton of rows", "automaton"),
        ("twice", "$twice.d = $sums.n * 2", "network"),
        ("sums", "window range 5 of R", "network"),
    ],
)
def test_every_result_in_every_format(name: str, says: str, key: str) -> None:
    text = explain(C, query=name)
    assert says in text
    assert max(map(len, text.splitlines())) <= 80
    found = json.loads(explain(C, None, "json", name))
    assert key in (found[0] if isinstance(found, list) else found)
    assert ElementTree.fromstring(explain(C, None, "svg", name)).tag.endswith("svg")


def test_the_overview_has_all_that_is_asked_for() -> None:
    text = explain(C)
    for part in ("R.a = T.x", "pattern rising", "pattern rows", "$twice.d = $sums.n * 2"):
        assert part in text


@pytest.mark.parametrize(
    ("stage", "format", "query", "message", "hint"),
    [
        ("searches", "svg", None, "the stage searches has no picture", "--format text"),
        ("router", "text", None, "there is no stage 'router'", "routes"),
        (None, "text", "risng", "there is no query 'risng'", "rising"),
        ("lists", "text", "risng", "there is no pattern 'risng'", "rising"),
        ("lists", "text", "joined", "there is no pattern 'joined'", "rising"),
        ("routes", "text", "rising", "a pattern has no stage 'routes'", "automaton, lists"),
        ("routes", "text", "twice", "twice is an APAS query, which is shown whole", None),
        ("automaton", "svg", None, "a picture is of one pattern", "--query one of rising, rows"),
        ("lists", "svg", "rows", "there are no ordered lists", None),
        ("tokens", "text", "joined", "stage tokens comes before queries are known", None),
        ("tokens", "svg", None, "no picture of stage 'tokens'", None),
        ("sites", "text", "nosuch", "there is no query 'nosuch'", None),
        ("sites", "svg", "joined", "a picture of the stage sites is of a run", None),
    ],
)
def test_what_there_is_not_is_named(
    stage: str | None, format: str, query: str | None, message: str, hint: str | None
) -> None:
    with pytest.raises(ExplainRefused) as error:
        explain(C, stage, format, query)
    assert message in str(error.value)
    assert hint is None or hint in str(error.value.hint)


def test_lists_of_rows_are_none() -> None:
    assert "no ordered lists" in explain(C, "lists", "text", "rows")


@pytest.mark.parametrize("stage", SHOWN)
def test_every_stage_is_known_after_its_last(stage: str) -> None:
    c = compile_text(TEXT.split("REGISTER QUERY rising")[0], stop_after=last_stage(stage))
    if stage in ("automaton", "lists"):
        with pytest.raises(ExplainRefused, match="no patterns"):
            explain(c, stage)
    else:
        assert explain(c, stage)
