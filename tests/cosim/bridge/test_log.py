"""Tests the log of a journal, which is kept in two copies: one of them may be damaged anywhere."""

from __future__ import annotations

import copy

import pytest

from seustream.cosim.bridge import log
from seustream.cosim.bridge.journal import Journal
from seustream.cosim.bridge.journal_errors import JournalDamaged
from tests.cosim.bridge.journals import FOLDER, RECORDS, reopened, written
from tests.cosim.bridge.simdisk import SimDisk


@pytest.mark.parametrize("copy_of", log.COPIES)
def test_one_copy_of_the_log_may_be_damaged_anywhere(copy_of: str) -> None:
    """One copy has a bit flipped, is cut off, empty or missing: the other has everything, and the
    damaged one is written anew."""
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


@pytest.mark.parametrize("other", [b"of something else", b""])
def test_a_torn_end_is_damage_where_the_other_copy_cannot_tell(other: bytes) -> None:
    """A record that is torn in the first copy never counted if the second copy is sound; otherwise
    it may have."""
    disk = SimDisk()
    written(FOLDER, disk)
    first, second = (disk.files[log.path_of(FOLDER, 1, copy_of)].data for copy_of in log.COPIES)
    begin = first.rindex(b"\n", 0, -1) + 1
    del first[-9:]
    second[:] = other
    with pytest.raises(JournalDamaged, match=rf"log-1\.a: byte {begin:,}"):
        Journal(FOLDER, disk)


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
