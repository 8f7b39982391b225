"""The area of each stream, and the encoding of its columns."""

from __future__ import annotations

import itertools

import pytest

from seustream.compiler.pipeline import Options
from seustream.compiler.plan.encoding import Encoding
from seustream.compiler.plan.layout import comparisons
from seustream.hdl.config import CONFIGURATIONS
from tests.compiler.plan.cases import Case, cases, compiled, compiled_all


@pytest.mark.parametrize("case", cases("layout"), ids=str)
def test_case(case: Case) -> None:
    c = compiled_all("\n".join(case.before), stop_after="dnf")
    slots = [slot.name for slot in c.layout.slots]
    lines = [f"slots {', '.join(slots)}"]
    for query, places in zip(c.program.queries, c.layout.of_query, strict=True):
        lines.append(f"{query.name}: {', '.join(slots[i] for i in places) or 'software'}")
    for (stream, column), encoding in sorted(c.layout.encodings.items()):
        lines.append(f"{stream}.{column}: {encoding}")
    assert lines == list(case.after)


def encodings(*conditions: str) -> dict[tuple[str, str], Encoding]:
    queries = "".join(f"SELECT * FROM R, S, T, U WHERE {c} WINDOW 1;" for c in conditions)
    return compiled_all(queries, stop_after="dnf").layout.encodings


def test_the_order_of_queries_changes_no_encoding() -> None:
    """Classes of equal columns grow together in whichever order conditions connect them."""
    conditions = ["R.a = S.d", "T.f = U.h", "S.d < T.f", "R.g = R.g", "U.h = S.g"]
    wanted = encodings(*conditions)
    assert len({wanted[key] for key in wanted if key != ("R", "g")}) == 1
    for order in itertools.islice(itertools.permutations(conditions), 3, None, 6):
        assert encodings(*order) == wanted


@pytest.mark.parametrize(("name", "width"), [("default", 32), ("thesis", 8), ("tiny", 16)])
def test_codes_are_as_wide_as_the_device(name: str, width: int) -> None:
    c = compiled("R.a = S.d", options=Options(CONFIGURATIONS[name]), stop_after="dnf")
    assert {encoding.width for encoding in c.layout.encodings.values()} == {width}


def test_which_comparisons_a_device_could_make() -> None:
    c = compiled(
        "R.a = S.d AND (R.b > 5 OR R.b < R.c AND R.a = S.e) AND abs(R.n) = 1 AND NOT R.m = 2",
        stop_after="dnf",
    )
    found = [compare.condition.symbol for compare in comparisons(c.program.queries[0].where)]
    assert found == ["=", ">", "=", "<>"]
