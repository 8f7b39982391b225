"""Functions OVER frames: the frame of a call, whole partitions, ranks with a bound, and
mistakes."""

from __future__ import annotations

import pytest

from seustream.compiler.logical.program import Frame, OverRows, RankedRows
from seustream.compiler.pipeline import compile_text
from seustream.compiler.xsql.overs import overs
from tests.compiler.xsql.relations import STREAMS, relation, wrong


def over(call: str) -> object:
    """Returns the one OVER call in a SELECT."""
    found = relation(f"SELECT a, {call} AS v FROM R")
    assert isinstance(found, OverRows)
    (one,) = overs(found.items[1].expression)
    return one


@pytest.mark.parametrize(
    ("window", "frame"),
    [
        ("ORDER BY ts", Frame(True, None)),
        ("ORDER BY ts ROWS 3 PRECEDING", Frame(False, 3)),
        ("ORDER BY ts ROWS UNBOUNDED PRECEDING", Frame(False, None)),
        ("ORDER BY ts RANGE 5 s PRECEDING", Frame(True, 5_000)),
        (
            "ORDER BY ts RANGE BETWEEN INTERVAL '5' SECOND PRECEDING AND CURRENT ROW",
            Frame(True, 5_000),
        ),
        ("PARTITION BY a", Frame(False, None)),
    ],
)
def test_frames(window: str, frame: Frame) -> None:
    found = over(f"sum(b) OVER ({window})")
    assert found.frame == frame  # type: ignore[attr-defined]


def test_functions_of_a_place_have_frames_of_their_own() -> None:
    for call, frame, offset in (
        ("row_number() OVER (ORDER BY ts)", Frame(False, None), 1),
        ("lag(b) OVER (ORDER BY ts)", Frame(False, 1), 1),
        ("lag(b, 4) OVER (ORDER BY ts)", Frame(False, 4), 4),
        ("ntile(3) OVER (ORDER BY b)", Frame(False, None), 3),
    ):
        found = over(call)
        assert (found.frame, found.offset) == (frame, offset), call  # type: ignore[attr-defined]


def test_a_named_window_is_that_of_its_parentheses() -> None:
    text = "SELECT sum(b) OVER {} AS v FROM R{}"
    named = relation(text.format("w", " WINDOW w AS (PARTITION BY a ORDER BY ts ROWS 3 PRECEDING)"))
    given = relation(text.format("(PARTITION BY a ORDER BY ts ROWS 3 PRECEDING)", ""))
    assert named.items == given.items


def test_ranks_of_an_order_are_known_when_the_partition_is_over() -> None:
    ranked = relation("SELECT a, rank() OVER (PARTITION BY a ORDER BY b DESC) AS r FROM R")
    assert isinstance(ranked, RankedRows)
    (one,) = overs(ranked.items[1].expression)
    assert [(key.descending, key.nulls_first) for key in one.order] == [(True, False)]
    timely = relation("SELECT a, rank() OVER (PARTITION BY a ORDER BY ts) AS r FROM R")
    assert not isinstance(timely, RankedRows)


@pytest.mark.parametrize(
    ("qualify", "best"),
    [
        ("r <= 3", 3),
        ("r < 3", 2),
        ("r = 1", 1),
        ("r <= 3 AND b > 1", 3),
        ("r >= 3", None),
        ("b < 3", None),
    ],
)
def test_a_bound_on_a_rank_says_how_many_rows_count(qualify: str, best: int | None) -> None:
    found = relation(
        f"SELECT a, b, row_number() OVER (PARTITION BY a ORDER BY b) AS r FROM R QUALIFY {qualify}"
    )
    assert isinstance(found, RankedRows)
    assert (None if found.best is None else found.best[1]) == best


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("SELECT a, sum(b) OVER (ORDER BY ts) AS s FROM R ORDER BY b", [OverRows, RankedRows]),
        ("SELECT a, sum(b) OVER (ORDER BY ts) AS s FROM R QUALIFY s > 3 LIMIT 2", [OverRows] * 2),
        ("SELECT a, rank() OVER (ORDER BY b) AS r FROM R QUALIFY r < 3 LIMIT 2", [RankedRows, OverRows]),
        ("SELECT a, rank() OVER (ORDER BY b) AS r FROM R QUALIFY r < 3 ORDER BY a", [RankedRows]),
        ("SELECT a, rank() OVER (ORDER BY b) AS r FROM R ORDER BY b LIMIT 2", [RankedRows]),
        ("SELECT a, b FROM R ORDER BY b LIMIT 2", [RankedRows]),
    ],
)  # fmt: skip
def test_an_order_is_around_the_functions_unless_one_operation_does_both(
    text: str, kinds: list[type]
) -> None:
    program = compile_text(STREAMS + text, stop_after="tree").program
    assert [type(operation) for operation in program.operations] == kinds
    last = program.operations[-1]
    if text.endswith("ORDER BY b LIMIT 2"):
        assert isinstance(last, RankedRows)
        assert last.best is not None
        assert last.best[1] == 2


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        ("sum(b) OVER (ORDER BY b)", "write ts"),
        ("sum(b) OVER (ORDER BY ts DESC)", "ORDER BY ts; ranks take any order"),
        ("sum(b) OVER (ORDER BY ts ROWS -1 PRECEDING)", None),
        ("sum(b) OVER nope", "there are no windows yet"),
        ("sum(max(b)) OVER (ORDER BY ts)", None),
        ("abs(b) OVER (ORDER BY ts)", "functions OVER frames are"),
        ("rank(b) OVER (ORDER BY ts)", "write rank()"),
        ("lag(b, 1.5) OVER (ORDER BY ts)", "lag(x, 2)"),
        ("ntile(0) OVER (ORDER BY b)", "ntile(4)"),
        ("rank() OVER (ORDER BY b ROWS 3 PRECEDING)", "write rank(...) OVER"),
    ],
)
def test_what_is_refused_says_what_to_write(call: str, hint: str | None) -> None:
    problem, *_ = wrong(f"SELECT a, {call} AS v FROM R")
    assert hint is None or hint in (problem.hint or ""), problem


def test_where_none_may_stand() -> None:
    for text in ("SELECT a FROM R WHERE sum(b) OVER (ORDER BY ts) > 3",
                 "SELECT sum(sum(b) OVER (ORDER BY ts)) AS s FROM R WINDOW 3"):  # fmt: skip
        assert "over" in [problem.kind for problem in wrong(text)], text


def test_as_far_as_a_row_may_be_away() -> None:
    for name in ("lag", "lead"):
        found = over(f"{name}(b, {2**60 - 1}) OVER (ORDER BY ts)")
        assert found.offset == 2**60 - 1, name  # type: ignore[attr-defined]
        (problem,) = wrong(f"SELECT {name}(b, {2**60}) OVER (ORDER BY ts) AS v FROM R")
        assert problem.message == f"{name} wants a whole number, 0 or more, below 2^60"
