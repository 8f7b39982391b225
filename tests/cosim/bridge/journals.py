"""Journals for tests: one with a few records, and its content when it is opened again; and one per
format that releases have left behind. `python -m tests.cosim.bridge.journals` writes the one of
today. Run it when a snapshot or a record gets another version, but never just to make a test pass
that reports such a change."""

from __future__ import annotations

import contextlib
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa

from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.bridge import Bridge
from seustream.cosim.bridge.client import message_of
from seustream.cosim.bridge.journal import Journal
from seustream.cosim.bridge.mark import FORMAT
from seustream.cosim.golden import GoldenDevice
from tests.cosim.bridge.serving import EVERYTHING, TINY, compiled, cut, stage_epoch, streams
from tests.cosim.bridge.simdisk import SimDisk

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


def snapshot(journal: Journal, state: bytes, later: list[dict[str, Any]]) -> None:
    writer = journal.begin_snapshot()
    writer.write(state)
    journal.end_snapshot(writer, {}, {"text": "queries"}, later)
    journal.drop_snapshot(writer)


# --- of releases --------------------------------------------------------------------

LEFT = Path(__file__).parent / f"left-by-format-{FORMAT}.zip"


def epochs() -> list[dict[str, pa.Table]]:
    """Returns what is fed to a journal that is left behind; the first half goes in before that."""
    return cut(streams(160, 7), 8)


def leave() -> None:
    """Leaves a snapshot after two epochs, two more epochs in the log, and one that is only
    staged."""
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.closing(Bridge(GoldenDevice(TINY), Path(folder), "golden")) as made:
            made.act("load", p.write(message_of(compiled(EVERYTHING))))
            for number, rows in enumerate(epochs()[:5]):
                stage_epoch(made, number, rows, commit=number < 4)
                made.session.flush()
                if number == 1:
                    with made.session.changed:
                        made.session.saving.take()
        with zipfile.ZipFile(LEFT, "w", zipfile.ZIP_DEFLATED) as file:
            for path in sorted(Path(folder).rglob("*")):
                if path.is_file() and path.name != "lock":
                    name = str(path.relative_to(folder))
                    file.writestr(zipfile.ZipInfo(name), path.read_bytes())


if __name__ == "__main__":
    leave()
