"""Numbers of keys: the same for few rows and many; NULL is a key, and 0.0 equals -0.0."""

from __future__ import annotations

import random

import numpy as np

from seustream.compiler.language.types import DOUBLE, VARCHAR
from seustream.engine.pattern.batch import of_events
from seustream.engine.pattern.event import Event
from seustream.engine.pattern.keys import PartitionKeys


def test_a_key_has_one_number_however_the_rows_come() -> None:
    chance = random.Random(7)
    events = [
        Event(
            t, t, None, {"k": chance.choice((None, "a", "b")), "y": chance.choice((0.0, -0.0, 1.5))}
        )
        for t in range(600)
    ]
    columns = {"k": VARCHAR, "y": DOUBLE}
    for partition in (("k",), ("k", "y"), ("y", "ts"), ()):
        keys, found, start = PartitionKeys(partition), [], 0
        while start < len(events):
            size = chance.choice((1, 3, 64, 65, 200))
            found.append(keys.of(of_events(events[start : start + size], columns)))
            start += size
        numbers = np.concatenate(found).tolist()
        wanted = [tuple(e.ts if n == "ts" else e.attrs[n] for n in partition) for e in events]
        assert len({*zip(wanted, numbers, strict=True)}) == len({*numbers}) == len({*wanted})
