"""A sorted index of constants finds the same rows as the comparisons."""

from __future__ import annotations

import operator
import random

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import BIGINT
from seustream.compiler.pipeline import compile_text
from seustream.engine.host.constants import ConstantIndex, Interval, intervals

KEY = (x.ColumnReference(0, "v", BIGINT, True, "R"), BIGINT)
COMPARE = {
    "<": operator.lt, "<=": operator.le, "=": operator.eq, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_an_index_of_intervals_finds_what_comparisons_do(seed: int) -> None:
    print(f"seed {seed}")
    chance = np.random.default_rng(seed)
    low = chance.integers(-20, 20, 50)
    high = low + chance.integers(-2, 9, 50)
    values = chance.integers(-25, 25, int(chance.integers(1, 40)))
    known = chance.random(len(values)) < 0.8 if seed % 2 else None
    index = ConstantIndex([Interval(KEY, a, b, ()) for a, b in zip(low, high, strict=True)])
    found = {number: some.tolist() for number, some in index.matches(values, known)}
    there = np.ones(len(values), np.bool_) if known is None else known
    fits = [(values >= a) & (values <= b) & there for a, b in zip(low, high, strict=True)]
    want = {n: np.flatnonzero(some).tolist() for n, some in enumerate(fits) if some.any()}
    assert found == want
    column = pa.array(values, mask=~there)
    assert index.admits(column).tolist() == np.any(fits, axis=0).tolist()


def bound(text: str) -> tuple[x.Expression, ...]:
    """Returns the conditions of a WHERE over R."""
    definition = (
        "CREATE STREAM R (s smallint, v bigint, x double precision, t varchar, d decimal(9, 2));"
    )
    compilation = compile_text(f"{definition} SELECT v FROM R WHERE {text} WINDOW NOW;")
    return x.conjuncts(compilation.program.queries[0].where)


@pytest.mark.parametrize("seed", range(8))
def test_intervals_are_what_conditions_of_an_expression_allow(seed: int) -> None:
    """Allows what Python's comparisons allow, also at the limits of the type."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    ends = [-(2**63), 2**63 - 1, 0]
    for _ in range(60):
        constants = [chance.choice([*ends, chance.randint(-9, 9)]) for _ in range(2)]
        ops = [chance.choice(list(COMPARE)) for _ in range(2)]
        turned = chance.random() < 0.5
        terms = [
            f"{n} {op} v" if turned else f"v {op} {n}" for n, op in zip(constants, ops, strict=True)
        ]
        (one,) = intervals(e for term in terms for e in bound(term)).values()
        for v in [*ends, *(n + d for n in constants for d in (-1, 0, 1))]:
            if not -(2**63) <= v < 2**63:
                continue
            pairs = [(n, v) if turned else (v, n) for n in constants]
            want = all(COMPARE[op](*pair) for op, pair in zip(ops, pairs, strict=True))
            assert isinstance(one.low, int)
            assert isinstance(one.high, int)
            assert (one.low <= v <= one.high) == want, (terms, v)


def test_what_stands_in_no_interval() -> None:
    for text in ("v <> 3", "v > NULL", "t > 'a'", "v > x", "v = 1 OR v = 2", "3 > 2"):
        assert intervals(bound(text)) == {}, text


def test_a_constant_is_taken_off_a_sum_that_always_has_a_value() -> None:
    """The index then ignores the constants that queries add; a sum that may overflow is looked up
    as a whole."""
    for text, key, low in (
        ("s + 3 > 5", "R.s", 3),
        ("s - 3 > 5", "R.s", 9),
        ("v + 3 > 5", "R.v + 3", 6),
    ):
        (one,) = intervals(bound(text)).values()
        assert (x.show(one.key[0]), one.low) == (key, low)


def test_ranks_put_the_tightest_first() -> None:
    ranks = [
        next(iter(intervals(bound(text)).values())).rank
        for text in ("v = 3", "t = 'a'", "v BETWEEN 1 AND 9", "v > 3")
    ]
    assert ranks == [0, 0, 1, 2]


def test_texts_are_looked_up_by_equality() -> None:
    some = [next(iter(intervals(bound(f"t = '{text}'")).values())) for text in ("b", "a", "b", "")]
    index = ConstantIndex(some)
    column = pa.array(["a", None, "b", "", "c", "b"])
    found = {number: rows.tolist() for number, rows in index.matches(*index.numbers(column))}
    assert found == {0: [2, 5], 1: [0], 2: [2, 5], 3: [3]}
    assert index.admits(column).tolist() == [True, False, True, True, False, True]
