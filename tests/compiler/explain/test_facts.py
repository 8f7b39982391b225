"""What the stages tell of the worked example and of some smaller queries."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

import pytest

from seustream.compiler.explain import explain
from seustream.compiler.pipeline import Options, compile_text
from seustream.hdl.config import CONFIGURATIONS
from tests.compiler.explain.programs import PROGRAMS, compiled
from tests.hdl.programs import places_of

# Section 7 of the specification.
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
S_WORDS = (
    "30080 36082 34504 34886 30308 10000 80050 800D1 4000D 20010 20838 20C40 24448 40814 2041C"
    " 2042C 21054 2046C 21084 2049C 42416 24028 45C18 20060 4741A 20478 48C1C 24490 4A41E 240A8 00000"
)


def facts(name: str, stage: str | None, plan: str = "cost", query: str | None = None) -> Any:
    return json.loads(explain(compiled(name, plan), stage, "json", query))


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


def test_listing_of_area_s_under_the_thesis_plan() -> None:
    listing = {area["area"]: area for area in facts("eight", "listing", "thesis")}["S"]
    assert [line["word"] for line in listing["lines"]] == S_WORDS.split()
    comments = {line["address"]: line["comment"] for line in listing["lines"]}
    assert comments[2] == "r2 ← ③ R.b > S.e"
    assert comments[4] == "r4 ← 1, for combinations without a factor"
    assert comments[7] == "r17 ← ① ∧ ④"
    assert comments[14] == "②: emit tag 7 (S,T) → probe R"
    assert comments[20] == "probe carries tag 9 (R,T)? else to 22"
    assert comments[21] == "① ∧ ②: emit tag 10 (R,S,T) ⇒ q1"
    text = explain(compiled("eight", "thesis"), "listing", "text")
    assert [
        line.split()[1]
        for line in text.split("area S")[1].split("area T")[0].splitlines()
        if "  ; " in line
    ] == S_WORDS.split()


def test_listing_names_the_selections_of_a_probe() -> None:
    for plan in ("cost", "thesis"):
        listing = {area["area"]: area for area in facts("selections", "listing", plan)}
        registers = [(r["register"], r["mark"], r["of"]) for r in listing["S"]["registers"]]
        assert registers == [
            (32, "σ₃", "window tuple"),
            (48, "σ₁", "probe R"),
            (49, "σ₂", "probe R"),
        ]
        emits = [line["comment"] for line in listing["S"]["lines"] if "emit" in line["comment"]]
        assert any(comment.startswith("① ∧ σ₃ ∧ σ₁ ∧ σ₂: emit tag") for comment in emits)


def test_conditions_before_and_after() -> None:
    (found,) = facts("simplified", "predicate")
    assert found["written"] == ("NOT (R.a <> S.d OR NOT S.d = R.a) AND TRUE AND S.note IS NOT NULL")
    assert found["simplified"] == "R.a = S.d AND S.note IS NOT NULL"
    assert found["changes"] == ["NOT moved into comparisons", "4 comparisons made 2"]
    never = {p["query"]: p for p in facts("host alone", "predicate")}["never"]
    assert (never["simplified"], never["changes"]) == ("FALSE", ["never true"])
    assert all(p["changes"] == [] for p in facts("eight", "predicate"))


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


def test_a_self_join_is_told_by_its_areas() -> None:
    (query,) = facts("self-join", "split")["queries"]
    assert [(s["alias"], s["area"]) for s in query["sources"]] == [("x", "R"), ("y", "R#2")]
    (factor,) = facts("self-join", "requests")["factors"]
    assert factor["condition"] == "R.a = R#2.b"


@pytest.mark.parametrize(
    ("program", "query", "runs", "why"),
    [
        ("eight", "q0", "device", "joins run in the device"),
        ("eight", "q6", "device", "joins run in the device"),
        ("residuals", "liked", "device, then host", "joins run in the device"),
        ("grouped", "grouped", "device, then host", "joins run in the device"),
        ("host alone", "single", "host", "one stream, nothing to join"),
        ("host alone", "derived", "host", "it reads a derived stream"),
        ("host alone", "never", "nowhere", "its condition is never true"),
    ],
)
def test_where_a_query_runs(program: str, query: str, runs: str, why: str) -> None:
    (found,) = facts(program, "split", query=query)["queries"]
    assert (found["runs"], found["why"]) == (runs, why)


def test_the_host_groups_and_aggregates() -> None:
    (query,) = facts("grouped", "split")["queries"]
    work = [step["work"] for step in query["host"]]
    assert work == ["group by S.e", "compute count(*)", "keep groups with count(*) > 2"]


def test_cross_products_are_asked_for_or_made_by_the_plan() -> None:
    def found(plan: str) -> list[tuple[str, int, bool]]:
        crossed = facts("eight", "routes", plan)["cross_products"]
        return [(c["query"], c["subquery"], c["asked_for"]) for c in crossed]

    unavoidable = [("q6", 6, True), ("q6", 7, True), ("q7", 8, True)]
    assert found("cost") == unavoidable
    assert sorted(found("thesis")) == sorted([*unavoidable, ("q1", 1, False), ("q7", 9, False)])


def test_windows_larger_than_a_buffer_are_noted() -> None:
    (picked,) = facts("selections", "split", query="picked")["queries"]
    assert picked["notes"][0] == (
        "window of R holds 4,000 rows, a buffer 2,032; the host joins the others"
    )


def test_limits_are_those_of_the_device() -> None:
    uses = {use["resource"]: use for use in facts("eight", "split", "thesis")["uses"]}
    assert (uses["route tags"]["used"], uses["route tags"]["limit"]) == (43, 256)
    assert (uses["instructions"]["used"], uses["instructions"]["where"]) == (31, "S")
    assert (uses["factors in an area"]["used"], uses["scratch registers"]["used"]) == (5, 2)


def test_one_query_sees_only_its_own() -> None:
    whole, alone = facts("eight", "routes", "thesis"), facts("eight", "routes", "thesis", "q1")
    assert [tag["tag"] for tag in alone["tags"]] == [0, 1, 2, 5, 6, 7, 8, 9, 10]
    assert {name for tag in alone["tags"] for name in tag["queries"]} == {"q1"}
    assert len(whole["tags"]) == 43
    assert [row["subquery"] for row in facts("eight", "requests", query="q7")["rows"]] == [8, 9]
    assert {token["line"] for token in facts("eight", "tokens", query="q2")} == {8}


def test_the_tree_knows_positions() -> None:
    (statement,) = facts("eight", "tree", query="q0")
    assert (statement["kind"], statement["line"], statement["column"]) == ("Select", 6, 1)
    where = next(child for child in statement["children"] if child["role"] == "where")
    assert (where["kind"], where["text"], where["column"]) == ("ComparisonChain", "=", 29)
    assert [child["text"] for child in where["children"]] == ["R.a", "S.d"]


@pytest.mark.parametrize(
    ("indexes", "indexed", "scanned"),
    [
        (2, {"d": [(10, "①")], "e": [(2, "②")]}, {"no equality common to all combinations": [0]}),
        (
            1,
            {"d": [(10, "①")]},
            {"no equality common to all combinations": [0], "no index left of 1": [2]},
        ),
        (
            0,
            {},
            {
                "no equality common to all combinations": [0],
                "configuration mine has no index": [2, 10],
            },
        ),
    ],
)
def test_an_area_says_what_is_looked_up_and_what_scans_and_why(
    indexes: int, indexed: dict[str, list[tuple[int, str]]], scanned: dict[str, list[int]]
) -> None:
    config = dataclasses.replace(CONFIGURATIONS["default"], name="mine", indexes=indexes)
    c = compile_text(PROGRAMS["eight"], options=Options(config))
    area = next(a for a in json.loads(explain(c, "areas", "json")) if a["area"] == "S")
    found = {
        index["column"]: [(lookup["tag"], lookup["mark"]) for lookup in index["lookups"]]
        for index in area["indexes"]
    }
    assert found == indexed
    assert {scan["why"]: scan["tags"] for scan in area["scans"]} == scanned


def test_one_query_sees_only_its_own_lookups() -> None:
    areas = {area["area"]: area for area in facts("eight", "areas", query="q2")}
    assert [lookup["tag"] for lookup in areas["S"]["indexes"][0]["lookups"]] == [2]
    assert areas["S"]["scans"] == []


@pytest.mark.parametrize(
    ("comparators", "cycles", "factors", "columns"),
    [
        (16, 1, 3, ["e"]),
        (8, 2, 3, ["e"]),
        (4, 3, 3, ["e"]),
        (2, 3, 3, ["e"]),
        (1, 4, 4, ["d", "e"]),
    ],
)
def test_an_area_says_in_how_many_cycles_a_row_is_compared(
    comparators: int, cycles: int, factors: int, columns: list[str]
) -> None:
    """As the processor does it: area S has a factor of d and three of e."""
    config = dataclasses.replace(CONFIGURATIONS["default"], comparators=comparators)
    c = compile_text(PROGRAMS["eight"], options=Options(config))
    area = next(a for a in json.loads(explain(c, "areas", "json")) if a["area"] == "S")
    row = area["row"]
    assert (row["cycles"], row["factors"], row["columns"]) == (cycles, factors, columns)
    attributes = [factor.window_attribute for factor in c.tables.areas[1].factors]
    assert cycles == 1 + max(place["turn"] for place in places_of(attributes, config))
    told = f"of 8 tuples takes {cycles} cycles: {factors} factors of {', '.join(columns)}"
    assert (told in explain(c, "areas", "text")) == (cycles > 1)


def test_without_lanes_no_row_is_compared_at_once() -> None:
    c = compile_text(PROGRAMS["eight"], options=Options(CONFIGURATIONS["serial"]))
    assert all(area["row"] is None for area in json.loads(explain(c, "areas", "json")))
