"""Tests the parts of `tests/hdl/coverage.py` that need no simulator."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

from seustream.compiler.wjasip.image import encode
from seustream.cosim import pairs
from seustream.cosim.golden import GoldenDevice
from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.isa import Condition
from tests.cosim.generate import random_arrivals, random_queries
from tests.cosim.queries import batch, build
from tests.hdl.coverage import GROUPS, Bins, Point, read, watched


def test_what_the_golden_model_compares_is_counted() -> None:
    chance, bins, config = random.Random(1), Bins(), CONFIGURATIONS["tiny"]
    with watched(bins):
        for _ in range(8):
            groups = chance.choice(GROUPS)
            device = GoldenDevice(config)
            device.load(encode(build(random_queries(chance, groups), groups), config))
            device.push(batch(random_arrivals(chance, groups, 60)))
    for condition in set(Condition) - {Condition.TRUE, Condition.FALSE}:
        assert bins.counts[f"{condition.name} holds"]
        assert bins.counts[f"{condition.name} does not hold"]
    before = dict(bins.counts)
    pairs.holds(Condition.LT, np.zeros(1, np.uint32), np.zeros(1, np.uint32))
    assert bins.counts == before, "watched no longer"


def test_counters_of_the_same_component_are_added_up(tmp_path: Path) -> None:
    def record(area: int, what: str, count: int) -> str:
        fields = {"page": "v_toggle/area", "h": f"top.wjasip.area{area}.scanner$12", "o": what}
        return "C '" + "".join(f"\x01{k}\x02{v}" for k, v in fields.items()) + f"' {count}\n"

    data = tmp_path / "coverage.dat"
    data.write_text(record(0, "seen[1]", 3) + record(1, "seen[1]", 0) + record(2, "seen[1]", 4))
    assert read(data) == {Point("toggle", "area.scanner", "seen[1]"): 7}
