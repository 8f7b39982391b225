"""Tests images that follow each other while tuples come: golden model, instruction-level model and RTL
give the same, wherever between two tuples the change falls.

Selection bits and indexes of the stored tuples that only the second image needs must be there; a tuple
that left early under the one must not come back under the other.
"""

from __future__ import annotations

import itertools

import pytest

from seustream.compiler.wjasip.image import decode
from seustream.cosim.golden import GoldenDevice
from seustream.hdl.config import DeviceConfig
from tests.cosim.contract import NARROW, SHALLOW, TINY
from tests.cosim.devices import DEVICES
from tests.cosim.swaps import play, same, swaps

OTHERS = [name for name in DEVICES if name != "golden"]
CONFIGS = [TINY, NARROW, SHALLOW]
MANY = range(100, 118)


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("seed", range(3))
def test_a_change_between_any_two_tuples(name: str, seed: int) -> None:
    print(f"seed {seed}")
    config = CONFIGS[seed % len(CONFIGS)]
    case = swaps(seed, config)
    golden, other = GoldenDevice(config), DEVICES[name](config)
    found = 0
    for at in range(len(case.raws) + 1):
        one = case.cut(at)
        want = play(golden, one)
        assert same(one, play(other, one), want, name == "verilated"), f"after {at} tuples"
        found += bool(want[0][0]) + bool(want[0][1])
    assert found


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("seed", MANY)
def test_many_changes(name: str, seed: int) -> None:
    """More tuples come than a window holds, and some of the images were there before."""
    print(f"seed {seed}")
    config = CONFIGS[seed % len(CONFIGS)]
    case = swaps(seed, config, tuples=120, images=8)
    other = DEVICES[name](config)
    want = play(GoldenDevice(config), case)
    assert same(case, play(other, case), want, name == "verilated")


def test_the_cases_are_about_something() -> None:
    grouped = results = handed = indexed = changed = 0
    for seed in MANY:
        config: DeviceConfig = CONFIGS[seed % len(CONFIGS)]
        case = swaps(seed, config, tuples=120, images=8)
        (groups, rows), left, _ = play(GoldenDevice(config), case)
        grouped += bool(groups)
        results += bool(rows)
        handed += bool(left)
        guards = [
            {
                area.factors[f].window_attribute
                for area in tables.areas
                for f in area.guards.values()
            }
            for tables in (decode(image, config) for image in case.images)
        ]
        indexed += any(guards)
        changed += any(a != b for a, b in itertools.pairwise(guards))
    assert min(grouped, results, handed, indexed, changed) > 8
