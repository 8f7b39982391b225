"""The nodes of a tree of joins: each gives a combination at the moment it is certain."""

from __future__ import annotations

from tests.engine.relational.moments import moments


def test_what_has_no_match_comes_when_it_leaves_its_window() -> None:
    found = moments(
        "SELECT R.a AS l, S.a AS r FROM R LEFT JOIN S ON R.a = S.a WINDOW RANGE 5, RANGE 2"
    )
    assert found == {
        2: [(1, 1, 1, 2)],
        8: [(2, None, 3, 3)],
        9: [(3, 3, 5, 9)],
        25: [(1, None, 20, 20)],
    }


def test_a_window_of_rows_ends_with_the_rows_that_follow() -> None:
    found = moments("SELECT R.a FROM R LEFT ANTI JOIN S ON R.a = S.a WINDOW ROWS 1, RANGE 0")
    assert found == {5: [(2, 3, 3)], 99: [(1, 20, 20)]}


def test_the_first_match_decides() -> None:
    found = moments("SELECT a FROM R WHERE EXISTS (SELECT * FROM S WHERE S.a <> R.a) WINDOW 9 ms")
    assert found == {3: [(2, 3, 3)], 5: [(3, 5, 5)], 6: [(1, 1, 1)]}


def test_without_a_bound_nothing_is_alone_before_the_end() -> None:
    found = moments(
        "SELECT S.a FROM R RIGHT JOIN S ON R.a = S.a WHERE R.a IS NULL WINDOW UNBOUNDED"
    )
    assert found == {99: [(7, 6, 6), (5, 30, 30)]}
