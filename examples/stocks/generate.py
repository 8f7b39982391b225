"""A stock ticker: prices and volumes of twenty symbols.

Symbols A to T have four different weights. Each has a price walk in cents, folded into a band.
There is about one event per second. Every draw is a hash of the seed and the event's number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

TUPLES = 20_000
SEED = 20230205
SYMBOLS = "ABCDEFGHIJKLMNOPQRST"
WEIGHTS = tuple((8, 1, 4, 2)[j % 4] for j in range(len(SYMBOLS)))

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Ticks:
    """Columns: time in milliseconds, symbol number, price in cents, volume."""

    ts: Ints
    symbol: Ints
    cents: Ints
    volume: Ints

    def table(self) -> pa.Table:
        names = pa.array(list(SYMBOLS))
        symbols = pa.DictionaryArray.from_arrays(pa.array(self.symbol.astype(np.int32)), names)
        return pa.table(
            {
                "ts": self.ts,
                "type": symbols.cast(pa.string()),
                "price": self.cents / 100,
                "volume": self.volume.astype(np.int32),
            }
        )


def streams(tuples: int, seed: int) -> dict[str, pa.Table]:
    return {"stocks": ticks(tuples, seed).table()}


def ticks(count: int, seed: int = SEED) -> Ticks:
    ts = np.cumsum(500 + _draw(seed, count, 0, 1001))
    bounds = np.cumsum(WEIGHTS)
    symbol = np.searchsorted(bounds, _draw(seed, count, 1, int(bounds[-1])), side="right")
    steps = _draw(seed, count, 2, 201) - 100
    cents = np.zeros(count, np.int64)
    for number in range(len(SYMBOLS)):
        own = symbol == number
        cents[own] = _folded(5_000 + 500 * number + np.cumsum(steps[own]))
    return Ticks(ts, symbol, cents, 1 + _draw(seed, count, 3, 1000))


def _folded(price: Ints) -> Ints:
    m = (price - 1_000) % 38_000
    return 1_000 + np.where(m <= 19_000, m, 38_000 - m)


def _draw(seed: int, count: int, which: int, below: int) -> Ints:
    """Draws an integer from 0 up to but excluding `below` for each event: a 64-bit hash modulo
    `below`."""
    with np.errstate(over="ignore"):
        number = np.arange(count, dtype=np.uint64) * np.uint64(4) + np.uint64(which + 1)
        z = np.uint64(seed) + number * np.uint64(0x9E3779B97F4A7C15)
        z ^= z >> np.uint64(30)
        z *= np.uint64(0xBF58476D1CE4E5B9)
        z ^= z >> np.uint64(27)
        z *= np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return (z % np.uint64(below)).astype(np.int64)
