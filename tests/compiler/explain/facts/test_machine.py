"""Join areas and programs: registers, indexes, scans, comments."""

from __future__ import annotations

import dataclasses
import json

import pytest

from seustream.compiler.explain import explain
from seustream.compiler.pipeline import Options, compile_text
from seustream.hdl.config import CONFIGURATIONS
from tests.compiler.explain.programs import PROGRAMS, compiled, facts
from tests.hdl.programs import places_of

S_WORDS = (
    "30080 36082 34504 34886 30308 10000 80050 800D1 4000D 20010 20838 20C40 24448 40814 2041C"
    " 2042C 21054 2046C 21084 2049C 42416 24028 45C18 20060 4741A 20478 48C1C 24490 4A41E 240A8 00000"
)


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
    """As in the processor: area S has one factor of d and three of e."""
    config = dataclasses.replace(CONFIGURATIONS["default"], lanes=8, comparators=comparators)
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
