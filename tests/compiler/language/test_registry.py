"""The registry of functions: every entry is complete, and edge cases that the table of cases leaves
out.

`tests/language/cases.txt` states the meaning of the functions;
`tests/engine/stream/test_evaluate.py` tests that columns and rows agree on it.
"""

from __future__ import annotations

import re

import pytest

from seustream.compiler.errors import Problems
from seustream.compiler.language import expressions as x
from seustream.compiler.language import types as t
from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.language.functions import FUNCTIONS
from seustream.compiler.language.registry import AggregateFunction, ScalarFunction
from tests.compiler.language.folding import refused, value
from tests.compiler.language.plain import bind

# --- entries --------------------------------------------------------------------

ENTRIES = [*FUNCTIONS.values(), *AGGREGATES.values()]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_an_entry_has_a_line_of_documentation(entry: ScalarFunction | AggregateFunction) -> None:
    assert re.fullmatch(r"\S[^\n]*\.", entry.doc)


def test_a_name_means_one_thing() -> None:
    names = [name for entry in ENTRIES for name in (entry.name, *entry.aliases)]
    assert len(names) == len(set(names))
    assert [name for name in names if name != name.lower()] == ["DIV"]


@pytest.mark.parametrize("entry", FUNCTIONS.values(), ids=lambda entry: entry.name)
def test_an_example_has_a_value(entry: ScalarFunction) -> None:
    bound = bind(entry.example)
    assert not isinstance(bound, Problems), [problem.message for problem in bound.found]
    calls = {part.function for part in x.walk(bound) if isinstance(part, x.Call)}
    folded = {"+", "-", "*", "/", "negate"}  # the binder computes operations on constants
    assert entry.name in calls | folded
    assert value(entry.example) is not None


COLUMNS = {"x": t.DOUBLE, "y": t.INT, "name": t.VARCHAR}


@pytest.mark.parametrize("entry", AGGREGATES.values(), ids=lambda entry: entry.name)
def test_an_example_is_an_aggregate(entry: AggregateFunction) -> None:
    bound = bind(entry.example, COLUMNS, aggregates=True)
    assert isinstance(bound, x.AggregateCall)
    assert bound.function == entry.name


@pytest.mark.parametrize("entry", FUNCTIONS.values(), ids=lambda entry: entry.name)
def test_hidden_entries_cannot_be_called(entry: ScalarFunction) -> None:
    if entry.hidden and entry.name.isidentifier():
        assert f"no function {entry.name}" in refused(f"{entry.name}(1, 2)")


def test_what_can_fault_says_how() -> None:
    reasons = {entry.fault for entry in FUNCTIONS.values()}
    assert {"integer overflow", "division by zero", "outside its domain"} <= reasons
    for entry in FUNCTIONS.values():
        for reason in (entry.fault, *(own.fault for own in entry.overloads)):
            assert reason is None or len(reason.split()) <= 5
