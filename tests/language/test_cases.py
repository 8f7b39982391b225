"""Each case of `cases.txt` with only the language core: bound over plain columns, evaluated by the
row reference and by columns."""

from __future__ import annotations

import math
from itertools import groupby

import pytest

from seustream.compiler.errors import CompileError, SourceText
from seustream.compiler.language import expressions as x
from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.language.faults import Faults
from seustream.compiler.language.functions import FUNCTIONS
from tests.language import casefile, core, duck
from tests.language.casefile import Case

SECTIONS = {
    section: [case for case in cases if "xsql" in case.languages]
    for section, cases in groupby(casefile.read(), lambda case: case.section)
}


def difference(case: Case) -> str | None:
    """Returns how a case differs from the file, None if it does not."""
    try:
        found = _difference(case)
    except CompileError as error:
        found = str(error) if case.error is None else None
        text = "\n".join(f"{problem.message}\n{problem.hint}" for problem in error.problems)
        if case.error is not None and case.error.lower() not in text.lower():
            found = f"expected {case.error!r}, the message is\n{text}"
    return None if found is None else f"{case}\n    {found}"


def _difference(case: Case) -> str | None:
    columns = {name: core.type_named(type_) for name, type_ in case.columns}
    bound = core.bind(case.expression, columns, dict(case.parameters))
    if case.error is not None:
        return f"expected the error {case.error!r}, it is bound to {bound.type}"
    wanted = core.type_named(case.type)
    if bound.type != wanted:
        return f"expected {wanted}, it is bound to {bound.type}"
    rows = [
        {name: core.read(value, of) for (name, of), value in zip(columns.items(), row, strict=True)}
        for row in case.rows
    ]
    for way in (core.by_rows, core.by_columns):
        faults = Faults()
        if case.aggregate:
            value = core.aggregated(bound, rows, faults, way)
        else:
            [value] = way(bound, rows, faults)
        if not duck.same(value, case.value, case.type, case.nearly):
            return f"expected {case.value!r}, {way.__name__} gives {value!r}"
        if isinstance(value, float) and math.isnan(value):
            return f"{way.__name__} gives NaN"
        counted = _counted(case, faults)
        expected = sorted((f.line, f.column, f.rows) for f in case.faults)
        if sorted(place for place, _ in counted) != expected:
            return f"expected {case.faults}, {way.__name__} counts {counted}"
        for place, reason in counted:
            if not any(
                (f.line, f.column, f.rows) == place and f.reason in reason for f in case.faults
            ):
                return f"expected {case.faults}, {way.__name__} says {reason!r}"
    return None


def _counted(case: Case, faults: Faults) -> list[tuple[tuple[int, int, int], str]]:
    source = SourceText(case.expression)
    return [
        ((*source.position(place.at.start if place.at else 0), count), place.reason)
        for place, count in faults.count.items()
    ]


@pytest.mark.parametrize("section", SECTIONS)
def test_the_core_agrees(section: str):
    found = [difference(case) for case in SECTIONS[section]]
    assert [each for each in found if each is not None] == []


def test_every_entry_of_the_registry_has_a_case():
    reached: set[str] = set()
    for case in (case for cases in SECTIONS.values() for case in cases if case.error is None):
        columns = {name: core.type_named(type_) for name, type_ in case.columns}
        bound = core.bind(case.expression, columns, dict(case.parameters))
        reached |= {p.function for p in x.walk(bound) if isinstance(p, (x.Call, x.AggregateCall))}
    assert sorted({*FUNCTIONS, *AGGREGATES} - reached) == []
