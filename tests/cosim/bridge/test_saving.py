"""Tests snapshots of a session: when they are taken, and what a restart does again."""

from __future__ import annotations

import contextlib
import itertools
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from seustream.cosim.bridge import journal
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.bridge import Bridge
from seustream.cosim.bridge.client import BridgeClient, message_of
from seustream.cosim.bridge.journal_errors import JournalRefused
from seustream.cosim.bridge.limits import USUAL
from seustream.cosim.bridge.world import World
from seustream.cosim.golden import GoldenDevice
from seustream.engine.stream import snapshot as state
from tests.cosim.bridge.journals import LEFT, epochs
from tests.cosim.bridge.serving import (
    EVERYTHING,
    NAMES,
    TINY,
    bridge,
    compiled,
    cut,
    feed_epoch,
    multiset,
    results,
    stage_epoch,
    streams,
    wanted,
)
from tests.cosim.bridge.simdisk import SimDisk


def test_how_long_a_restart_takes_bounds_what_it_does_again(tmp_path: Path) -> None:
    """The bound is on the time that the work took, whatever its bytes; waiting for readers is no
    work."""
    rows, ticks = streams(400, 3), itertools.count()
    epochs = cut(rows, 40)
    limits = replace(USUAL, replay_seconds=3.0, patience=1e9)

    class Slow(World):
        def now(self) -> float:
            return float(next(ticks))  # every look at the clock is a second later

    replayed = []
    for start in range(0, 24, 8):
        made = Bridge(GoldenDevice(TINY), tmp_path, "golden", limits, Slow())
        with contextlib.closing(made):
            made.act("load", p.write(message_of(compiled())))
            replayed.append(made.session.replayed)
            for epoch in range(start, start + 8):
                stage_epoch(made, epoch, epochs[epoch])
                made.session.flush()
    assert max(replayed) < 8, replayed


def test_a_snapshot_that_cannot_be_written_is_taken_later(tmp_path: Path) -> None:
    rows, disk = streams(60, 3), SimDisk()
    limits = replace(USUAL, journal_bytes=1)
    with bridge(tmp_path, limits=limits, disk=disk) as (made, url), BridgeClient(url) as client:
        client.load(compiled())
        for epoch, part in enumerate(cut(rows, 6)):
            disk.broken = "snapshot" if 2 <= epoch <= 3 else ""
            feed_epoch(client, epoch, part)
            client.flush()
            assert made.journal.load is not None
            made.session.saving._not_before = 0.0
        assert disk.happened["error open"] == 2
        assert made.session.failure is None
        client.end()
        client.flush()
    disk.restart()
    with bridge(tmp_path, limits=limits, disk=disk) as (made, url), BridgeClient(url) as client:
        assert made.session.replayed <= 2
        assert results(client, NAMES) == wanted(compiled(), rows)


def test_what_was_trimmed_since_a_snapshot_waits_for_nobody(tmp_path: Path) -> None:
    """Results that readers already have are given up again after a restart, without another trim.
    Otherwise they would fill the room, and processing would wait for readers that have all of
    them."""
    with contextlib.closing(Bridge(GoldenDevice(TINY), tmp_path, "golden")) as made:
        made.act("load", p.write(message_of(compiled())))
        stage_epoch(made, 0, streams(60, 3))
        made.act("end", p.write(p.End()))
        made.session.flush()
        with made.session.changed:
            made.session.saving.take()
        assert made.session.delivery.retained > 10
        for name in NAMES:
            made.session.reading.trim(p.Trim(name, made.session.reading.log(name).end, "r"))
    with contextlib.closing(Bridge(GoldenDevice(TINY), tmp_path, "golden")) as made:
        assert made.session.delivery.retained == 0


def test_what_a_release_has_left_goes_on(tmp_path: Path) -> None:
    """Takes over every operator's state, records, and parts that wait."""
    with zipfile.ZipFile(LEFT) as file:
        file.extractall(tmp_path)
    want = wanted(compiled(EVERYTHING), streams(160, 7))
    with contextlib.closing(Bridge(GoldenDevice(TINY), tmp_path, "golden")) as made:
        assert len(made.session.epochs.staged) == 2
        for number, rows in list(enumerate(epochs()))[4:]:
            stage_epoch(made, number, rows, "-new")
        made.act("end", p.write(p.End()))
        made.session.flush()
        for name, rows in want.items():
            end = made.session.reading.log(name).end
            assert multiset(made.read(p.Read(name, 0, end))) == rows, name


def test_a_stop_leaves_nothing_to_repeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So another release goes on with the results that were read. Records that are not in a snapshot
    it refuses, naming both, and leaves them to the release that wrote them."""
    rows = streams(400, 5)
    cuts = cut(rows, 40)

    def opened(release: str) -> Bridge:
        monkeypatch.setattr(journal, "VERSION", release)
        return Bridge(GoldenDevice(TINY), tmp_path, "golden")

    def fed(made: Bridge, some: range) -> dict[str, list[object]]:
        for epoch in some:
            stage_epoch(made, epoch, cuts[epoch])
        made.session.flush()
        logs = made.session.logs
        return {name: logs[name].read(0, logs[name].end).to_pylist() for name in logs}

    with contextlib.closing(opened("1.0")) as made:
        made.act("load", p.write(message_of(compiled(EVERYTHING))))
        fed(made, range(8))
        made.close(save=True)
    made = opened("1.1")
    assert made.session.replayed == 0
    before = fed(made, range(8, 16))
    made.close()  # as a kill would
    said = "records of release 1.1 behind its snapshot, this is release 1.2"
    with pytest.raises(JournalRefused, match=said) as caught:
        opened("1.2")
    assert "stop a bridge of that release" in str(caught.value.hint)
    with contextlib.closing(opened("1.1")) as made:
        assert fed(made, range(0)) == before
        made.close(save=True)
    with contextlib.closing(opened("1.2")) as made:
        fed(made, range(16, len(cuts)))
        made.act("end", p.write(p.End()))
        made.session.flush()
        for name, found in wanted(compiled(EVERYTHING), rows).items():
            end = made.session.reading.log(name).end
            assert multiset(made.read(p.Read(name, 0, end))) == found, name


def test_a_state_of_another_release_is_refused_with_both_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(LEFT) as file:
        file.extractall(tmp_path)
    monkeypatch.setattr(state, "VERSION", state.VERSION + 1)
    said = f"a snapshot of format {state.VERSION - 1}, this release reads {state.VERSION}"
    with pytest.raises(JournalRefused, match=said) as caught:
        Bridge(GoldenDevice(TINY), tmp_path, "golden")
    assert "journal export" in str(caught.value.hint)
