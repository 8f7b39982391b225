"""The journal: what it says it has, it has, wherever it was cut off."""

from __future__ import annotations

from pathlib import Path

import pytest

from cosim.bridge.journal import Journal, JournalDamaged, JournalHeld

RECORDS = [{"kind": "epoch", "epoch": n} for n in range(5)]


def written(folder: Path) -> Path:
    journal = Journal(folder)
    for record in RECORDS:
        journal.append(record)
    journal.close()
    return folder / "journal-0.log"


def test_records_come_back_in_order(tmp_path: Path) -> None:
    written(tmp_path)
    journal = Journal(tmp_path)
    assert journal.records() == RECORDS
    journal.append({"kind": "more"})
    journal.close()
    again = Journal(tmp_path)
    assert again.records() == [*RECORDS, {"kind": "more"}]
    again.close()


def test_cut_off_anywhere_whole_records_stay(tmp_path: Path) -> None:
    data = written(tmp_path).read_bytes()
    for cut in range(len(data) + 1):
        folder = tmp_path / str(cut)
        (folder / "staged").mkdir(parents=True)
        (folder / "journal-0.log").write_bytes(data[:cut])
        journal = Journal(folder)
        assert journal.records() == RECORDS[: data[:cut].count(b"\n")]
        journal.append({"kind": "next"})
        journal.close()
        again = Journal(folder)
        assert again.records()[-1] == {"kind": "next"}
        again.close()


def test_damage_before_the_end_is_an_error(tmp_path: Path) -> None:
    log = written(tmp_path)
    data = bytearray(log.read_bytes())
    data[data.index(b"\n") + 15] ^= 1
    log.write_bytes(bytes(data))
    with pytest.raises(JournalDamaged, match="record 2"):
        Journal(tmp_path)


def test_one_process_writes_it(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with pytest.raises(JournalHeld, match="is running"):
        Journal(tmp_path)
    journal.close()
    Journal(tmp_path).close()


def test_a_snapshot_takes_the_place_of_records(tmp_path: Path) -> None:
    written(tmp_path)
    journal = Journal(tmp_path)
    partial = journal.begin_snapshot()
    (partial / "state").write_text("x")
    journal.end_snapshot(partial, RECORDS[3:])
    journal.append({"kind": "more"})
    journal.close()
    again = Journal(tmp_path)
    assert again.snapshot is not None
    assert (again.snapshot / "state").read_text() == "x"
    assert again.records() == [*RECORDS[3:], {"kind": "more"}]
    again.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "journal-1.log",
        "lock",
        "snapshot-1",
        "staged",
    ]


@pytest.mark.parametrize("step", ["written", "log there"])
def test_a_snapshot_that_was_not_finished_does_not_count(tmp_path: Path, step: str) -> None:
    written(tmp_path)
    journal = Journal(tmp_path)
    (journal.begin_snapshot() / "state").write_text("x")
    if step == "log there":
        (tmp_path / "journal-1.log").write_bytes(b"")
    journal.close()
    again = Journal(tmp_path)
    assert again.snapshot is None
    assert again.records() == RECORDS
    again.close()
    assert not list(tmp_path.glob("*.partial"))
    assert not (tmp_path / "journal-1.log").exists()
