"""Each case of `cases.txt` in X-SQL: in SELECT, and in WHERE or HAVING."""

from __future__ import annotations

from itertools import groupby

import pyarrow as pa
import pytest

from seustream.compiler.errors import CompileError
from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.cosim.golden import GoldenDevice
from seustream.engine.graph import GraphRun
from seustream.engine.host.stores import stream_schema
from tests.language import casefile, duck
from tests.language.casefile import Case

CASES = [case for case in casefile.read() if "xsql" in case.languages]
SECTIONS = {section: list(cases) for section, cases in groupby(CASES, lambda case: case.section)}


def compiled(case: Case, select: str) -> Compilation:
    columns = [*case.columns, ("unread", "int")]
    create = f"CREATE STREAM K ({', '.join(f'{name} {of}' for name, of in columns)});\n"
    return compile_text(create + select, options=Options(parameters=dict(case.parameters)))


def answer(case: Case, c: Compilation) -> tuple[pa.Table | None, GraphRun]:
    """Returns the results, and the driver that counted faults."""
    driver = GraphRun(c, GoldenDevice(c.options.config))
    schema = stream_schema(c.streams[0])
    values = [(ts, *row, None) for ts, row in enumerate(case.rows)]
    arrays = [pa.array([row[place] for row in values], of) for place, of in enumerate(schema.types)]
    driver.push("K", pa.Table.from_arrays(arrays, schema=schema))
    found = [rows for _, rows in driver.finish()]
    return (pa.concat_tables(found) if found else None), driver


def places(driver: GraphRun, at: int) -> list[tuple[str, int, int, int]]:
    """Returns reason, line and column of each fault in the expression, which begins at this offset,
    and its number of rows."""
    source, found = driver.compilation.source, []
    for operator in driver.operators.values():
        for place, count in operator.faults["q0"].count.items():  # type: ignore[attr-defined]
            assert place.at is not None, place
            line, column = casefile.place(source.text[at:], place.at.start - at)
            found.append((place.reason, line, column, count))
    return found


def difference(case: Case) -> str | None:
    """Returns how the result differs from the case, None if it does not."""
    window = "UNBOUNDED" if case.aggregate else "NOW"
    before = "SELECT "
    try:
        c = compiled(case, f"{before}{case.expression} AS v FROM K WINDOW {window}")
    except CompileError as error:
        said = " ".join(f"{p.message} {p.hint}" for p in error.problems).lower()
        if case.error is None:
            return f"{case}: {said}"
        # The query goes on after the expression, so that this expression does not end there.
        without_end = case.name == "an operator without its right side"
        return None if without_end or case.error.lower() in said else f"{case}: said {said}"
    if case.error is not None:
        return f"{case}: is not refused"
    if case.aggregate and not case.rows:
        return None  # without a row of the stream there is no row of results
    of = str(c.program.queries[0].items[0].expression.type).replace("double precision", "double")
    if of != case.type:
        return f"{case}: type {of}, expected {case.type}"
    rows, driver = answer(case, c)
    if rows is None:
        return f"{case}: no row"
    value = rows.column("v").to_pylist()[-1]
    if not duck.same(value, case.value, case.type, case.nearly):
        return f"{case}: {value!r}, expected {case.value!r}"
    wanted = [(fault.line, fault.column, fault.rows) for fault in case.faults]
    found = places(driver, c.source.text.index(before) + len(before))
    if case.aggregate:
        # Each row gives a row of results, so sums of fewer rows may fault too.
        wanted, told = [w[:2] for w in wanted], [f[1:3] for f in found]
    else:
        told = [f[1:] for f in found]
    reasons = [
        fault.reason in reason
        for fault, (reason, *_) in zip(
            case.faults, sorted(found, key=lambda f: f[1:3]), strict=False
        )
    ]
    same = set(wanted) <= set(told) if case.aggregate else sorted(told) == sorted(wanted)
    if not same or not all(reasons):
        return f"{case}: faults {found}, expected {case.faults}"
    return None


def difference_where(case: Case) -> str | None:
    """Checks the case in a condition: for a boolean whether it holds, for another value whether it
    is NULL."""
    if case.error is not None or case.aggregate:
        return None
    truth = case.type == "boolean"
    condition = f"({case.expression})" if truth else f"({case.expression}) IS NULL"
    c = compiled(case, f"SELECT 1 AS v FROM K WHERE {condition} WINDOW NOW")
    rows, _ = answer(case, c)
    holds = case.value is True if truth else case.value is None
    return None if (rows is not None) is holds else f"{case}: in WHERE it is {rows is not None}"


@pytest.mark.parametrize("section", SECTIONS)
def test_in_select(section: str) -> None:
    found = [difference(case) for case in SECTIONS[section]]
    assert [each for each in found if each is not None] == []


@pytest.mark.parametrize("section", SECTIONS)
def test_in_where(section: str) -> None:
    found = [difference_where(case) for case in SECTIONS[section]]
    assert [each for each in found if each is not None] == []


def test_all_cases_are_asked() -> None:
    assert len(CASES) >= 1250
