"""The script of the README as printed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, blocks, execute, sandbox


def test_the_script_of_the_readme(tmp_path: Path) -> None:
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17")
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    (script,) = [block for block in blocks(page) if "sql_streams" in block.text]
    assert sum(not line.startswith(("from", "\n")) for line in script.text.splitlines()) <= 10
    (typed,) = [block for block in blocks(page) if "cat > lookups.xsql" in block.text]
    environment = sandbox(tmp_path)
    shown = execute(typed, tmp_path, environment).splitlines()[1:]
    execute(script, tmp_path, environment)
    found = "".join(path.read_text() for path in (tmp_path / "lookups").glob("*.csv")).splitlines()
    assert sorted(row.split(",")[:3] for row in found) == sorted(
        row.split(",")[:3] for row in shown
    )
