"""Tests the mark of a journal: it distinguishes a folder that has lost its latest log from one that
never had it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from seustream.cosim.bridge import mark
from seustream.cosim.bridge.disk import RealDisk
from seustream.cosim.bridge.journal import Journal
from seustream.cosim.bridge.journal_errors import JournalDamaged, JournalRefused
from tests.cosim.bridge.journals import FOLDER, RECORDS, reopened, snapshot, written
from tests.cosim.bridge.simdisk import SimDisk


def marked(folder: Path, text: bytes) -> mark.Mark:
    (folder / mark.MARK).write_bytes(text)
    return mark.read_mark(RealDisk(), folder)


def test_the_latest_generation_is_read(tmp_path: Path) -> None:
    assert marked(tmp_path, mark.head()).generation is None
    found = marked(tmp_path, mark.head() + mark.line(3) + mark.line(20))
    assert (found.generation, found.damage) == (20, None)


def test_a_torn_line_hides_no_other(tmp_path: Path) -> None:
    """A failed append leaves any part of its line, and the next append goes on behind it."""
    whole = mark.head() + mark.line(3)
    for cut in range(1, len(mark.line(4))):
        found = marked(tmp_path, whole + mark.line(4)[:cut] + mark.line(5))
        assert found.generation == 5
        assert found.damage is not None
        assert found.damage.offset == len(whole)


def test_no_flipped_bit_names_a_generation_that_is_not_there(tmp_path: Path) -> None:
    whole = mark.head() + mark.line(1) + mark.line(2)
    for at in range(len(whole)):
        for bit in range(8):
            flipped = bytearray(whole)
            flipped[at] ^= 1 << bit
            found = marked(tmp_path, bytes(flipped))
            assert found.damage is not None
            assert found.damage.offset <= at
            assert found.generation in (1, 2)
            assert found.hidden(2) is None, "the log is there"
            if at >= len(mark.head() + mark.line(1)):
                assert found.hidden(1) == 114, "the log is not"


@pytest.mark.parametrize("places", [(96, 119), (70, 114), (61, 124)])
def test_two_lines_that_are_damaged_are_two(places: tuple[int, int], tmp_path: Path) -> None:
    """Holds also where the beginning of the second line cannot be seen."""
    text = bytearray(mark.head() + mark.line(1) + mark.line(2))
    for place in places:
        text[place] ^= 4
    found = marked(tmp_path, bytes(text))
    assert found.damage is not None
    assert found.hidden(2) is None, "the log is there"
    assert found.hidden(1) == 114, "the log is not"


def test_lines_that_failed_one_after_the_other_hide_nothing(tmp_path: Path) -> None:
    text = mark.head() + mark.line(3)
    for generation in range(4, 14):
        text += mark.line(generation)[: len(mark.line(0)) // 2]
    assert marked(tmp_path, text).hidden(3) is None


def test_another_format_is_refused(tmp_path: Path) -> None:
    said = b"seustream journal, format 9\n"
    text = said + mark.digest(said).encode() + b"\n"
    with pytest.raises(JournalRefused, match="format 9; this bridge has format 3"):
        marked(tmp_path, text)


# --- in a journal -----------------------------------------------------------------


@pytest.mark.parametrize("lies", ["sync j/", "rename log-2.a", "open log-2.a.partial"])
def test_a_disk_that_forgets_the_latest_log_is_refused(lies: str) -> None:
    """The disk reports that it has synced the folder, but after a loss of power it shows the state
    before: whole, sound, and without anything acknowledged since."""
    refused = 0
    for seed in range(40):
        disk = SimDisk()
        written(FOLDER, disk)
        disk.restart()
        journal = Journal(FOLDER, disk)
        dry = disk.__deepcopy__({})
        dry.restart()
        before = len(dry.log)
        snapshot(Journal(FOLDER, dry), b"state", [])
        disk.faults[disk.changes + _last(dry.log[before:], lies)] = "lost"
        snapshot(journal, b"state", [])
        journal.append({"kind": "more"})
        disk.lose_power(random.Random(seed))
        disk.restart()
        try:
            again = Journal(FOLDER, disk)
        except JournalDamaged as error:
            refused += "/j/journal names it; log-1 is older" in str(error)
            continue
        assert again.records() == [{"kind": "more"}], seed
        again.close()
    assert refused or lies != "sync j/"


def test_a_damaged_line_of_a_log_that_is_gone_is_refused(tmp_path: Path) -> None:
    """The disk has forgotten the log, and a bit of the line that names it has changed."""
    written(tmp_path)
    whole = (tmp_path / mark.MARK).read_bytes()
    for at in range(len(mark.line(2))):
        line = bytearray(mark.line(2))
        line[at] ^= 1
        (tmp_path / mark.MARK).write_bytes(whole + line)
        with pytest.raises(
            JournalDamaged, match=r"journal: byte \d+: a generation that cannot be read"
        ):
            Journal(tmp_path)


def _last(calls: list[str], name: str) -> int:
    """Returns the place of the last call of this name, not counting the calls that open a
    journal."""
    opens = next(i for i, call in enumerate(calls) if call.startswith("open snapshot"))
    return max(i for i, call in enumerate(calls) if call == name) - opens


def test_a_mark_of_an_earlier_release_is_gone_on_with(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / mark.MARK).write_bytes(mark.head())
    assert reopened(tmp_path) == (RECORDS, [])
    assert mark.read_mark(RealDisk(), tmp_path).generation == 1


def test_a_log_whose_line_never_came_gets_one(tmp_path: Path) -> None:
    """A kill between writing the log and writing its line leaves such a folder."""
    written(tmp_path)
    (tmp_path / mark.MARK).write_bytes(mark.head() + mark.line(0))
    assert reopened(tmp_path) == (RECORDS, [])
    assert mark.read_mark(RealDisk(), tmp_path).generation == 1


@pytest.mark.parametrize(
    ("cut", "at"), [(0, 0), (1, 0), (40, 0), (60, 0), (90, 61), (130, 114), (200, 167)]
)
def test_a_damaged_mark_is_written_anew(cut: int, at: int, tmp_path: Path) -> None:
    written(tmp_path)
    text = (tmp_path / mark.MARK).read_bytes()
    (tmp_path / mark.MARK).write_bytes(text[:cut] + b"x" * (cut % 2 or cut > len(text)))
    records, notes = reopened(tmp_path)
    assert records == RECORDS
    assert f"{tmp_path / mark.MARK}: byte {at}: not what was written" in notes[0]
    assert mark.read_mark(RealDisk(), tmp_path) == mark.Mark(2, 114, None)


def test_a_mark_does_not_grow(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for _ in range(400):
        journal.begin(None)
    journal.close()
    found = mark.read_mark(RealDisk(), tmp_path)
    assert found.generation == 400
    assert found.size < mark.MOST_BYTES
    assert found.damage is None
