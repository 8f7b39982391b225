"""A day of cards: payments, logins and confirmations, and a few thieves among them."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

TUPLES = 4_000
SEED = 4929
BEGIN = int(datetime(2026, 3, 1, 9, 0, tzinfo=UTC).timestamp() * 1000)
PAUSE = 2_000  # milliseconds between payments, on average
COUNTRIES = np.array(["DE", "FR", "PL", "US"])


def streams(tuples: int, seed: int) -> dict[str, pa.Table]:
    """Returns the payments in the order of their times, with the logins and confirmations that
    belong to them."""
    chance = np.random.default_rng(seed)
    cards = max(tuples // 40, 5)
    at = np.cumsum(chance.integers(1, 2 * PAUSE, tuples))
    card = chance.integers(0, cards, tuples)
    cents = np.where(chance.random(tuples) < 0.1, 60_000, chance.integers(300, 30_000, tuples))
    home = chance.integers(0, 2, cards)
    country = home[card]
    thieves = chance.choice(tuples - 8, max(tuples // 100, 3), replace=False)
    for first in thieves:
        # A stolen card: a few small payments close together, then large ones, from elsewhere.
        some = slice(first, first + 6)
        card[some], country[some] = card[first], 3
        cents[some] = [120, 250, 45_000, 52_000, 61_000, 70_000]
    names = np.array([f"4929-{number:06d}" for number in range(cards)])
    times = pa.timestamp("ms")
    payments = {
        "ts": pa.array(BEGIN + at, pa.int64()).cast(times),
        "id": pa.array(np.arange(tuples), pa.int32()),
        "card": names[card],
        "cents": pa.array(cents.astype(np.int32), mask=chance.random(tuples) < 0.01),
        "country": COUNTRIES[country],
    }
    before = chance.random(tuples) < 0.3
    login = np.maximum(at[before] - chance.integers(0, 900_000, before.sum()), 0)
    order = np.argsort(login, kind="stable")
    logins = {
        "ts": pa.array(BEGIN + login[order], pa.int64()).cast(times),
        "card": names[card[before][order]],
        "country": COUNTRIES[home[card[before][order]]],
    }
    confirmed = (cents >= 50_000) & (chance.random(tuples) < 0.8) & (country != 3)
    seen = at[confirmed] + chance.integers(0, 45_000, confirmed.sum())
    order = np.argsort(seen, kind="stable")
    confirmations = {
        "ts": pa.array(BEGIN + seen[order], pa.int64()).cast(times),
        "payment": pa.array(np.flatnonzero(confirmed)[order], pa.int32()),
    }
    every = {"Payment": payments, "Login": logins, "Confirmation": confirmations}
    return {name: pa.table(columns) for name, columns in every.items()}
