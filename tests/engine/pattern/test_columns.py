"""Expressions by the column against expressions one by one: values, NULL, overflow, NaN."""

from __future__ import annotations

import random

import numpy as np
import pytest

from compiler.pattern import ir
from compiler.pattern.evaluate import evaluator
from engine.pattern.batch import of_events
from engine.pattern.columns import evaluate
from engine.pattern.event import Event
from engine.pattern.lists import Bindings, Lists
from tests.engine.pattern.generate import query_of

BIG = (1 << 62) + 12345
EXPRESSIONS = [
    "a.x + b.x * 2 - 1 > 0",
    "a.x * b.x > 4611686018427387904",
    "-a.x < b.x",
    "a.x / b.x >= 1",
    "a.y / b.y > a.x",
    "a.y * b.y = a.y",
    "NOT (a.y > b.y AND a.x IS NULL)",
    "a.y > 1 OR b.y IS NOT NULL",
    "a.x IN (1, b.x, NULL)",
    "NOT a.x IN (1, b.x)",
    "a.k = b.k",
    "a.k < b.k OR lower(a.k) = 'p'",
    "mod(a.x, b.x) = 1",
    "sqrt(a.y) > floor(b.y)",
    "abs(a.x) > ceil(b.y)",
    "length(a.k) = 1 AND upper(b.k) IN ('P', 'Q')",
    "a.ts < b.ts",
    "a.x > 0.5",
    "NULL IS NULL AND a.x = a.x",
]


@pytest.mark.parametrize("text", EXPRESSIONS)
@pytest.mark.parametrize("seed", range(3))
def test_columns_agree_with_single_values(text: str, seed: int) -> None:
    query = query_of(f"PATTERN A a; A b WHERE {text} WITHIN 1 s RETURN *")
    chance = random.Random(seed)
    events = [
        Event(
            ts,
            ts,
            "A",
            {
                "x": chance.choice((None, 0, 1, 2, -3, BIG, -BIG)),
                "y": chance.choice((None, 0.0, 1.5, -2.0, 1e308, float("inf"))),
                "k": chance.choice((None, "p", "Q", "qq")),
            },
        )
        for ts in range(60)
    ]
    log = of_events(events, ["x", "y", "k"])
    every = np.arange(len(events))
    lists = Lists(query, log, [every, every])
    pairs = [(i, j) for i in range(60) for j in range(60)]
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    expressions = [c.expression for c in query.conjuncts]
    for e in expressions:
        for part in ir.walk(e):
            found = evaluate(part, Bindings(lists, len(pairs), {0: first, 1: second}))
            values = found.values.tolist()
            valid = [True] * len(pairs) if found.valid is None else found.valid.tolist()
            one = evaluator(part)
            for (i, j), value, ok in zip(pairs, values, valid, strict=True):
                want = one([(events[i],), (events[j],)], (0, 0))
                assert (value if ok else None) == want, (part, events[i].attrs, events[j].attrs)
