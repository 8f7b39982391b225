"""Tests the contract of `seustream.hdl.device` on random queries, streams and images, to find cases that
were not thought of.

Every test prints its seed.
"""

from __future__ import annotations

import contextlib
import random

import pytest

from seustream.compiler.wjasip.image import encode
from seustream.hdl.device import LoadRefused
from tests.compiler.wjasip.images import mutated, put_together, taken_apart
from tests.cosim.contract import NARROW, PAIRS, TINY, NewDevice, assert_same, loaded
from tests.cosim.generate import random_arrivals, random_queries
from tests.cosim.keys import KEYS, joined
from tests.cosim.oracle import expected
from tests.cosim.queries import (
    Row,
    batch,
    build,
    exact,
    handed_over,
    rows_of,
    run,
)

GROUPS = [(0, 1), (0, 1, 2), (0, 1, 2, 3), (0, 0), (0, 0, 2), (0, 1, 0, 1)]


@pytest.mark.parametrize("seed", range(60))
def test_random_queries_on_random_streams(new_device: NewDevice, seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    want: list[Row] = []
    while not want:
        groups = chance.choice(GROUPS)
        queries = random_queries(chance, groups)
        raws = random_arrivals(chance, groups, 60)
        want = expected(raws, queries, groups)
    device = loaded(new_device, build(queries, groups), NARROW)
    results = run(device, raws, chance.randrange(1, 60))
    assert not len(results.handed_over)
    assert_same(rows_of(results), want, queries)
    assert device.status().delivered == results.delivered


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("streams", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_equalities_on_keys_of_any_kind(
    new_device: NewDevice, keys: str, streams: int, seed: int
) -> None:
    print(f"seed {seed}")
    came, want = joined(seed, keys, streams, new_device)
    assert want
    assert came == want


@pytest.mark.parametrize("seed", range(5))
def test_results_do_not_depend_on_the_batches(new_device: NewDevice, seed: int) -> None:
    """Compares one push of all tuples with pushes of one and pushes of seven; overflow included."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    queries = [*random_queries(chance, (0, 1, 2)), PAIRS]
    raws = random_arrivals(chance, (0, 1, 2), 300)
    runs = []
    for at_once in (None, 1, 7):
        device = loaded(new_device, build(queries))
        results = run(device, raws, at_once)
        # The counters of the models agree to the last one; some of a processor's depend on its
        # cycles.
        status = exact(device) if hasattr(device, "counters") else device.status()
        runs.append((sorted(rows_of(results)), sorted(handed_over(results)), status))
    assert runs[0] == runs[1] == runs[2]
    assert runs[0][0]
    assert runs[0][1]


@pytest.mark.parametrize("seed", range(8))
def test_a_mutated_image_is_refused_or_runs_to_an_end(new_device: NewDevice, seed: int) -> None:
    """The checksum is corrected, so that only the checks stand between the damage and the device.
    An image that they let pass may mean anything, but each batch comes to its end."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    groups = chance.choice(GROUPS)
    head, body = taken_apart(encode(build(random_queries(chance, groups), groups), TINY))
    raws = [raw for raw in random_arrivals(chance, groups, 16) if raw.stream < 2]
    device = new_device(TINY)
    taken = refused = 0
    for _ in range(150):
        image = put_together(head, mutated(chance, body))
        with contextlib.suppress(LoadRefused):
            device.load(image)
            taken += 1
            device.reset()
            device.push(batch(raws))
            device.flush()
            assert device.status().taken == len(raws)
            continue
        refused += 1
    assert taken
    assert refused
