"""Tests the world of this machine: its clocks, threads and random numbers keep what the seam
promises."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from seustream.cosim.bridge.world import MACHINE, World


def test_the_clock_goes_on_and_the_date_is_in_milliseconds() -> None:
    seen = [MACHINE.now() for _ in range(100)]
    assert seen == sorted(seen)
    assert abs(MACHINE.today() / 1000 - time.time()) < 60
    assert all(0 <= MACHINE.chance() < 1 for _ in range(100))


def test_memory_is_bytes_also_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without /proc the peak is given, which is no less."""
    now = MACHINE.resident()
    assert 10 << 20 < now < 1 << 40

    def missing(path: Path) -> str:
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "read_text", missing)
    assert now / 2 < MACHINE.resident() < 1 << 40


def test_an_activity_runs_beside_and_a_lock_lets_its_holder_in_again() -> None:
    world, done, changed = World(), World().event(), World().condition()
    lock, seen = world.lock(), list[str]()

    def work() -> None:
        with lock, lock, changed:
            seen.append(threading.current_thread().name)
            changed.notify_all()
        done.set()

    with changed:
        activity = world.start("some work", work)
        assert changed.wait(20)
    activity.join(20)
    assert done.wait(20)
    assert not activity.is_alive()
    assert seen == ["some work"]
