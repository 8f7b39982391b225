"""Places by key, beside a list of keys."""

from __future__ import annotations

import random

import numpy as np
import pytest

from seustream.engine.relational.keyed import Keyed


@pytest.mark.parametrize("seed", range(20))
def test_keyed_beside_a_list(seed: int) -> None:
    chance = random.Random(seed)
    of, keys = Keyed(), list[int | None]()
    most = chance.choice([2, 5, 1 << 62])
    for _ in range(30):
        new = [
            chance.choice([None, chance.randint(-most, most)]) for _ in range(chance.randint(0, 9))
        ]
        values = np.array([key or 0 for key in new], np.int64)
        flags = np.array([key is not None for key in new], np.uint8)
        of.append((values, None if flags.all() and chance.random() < 0.5 else flags))
        keys += new
        assert len(of) == len(keys)
        known = [key for key in keys if key is not None]
        asked = {chance.choice(known) if known else 0, chance.randint(-most, most)}
        found = of.places(np.array(sorted(asked), np.int64))
        assert found.tolist() == [place for place, key in enumerate(keys) if key in asked]
        some = chance.sample(range(len(keys)), min(3, len(keys)))
        assert of.distinct(np.array(some, np.int64)).tolist() == sorted(
            {keys[place] for place in some} - {None}  # type: ignore[type-var]
        )
        below = [chance.randint(0, len(keys)) for _ in asked]
        latest = of.latest((np.array([*asked], np.int64), None), np.array(below))
        assert latest.tolist() == [
            max((at for at, one in enumerate(keys[:end]) if one == key), default=-1)
            for key, end in zip(asked, below, strict=True)
        ]
        begin = chance.randint(0, len(keys))
        assert of.previous(begin, len(keys)).tolist() == [
            max((at for at in range(place) if keys[at] == keys[place] is not None), default=-1)
            for place in range(begin, len(keys))
        ]
