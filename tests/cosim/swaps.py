"""Random images that follow each other on a stream, and the output of a device, whatever it is made
of."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from dataclasses import dataclass

from seustream.compiler.wjasip.image import decode, encode
from seustream.hdl.config import DeviceConfig
from seustream.hdl.device import Device, Status
from tests.cosim.generate import (
    gappy_arrivals,
    random_arrivals,
    random_queries,
    wide_queries,
    with_guards,
)
from tests.cosim.queries import Raw, Row, build, counts_as, handed_over, rows_of, run

GROUPS = [(0, 1), (0, 1, 2), (0, 1, 2), (0, 0, 2)]


@dataclass(frozen=True)
class Swaps:
    """The first image is loaded before the first tuple, image k + 1 after `cuts[k]` tuples."""

    config: DeviceConfig
    images: tuple[bytes, ...]
    raws: Sequence[Raw]
    cuts: tuple[int, ...]

    def cut(self, *cuts: int) -> Swaps:
        return dataclasses.replace(self, cuts=cuts)


def swaps(seed: int, config: DeviceConfig, tuples: int = 30, images: int = 2) -> Swaps:
    """Returns a random case. Most images allow equalities to use an index, often on other
    attributes than the image before."""
    chance = random.Random(seed)
    groups = chance.choice([groups for groups in GROUPS if len(groups) <= config.streams])
    gappy = chance.random() < 0.4

    def image() -> bytes:
        wide = gappy or chance.random() < 0.5
        queries = wide_queries(chance, groups, config) if wide else random_queries(chance, groups)
        tables = build(queries, groups)
        return encode(with_guards(chance, tables) if chance.random() < 0.8 else tables, config)

    raws = (
        gappy_arrivals(chance, groups, tuples, config)
        if gappy
        else random_arrivals(chance, groups, tuples)
    )
    cuts = sorted(chance.randrange(len(raws) + 1) for _ in range(images - 1))
    return Swaps(config, tuple(image() for _ in range(images)), raws, tuple(cuts))


Outcome = tuple[list[Row], list[tuple[int, int, int, int]], Status]


def play(device: Device, case: Swaps) -> Outcome:
    """Plays a case; returns results, tuples handed over, and counters."""
    rows, handed = [], []
    borders = [0, *case.cuts, len(case.raws)]
    for image, start, stop in zip(case.images, borders, borders[1:], strict=False):
        device.load(image)
        if image is case.images[0]:
            device.reset()  # the device may have served another case
        results = run(device, case.raws[start:stop])
        rows += rows_of(results)
        handed += handed_over(results)
    return sorted(rows), sorted(handed), dataclasses.replace(device.status())


def same(case: Swaps, found: Outcome, golden: Outcome, processor: bool) -> bool:
    """Returns whether an outcome is that of the golden model, to the last counter; for a processor,
    as far as the contract requires."""
    if not processor:
        return found == golden
    tables = [decode(image, case.config) for image in case.images]
    guards = any(area.guards for one in tables for area in one.areas)
    return found[:2] == golden[:2] and counts_as(found[2], golden[2], guards)
