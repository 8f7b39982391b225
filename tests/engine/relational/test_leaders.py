"""The first rows of groups compared with a definition: all rows that are there are ranked anew at each
moment, and all among the first go and come, apart from those that stay and from equal ones."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from seustream.compiler.logical.program import RankChanges
from seustream.compiler.pipeline import compile_text
from seustream.engine.graph import GraphRun
from seustream.engine.relational.leaders import Leaders, RankBound, Ranked, bound_of
from seustream.engine.relational.rank_changes import RankChangeOperator
from tests.engine.relational.generate import DEFINITIONS

_ORDER = "OVER (PARTITION BY a ORDER BY b DESC)"


def _operator(sql: str) -> tuple[GraphRun, RankChangeOperator]:
    run = GraphRun(compile_text(f"{DEFINITIONS}REGISTER QUERY q AS {sql} EMIT CHANGES"))
    (found,) = [one for one in run.operators.values() if isinstance(one, RankChangeOperator)]
    return run, found


def _bound(function: str, most: int) -> RankBound:
    node = _operator(f"SELECT b FROM R QUALIFY {function}() {_ORDER} <= {most}")[1].node
    assert isinstance(node, RankChanges)
    found = bound_of(node)
    assert found is not None
    assert found.most == most
    return found


def _first(function: str, most: int, values: list[int], rows: list[int]) -> list[int]:
    """Returns the rows, of one group, whose rank is within a bound."""
    found = []
    for row in rows:
        better = [values[one] for one in rows if values[one] < values[row]]
        same = sum(values[one] == values[row] and one < row for one in rows)
        ranks = {
            "rank": len(better),
            "dense_rank": len({*better}),
            "row_number": len(better) + same,
        }
        if ranks[function] < most:
            found.append(row)
    return found


@pytest.mark.parametrize("function", ["row_number", "rank", "dense_rank"])
@pytest.mark.parametrize("goes", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_what_goes_and_comes(function: str, goes: bool, seed: int) -> None:
    chance = random.Random(seed)
    most, count, results = chance.randint(0, 4), chance.randint(1, 60), chance.choice([2, 9, 10**6])
    group = [chance.randint(0, 2) for _ in range(count)]
    value = [chance.randint(0, 8) for _ in range(count)]
    result = [chance.randint(0, results) for _ in range(count)]
    order = sorted(range(count), key=lambda row: (group[row], value[row], row))
    same = [(group[row], value[row]) for row in order]
    last = [max(n for n, one in enumerate(same) if one == mine) for mine in same]
    leaders = Leaders(
        _bound(function, most),
        Ranked(group, [order.index(row) for row in range(count)], result, order, last),
        come=not goes,
    )

    def first(there: list[int]) -> list[int]:
        return [
            row
            for of in range(3)
            for row in _first(function, most, value, [row for row in there if group[row] == of])
        ]

    old = chance.randint(0, count)
    there, came = [*range(old)] if goes else first([*range(old)]), old
    leaders.begin(there)
    while came < count:
        new = [*range(came, min(count, came + chance.randint(1, 5)))]
        came += len(new)
        gone = chance.sample(there, chance.randint(0, min(2, len(there)))) if goes else []
        before = first(there)
        there = [row for row in there if row not in gone] + new
        leaders.goes.clear()
        leaders.comes.clear()
        by = {new[0] + n: row for n, row in enumerate(gone)}
        touched = {group[row] for row in (*new, *gone)}
        leaders.step(7, touched, by, new)
        now = first(there)
        for one in {*result}:
            rows = [row for row in sorted(before) if result[row] == one and group[row] in touched]
            went = [row for row in gone if row in rows] + [row for row in rows if row not in gone]
            come = [row for row in sorted(now) if result[row] == one and group[row] in touched]
            went, come = (
                [row for row in went if row not in come],
                [row for row in come if row not in went],
            )
            equal = min(len(went), len(come))
            assert [row for _, _, row in sorted(leaders.goes) if result[row] == one] == went[equal:]
            assert [row for _, _, row in sorted(leaders.comes) if result[row] == one] == come[
                equal:
            ]
    assert leaders.present().tolist() == sorted(there if goes else first(there))


@pytest.mark.parametrize(
    ("sql", "known"),
    [
        (f"SELECT b FROM R QUALIFY rank() {_ORDER} < 3", True),
        ("SELECT b + 1 AS x FROM R ORDER BY b LIMIT 3", True),
        (f"SELECT b FROM R QUALIFY rank() {_ORDER} = 3", False),
        (f"SELECT b FROM R QUALIFY rank() {_ORDER} <= 3 AND b > 1", False),
        (f"SELECT b, rank() {_ORDER} AS n FROM R QUALIFY n <= 3", False),
        (f"SELECT b FROM R QUALIFY lag(a) {_ORDER} <= 3", False),
    ],
)
def test_the_queries_whose_rows_are_shown_as_they_are(sql: str, known: bool) -> None:
    _, operator = _operator(sql)
    assert isinstance(operator.node, RankChanges)
    assert (bound_of(operator.node) is not None) == known


def test_each_row_is_evaluated_once_however_many_times_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each row has a time of its own."""
    count = 400
    run, operator = _operator("SELECT a, b FROM R ORDER BY ts DESC LIMIT 10")
    evaluated, items = list[int](), operator._items

    def counted(*given: object) -> list[pa.Array]:
        found = items(*given)  # type: ignore[arg-type]
        evaluated.append(len(found[0]))
        return found

    monkeypatch.setattr(operator, "_items", counted)
    columns = {"ts": [*range(count)], "a": pa.array([1] * count, pa.int32()), "b": [1.0] * count}
    run.push("R", pa.table(columns | {"c": [""] * count}))
    assert sum(rows.num_rows for _, rows in run.finish()) == 10
    assert sum(evaluated) == count
