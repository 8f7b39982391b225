"""Tests surveys of a journal's folder: its owner, its format, and what it has lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from seustream.cosim.bridge.journal import Journal
from seustream.cosim.bridge.journal_errors import JournalDamaged, JournalRefused
from seustream.cosim.bridge.sealed import digest
from tests.cosim.bridge.journals import written


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
    }


def test_a_folder_with_foreign_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    """A bridge on `--journal DIR` must never delete a user's files."""
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


@pytest.mark.parametrize("older", ["session.json", "journal-0.log"])
def test_an_older_format_is_refused_with_both_named(older: str, tmp_path: Path) -> None:
    (tmp_path / "staged").mkdir()
    (tmp_path / older).write_bytes(b"")
    (tmp_path / "staged" / "x.arrow").write_bytes(b"")
    before = contents(tmp_path)
    with pytest.raises(JournalRefused, match=r"format 1; this bridge has format 3"):
        Journal(tmp_path)
    assert contents(tmp_path) == before


def test_a_newer_format_is_refused_with_both_named(tmp_path: Path) -> None:
    written(tmp_path)
    said = b"seustream journal, format 4\n"
    (tmp_path / "journal").write_bytes(said + digest(said).encode() + b"\n")
    with pytest.raises(JournalRefused, match=r"format 4; this bridge has format 3"):
        Journal(tmp_path)


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
