"""The answer of a join by its definition, from all rows ever given; and random inputs.

Uses nothing of the engine but its data classes: keys compare as in SQL, windows by the newest block
of a combination.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Sequence

from seustream.engine.sites.model import BlockRows, SiteRow, Tid

Combination = tuple[Tid, ...]


def answer(
    windows: Sequence[float],
    blocks: Iterable[BlockRows],
    equal: Sequence[tuple[object, object]] = (),
) -> list[Combination]:
    """Returns all combinations over one shared key; with `equal`, over pairs of ((stream, place),
    ...)."""
    n = len(windows)
    rows: list[list[tuple[Tid, float, SiteRow]]] = [[] for _ in range(n)]
    numbers = [0] * n
    for block in blocks:
        k = block.stream
        for index, row in enumerate(block.rows):
            if row.t <= block.tau <= row.t + windows[k]:
                rows[k].append(((k, numbers[k], index), block.tau, row))
        numbers[k] += 1
    pairs = list(equal) or [((0, 0), (k, 0)) for k in range(1, n)]
    found: list[list[tuple[Tid, float, SiteRow]]] = [[]]
    for k in range(n):
        now = [(a, b) for a, b in pairs if max(a[0], b[0]) == k]  # type: ignore[index]
        grown = []
        for part, row in itertools.product(found, rows[k]):
            whole = [*part, row]
            newest = max(tau for _, tau, _ in whole)
            if newest <= min(r.t + windows[i] for i, (_, _, r) in enumerate(whole)) and all(
                same(whole[a[0]][2].keys[a[1]], whole[b[0]][2].keys[b[1]])  # type: ignore[index]
                for a, b in now
            ):
                grown.append(whole)
        found = grown
    return sorted(tuple(tid for tid, _, _ in whole) for whole in found)


def same(a: object, b: object) -> bool:
    """Returns whether two keys are equal in SQL; NULL and NaN equal nothing, and booleans are no
    keys."""
    if isinstance(a, bool) or isinstance(b, bool) or a is None or b is None:
        return False
    return a == b


def random_windows(chance: random.Random, n: int) -> list[float]:
    return [chance.choice([0, 1, 3, 8, math.inf]) for _ in range(n)]


def random_blocks(
    chance: random.Random, n: int, units: int = 6, rows: int = 3, keys: int = 4
) -> list[BlockRows]:
    """Returns blocks in the order of their times; now and then a stream is silent."""
    blocks = []
    for t in range(units):
        for k in range(n):
            if chance.random() < 0.15:
                continue
            block = tuple(
                SiteRow(
                    (chance.choice([*range(1, keys + 1), None, 2.0]),), t - chance.choice([0, 0, 1])
                )
                for _ in range(chance.randint(0, rows))
            )
            blocks.append(BlockRows(k, t, block))
    return blocks
