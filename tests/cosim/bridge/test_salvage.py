"""Tests how a damaged journal is saved: up to the first record that cannot be trusted, and without
changing it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.disk import RealDisk
from seustream.cosim.bridge.epochs import Epochs, PartWriter
from seustream.cosim.bridge.journal import Journal
from seustream.cosim.bridge.journal_errors import JournalHeld
from seustream.cosim.bridge.salvage import Export, at_rest, copy_sound, saved
from seustream.cosim.bridge.survey import survey

DISK = RealDisk()


def rows(epoch: int) -> pa.Table:
    return pa.table({"ts": [epoch], "v": [10 * epoch]})


def journal_of(folder: Path, epochs: int) -> list[dict[str, Any]]:
    """Writes a journal of epochs with one part each, and a part that belongs to none."""
    journal = Journal(folder)
    journal.begin({"manifest": "{}"})
    book = Epochs(journal)
    for epoch in range(epochs + 1):
        stage = p.Stage("w", "R", epoch, 0, f"part {epoch}")
        with PartWriter(journal, stage, rows(epoch).schema) as part:
            part.write(rows(epoch))
            staged = book.keep(part)
        if epoch < epochs:
            commit = p.Commit("w", epoch, (p.StagedPart(staged.staging, 1),))
            record = book.record(commit, book.parts(commit), {"R"})
            journal.append(record)
            book.take(record)
    journal.close()
    return survey(DISK, folder).records


def contents(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*")}


@pytest.mark.parametrize("damaged", [None, 0, 2, 3])
def test_records_before_the_first_without_its_part_are_saved(
    damaged: int | None, tmp_path: Path
) -> None:
    records = journal_of(tmp_path / "j", 4)
    if damaged is not None:
        name = records[damaged]["parts"][0][1]
        (tmp_path / "j" / "staged" / name).write_bytes(b"")
    before = contents(tmp_path / "j")
    with at_rest(DISK, tmp_path / "j") as found:
        keep = saved(found)
        copy_sound(DISK, found, keep, tmp_path / "new")
    last = 4 if damaged is None else damaged
    assert (keep.records, keep.lost, keep.hopeless) == (records[:last], records[last:], None)
    assert keep.epochs == ({"w": last - 1} if last else {})
    assert contents(tmp_path / "j") == before
    new = Journal(tmp_path / "new")
    assert (new.records(), new.notes, new.load) == (records[:last], [], {"manifest": "{}"})
    for record in records[:last]:
        (table,) = Epochs(new).rows(record, "R")
        assert table.equals(rows(record["epoch"]))
    new.close()


def test_nothing_is_saved_where_no_record_can_be_trusted(tmp_path: Path) -> None:
    journal_of(tmp_path, 2)
    for path in tmp_path.glob("log-*"):
        path.write_bytes(b"x" + path.read_bytes())
    keep = saved(survey(DISK, tmp_path))
    assert keep.records == []
    assert keep.hopeless is not None
    assert "log-1.a: byte 0" in str(keep.hopeless)


def test_every_row_that_can_be_read_comes_out_with_its_origin(tmp_path: Path) -> None:
    records = journal_of(tmp_path, 3)
    (tmp_path / "staged" / records[1]["parts"][0][1]).write_bytes(b"")
    export = Export(DISK, survey(DISK, tmp_path))
    found = {
        table["v"][0].as_py(): (kind, stream, table.to_pylist()[0])
        for kind, stream, table in export.tables()
    }
    assert sorted(found) == [0, 20, 30], "10 is lost; 30 was staged, and belongs to no epoch"
    kind, stream, row = found[20]
    assert (kind, stream) == ("streams", "R")
    assert (row["journal_writer"], row["journal_epoch"], row["journal_partition"]) == ("w", 2, 0)
    assert [found[v][2]["journal_committed"] for v in (0, 20, 30)] == [True, True, False]
    assert [error.path.name for error in export.damages] == [records[1]["parts"][0][1]]


def test_a_journal_that_is_written_meanwhile_is_left_alone(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with pytest.raises(JournalHeld, match="is running"), at_rest(DISK, tmp_path):
        pass
    journal.close()
    with at_rest(DISK, tmp_path), pytest.raises(JournalHeld):
        Journal(tmp_path)
    Journal(tmp_path).close()
