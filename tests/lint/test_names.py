"""Tests that the counter of definitions finds a second one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint.names import ONCE, complaints


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    room = tmp_path / "engine"
    room.mkdir()
    (room / "bind.py").write_text(
        "class Binder: ...\nclass Row: ...\nLIST = []\ndef evaluate(): ...\n"
    )
    return tmp_path


def found(tree: Path) -> list[str]:
    once = dict.fromkeys(("Binder", "LIST", "evaluate"), "engine/bind.py")
    return complaints(tree, once)


def test_one_of_each(tree: Path) -> None:
    assert found(tree) == []


@pytest.mark.parametrize(
    "text", ["class Binder: ...", "LIST: list[int] = [1]", "LIST = []", "def evaluate(): ..."]
)
def test_a_second_one_is_found(tree: Path, text: str) -> None:
    (tree / "hdl").mkdir()
    (tree / "hdl" / "b.py").write_text(text)
    (message,) = found(tree)
    assert message.startswith("hdl/b.py: a second ")
    assert message.endswith("; the project has one, in engine/bind.py")


def test_what_is_there_once_is_there(tree: Path) -> None:
    (tree / "engine" / "bind.py").write_text("class Binder: ...\nLIST = []\n")
    assert found(tree) == [
        "evaluate is not in engine/bind.py any more: say in tests/lint/names.py where it is"
    ]


def test_classes_of_one_name(tree: Path) -> None:
    (tree / "hdl").mkdir()
    (tree / "hdl" / "b.py").write_text("def make():\n    class Row: ...\n")
    assert found(tree) == ["hdl/b.py: a class Row is there already, in engine/bind.py"]


def test_the_links_of_the_package_count_once(tree: Path) -> None:
    (tree / "seustream").mkdir()
    (tree / "seustream" / "engine").symlink_to("../engine")
    assert found(tree) == []


def test_the_tree() -> None:
    assert complaints() == []
    assert {"Binder", "evaluate", "Catalogue", "GraphRun", "Snapshot"} <= ONCE.keys()
