"""The journal: what it says it has, it has, whatever happens to its files."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import pytest

from seustream.cosim.bridge import log
from seustream.cosim.bridge.disk import RealDisk
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.journal import Journal
from seustream.cosim.bridge.journal_errors import JournalDamaged, JournalHeld, JournalRefused
from seustream.cosim.bridge.sealed import digest
from tests.cosim.bridge.simdisk import FAULTS, SimDisk

RECORDS: list[dict[str, Any]] = [{"kind": "epoch", "epoch": n} for n in range(5)]
FOLDER = Path("/j")


def written(folder: Path, disk: SimDisk | None = None) -> None:
    journal = Journal(folder, disk)
    journal.begin({"text": "queries"})
    for record in RECORDS:
        journal.append(record)
    journal.close()


def reopened(folder: Path, disk: SimDisk | None = None) -> tuple[list[dict[str, Any]], list[str]]:
    journal = Journal(folder, disk)
    records = journal.records()
    journal.close()
    return records, journal.notes


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
    }


def test_records_come_back_in_order(tmp_path: Path) -> None:
    written(tmp_path)
    journal = Journal(tmp_path)
    assert journal.load == {"text": "queries"}
    assert journal.records() == RECORDS
    journal.append({"kind": "more"})
    journal.close()
    assert reopened(tmp_path) == ([*RECORDS, {"kind": "more"}], [])


# --- whose folder it is -----------------------------------------------------------


def test_a_folder_with_foreign_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    """What a bridge on `--journal DIR` must never do is delete somebody's files."""
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "1.jpg").write_bytes(b"x")
    (tmp_path / "thesis.txt").write_text("x")
    before = contents(tmp_path)
    with pytest.raises(JournalRefused, match=r"photos/, thesis\.txt") as caught:
        Journal(tmp_path)
    assert caught.value.hint is not None
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["thesis.txt", "staged/notes.txt", "log-0.c", "snapshot-1/x"])
def test_foreign_files_in_a_journal_are_refused_by_name(name: str, tmp_path: Path) -> None:
    written(tmp_path)
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("x")
    before = contents(tmp_path)
    named = name if name.startswith(("staged", "log", "thesis")) else "snapshot-1/"
    with pytest.raises(JournalRefused, match=named):
        Journal(tmp_path)
    assert contents(tmp_path) == before


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


@pytest.mark.parametrize("older", ["session.json", "journal-0.log"])
def test_an_older_format_is_refused_with_both_named(older: str, tmp_path: Path) -> None:
    (tmp_path / "staged").mkdir()
    (tmp_path / older).write_bytes(b"")
    (tmp_path / "staged" / "x.arrow").write_bytes(b"")
    before = contents(tmp_path)
    with pytest.raises(JournalRefused, match=r"format 1; this bridge has format 2"):
        Journal(tmp_path)
    assert contents(tmp_path) == before


def test_a_newer_format_is_refused_with_both_named(tmp_path: Path) -> None:
    written(tmp_path)
    said = b"seustream journal, format 3\n"
    (tmp_path / "journal").write_bytes(said + digest(said).encode() + b"\n")
    with pytest.raises(JournalRefused, match=r"format 3; this bridge has format 2"):
        Journal(tmp_path)


def test_one_process_writes_it(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with pytest.raises(JournalHeld, match="is running"):
        Journal(tmp_path)
    journal.close()
    Journal(tmp_path).close()


# --- damage -----------------------------------------------------------------------


@pytest.mark.parametrize("copy_of", log.COPIES)
def test_one_copy_of_the_log_may_be_damaged_anywhere(copy_of: str) -> None:
    """Flipped, cut off, empty or missing: the other has it, and it is written anew."""
    disk = SimDisk()
    written(FOLDER, disk)
    path = log.path_of(FOLDER, 1, copy_of)
    data = disk.read(path)
    for at in range(len(data)):
        for damaged in (data[:at], data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]):
            one = copy.deepcopy(disk)
            one.files[path].data[:] = damaged
            records, _ = reopened(FOLDER, one)
            assert records == RECORDS, (at, len(damaged))
            records, notes = reopened(FOLDER, one)
            assert (records, notes) == (RECORDS, [])
    del disk.files[path]
    assert reopened(FOLDER, disk)[0] == RECORDS


def test_damage_in_both_copies_is_an_error_that_says_where() -> None:
    disk = SimDisk()
    written(FOLDER, disk)
    for record in range(5):
        one = copy.deepcopy(disk)
        for copy_of in log.COPIES:
            data = one.files[log.path_of(FOLDER, 1, copy_of)].data
            at = [i + 1 for i, byte in enumerate(data) if byte == ord("\n")][record]
            data[at + 30] ^= 1
        before = {path: bytes(inode.data) for path, inode in one.files.items()}
        with pytest.raises(JournalDamaged, match=rf"log-1\.a: byte {at:,}"):
            Journal(FOLDER, one)
        assert {path: bytes(inode.data) for path, inode in one.files.items()} == before


@pytest.mark.parametrize("kept", [["journal"], ["snapshot-3"], [f"staged/{'a' * 40}.part"]])
def test_a_journal_without_its_log_is_not_taken_for_a_new_one(
    kept: list[str], tmp_path: Path
) -> None:
    for name in kept:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"seustream")
    with pytest.raises(JournalDamaged, match="there is no log, but"):
        Journal(tmp_path)
    assert not list(tmp_path.glob("log-*"))


@pytest.mark.parametrize("cut", [0, 1, 40, 60])
def test_a_damaged_mark_is_written_anew(cut: int, tmp_path: Path) -> None:
    written(tmp_path)
    mark = (tmp_path / "journal").read_bytes()
    (tmp_path / "journal").write_bytes(mark[:cut] + b"x" * (cut % 2))
    records, notes = reopened(tmp_path)
    assert records == RECORDS
    assert "missing or damaged" in notes[0]
    assert (tmp_path / "journal").read_bytes() == mark


def test_a_record_of_another_place_or_time_is_none() -> None:
    """Blocks of a disk may come back old, or twice."""
    line = log.framed(3, 7, b"{}")
    for generation, sequence in ((3, 8), (4, 7)):
        assert log._payload(line, 0, generation, sequence) is None
    disk = SimDisk()
    written(FOLDER, disk)
    data = disk.files[log.path_of(FOLDER, 1, "a")].data
    last = bytes(data).splitlines(keepends=True)[-1]
    data.extend(last)
    records, _ = reopened(FOLDER, disk)
    assert records == RECORDS


# --- failures ---------------------------------------------------------------------


def run(disk: SimDisk, chance: random.Random) -> tuple[int, int]:
    """Appends records until five are acknowledged or the power goes; how many were, and how many
    tries failed."""
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
    """Each call that changes the disk fails in turn, the power goes, and what was told to be in
    is in: never less, at most one record more, none twice."""
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
                # Only a disk that lies gets that far: it says that something is there.
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
    """After one, a system may forget what it could not write and say it is all there."""
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


def snapshot(journal: Journal, state: bytes, later: list[dict[str, Any]]) -> None:
    writer = journal.begin_snapshot()
    writer.write(state)
    journal.end_snapshot(writer, {}, {"text": "queries"}, later)
    journal.drop_snapshot(writer)


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


def test_a_damaged_snapshot_is_an_error_that_says_where() -> None:
    disk = SimDisk()
    journal = Journal(FOLDER, disk)
    journal.begin({})
    snapshot(journal, bytes(range(256)) * 800, [])
    journal.close()
    data = disk.files[FOLDER / "snapshot-2"].data
    for at in (0, 65_535, 65_536, 204_799, 204_800, len(data) - 1):
        one = copy.deepcopy(disk)
        one.files[FOLDER / "snapshot-2"].data[at] ^= 1
        with pytest.raises(JournalDamaged, match="snapshot-2: byte") as caught:
            Journal(FOLDER, one)
        assert caught.value.offset <= at < caught.value.offset + 65_536
    for cut in range(0, len(data), 997):
        one = copy.deepcopy(disk)
        del one.files[FOLDER / "snapshot-2"].data[cut:]
        with pytest.raises(JournalDamaged, match="snapshot-2: byte"):
            Journal(FOLDER, one)


def test_another_file_in_the_place_of_one_that_counts_is_an_error() -> None:
    """As a copy from a backup is: whole, of the right kind, and not the one."""
    disk = SimDisk()
    journal = Journal(FOLDER, disk)
    journal.begin({})
    snapshot(journal, b"one", [])
    older = disk.read(FOLDER / "snapshot-2")
    snapshot(journal, b"two", [])
    journal.close()
    disk.files[FOLDER / "snapshot-3"].data[:] = older
    with pytest.raises(JournalDamaged, match=r"snapshot-3: byte .* not the file that was kept"):
        Journal(FOLDER, disk)


def test_the_real_disk_is_one(tmp_path: Path) -> None:
    """As the simulated one, where a test can see it."""
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
