"""Places beside a list from which those that are left are removed."""

from __future__ import annotations

import random

import numpy as np
import pytest

from seustream.engine.relational.slots import FEW, Slots


@pytest.mark.parametrize("seed", range(10))
def test_places_beside_a_list(seed: int) -> None:
    chance = random.Random(seed)
    of, here, count = Slots(), list[int](), 0
    sparse = 0
    for _ in range(300):
        new = of.take(chance.randint(0, 8))
        assert new.tolist() == [*range(count, count + len(new))]
        count += len(new)
        here += new.tolist()
        oldest = here[: chance.randint(0, 6)]
        gone = {*chance.sample(here, min(len(here), 3)), *oldest}
        of.leave(np.array(sorted(gone), np.int64))
        here = [place for place in here if place not in gone]
        assert np.flatnonzero(of.here).tolist() == here
        assert of.first == (here[0] if here else None)
        assert (len(of), of.left) == (count, count - len(here))
        assert of.is_sparse == (of.left > FEW and of.left > len(here))
        sparse += of.is_sparse
    assert sparse
