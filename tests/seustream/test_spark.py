"""The script of the README, as it is printed."""

from __future__ import annotations

import json
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
    (text,) = [block for block in blocks(page) if "REGISTER QUERY lookups" in block.text]
    (tmp_path / "lookups.xsql").write_text(text.text)
    arriving = {
        "flows": [
            (0, {"source": "s1", "address": "a1", "bytes": 7000}),
            (9, {"source": "s2", "address": "a2", "bytes": 8000}),
        ],
        "answers": [
            (5, {"name": "n1.example", "address": "a1"}),
            (45, {"name": "n2.example", "address": "a2"}),
        ],
    }
    for name, rows in arriving.items():
        (tmp_path / name).mkdir()
        lines = [json.dumps({"ts": f"2026-01-05T08:00:{second:02}", **row}) for second, row in rows]
        (tmp_path / name / "1.json").write_text("\n".join(lines))
    execute(script, tmp_path, sandbox(tmp_path))
    found = "".join(path.read_text() for path in (tmp_path / "lookups").glob("*.csv"))
    assert [line.split(",")[:3] for line in found.splitlines()] == [["n1.example", "s1", "7000"]]
