"""Comparisons made by kernels, on random events and cuts, compared with every combination by
definition."""

from __future__ import annotations

import itertools
import random

import pyarrow as pa
import pytest

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.types import DOUBLE, INT, VARCHAR
from seustream.compiler.pattern.ir import Class
from seustream.compiler.pattern.statements import compile_pattern
from seustream.engine.pattern.event import END_OF_STREAM
from seustream.engine.pattern.links import formula, link
from seustream.engine.pattern.meaning import Meaning
from seustream.engine.pattern.operator import PatternOperator

STREAM = Stream(
    "e", (Column("type", VARCHAR), Column("k", INT), Column("x", DOUBLE), Column("t", VARCHAR))
)
Row = tuple[int, str, int | None, float | None, str | None]


def both(a: object, b: object) -> bool:
    return a is not None and b is not None


CONDITIONS = {
    "a.k = b.k": lambda a, b: both(a[2], b[2]) and a[2] == b[2],
    "a.k <> b.k": lambda a, b: both(a[2], b[2]) and a[2] != b[2],
    "a.t = b.t": lambda a, b: both(a[4], b[4]) and a[4] == b[4],
    "b.x > a.x * 1.5": lambda a, b: both(a[3], b[3]) and b[3] > a[3] * 1.5,
    "a.x <= b.k": lambda a, b: both(a[3], b[2]) and a[3] <= b[2],
    "b.ts >= a.ts + 3": lambda a, b: b[0] >= a[0] + 3,
    "a.k * b.k > 2": lambda a, b: both(a[2], b[2]) and a[2] * b[2] > 2,
    "abs(a.x - b.x) < 0.75": lambda a, b: both(a[3], b[3]) and abs(a[3] - b[3]) < 0.75,
    "(a.x + b.x > 3 OR a.k = b.k)": lambda a, b: (
        (both(a[3], b[3]) and a[3] + b[3] > 3) or (both(a[2], b[2]) and a[2] == b[2])
    ),
    "6 / (a.k - b.k) > 2": lambda a, b: both(a[2], b[2]) and a[2] != b[2] and 6 / (a[2] - b[2]) > 2,
    "10 / a.k < b.x": lambda a, b: a[2] not in (None, 0) and b[3] is not None and 10 / a[2] < b[3],
}


def random_rows(chance: random.Random) -> list[Row]:
    def one(values: list[object]) -> object:
        return None if chance.random() < 0.1 else chance.choice(values)

    return [
        (
            ts,
            chance.choice("AB"),
            one([0, 1, 2, 3]),
            one([0.0, -0.0, 1.0, 1.5, 2.25]),
            one(["", "u"]),
        )  # type: ignore[misc]
        for ts in sorted(chance.randrange(60) for _ in range(40))
    ]


@pytest.mark.parametrize("seed", range(30))
def test_partners_are_those_of_the_definition(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    rows = random_rows(chance)
    some = chance.sample(sorted(CONDITIONS), chance.choice((1, 2, 3)))
    text = f"PATTERN A; B WHERE {' AND '.join(some)} WITHIN 20 ms RETURN a.ts, b.ts, b.k"
    found = run(text, rows, chance)
    expected = [
        (a[0], b[0], b[2])
        for a, b in itertools.product(rows, rows)
        if (a[1], b[1]) == ("A", "B")
        and 0 < b[0] - a[0] <= 20
        and all(CONDITIONS[one](a, b) for one in some)
    ]
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


def run(text: str, rows: list[Row], chance: random.Random) -> list[tuple[object, ...]]:
    """Returns the results of a pattern over rows that come in random steps."""
    operator = PatternOperator(compile_pattern(text, STREAM), "columns")
    columns = zip(*rows, strict=True)
    names = ("ts", "type", "k", "x", "t")
    types = (pa.int64(), pa.string(), pa.int32(), pa.float64(), pa.string())
    table = pa.table({n: pa.array(c, t) for n, c, t in zip(names, columns, types, strict=True)})
    found, start = [], 0
    while start < len(rows):
        end = min(start + chance.choice((1, 2, 7, 40)), len(rows))
        while end < len(rows) and rows[end][0] == rows[end - 1][0]:
            end += 1
        operator.push_table(table.slice(start, end - start))
        found += operator.advance_table(rows[end - 1][0])[0].to_pylist()
        start = end
    found += operator.advance_table(END_OF_STREAM)[0].to_pylist()
    return [tuple(row.values()) for row in found]


OF_THREE = {
    "a.k + b.k > c.k": lambda a, b, c: every(a[2], b[2], c[2]) and a[2] + b[2] > c[2],
    "a.x * b.x < c.x + a.k": lambda a, b, c: (
        every(a[3], b[3], c[3], a[2]) and a[3] * b[3] < c[3] + a[2]
    ),
    "greatest(a.k, b.k, c.k) = 2": lambda a, b, c: (
        max((one[2] for one in (a, b, c) if one[2] is not None), default=None) == 2
    ),
    "NOT (a.t = b.t AND b.x < c.x)": lambda a, b, c: (
        (both(a[4], b[4]) and a[4] != b[4]) or (both(b[3], c[3]) and b[3] >= c[3])
    ),
    "mod(c.ts - a.ts + b.k, 3) = 1": lambda a, b, c: (
        b[2] is not None and (c[0] - a[0] + b[2]) % 3 == 1
    ),
    "(a.x + c.x) / (b.k - 1) > 1": lambda a, b, c: (
        every(a[3], b[2], c[3]) and b[2] != 1 and (a[3] + c[3]) / (b[2] - 1) > 1
    ),
    "mod(c.k, b.k) = a.k": lambda a, b, c: (
        every(a[2], b[2], c[2]) and b[2] != 0 and c[2] % b[2] == a[2]
    ),
}


def every(*values: object) -> bool:
    return None not in values


@pytest.mark.parametrize("seed", range(30))
def test_formulas_of_three_events(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(100 + seed)
    rows = random_rows(chance)
    some = chance.sample(sorted(OF_THREE), chance.choice((1, 2)))
    text = (
        f"PATTERN ANY a; B; ANY c WHERE {' AND '.join(some)} WITHIN 20 ms RETURN a.ts, b.ts, c.ts"
    )
    expected = [
        (a[0], b[0], c[0])
        for a, b, c in itertools.product(rows, rows, rows)
        if b[1] == "B"
        and a[0] < b[0] < c[0] <= a[0] + 20
        and all(OF_THREE[one](a, b, c) for one in some)
    ]
    assert sorted(run(text, rows, chance)) == sorted(expected)


def test_each_of_these_has_a_formula() -> None:
    for one in OF_THREE:
        query = compile_pattern(f"PATTERN A; B; C WHERE {one} WITHIN 1 s RETURN a.k", STREAM)
        pairs = Meaning(query).of(Class.PAIR)
        assert all(formula(condition.conjunct, 2) is not None for condition in pairs), one


def test_a_side_over_two_events_is_no_link() -> None:
    where = "a.k = b.k AND a.x + b.x > c.x AND a.k + 1 < c.k"
    query = compile_pattern(f"PATTERN A; B; C WHERE {where} WITHIN 1 s RETURN a.k", STREAM)
    meaning = Meaning(query)
    found = [link(condition.conjunct) is not None for condition in meaning.conditions]
    assert sorted(found) == [False, True, True]
