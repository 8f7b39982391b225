"""Names of result columns: bare if unique, otherwise with the alias."""

from __future__ import annotations

import pytest

from seustream.compiler.xsql.naming import ResultName, result_names
from tests.compiler.xsql.analysed import query


@pytest.mark.parametrize(
    ("items", "names"),
    [
        ("*", "a R_b R_s day hour moment ok d t_b x t_s long"),
        ("t.*", "d b x s long"),
        ("T.*, R.a", "d b x s long a"),
        ("a, R.b", "a b"),
        ("R.b, T.B, x", "R_b t_B x"),
        ("R.b, d AS B", "R_b B"),
        ("a, d AS Ts_Oldest2", "a Ts_Oldest2"),
        ("a AS x, d AS a", "x a"),
        ("R.ts, T.TimeStamp", "ts TimeStamp"),
        ("R.ts, T.ts", "R_ts t_ts"),
    ],
)
def test_result_columns(items: str, names: str) -> None:
    q = query(f"SELECT {items} FROM R, S AS t WINDOW 1")
    assert [item.name for item in q.items] == names.split()


def test_an_expression_is_called_by_its_text() -> None:
    q = query("SELECT a  +\n 1, abs( R.b ), 'it''s' FROM R WINDOW 1")
    assert [item.name for item in q.items] == ["a + 1", "abs( R.b )", "'it''s'"]


def test_names_differ_if_they_differ_in_more_than_case() -> None:
    names = [ResultName.of_column("R", "A"), ResultName.of_column("S", "a"), ResultName.fixed("b"),
             ResultName.of_column("S", "Ts_Oldest"), ResultName.of_column("S", "c")]  # fmt: skip
    assert result_names(names) == ["R_A", "S_a", "b", "S_Ts_Oldest", "c"]
