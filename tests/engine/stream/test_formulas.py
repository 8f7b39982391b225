"""Tests conditions over two rows as formulas against the evaluator, pair by pair."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.engine.host.rows import leaves
from seustream.engine.kernels import native
from seustream.engine.stream.evaluate import evaluate, holds
from seustream.engine.stream.formulas import Formula, FormulaStep, formula_of
from seustream.engine.stream.numbers import Ints, Key, Numbers, converted, numbers
from tests.engine.stream.conditions import Some, bound, made_rows

THEIRS, OURS = 300, 40
"""Rows of S and of R: more than a block of the kernel, and a number of probes."""


def windows() -> tuple[Ints, Ints]:
    """Returns the window of each probe: some have no row, some all, and most fewer than a block."""
    low = np.arange(OURS) % 9 * 30
    return low, np.minimum(
        low + np.arange(OURS) * 3 % 80 + np.where(np.arange(OURS) % 9, 0, THEIRS - 79), THEIRS
    )


def scanned(
    formula: Formula, rows: dict[str, dict[str, pa.Array]], codes: native.Codes
) -> set[tuple[int, int]]:
    """Returns the pairs of a row of R and a row of S that the kernel keeps, by both of its ways."""

    def columns(keys: tuple[Key, ...], source: int, count: int) -> tuple[Numbers, ...]:
        leaf = leaves({(source, name): column for name, column in rows["RS"[source]].items()})
        return tuple(numbers(evaluate(converted(key), leaf, count), codes) for key in keys)

    theirs, ours = columns(formula.theirs, 1, THEIRS), columns(formula.ours, 0, OURS)
    low, high = windows()
    everything = (1, np.zeros(THEIRS, np.int64), None, np.zeros(OURS, np.int64), None)
    found = []
    for tests in ((), (everything,)):
        pairs: list[tuple[int, int]] = []
        start, room = 0, 1 << 9  # not all pairs fit at once
        while start < OURS:
            who, row = np.empty(room, np.int64), np.empty(room, np.int64)
            start, filled = native.scan(
                start, low, high, 0, tests, who, row, ((formula.steps, theirs, ours),)
            )
            pairs += zip(who[:filled].tolist(), row[:filled].tolist(), strict=True)
            room = room if filled else 2 * room
        assert pairs == sorted(set(pairs))
        found.append(set(pairs))
    assert found[0] == found[1]
    return found[0]


def wanted(
    e: x.Expression, rows: dict[str, dict[str, pa.Array]]
) -> tuple[set[tuple[int, int]], int]:
    """Returns the pairs for which the evaluator says that the condition holds, and its faults."""
    ours, theirs = np.divmod(np.arange(OURS * THEIRS), THEIRS)
    low, high = windows()
    seen = (theirs >= low[ours]) & (theirs < high[ours])
    ours, theirs = ours[seen], theirs[seen]
    leaf = leaves(
        {(0, name): column.take(pa.array(ours)) for name, column in rows["R"].items()}
        | {(1, name): column.take(pa.array(theirs)) for name, column in rows["S"].items()}
    )
    faults = Faults()
    fits = holds(e, leaf, len(ours), faults)
    return set(zip(ours[fits].tolist(), theirs[fits].tolist(), strict=True)), faults.total


@pytest.mark.parametrize("odd", [0.0, 0.01, 0.2])
def test_formulas_keep_what_the_evaluator_keeps(odd: float) -> None:
    seed = random.randrange(10**9)
    print(f"seed {seed}")
    chance = random.Random(seed)
    rows = {"R": made_rows(chance, OURS, odd), "S": made_rows(chance, THEIRS, odd)}
    counts: Counter[str] = Counter()
    for _ in range(150):
        text = Some(chance).condition(2)
        e = bound(text)
        if x.sources(e) != {0, 1}:
            continue
        formula = formula_of(e, frozenset({1}))
        assert formula is not None, text
        pairs, faults = wanted(e, rows)
        try:
            assert scanned(formula, rows, native.Codes()) == pairs, text
            counts["kept"] += 1
        except ArithmeticError:
            # The kernel gives up for a fault, also for one that does not count, and for infinity.
            steps = {FormulaStep(step) for step in formula.steps[::3].tolist()}
            assert (
                faults
                or odd
                or steps
                & {
                    FormulaStep.QUOTIENT,
                    FormulaStep.REST,
                    FormulaStep.REAL_QUOTIENT,
                    FormulaStep.TIMES,
                    FormulaStep.PLUS,
                    FormulaStep.MINUS,
                }
            ), text
            counts["given up"] += 1
        counts["with faults"] += faults > 0
    assert counts["kept"] > 30, counts
    assert counts["given up"] > 0, counts


@pytest.mark.parametrize(
    ("text", "ours", "theirs"),
    [
        ("R.b + S.b > 0", 2**63 - 1, 1),
        ("R.b - S.b > 0", -(2**63), 1),
        ("R.b * S.b > 0", -(2**63), -1),
        ("R.b * S.b > 0", 2**32, 2**31),
        ("R.b DIV S.b > 0", 5, 0),
        ("R.b DIV S.b > 0", -(2**63), -1),
        ("mod(R.b, S.b) > 0", 2**40, 0),
        ("-(R.b + S.b) > 0", -(2**63), 0),
        ("abs(R.b + S.b) > 0", -(2**63), 0),
        ("R.b / S.b > 0", 1, 0),
        ("sqrt(R.b - S.b) > 0", 1, 2),
    ],
)
def test_a_value_that_is_missing_ends_the_search(text: str, ours: int, theirs: int) -> None:
    """It does not where the other operand is NULL, whatever number stands for that."""
    formula = formula_of(bound(text), frozenset({1}))
    assert formula is not None
    one, other = np.array([ours]), np.array([theirs])
    zero, who, row = np.zeros(1, np.int64), np.empty(4, np.int64), np.empty(4, np.int64)

    def search(flags: np.ndarray | None) -> tuple[int, int]:
        columns = tuple(
            (one if str(x.show(key[0])).startswith("R.") else other, flags)
            if x.sources(key[0])
            else (zero, None)
            for key in formula.ours
        )
        made = (formula.steps, ((other, None),), columns)
        return native.scan(0, zero, zero + 1, 0, (), who, row, (made,))

    with pytest.raises(ArithmeticError):
        search(None)
    assert search(np.zeros(1, np.uint8)) == (1, 0)


@pytest.mark.parametrize(
    "text",
    ["upper(R.t) || S.t = 'ab'", "R.t < S.t", "R.z - S.z < INTERVAL '1' SECOND", "round(R.x + S.x) = 2",
     "CASE WHEN R.i = S.i THEN R.t ELSE S.t END = 'a'", "CAST(R.i + S.i AS varchar(9)) = '3'"],
)  # fmt: skip
def test_what_the_kernel_has_no_step_for(text: str) -> None:
    assert formula_of(bound(text), frozenset({1})) is None


@pytest.mark.parametrize(
    ("steps", "error"),
    [([], "no triples"), ([1, 0], "no triples"), ([99, 0, 0], "no such step"), ([-1, 0, 0], "no such step"),
     ([2, 0, 2], "before its operands"), ([2, -1, 0], "before its operands"),
     ([41, 0, 1], "without two values"), ([40, 0, 1, 2, 0, 2], "without two values"), ([40, 0, 1], "without a choice")],
)  # fmt: skip
def test_steps_that_are_none(steps: list[int], error: str) -> None:
    one = np.zeros(1, np.int64)
    made = (np.array(steps, np.int64), ((one, None),), ((one, None),))
    with pytest.raises(RuntimeError, match=error):
        native.scan(0, one, one + 1, 0, (), one, one, (made,))


def test_columns_that_are_too_short() -> None:
    one = np.zeros(1, np.int64)
    for theirs, ours in ((one[:0], one), (one, one[:0])):
        made = (np.array([22, 0, 1]), ((theirs, None),), ((ours, None),))
        with pytest.raises(ValueError, match="want 1"):
            native.scan(0, one, one + 1, 0, (), one, one, (made,))
