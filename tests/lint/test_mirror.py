"""Tests that the counter of modules without tests of their name finds one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint.mirror import complaints


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    room = tmp_path / "engine" / "host"
    room.mkdir(parents=True)
    for name in ("join", "rows", "sides"):
        (room / f"{name}.py").write_text("def run(): ...\n")
    (room / "errors.py").write_text("class Refused(Exception): ...\n")
    tests = tmp_path / "tests" / "engine" / "host"
    tests.mkdir(parents=True)
    (tests / "test_join_windows.py").write_text("")
    (tests / "test_rows_and_sides.py").write_text("")
    return tmp_path


def test_modules_share_files_by_their_names(tree: Path) -> None:
    assert complaints(tree, set()) == []


def test_a_module_without_tests_is_found(tree: Path) -> None:
    (tree / "engine" / "host" / "row.py").write_text("def run(): ...\n")
    (found,) = complaints(tree, set())
    assert found == "engine/host/row.py: no tests in tests/engine/host/test_row.py"
    assert complaints(tree, {"engine/host/row.py"}) == []


def test_the_list_only_shrinks(tree: Path) -> None:
    (found,) = complaints(tree, {"engine/host/join.py"})
    assert found.startswith("engine/host/join.py: has its tests now")


def test_the_tree() -> None:
    assert complaints() == []
