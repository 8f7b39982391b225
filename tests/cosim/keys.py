"""Equalities on keys of five kinds: in order, at random, in one bucket of the index, by Zipf, all
equal. The brute-force definition gives the results that a device must give."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from seustream.compiler.wjasip.image import decode, encode
from seustream.hdl.config import DeviceConfig
from seustream.hdl.device import Device
from seustream.hdl.hashing import bucket_of, seed_of
from tests.cosim.contract import NARROW
from tests.cosim.generate import with_guards
from tests.cosim.oracle import expected
from tests.cosim.queries import ROWS, On, Query, Row, arrivals, build, rows_of, run


def _one_bucket(config: DeviceConfig, image: bytes, chance: random.Random, n: int) -> list[int]:
    keys = np.arange(1 << 16)
    seed = seed_of(decode(image, config), config)
    alike = keys[bucket_of(keys, seed, config.bucket_bits) == 5].tolist()
    return [chance.choice(alike[:60]) for _ in range(n)]


KEYS: dict[str, Callable[[DeviceConfig, bytes, random.Random, int], list[int]]] = {
    "sequential": lambda _config, _image, _chance, n: [i // 6 for i in range(n)],
    "random": lambda _config, _image, chance, n: [chance.randrange(40) for _ in range(n)],
    "one bucket": _one_bucket,
    "zipf": lambda _config, _image, chance, n: [
        int(chance.paretovariate(1.0)) & 0xFFF for _ in range(n)
    ],
    "equal": lambda _config, _image, _chance, n: [7] * n,
}


def joined(
    seed: int, kind: str, streams: int, new_device: Callable[[DeviceConfig], Device]
) -> tuple[list[Row], list[Row]]:
    """Returns the actual and the wanted results of an equi-join of random windows. Its streams take
    turns, come at random, or come in long runs of one stream: chains are short, long, and too long
    to be walked."""
    chance, groups, config = random.Random(seed), tuple(range(streams)), NARROW
    # The number of results grows as the square of the window, so it is kept small.
    most = 60 if streams == 2 else 12 if kind in ("equal", "zipf") else 40
    equal = tuple(On(s, 0, "=", s + 1, 0) for s in range(streams - 1))
    windows = {s: ROWS(chance.choice((most, chance.randint(1, most)))) for s in groups}
    image = encode(with_guards(chance, build([Query(windows, (equal,))], groups)), config)
    n = 240 if streams == 2 else 120
    order = {
        "turns": [i % streams for i in range(n)],
        "any": [chance.randrange(streams) for _ in range(n)],
        "runs": [i // 45 % streams for i in range(n)],
    }[chance.choice(("turns", "turns", "any", "runs"))]
    keys = KEYS[kind](config, image, chance, n)
    rows = [(s, i, (key, 0, 0, 0)) for i, (s, key) in enumerate(zip(order, keys, strict=True))]
    raws = arrivals(rows, groups)
    device = new_device(config)
    device.load(image)
    device.reset()
    came = sorted(rows_of(run(device, raws, chance.choice((None, 1, 50)))))
    return came, sorted(expected(raws, [Query(windows, (equal,))], groups))
