"""Events with a column of each type, and all pairs of them as bindings."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

import numpy as np

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTERVAL,
    TIME,
    TIMESTAMP,
    VARCHAR,
    decimal,
)
from seustream.engine.pattern.batch import needed, of_events
from seustream.engine.pattern.event import Event
from seustream.engine.pattern.lists import Lists
from tests.engine.pattern.generate import query_of

STREAM = Stream(
    "s",
    (
        Column("type", VARCHAR),
        Column("x", BIGINT),
        Column("y", DOUBLE),
        Column("k", VARCHAR),
        Column("d", decimal(9, 2)),
        Column("flag", BOOLEAN),
        Column("day", DATE),
        Column("at", TIMESTAMP),
        Column("clock", TIME),
        Column("took", INTERVAL),
    ),
)
BIG = (1 << 62) + 12345
VALUES: dict[str, tuple[Any, ...]] = {
    "x": (None, 0, 1, 2, -3, BIG, -BIG),
    "y": (None, 0.0, 1.5, -2.0, 1e308, float("inf")),
    "k": (None, "p", "Q", "qq", "a%"),
    "d": (None, Decimal("0.00"), Decimal("1.25"), Decimal("-9999999.99")),
    "flag": (None, True, False),
    "day": (None, datetime.date(2024, 2, 29), datetime.date(1970, 1, 1)),
    "at": (None, datetime.datetime(2024, 2, 29, 12, 30), datetime.datetime(1970, 1, 1)),
    "clock": (None, datetime.time(0), datetime.time(23, 59, 59, 999000)),
    "took": (None, datetime.timedelta(0), datetime.timedelta(minutes=5)),
}


def events_of(seed: int, number: int, stretch: int = 1) -> list[Event]:
    chance = random.Random(seed)
    return [
        Event(ts // stretch, ts, "A", {n: chance.choice(of) for n, of in VALUES.items()})
        for ts in range(number)
    ]


EXPRESSIONS = [
    "a.x + b.x * 2 - 1 > 0",
    "a.x * b.x > 4611686018427387904",
    "-a.x < b.x",
    "a.x / b.x >= 1",
    "a.x DIV b.x >= 1",
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
    "a.x BETWEEN b.x AND 5",
    "a.y NOT BETWEEN 1 AND b.y",
    "a.k LIKE '_%' AND b.k NOT LIKE 'q!%' ESCAPE '!'",
    "a.k ILIKE b.k",
    "CAST(a.x AS double) > CAST(b.d AS double)",
    "CAST(a.k AS int) > 1 OR TRY_CAST(b.k AS int) IS NULL",
    "coalesce(a.x, b.x, 7) > 1",
    "round(a.y, 1) > b.x::real",
    "a.k || '-' || b.k LIKE 'p-%'",
    "a.at > TIMESTAMP '2000-01-01 00:00:00' OR b.day < DATE '2000-01-01'",
    "a.at - b.at < INTERVAL '5' MINUTE OR a.took + b.took > 7 min",
    "a.clock <= '12:00:00' XOR b.flag",
    "CASE WHEN b.x <> 0 THEN a.x / b.x ELSE 1 END > 0",
    "CASE a.k WHEN 'p' THEN b.y WHEN 'Q' THEN 2 END > 1",
    "a.flag AND NOT b.flag",
    "a.d * b.d > a.d / b.d",
    "a.k IS NOT DISTINCT FROM b.k",
    "greatest(a.x, b.x) = least(a.x, b.x)",
    "extract(year FROM a.at) = 2024 AND date_trunc('day', b.at) > DATE '2000-01-01'",
    "(b.x = 0 OR a.x / b.x > 1) AND 10 / b.x > a.y",
    "ln(a.y) > 0 OR sqrt(b.y) > 0",
]


def pairs(events: list[Event], text: str) -> tuple[list[x.Expression], Lists, list[np.ndarray]]:
    query = query_of(f"PATTERN A a; A b WHERE {text} WITHIN 1 s RETURN *", stream=STREAM)
    every = np.arange(len(events))
    lists = Lists(query, of_events(events, needed(query)), [every, every])
    both = [(i, j) for i in every for j in every]
    sides = [np.array(side) for side in zip(*both, strict=True)]
    return [c.expression for c in query.conjuncts], lists, sides
