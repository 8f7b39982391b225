"""Tests sealed files: damage is found and located, and no other file is taken for one."""

from __future__ import annotations

import copy

import pytest

from seustream.cosim.bridge.journal import Journal
from seustream.cosim.bridge.journal_errors import JournalDamaged
from tests.cosim.bridge.journals import FOLDER, snapshot
from tests.cosim.bridge.simdisk import SimDisk


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
    """A copy from a backup is such a file: intact and of the right kind, but not the one that
    counts."""
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
