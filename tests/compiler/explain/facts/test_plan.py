"""Normal forms, subqueries and the request table of the worked example and of smaller queries."""

from __future__ import annotations

import re

import pytest

from seustream.compiler.explain import explain
from tests.compiler.explain.programs import compiled, facts

REQUESTS = [
    (0, "R,S", "①", 100, "q0,q4"),
    (1, "R,S,T", "①②", 200, "q1"),
    (2, "S,T", "②", 100, "q2"),
    (3, "R,S", "③", 200, "q3"),
    (4, "R,S", "④", 100, "q4"),
    (5, "R,S", "①④", 200, "q5"),
    (6, "R,S,T", "①", 100, "q6"),
    (7, "R,S,T", "②", 100, "q6"),
    (8, "R,S,T", "①④", 300, "q7"),
    (9, "R,S,T", "①②", 300, "q7"),
]


@pytest.mark.parametrize("plan", ["cost", "thesis"])
def test_request_table_of_the_eight_queries(plan: str) -> None:
    table = facts("eight", "requests", plan)
    marks = {factor["number"]: factor["mark"] for factor in table["factors"]}
    rows = [
        (
            row["subquery"],
            ",".join(row["streams"]),
            "".join(marks[number] for number in row["factors"]),
            row["windows"][0]["size"],
            ",".join(row["parents"]),
        )
        for row in table["rows"]
    ]
    assert rows == REQUESTS
    assert [f["condition"] for f in table["factors"]] == [
        "R.a = S.d",
        "S.e = T.f",
        "R.b > S.e",
        "R.c = S.e",
    ]


def test_request_table_as_text() -> None:
    lines = explain(compiled("eight"), "requests", "text").splitlines()
    rows = [re.split(r"\s{2,}", line.strip()) for line in lines[2:12]]
    for row, (number, streams, factors, window, parents) in zip(rows, REQUESTS, strict=True):
        cells = [cell.strip() for cell in row if cell.strip()]
        assert cells[0] == str(number)
        assert cells[1].replace(" ", "") == streams
        assert cells[2].replace(" ", "") == factors
        assert cells[3] == f"RANGE {window}"
        assert cells[4].replace(" ", "") == parents


def test_normal_form_gives_the_reason_of_each_residual() -> None:
    (query,) = facts("residuals", "dnf")["queries"]
    assert query["terms"] == [["r.a = s.d", "r.[R.b + 1] > s.e", "r.note = s.note"]]
    assert [(r["condition"], r["why"]) for r in query["residual"]] == [
        ("r.note LIKE 'ab%'", "LIKE is evaluated in software"),
        ("r.b + 1 > s.e", "bigint is wider than an attribute (number, prefix, 32 bits)"),
        ("r.note = s.note", "varchar(20) is wider than an attribute (text, hash, 32 bits)"),
    ]


def test_normal_form_says_when_it_fell_back() -> None:
    found = facts("too many terms", "dnf")["queries"][0]
    assert found["fell_back"]
    assert found["terms"] == [["R.a = S.d"]]
    assert {r["why"] for r in found["residual"]} == {"the normal form has more than 64 terms"}
    assert "fallback" in explain(compiled("too many terms"), "dnf", "text")


def test_subqueries_know_who_shares_them() -> None:
    shared = [s for s in facts("eight", "subqueries") if s["shared"]]
    assert [(s["number"], s["parents"]) for s in shared] == [(0, ["q0", "q4"])]
