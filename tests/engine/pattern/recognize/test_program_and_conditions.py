"""The program of a row pattern tries alternatives in the order of preference, and decides
conditions as soon as it can."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.language.types import INT
from seustream.compiler.pattern import rows
from seustream.engine.pattern.columns import Ints
from seustream.engine.pattern.event import END_OF_STREAM
from seustream.engine.pattern.recognize.conditions import Path
from seustream.engine.pattern.recognize.log import RowLog
from seustream.engine.pattern.recognize.operator import RowOperator
from tests.engine.pattern.recognize.explained import facts, query


def test_the_automaton_has_the_ways_in_the_order_of_preference() -> None:
    of = facts(query("A+? (B | C{2})", "B AS B.x > 1"))["automaton"]
    assert of["states"] == ["A", "B", "C", "C:2", "match"]
    ways = [(edge["source"], edge["target"]) for edge in of["edges"]]
    assert ways == [
        ("", "A"),
        ("A", "B"),
        ("A", "C"),
        ("A", "A"),
        ("B", "match"),
        ("C", "C:2"),
        ("C:2", "match"),
    ]
    assert [edge["conditions"] for edge in of["edges"]][1] == ["B.x > 1"]


def test_conditions_say_when_they_are_decided() -> None:
    found = facts(
        query(
            "A B C D",
            "A AS A.x > PREV(A.x), B AS B.x > A.x AND B.x > 2, C AS sum(A.x) > 1,"
            " D AS LAST(D.x, 0) < 10",
        )
    )["conditions"]
    assert [(one["mentions"], one["decided"]) for one in found] == [
        (["A"], "once a row"),
        (["B"], "once a row (1), compared by the search (1)"),
        (["C"], "evaluated on each way"),
        (["D"], "once a row"),
    ]


def test_a_row_of_a_long_path_is_found_as_by_its_definition() -> None:
    chance = random.Random(5)
    for _ in range(300):
        count = chance.choice((0, 1, 30, 32, 33, 200, 700))
        among = chance.choice((1, 2, 4, 5, 7))
        rare = chance.choice((0.01, 0.5))
        variables = [chance.randrange(3) if chance.random() < rare else 1 for _ in range(count)]
        labels = np.array([v + 64 * chance.randrange(2) for v in variables], np.int32)
        path = Path(RowLog(), b"", labels.tobytes(), 1)
        own = [index for index, v in enumerate(variables) if among >> v & 1]
        back = chance.choice((0, 0, 1, 5, 50, max(len(own) - 1, 0), len(own)))
        for first in (True, False):
            at = rows.At(rows.Cell("x", INT), among, first, back, 0, False, INT)
            places = own if first else own[::-1]
            assert path.index(at) == (places[back] if back < len(places) else None)
        assert [path.label(index) for index in range(count)] == variables


@pytest.mark.parametrize(
    "condition", ["B.x - A.x > -2", "sum(B.x) + A.x >= 0", "PREV(B.x) + LAST(A.x) < 9"]
)
def test_a_row_that_is_tried_looks_up_few_rows(
    condition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, at = [0], RowLog.at

    def counting(log: RowLog, numbers: Ints) -> Ints:
        looked[0] += len(numbers)
        return at(log, numbers)

    monkeypatch.setattr(RowLog, "at", counting)
    of = query("A B+", f"B AS {condition}")
    assert isinstance(of, rows.RowQuery)
    operator = RowOperator(of)
    columns = {"ts": range(300), "x": pa.array([1] * 300, pa.int32())}
    operator.push_table(pa.table(columns))
    found, _ = operator.advance_table(END_OF_STREAM)
    assert found["n"].to_pylist() == [300]
    assert looked[0] < 12 * 300
