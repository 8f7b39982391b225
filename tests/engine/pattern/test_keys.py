"""Numbers of keys: the same for few rows and many; NULL is a key, and 0.0 equals -0.0."""

from __future__ import annotations

import random

import numpy as np
import pytest

from seustream.compiler.language.types import DOUBLE, VARCHAR
from seustream.engine.pattern.batch import of_events
from seustream.engine.pattern.event import Event
from seustream.engine.pattern.keys import PartitionKeys
from tests.compiler.pattern.queries import query
from tests.engine.pattern.oracle import Oracle
from tests.engine.pattern.running import in_turns, operate


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


def test_keys_that_are_kept_are_numbered_anew() -> None:
    columns = {"k": VARCHAR, "y": DOUBLE}
    values = [(None, 1.0), ("a", -0.0), ("a", 1.0), ("b", None), (None, None)]
    events = [Event(t, t, None, {"k": k, "y": y}) for t, (k, y) in enumerate(values)]
    keys = PartitionKeys(("k", "y"))
    assert keys.of(of_events(events, columns)).tolist() == [0, 1, 2, 3, 4]
    keys.keep(np.array([1, 3, 4]))
    assert keys.of(of_events(events, columns)).tolist() == [3, 0, 4, 1, 2]
    assert [*keys.known] == [values[at] for at in (1, 3, 4, 0, 2)]


@pytest.mark.parametrize("key", ["ts", "TimeStamp", "TS, volume", "volume, ts"])
@pytest.mark.parametrize(
    "text",
    [
        "PATTERN A a; B b",
        "PATTERN ANY a",
        "PATTERN A+ a USING ANY SUBSETS",
        "PATTERN ANY+ a USING NEXT",
        "PATTERN A a; !B; C+ c",
        "PATTERN !B; A a",
        "PATTERN A a USING STRICT",
    ],
)
def test_the_time_is_a_key(text: str, key: str) -> None:
    sequence, using, strategy = text.partition(" USING")
    by_time = query(
        f"{sequence} PARTITION BY {key} WHERE a.price > 2 WITHIN 5 ms{using}{strategy} RETURN *"
    )
    chance = random.Random(text)
    events, now = [], 0
    for seq in range(30):
        now += chance.choice((0, 0, 1))
        kind = chance.choice("ABC")
        attrs = {"type": kind, "price": chance.randint(0, 9), "volume": chance.randint(0, 1)}
        events.append(Event(now, seq, kind, attrs))
    want = Oracle(by_time).matches(events)
    for cuts in ([], [3, 5], [*range(now)]):
        assert {match.ids for match in operate(by_time, events, cuts=cuts)} == set(want)
        assert {match.ids for match in in_turns(by_time, events, chance, cuts)} == set(want)
    follows = "B b" in text or "C+" in text  # no event does, at its own time
    assert bool(want) != follows
