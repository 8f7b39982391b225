"""Expressions by column compared with expressions one by one: values, NULL, faults, hoisted
parts."""

from __future__ import annotations

import numpy as np
import pytest

from seustream.compiler.language.faults import Faults
from seustream.engine.pattern.batch import values
from seustream.engine.pattern.columns import Prepared, holds, values_of
from seustream.engine.pattern.event import Event
from seustream.engine.pattern.lists import Bindings
from tests.engine.pattern.events import EXPRESSIONS, events_of, pairs


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_hoisted_parts_change_neither_values_nor_faults(text: str) -> None:
    events = events_of(9, 40)
    expressions, lists, (first, second) = pairs(events, text)
    for e in expressions:
        bindings = Bindings(lists, len(first), {0: first, 1: second})
        hoisted, whole = Faults(), Faults()
        assert (
            holds(Prepared(e), bindings, hoisted).tolist()
            == [value is True for value in values(values_of(e, bindings, whole))]
        )  # fmt: skip
        assert (hoisted.count, hoisted.first) == (whole.count, whole.first)


def test_the_first_fault_is_numbered_by_its_newest_event() -> None:
    events = [Event(t, 100 + t, "A", {"x": t - 2, "y": 1.0}) for t in range(5)]
    (e,), lists, _ = pairs(events, "a.y / b.x > 0")
    faults = Faults()
    at = {0: np.array([0, 0, 4]), 1: np.array([1, 2, 2])}
    holds(Prepared(e), Bindings(lists, 3, at), faults)
    ((place, count),) = faults.count.items()
    assert (place.reason, count, faults.first[place]) == ("division by zero", 2, 102)
