"""Errors of running queries, the queries they belong to, and what a report keeps of evaluations
without a value."""

from __future__ import annotations

import pytest

from seustream.compiler.errors import SourceText, Span
from seustream.compiler.language.faults import FaultError, Place
from seustream.engine.stream.errors import EngineError
from seustream.engine.stream.failures import Failures, reason
from seustream.engine.stream.faults import QueryFaults, fault_report, located, restore

TEXT = SourceText("SELECT a\nFROM R WHERE 1 / a > 2")
PLACE = Place(Span(22, 27), "1 / a", "division by zero")


def test_without_containment_an_error_goes_on() -> None:
    failures = Failures()
    with pytest.raises(EngineError, match="it broke"), failures.of("q"):
        raise EngineError("it broke")
    assert failures.why == {}


def test_contained_it_is_a_failure_of_its_queries_and_the_first_counts() -> None:
    failures = Failures(contained=True)
    with failures.of("q", "p"):
        raise EngineError("it broke", "mend it")
    with failures.of("q", "r"):
        raise ValueError("later")
    with failures.of("s"):
        pass
    assert failures.why == {
        "q": "it broke (mend it)", "p": "it broke (mend it)", "r": "ValueError: later"
    }  # fmt: skip
    assert "q" in failures
    assert "s" not in failures


def test_what_ends_the_program_is_no_failure_of_a_query() -> None:
    failures = Failures(contained=True)
    for error in (KeyboardInterrupt, SystemExit):
        with pytest.raises(error), failures.of("q"):
            raise error
    assert failures.why == {}


def test_a_reason_is_not_endless() -> None:
    assert len(reason(EngineError("x" * 100_000))) == 2000
    assert reason(EngineError("a", "b")) == "a (b)"


def test_faults_are_told_with_line_and_column_and_the_first_row() -> None:
    assert located(PLACE, TEXT) == "division by zero in 1 / a at 2:14"
    assert located(Place(None, "1 / a", "division by zero"), TEXT) == "division by zero in 1 / a"
    faults = QueryFaults(source=TEXT)
    with faults.naming(lambda row: f"row {row} of R"):
        faults.add(PLACE, 3, 7)
    faults.add(PLACE, 2, 1)
    assert faults.lines == {"division by zero in 1 / a at 2:14": (5, "row 7 of R")}
    assert faults.total == 5


def test_two_expressions_of_one_place_are_one_line() -> None:
    """One written expression may be evaluated as two."""
    faults = QueryFaults(source=TEXT)
    faults.add(PLACE, 1, 0)
    faults.add(Place(Span(22, 28), "1 / a", "division by zero"), 1, 0)
    assert faults.lines == {"division by zero in 1 / a at 2:14": (2, "row 0")}


def test_counting_goes_on_from_a_snapshot_and_what_is_gone_stays_gone() -> None:
    before = {"q": QueryFaults(source=TEXT), "none": QueryFaults(source=TEXT)}
    before["q"].add(PLACE, 3, 7)
    report = fault_report(before)
    assert set(report) == {"q"}
    after = {"q": QueryFaults(source=TEXT)}
    restore(after, {**report, "gone": report["q"]})
    after["q"].add(PLACE, 1, 0)
    assert fault_report(after) == {"q": {"division by zero in 1 / a at 2:14": (4, "row 7")}}


def test_under_strict_the_first_fault_is_an_error_and_no_line() -> None:
    faults = QueryFaults(strict=True, source=TEXT)
    with pytest.raises(FaultError, match="division by zero in 1 / a, row 7"):
        faults.add(PLACE, 3, 7)
    assert faults.lines == {}
