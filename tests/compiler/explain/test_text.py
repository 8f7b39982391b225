"""The stages as text."""

from __future__ import annotations

import pytest

from seustream.compiler.explain import explain
from tests.compiler.explain.programs import compiled


def test_overview_of_the_eight_queries() -> None:
    text = explain(compiled("eight", "thesis"), None, "text")
    head, chain, *_ = text.splitlines()
    assert head == ("eight.xsql: 8 queries over 3 streams, plan thesis, configuration default")
    assert chain.strip().startswith(
        "8 queries → 10 subqueries (1 shared) → 4 factors → 43 route tags →"
    )
    for part in ("Conditions", "Subqueries", "Routes", "Join areas", "What runs where"):
        assert f"── {part} ──" in text
    assert "route tags                43     256   ███▍················   17%" in text


def test_route_graph_reads_from_the_arriving_stream() -> None:
    text = explain(compiled("eight", "thesis"), "routes", "text")
    assert (
        "  T arrives\n"
        "  ├─ probe S  S.e = T.f                 → tag 7 (S,T)\n"
        "  │  └─ probe R  R.a = S.d              → tag 8 (R,S,T)    ⇒ q1\n"
    ) in text
    assert "├─ probe T  × any tuple               → tag 9 (R,T)\n" in text


def test_route_graph_with_long_conditions_goes_by_marks() -> None:
    text = explain(compiled("long names"), "routes", "text") + "\n"
    assert (
        "  └─ probe AccidentsReportedByPolice  ① ② σ₁  → tag 2  ⇒ accidentsAheadOfVehicle\n" in text
    )
    assert "  ①   PositionAndSpeedReports.highway = AccidentsReportedByPolice.highway\n" in text
    assert "  σ₁  [PositionAndSpeedReports.vehicleIdentifier >= 100000]\n" in text


@pytest.mark.parametrize(
    ("stage", "says"),
    [
        ("tokens", "none"),
        ("tree", "no statements"),
        ("dnf", "no queries"),
        ("routes", "no stream is joined"),
        ("areas", "no join areas"),
        ("listing", "no programs"),
    ],
)
def test_an_empty_program_says_so(stage: str, says: str) -> None:
    assert says in explain(compiled("empty"), stage, "text")


def test_unchanged_conditions_are_not_repeated() -> None:
    text = explain(compiled("eight"), "predicate", "text")
    assert text.count("unchanged") == 8
    assert text.count("R.b > S.e") == 1


def test_tree_as_text() -> None:
    assert explain(compiled("eight"), "tree", "text", "q0").splitlines() == [
        " 6:1  Select",
        " 6:8  ├─ item: SelectItem",
        " 6:8  │  └─ expression: Reference *",
        "6:15  ├─ from: FromItem R",
        "6:18  ├─ from: FromItem S",
        "6:29  ├─ where: ComparisonChain =",
        "6:29  │  ├─ operand: Reference R.a",
        "6:35  │  └─ operand: Reference S.d",
        "6:79  └─ window: WindowClause RANGE 100",
    ]


def test_an_area_shows_its_indexes() -> None:
    text = explain(compiled("eight"), "areas", "text")
    assert (
        "  admits      every tuple\n"
        "  indexed     by d for tag 10 (①)\n"
        "  indexed     by e for tag 2 (②)\n"
        "  scanned     for tag 0: no equality common to all combinations\n"
    ) in text
    assert "  indexed     by f for tags 1 (②), 7 (②)\n" in text
    overview = explain(compiled("eight"), None, "text")
    (head,) = (line for line in overview.splitlines() if line.startswith("  area  "))
    (area,) = (line for line in overview.splitlines() if line.startswith("  S     d, e"))
    for title, cell in (("index", "d, e"), ("scans", "tag 0")):
        assert area[head.index(title) :].startswith(cell)
