"""Files that appear all together or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from seustream.errors import UserError
from seustream.files import replaced, write_all


def test_files_appear_with_their_bytes_and_the_users_mode(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_all(tmp_path / "new" / "folder", {"a.json": b"{}", "b": b""})
    finally:
        os.umask(before)
    folder = tmp_path / "new" / "folder"
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == {"a.json": b"{}", "b": b""}
    assert {p.stat().st_mode & 0o777 for p in folder.iterdir()} == {0o640}


def test_a_file_that_is_there_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    write_all(tmp_path, {"a": b"new"})
    assert (tmp_path / "a").read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_link_stays_and_the_file_behind_it_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "link").symlink_to("a")
    write_all(tmp_path, {"link": b"new"})
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "a").read_text() == "new"


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    """If root replaced a device file, all programs would lose it."""
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_all(tmp_path, {"pipe": b"x", "file": b"y"})
        assert os.read(reader, 10) == b"x"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert (tmp_path / "file").read_bytes() == b"y"


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(UserError, match="taken"):
        write_all(tmp_path, {"taken": b"x"})
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]
    assert list((tmp_path / "taken").iterdir()) == []


def test_a_folder_in_the_place_of_one_file_changes_no_other(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for name in "ac":
        (tmp_path / name).write_text("old")
    with pytest.raises(UserError, match="b: Is a directory"):
        write_all(tmp_path, dict.fromkeys("abc", b"new"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b", "c"]
    assert [(tmp_path / name).read_text() for name in "ac"] == ["old", "old"]


@pytest.mark.parametrize("stops", [KeyboardInterrupt(), SystemExit(143), OSError(28, "No space")])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_an_end_between_two_files_undoes_the_first(
    at: int, stops: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("old")
    into, renamed = Path.replace, list[Path]()

    def replace(self: Path, target: Path) -> Path:
        if len(renamed) == at and not renamed.count(target):
            renamed.append(target)
            raise stops
        renamed.append(target)
        return into(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises((UserError, KeyboardInterrupt, SystemExit)):
        write_all(tmp_path, dict.fromkeys("abc", b"new"))
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def test_a_folder_that_is_a_file_is_a_users_error(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    with pytest.raises(UserError, match="f: "):
        write_all(tmp_path / "f", {"a": b""})


def test_a_file_is_replaced_once_the_work_with_it_has_ended_well(tmp_path: Path) -> None:
    target = tmp_path / "f"
    os.umask(mask := os.umask(0))
    (tmp_path / "link").symlink_to("f")
    for path, text in ((target, "one"), (tmp_path / "link", "two")):
        with replaced(path) as temporary:
            temporary.write_text(text)
            assert not target.exists() or target.read_text() != text
        assert target.read_text() == text
    assert target.stat().st_mode & 0o777 == 0o666 & ~mask
    with pytest.raises(ZeroDivisionError), replaced(target) as temporary:
        temporary.write_text(str(1 / len(temporary.read_text())))
    assert target.read_text() == "two"
    for path in (tmp_path, tmp_path / "missing" / "f"):
        with pytest.raises(UserError), replaced(path):
            raise AssertionError("nothing may be done")
    os.mkfifo(tmp_path / "pipe")
    with replaced(tmp_path / "pipe") as itself:
        assert itself == tmp_path / "pipe"
    assert {path.name for path in tmp_path.iterdir()} == {"f", "link", "pipe"}
