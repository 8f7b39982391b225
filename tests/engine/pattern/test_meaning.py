"""The meaning of conditions and absences: NULL neither satisfies nor forbids, and an absence has
its gap."""

from __future__ import annotations

import pytest

from seustream.engine.pattern.event import Event
from tests.engine.pattern.running import operate
from tests.engine.pattern.stock import agree, query


@pytest.mark.parametrize(
    "condition",
    [
        "a.price > 1",
        "NOT a.price > 1",
        "a.price <> 1",
        "a.price IN (1, 2)",
        "a.price + 1 > b.price",
    ],
)
@pytest.mark.parametrize("price", [None, float("nan"), "missing"])
def test_10_null_never_satisfies(condition: str, price: object) -> None:
    q = query(f"PATTERN A; B WHERE {condition} WITHIN 10 ms RETURN *")
    attrs = {} if price == "missing" else {"price": price}
    events = [Event(1, 0, "A", attrs), Event(2, 1, "B", {"price": 1.0})]
    for engine in ("auto", "optiseq", "nfa"):
        assert operate(q, events, engine) == []


@pytest.mark.parametrize("price", [None, float("nan"), "missing"])
def test_10_null_never_forbids(price: object) -> None:
    attrs = {} if price == "missing" else {"price": price}
    events = [Event(1, 0, "A", {"price": 5.0}), Event(2, 1, "N", attrs), Event(3, 2, "B", {})]
    for condition in ("n.price > 1", "n.price > a.price", "NOT n.price > 1"):
        q = query(f"PATTERN A; !N; B WHERE {condition} WITHIN 10 ms RETURN *")
        for engine in ("auto", "optiseq", "nfa"):
            assert len(operate(q, events, engine)) == 1


def test_10_null_type_matches_any_only() -> None:
    events = [Event(1, 0, None, {}), Event(2, 1, "B", {})]
    assert len(operate(query("PATTERN ANY x; B WITHIN 9 ms RETURN *"), events)) == 1
    assert operate(query("PATTERN A; B WITHIN 9 ms RETURN *"), events) == []


def test_44_an_absence_compared_with_a_later_element() -> None:
    text = "PATTERN A;!B;C WHERE b.price > c.price WITHIN 10 ms RETURN *"
    agree(text, "a1@1=1 b1@2=5 c1@3=4 c2@4=5", {"a1 c2"})


def test_45_an_absence_limits_its_gap_only() -> None:
    text = "PATTERN A;B;!N;C;D WITHIN 20 ms RETURN *"
    agree(text, "n0@0 a1@1 n1@2 b1@3 c1@4 n2@5 d1@6", {"a1 b1 c1 d1"})
    agree(text, "a1@1 b1@3 n1@4 c1@5 d1@6", set())
    agree(text, "a1@1 b1@3 n1@3 c1@5 n2@5 d1@6", {"a1 b1 c1 d1"})
