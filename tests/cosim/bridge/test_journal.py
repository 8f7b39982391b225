"""Tests the journal: what it acknowledges is there, whatever happens to its files."""

from __future__ import annotations

import copy
import random
from pathlib import Path

import pytest

from seustream.cosim.bridge.disk import File, RealDisk
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.journal import Journal
from seustream.cosim.bridge.journal_errors import JournalDamaged, JournalHeld
from tests.cosim.bridge.journals import FOLDER, RECORDS, reopened, snapshot, written
from tests.cosim.bridge.simdisk import FAULTS, SimDisk


def test_records_come_back_in_order(tmp_path: Path) -> None:
    written(tmp_path)
    journal = Journal(tmp_path)
    assert journal.load == {"text": "queries"}
    assert journal.records() == RECORDS
    journal.append({"kind": "more"})
    journal.close()
    assert reopened(tmp_path) == ([*RECORDS, {"kind": "more"}], [])


def test_a_call_that_still_writes_at_the_end_does_no_damage() -> None:
    """A bridge whose grace period is over closes its journal while a slow call still uses it."""
    disk = SimDisk()
    written(FOLDER, disk)
    journal = Journal(FOLDER, disk)
    journal.append({"kind": "trim"}, sync=False)
    sync, synced = type(journal._files[0]).sync, [0]

    def slow(file: File) -> None:
        synced[0] += 1
        journal.close()
        sync(file)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(journal._files[0]), "sync", slow)
        journal.append({"kind": "late"})
    assert synced == [2]
    with pytest.raises(BridgeError, match="the journal is closed") as caught:
        journal.append({"kind": "later"})
    assert caught.value.kind == "stopping"
    disk.restart()
    assert reopened(FOLDER, disk) == ([*RECORDS, {"kind": "trim"}, {"kind": "late"}], [])


def ended() -> SimDisk:
    """Returns a disk with a journal that was closed while records waited for their sync."""
    disk = SimDisk()
    written(FOLDER, disk)
    journal = Journal(FOLDER, disk)
    for offset in range(3):
        journal.append({"kind": "trim", "offset": offset}, sync=False)
    journal.close()
    return disk


def test_what_waits_for_its_sync_at_the_end_may_go_with_the_power() -> None:
    for seed in range(60):
        chance, disk = random.Random(seed), ended()
        disk.lose_power(chance)
        disk.restart()
        records, _ = reopened(FOLDER, disk)
        assert records[: len(RECORDS)] == RECORDS, seed


def test_a_power_loss_after_the_next_start_harms_only_what_waited() -> None:
    """Closing leaves the second copy unsynced; a record that was begun behind it must not be torn
    in one copy while it is missing in the other."""
    for seed in range(60):
        chance, disk = random.Random(seed), ended()
        disk.restart()
        journal = Journal(FOLDER, disk)
        assert not journal.notes
        disk.faults[disk.changes + 1] = "dead"
        with pytest.raises(BridgeError):
            journal.append({"kind": "more"})
        disk.lose_power(chance)
        disk.restart()
        records, _ = reopened(FOLDER, disk)
        assert records[: len(RECORDS)] == RECORDS, seed


# --- whose folder it is -----------------------------------------------------------


def test_what_comes_in_later_is_not_deleted(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    (tmp_path / "thesis.txt").write_text("x")
    (tmp_path / "staged" / "thesis.txt").write_text("x")
    journal.begin({})
    journal.begin(None)
    journal.sweep(set())
    journal.close()
    assert (tmp_path / "thesis.txt").exists()
    assert (tmp_path / "staged" / "thesis.txt").exists()


def test_one_process_writes_it(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with pytest.raises(JournalHeld, match="is running"):
        Journal(tmp_path)
    journal.close()
    Journal(tmp_path).close()


# --- failures ---------------------------------------------------------------------


def run(disk: SimDisk, chance: random.Random) -> tuple[int, int]:
    """Appends records until five are acknowledged or the power goes; returns how many were
    acknowledged, and how many attempts failed."""
    acknowledged = failed = 0
    try:
        journal = Journal(FOLDER, disk)
    except (OSError, BridgeError):
        return 0, 1
    try:
        while acknowledged < 5 and failed < 20 and disk.power:
            try:
                if journal.load is None:
                    journal.begin({"text": "queries"})
                if acknowledged == 3:
                    writer = journal.begin_snapshot()
                    try:
                        writer.write(b"state of three")
                        journal.end_snapshot(writer, {}, {"text": "queries"}, [])
                    finally:
                        journal.drop_snapshot(writer)
                journal.append({"epoch": acknowledged})
                acknowledged += 1
            except BridgeError:
                failed += 1
    finally:
        journal.close()
    return acknowledged, failed


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_call_fails_what_was_acknowledged_is_there_once(fault: str) -> None:
    """Lets each call that changes the disk fail in turn, then cuts the power. Everything
    acknowledged is in the journal: never less, at most one record more, none twice."""
    clean = SimDisk()
    assert run(clean, random.Random(0)) == (5, 0)
    for index in range(clean.changes):
        for seed in range(3):
            disk, chance = SimDisk(), random.Random(seed)
            disk.faults[index] = fault
            acknowledged, failed = run(disk, chance)
            told = f"{fault} in call {index} ({clean.log[index]}), seed {seed}"
            if fault in ("error", "short"):
                assert acknowledged == 5 or failed, told
            disk.lose_power(chance)
            disk.restart()
            try:
                journal = Journal(FOLDER, disk)
            except JournalDamaged:
                # Only a disk that lies gets this far: it claims to hold what it does not.
                if fault == "lost":
                    continue
                raise
            found = [record["epoch"] for record in journal.records()]
            if journal.snapshot is not None:
                assert bytes(journal.snapshot.payload) == b"state of three"
                found = [0, 1, 2, *found]
            journal.close()
            assert found[:acknowledged] == list(range(acknowledged)), told
            assert found in ([*range(acknowledged)], [*range(acknowledged + 1)]), told


def test_after_a_failed_write_nothing_is_taken_until_storage_works() -> None:
    disk = SimDisk()
    journal = Journal(FOLDER, disk)
    journal.begin({})
    journal.append({"epoch": 0})
    disk.room = disk.used + 10
    for _ in range(3):
        with pytest.raises(BridgeError, match="No space left on device") as caught:
            journal.append({"epoch": 1})
        assert caught.value.kind == "storage"
        assert caught.value.retriable
    assert journal.failure is not None
    with pytest.raises(BridgeError, match="cannot be written"):
        journal.forget("a" * 40 + ".part")
    disk.room = None
    journal.append({"epoch": 1})
    assert journal.failure is None
    journal.append({"epoch": 2})
    journal.close()
    assert reopened(FOLDER, disk) == ([{"epoch": 0}, {"epoch": 1}, {"epoch": 2}], [])


def test_a_failed_sync_is_not_tried_again_on_the_same_file() -> None:
    """After a failed sync, a system may forget what it could not write and report that it is all
    there."""
    disk = SimDisk()
    journal = Journal(FOLDER, disk)
    journal.begin({})
    disk.faults[disk.changes + 1] = "error"
    with pytest.raises(BridgeError):
        journal.append({"epoch": 0})
    before = len(disk.log)
    journal.append({"epoch": 0})
    journal.close()
    assert not [call for call in disk.log[before:] if call.startswith("write log-1")]
    assert reopened(FOLDER, disk)[0] == [{"epoch": 0}]


def test_records_without_sync_outlive_a_kill_if_not_a_loss_of_power() -> None:
    disk = SimDisk()
    journal = Journal(FOLDER, disk)
    journal.begin({})
    journal.append({"epoch": 0})
    journal.append({"trim": 1}, sync=False)
    killed, dark = copy.deepcopy(disk), copy.deepcopy(disk)
    assert reopened(FOLDER, killed) == ([{"epoch": 0}, {"trim": 1}], [])
    dark.stable = dict(dark.files)
    for inode in dark.files.values():
        inode.data[:] = inode.stable
    assert reopened(FOLDER, dark) == ([{"epoch": 0}], [])
    journal.append({"epoch": 1})
    journal.close()
    assert reopened(FOLDER, disk) == ([{"epoch": 0}, {"trim": 1}, {"epoch": 1}], [])


# --- snapshots --------------------------------------------------------------------


def test_a_snapshot_takes_the_place_of_records(tmp_path: Path) -> None:
    written(tmp_path)
    journal = Journal(tmp_path)
    snapshot(journal, b"x", RECORDS[3:])
    journal.append({"kind": "more"})
    journal.close()
    again = Journal(tmp_path)
    assert again.snapshot is not None
    assert bytes(again.snapshot.payload) == b"x"
    assert again.records() == [*RECORDS[3:], {"kind": "more"}]
    again.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "journal",
        "lock",
        "log-2.a",
        "log-2.b",
        "snapshot-2",
        "staged",
    ]


def test_a_snapshot_that_was_not_finished_does_not_count(tmp_path: Path) -> None:
    written(tmp_path)
    journal = Journal(tmp_path)
    journal.begin_snapshot().write(b"x")
    journal.close()
    (tmp_path / "snapshot-2").write_bytes(b"of a generation that never began")
    again = Journal(tmp_path)
    assert again.snapshot is None
    assert again.records() == RECORDS
    again.close()
    assert not list(tmp_path.glob("snapshot*"))


def test_the_real_disk_is_one(tmp_path: Path) -> None:
    """Behaves like the simulated one, as far as a test can see."""
    for disk, folder in ((RealDisk(), tmp_path / "a" / "b"), (SimDisk(), FOLDER)):
        assert disk.names(folder) == []
        disk.make(folder / "c")
        disk.make(folder / "c")
        file = disk.open(folder / "x", fresh=True)
        file.write(b"one")
        file.sync()
        file.close()
        file = disk.open(folder / "x", fresh=False)
        file.write(memoryview(b"two"))
        file.close()
        assert disk.read(folder / "x") == b"onetwo"
        disk.rename(folder / "x", folder / "y")
        disk.sync(folder)
        assert disk.names(folder) == ["c/", "y"]
        with pytest.raises(FileNotFoundError):
            disk.read(folder / "x")
        disk.remove(folder / "y")
        disk.remove(folder / "y")
        unlock = disk.lock(folder / "lock")
        with pytest.raises(BlockingIOError):
            disk.lock(folder / "lock")
        unlock()
        disk.lock(folder / "lock")()
