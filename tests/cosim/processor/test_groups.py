"""Tests taking groups apart as the processor does, and putting them together again."""

from __future__ import annotations

import random

import numpy as np
import pytest

from seustream.cosim.processor.bits import Column, flatten, pack, unpack
from seustream.cosim.processor.groups import GroupReader
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.hdl.device import Ints
from seustream.hdl.layouts import GROUP_COUNT_BITS, Layouts


def _times(counted: Column) -> Ints:
    return counted.astype(np.int64) + 1000


@pytest.mark.parametrize("config", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def test_parts_make_groups(config: DeviceConfig) -> None:
    seed = 3
    print(f"seed {seed}")
    chance, layouts = random.Random(seed), Layouts(config)
    fields, count = flatten(layouts.group), 40
    of = {
        name: np.array([chance.choice([0, 1, (1 << bits) - 1]) for _ in range(count)], np.uint64)
        for name, (_, bits) in fields.items()
    }
    size = config.sequence_width
    words = {str(at): (at * size, size) for at in range(layouts.group_parts * config.streams)}
    # The bits of a group, from the first sequence number of its first part on.
    bits = pack({**fields, "": (layouts.group_parts * config.streams * size - 1, 1)}, of, count)
    taken = unpack(words, bits)
    parts = {
        f"sequences.{stream}": np.stack(
            [taken[str(part * config.streams + stream)] for part in range(layouts.group_parts)], 1
        ).reshape(-1)
        for stream in range(config.streams)
    }
    rows = count * layouts.group_parts
    parts["queries"] = np.zeros(rows, np.uint64)
    parts["oldest"] = np.arange(rows).astype(np.uint64)
    parts["newest"] = np.arange(rows).astype(np.uint64) + np.uint64(5)
    groups = GroupReader(config).read(parts, _times)
    for name, column in of.items():
        assert getattr(groups, name).tolist() == column.astype(np.int64).tolist(), name
    assert groups.oldest.tolist() == [1000 + layouts.group_parts * n for n in range(count)]
    assert (groups.first - groups.oldest).tolist() == [5] * count
    assert GROUP_COUNT_BITS + config.attribute_width <= 64


def test_no_parts_are_no_groups() -> None:
    reader = GroupReader(CONFIGURATIONS["tiny"])
    assert len(reader.read({"queries": np.zeros(0, np.uint64)}, _times)) == 0
