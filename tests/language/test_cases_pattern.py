"""Each case of `cases.txt` in PATTERN: in RETURN, with every matcher's way of output, and in WHERE.

The row is the event of an element `e`; the rows of an aggregate are the members of a group `g`.
"""

from __future__ import annotations

import dataclasses
from itertools import groupby

import pyarrow as pa
import pytest

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.errors import CompileError, Problems, Span
from seustream.compiler.language import syntax as s
from seustream.compiler.language.typenames import bind_type
from seustream.compiler.language.types import VARCHAR, Type
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.statements import compile_pattern
from seustream.engine.pattern.event import END_OF_STREAM
from seustream.engine.pattern.operator import PatternOperator
from seustream.engine.stream.schema import stream_schema
from tests.language import casefile, duck
from tests.language.casefile import Case

CASES = [case for case in casefile.read() if "pattern" in case.languages]
SECTIONS = {section: list(cases) for section, cases in groupby(CASES, lambda case: case.section)}
KIND = "kind"
"""The column with the type of events: S begins, E is the row or, for an aggregate, every row."""


def type_of(text: str) -> Type:
    name, _, numbers = text.partition("(")
    arguments = tuple(int(n) for n in numbers.rstrip(")").split(",") if n)
    return bind_type(s.TypeName(name.strip(), arguments, Span(0, 0)), Problems())


def spelled(case: Case) -> Case:
    """Returns the case in PATTERN's terms: columns of an element; `count(*)` counts the group."""
    element = "g" if case.aggregate else "e"
    return case.spelled(lambda name: f"{element}.{name}")


def stream_of(case: Case) -> Stream:
    columns = (Column(name, type_of(of)) for name, of in case.columns)
    return Stream("K", (Column(KIND, VARCHAR), *columns))


def compiled(case: Case, rest: str) -> ir.PatternQuery:
    sequence = "S s; E+ g" if case.aggregate else "E e"
    text = f"PATTERN {sequence} FROM K TYPE BY {KIND} {rest}"
    parameters = dict(case.parameters)
    return compile_pattern(text, stream_of(case), parameters=parameters, bounded=True)


def answer(case: Case, query: ir.PatternQuery, engine: str) -> tuple[pa.Table, PatternOperator]:
    """Returns the results, and the operator that counted faults."""
    schema = stream_schema(query.stream)
    nothing = (None,) * len(case.columns)
    rows = [("S", *nothing)] * case.aggregate + [("E", *row) for row in case.rows]
    arrays = [pa.array(range(len(rows)), pa.int64())]
    for place, of in enumerate(schema.types[1:]):
        arrays.append(pa.array([row[place] for row in rows], of))
    operator = PatternOperator(query, engine)
    operator.push_table(pa.Table.from_arrays(arrays, schema=schema))
    found, _ = operator.advance_table(END_OF_STREAM)
    return found, operator


def places(operator: PatternOperator, at: int) -> list[tuple[str, int, int, int]]:
    """Returns reason, line and column of each fault in the expression, which begins at this offset,
    and its number of rows."""
    text, found = operator.query.text, []
    for place, count in operator.faults.count.items():
        assert place.at is not None, place
        line, column = casefile.place(text[at:], place.at.start - at)
        found.append((place.reason, line, column, count))
    return found


def difference(written: Case, engine: str) -> str | None:
    """Returns how the result differs from the case, None if it does not."""
    case = spelled(written)
    if case.aggregate and "count(*)" in case.expression.lower():
        return None  # PATTERN counts a group by its name: tests/compiler/pattern
    before = "RETURN "
    try:
        query = compiled(case, f"{before}{case.expression}")
    except CompileError as error:
        said = " ".join(f"{p.message} {p.hint}" for p in error.problems).lower()
        if case.error is None:
            return f"{case}: {said}"
        return None if case.error.lower() in said else f"{case}: said {said}"
    if case.error is not None:
        return f"{case}: is not refused"
    if case.aggregate and not case.rows:
        return None  # a group has at least one member
    query = dataclasses.replace(query, text=written_text(case, before))
    e = query.outputs[0].expression
    assert not isinstance(e, ir.Whole)
    of = str(e.type).replace("double precision", "double")
    if of != case.type:
        return f"{case}: type {of}, expected {case.type}"
    rows, operator = answer(case, query, engine)
    if rows.num_rows != 1:
        return f"{case}: {rows.num_rows} rows"
    (value,) = rows.column(0).to_pylist()
    if not duck.same(value, case.value, case.type, case.nearly):
        return f"{case}: {value!r}, expected {case.value!r}"
    found = places(operator, query.text.index(before) + len(before))
    wanted = [(fault.line, fault.column, fault.rows) for fault in case.faults]
    if sorted(f[1:] for f in found) != sorted(wanted):
        return f"{case}: faults {found}, expected {case.faults}"
    reasons = zip(case.faults, sorted(found, key=lambda f: f[1:3]), strict=True)
    if not all(fault.reason in reason for fault, (reason, *_) in reasons):
        return f"{case}: faults {found}, expected {case.faults}"
    return None


def written_text(case: Case, before: str) -> str:
    """Returns the statement with its line breaks, which places count."""
    sequence = "S s; E+ g" if case.aggregate else "E e"
    return f"PATTERN {sequence} FROM K TYPE BY {KIND} {before}{case.expression}"


def difference_where(written: Case) -> str | None:
    """Checks the case in a condition: for a boolean whether it holds, for another value whether it
    is NULL."""
    case = spelled(written)
    if case.error is not None or (case.aggregate and not case.rows):
        return None
    if case.aggregate and "count(*)" in case.expression.lower():
        return None
    truth = case.type == "boolean"
    condition = f"({case.expression})" if truth else f"({case.expression}) IS NULL"
    holds = case.value is True if truth else case.value is None
    query = compiled(case, f"WHERE {condition} RETURN *")
    for engine in ("columns", "optiseq"):
        rows, _ = answer(case, query, engine)
        if (rows.num_rows > 0) is not holds:
            return f"{case}: in WHERE by {engine} it is {rows.num_rows > 0}"
    return None


@pytest.mark.parametrize("engine", ["columns", "optiseq"])
@pytest.mark.parametrize("section", SECTIONS)
def test_in_return(section: str, engine: str) -> None:
    found = [difference(case, engine) for case in SECTIONS[section]]
    assert [each for each in found if each is not None] == []


@pytest.mark.parametrize("section", SECTIONS)
def test_in_where(section: str) -> None:
    found = [difference_where(case) for case in SECTIONS[section]]
    assert [each for each in found if each is not None] == []


def test_all_cases_are_asked() -> None:
    assert len(CASES) >= 1250
