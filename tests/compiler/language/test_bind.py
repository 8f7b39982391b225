"""The binder: what each name stands for, and the message for a name without a meaning."""

from __future__ import annotations

import pytest

from seustream.compiler.errors import Problems
from seustream.compiler.language import expressions as x
from seustream.compiler.language import types as t
from tests.compiler.language.folding import refused
from tests.compiler.language.plain import bind


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("extract(fortnight FROM TIMESTAMP '2024-02-29')", "fortnight"),
        ("extract(year FROM TIME '12:30:00')", "year"),
        ("date_trunc('dow', TIMESTAMP '2024-02-29')", "dow"),
        ("regexp_matches('a', '(')", "regular expression"),
        ("'a' LIKE 'a!' ESCAPE '!'", "escape"),
        ("'a' ILIKE '!a' ESCAPE '!'", "escape"),
    ],
)
def test_constants_that_mean_nothing_are_refused(text: str, word: str) -> None:
    assert word in refused(text)


TYPED = {
    "i": t.INT, "d": t.decimal(9, 2), "x": t.DOUBLE, "s": t.VARCHAR, "ts": t.TIMESTAMP,
    "day": t.DATE, "ok": t.BOOLEAN,
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("i BETWEEN 1 AND 5", "R.i >= 1 AND R.i <= 5"),
        ("i NOT BETWEEN 1 AND 5", "R.i < 1 OR R.i > 5"),
        ("i IN (1, 2)", "R.i = 1 OR R.i = 2"),
        ("i NOT IN (1, 2)", "R.i <> 1 AND R.i <> 2"),
        ("i IN (3)", "R.i = 3"),
        ("+i > 2 * 3 + 1", "R.i > 7"),
        ("ts > '2006-03-01'", "R.ts > TIMESTAMP '2006-03-01 00:00:00'"),
        ("'2006-03-01' <= day", "DATE '2006-03-01' <= R.day"),
    ],
)
def test_what_is_written_stands_for(text: str, shown: str) -> None:
    bound = bind(text, TYPED)
    assert not isinstance(bound, Problems)
    assert x.show(bound) == shown


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("1 < i < 5", "comparisons do not chain", "write 1 < i AND i < 5"),
        ("s > i", "varchar cannot be compared with int", "convert with CAST(... AS ...)"),
        ("s + s", None, "texts are joined by ||"),
        ("-s", None, "convert with CAST(... AS ...)"),
        ("+s", None, "convert with CAST(... AS ...)"),
        ("ts > 'soon'", "'soon' is not a timestamp", "write it as '2006-03-01 12:30:00'"),
        ("abss(i)", "there is no function abss", "did you mean abs?"),
        ("nope", "there is no column nope", None),
    ],
)
def test_what_means_nothing_is_refused_once_with_what_to_write(
    text: str, message: str | None, hint: str | None
) -> None:
    bound = bind(text, TYPED)
    assert isinstance(bound, Problems)
    (problem,) = bound.found
    assert message in (None, problem.message)
    assert problem.hint == hint


def test_each_mistake_is_said_and_what_follows_from_it_is_not() -> None:
    bound = bind("abs(nope) + 1 > 2 AND nada = 3", TYPED)
    assert isinstance(bound, Problems)
    assert [problem.message for problem in bound.found] == [
        "there is no column nope", "there is no column nada"
    ]  # fmt: skip


def test_nested_without_end_is_refused_once() -> None:
    bound = bind("-" * 0 + "abs(" * 400 + "i" + ")" * 400, TYPED)
    assert isinstance(bound, Problems)
    assert [problem.kind for problem in bound.found] == ["too-deep"]
    assert not isinstance(bind("abs(" * 100 + "i" + ")" * 100, TYPED), Problems)


def test_an_aggregate_stands_where_there_are_rows() -> None:
    assert isinstance(bind("sum(i) + 1", TYPED, aggregates=True), x.Call)
    for text, aggregates in (("sum(i)", False), ("sum(max(i))", True)):
        assert isinstance(bind(text, TYPED, aggregates=aggregates), Problems)
