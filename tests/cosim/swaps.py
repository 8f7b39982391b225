"""Random images that follow each other on a stream, and the output of a device, whatever it is made
of. Some group their results."""

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
from tests.cosim.grouping import Folded, folded, grouped_at_random
from tests.cosim.queries import Raw, build, counts_as, handed_over, run

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
        if chance.random() < 0.8:
            tables = with_guards(chance, tables)
        if chance.random() < 0.5:
            tables = grouped_at_random(chance, tables, queries)
        return encode(tables, config)

    raws = (
        gappy_arrivals(chance, groups, tuples, config)
        if gappy
        else random_arrivals(chance, groups, tuples)
    )
    cuts = sorted(chance.randrange(len(raws) + 1) for _ in range(images - 1))
    return Swaps(config, tuple(image() for _ in range(images)), raws, tuple(cuts))


Outcome = tuple[Folded, list[tuple[int, int, int, int]], Status]


def play(device: Device, case: Swaps) -> Outcome:
    """Plays a case; returns results in groups and without one, tuples handed over, and counters.
    The groups are numbered by image, since the next one may group by something else."""
    groups, rows, handed = {}, [], []
    borders = [0, *case.cuts, len(case.raws)]
    parts = zip(case.images, borders, borders[1:], strict=False)
    for number, (image, start, stop) in enumerate(parts):
        device.load(image)
        if image is case.images[0]:
            device.reset()  # the device may have served another case
        results = run(device, case.raws[start:stop])
        of_image, rest = folded(decode(image, case.config), case.raws, results)
        groups |= {(number, *name): group for name, group in of_image.items()}
        rows += rest
        handed += handed_over(results)
    return (groups, sorted(rows)), sorted(handed), dataclasses.replace(device.status())


def same(case: Swaps, found: Outcome, golden: Outcome, processor: bool) -> bool:
    """Returns whether an outcome is that of the golden model, to the last counter; for a processor,
    as far as the contract requires."""
    if not processor:
        return found == golden
    tables = [decode(image, case.config) for image in case.images]
    guards = any(area.guards for one in tables for area in one.areas)
    return found[:2] == golden[:2] and counts_as(found[2], golden[2], guards)
