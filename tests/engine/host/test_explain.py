"""Tests how the engine says where a row finds its partners."""

from __future__ import annotations

import json

from seustream.compiler.pipeline import Options, compile_text
from seustream.engine.explain import explain


def test_how_partners_are_found() -> None:
    text = """
    CREATE STREAM R (a int, b int); CREATE STREAM S (a int, b int); CREATE STREAM T (a int);
    SELECT * FROM R, S WHERE R.a = S.a AND R.b < S.b AND R.b * S.b > 5 WINDOW RANGE 10;
    SELECT * FROM R, T WHERE abs(R.a - T.a) = 5 WINDOW RANGE 10;
    SELECT * FROM R, T WHERE R.a = 1 OR R.b <> T.a WINDOW RANGE 10;
    SELECT * FROM R LEFT JOIN S ON R.a = S.a AND CAST(R.b + S.b AS varchar(9)) = '5'
        LEFT JOIN T ON T.a > S.b WINDOW RANGE 10;
    SELECT a FROM R WINDOW RANGE 10;
    """
    c = compile_text(text, options=Options(devices=0))
    found = [tuple(one.values()) for one in json.loads(explain(c, "searches", "json"))]
    assert found == [
        ("q0", "R", "S", "key S.a", ["R.b < S.b"], ["R.b * S.b > 5"], []),
        ("q0", "S", "R", "key R.a", ["R.b < S.b"], ["R.b * S.b > 5"], []),
        ("q1", "R", "T", "order of T.a", [], ["abs(R.a - T.a) = 5"], []),
        ("q1", "T", "R", "order of R.a", [], ["abs(R.a - T.a) = 5"], []),
        ("q2", "R", "T", "scan", [], ["R.a = 1 OR R.b <> T.a"], []),
        ("q2", "T", "R", "scan", [], ["R.a = 1 OR R.b <> T.a"], []),
        ("q3", "R", "S", "key S.a", [], [], ["CAST(R.b + S.b AS varchar(9)) = '5'"]),
        ("q3", "R, S", "T", "order of T.a", ["T.a > S.b"], [], []),
    ]
    overview = explain(c)
    assert "── How partners are found ──" in overview
    assert max(map(len, overview.splitlines())) <= 80
    assert "How partners are found" not in explain(compile_text(text)), "a device finds them"
    assert explain(c, "searches", query="q4") == "no streams are joined"
