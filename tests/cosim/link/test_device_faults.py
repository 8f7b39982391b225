"""Tests the whole way from host to processor and back, over lines with faults.

Every test prints its seed; `nox -s link` runs more of them.
"""

from __future__ import annotations

import random

import pytest

from seustream.compiler.wjasip.image import encode
from seustream.cosim.golden import GoldenDevice
from seustream.cosim.link.errors import SessionLost
from seustream.hdl.device import Device, Results
from tests.cosim.contract import LINKED, PAIRS
from tests.cosim.generate import random_arrivals, random_queries
from tests.cosim.link.lines import KINDS, NONE, Faults, board, connect
from tests.cosim.queries import Raw, batch, build, counts_as, handed_over, rows_of, run


def same_as_golden(device: Device, chance: random.Random) -> None:
    """Asserts, with random queries on random streams, that results, hand-overs and counters are
    those of the model."""
    tables = build([*random_queries(chance, (0, 1, 2)), PAIRS])
    raws = random_arrivals(chance, (0, 1, 2), 60)
    golden = GoldenDevice(LINKED)
    got: list[Results] = []
    for each in (device, golden):
        each.load(encode(tables, LINKED))
        each.reset()
        got.append(run(each, raws, 25))
    assert len(got[1]), "a test without results shows nothing"
    assert sorted(rows_of(got[0])) == sorted(rows_of(got[1]))
    assert sorted(handed_over(got[0])) == sorted(handed_over(got[1]))
    assert counts_as(device.status(), golden.status())


@pytest.mark.parametrize("kind", KINDS)
def test_faults_change_nothing_but_time(kind: str) -> None:
    seed = list(KINDS).index(kind)
    print(f"seed {seed}")
    device, line = connect(board(LINKED), LINKED, KINDS[kind], seed)
    same_as_golden(device, random.Random(seed))
    assert line.faults > 5
    if kind not in ("twice", "pieces twice", "noise"):
        assert device.session.resent, "nothing had to be sent again"


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(200))
def test_random_faults(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    chances = [chance.choice([0.0, 0.0005, 0.004]) for _ in range(3)]
    chances += [chance.choice([0.0, 0.02, 0.1]) for _ in range(3)]
    simulated = board(LINKED)
    device, _ = connect(simulated, LINKED, Faults(*chances), seed)
    for _ in range(3):
        same_as_golden(device, chance)
        if chance.random() < 0.5:  # another host comes, perhaps in the middle of something
            left_in_the_middle(device, chance)
            device, _ = connect(simulated, LINKED, Faults(*chances), seed + 1000)


def left_in_the_middle(device: Device, chance: random.Random) -> None:
    """Acts as a host that goes away while it loads or pushes."""

    class GoneError(Exception):
        pass

    session = device.session  # type: ignore[attr-defined]
    steps, real = chance.randrange(1, 30), session.step

    def step(timeout: float) -> bool:
        nonlocal steps
        steps -= 1
        if not steps:
            raise GoneError
        moved: bool = real(timeout)
        return moved

    session.step = step
    try:
        while True:
            device.load(encode(build([PAIRS]), LINKED))
            device.push(batch([Raw(i % 2, i, i // 2, True, (0, 0, 0, 0)) for i in range(40)]))
            device.reset()
    except GoneError:
        pass


@pytest.mark.parametrize("seed", range(6))
def test_another_host_finds_the_board_as_new(seed: int) -> None:
    """Holds whatever the previous host left behind: half a message, half an image, a full
    pipeline."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    simulated = board(LINKED)
    device, _ = connect(simulated, LINKED, NONE, seed)
    left_in_the_middle(device, chance)
    device, _ = connect(simulated, LINKED, NONE, seed + 100)
    status = device.status()
    assert (status.loaded, status.taken, status.occupancy) == (False, 0, ())
    same_as_golden(device, chance)


def test_a_reset_board_is_noticed() -> None:
    """Its windows are gone, and a host must not take them for empty ones."""
    simulated = board(LINKED)
    device, _ = connect(simulated, LINKED)
    device.load(encode(build([PAIRS]), LINKED))
    simulated.reset()
    with pytest.raises(SessionLost, match="was reset"):
        device.push(batch([Raw(0, 0, 0, True, (0, 0, 0, 0))]))
    device, _ = connect(simulated, LINKED, seed=1)
    same_as_golden(device, random.Random(1))


def test_a_host_that_was_replaced_notices() -> None:
    simulated = board(LINKED)
    first, _ = connect(simulated, LINKED)
    second, _ = connect(simulated, LINKED, seed=5)
    with pytest.raises(SessionLost):
        first.status()
    same_as_golden(second, random.Random(2))


def test_a_paused_board_opens_again() -> None:
    """A raw tuple waits before the paused processor when the host leaves."""
    from seustream.hdl.control_words import Command, ControlOperation

    simulated = board(LINKED)
    device, _ = connect(simulated, LINKED)
    device.load(encode(build([PAIRS]), LINKED))
    device.send(Command(ControlOperation.PAUSE))
    device.session.put(bytes([2]) + bytes(40))
    for _ in range(20):
        device.session.step(0.01)
    device, _ = connect(simulated, LINKED, seed=7)
    same_as_golden(device, random.Random(3))
