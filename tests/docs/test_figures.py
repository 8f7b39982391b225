"""The tables of other engines, of which some or all may be missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import peers
from seustream.commands import bench
from tests.docs import figures


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(bench, "folder", lambda: tmp_path)
    (tmp_path / "results").mkdir()
    return tmp_path / "results" / "peers.json"


def test_nothing_measured_yet(measured: Path) -> None:
    for name in ("peers_join", "peers_sum", "faster"):
        assert figures.TABLES[name]() == "Not measured yet.\n"


def test_engines_that_are_missing_and_one_size_alone(measured: Path) -> None:
    def row(name: str, takes: str, size: int, *rest: Any) -> list[Any]:
        return [name, "1.2" if rest[0] else "", takes, "join", 2_000, size, *rest]

    rows = [
        row("seustream", "at once", 100, 9, 0.25, 0.5, None, ""),
        row("DuckDB", "at once", 100, 9, 0.125, 0.25, 0.5, ""),
        row("DuckDB", "at once", 1_000, 9, 3.0, 4.0, None, ""),
        row("Polars", "at once", 100, 9, 0.2, 0.3, 0.8, ""),
        row("Pathway", "at once", 100, None, None, None, None, "not installed: it"),
        row("Esper", "one by one", 100, 9, 8.0, 9.0, 2.0, ""),
    ]
    measured.write_text(json.dumps({"head": peers.HEAD, "rows": rows}))
    table = figures.TABLES["peers_join"]().splitlines()
    assert table[0] == "| engine | takes rows | 2,000: 100 rows | 2,000: 1,000 rows |"
    assert "| seustream 1.2 | at once | 0.25 (0.5) | not measured |" in table
    assert "| DuckDB 1.2 | at once | 0.125 (0.25) | 3 (4) |" in table
    assert "| Pathway | at once | not installed: it | not measured |" in table
    assert "| Kafka Streams | one by one | not measured | not measured |" in table
    assert figures.TABLES["peers_sum"]() == "Not measured yet.\n"
    assert figures.TABLES["faster"]() == (
        "- join, window 2,000, 100 rows: DuckDB (2.0 ×), Polars (1.2 ×)\n"
    )


def test_no_engine_is_faster(measured: Path) -> None:
    row = ["Polars", "1", "at once", "sum", 10, 100, 9, 2.0, 2.0, 1.5, ""]
    measured.write_text(json.dumps({"head": peers.HEAD, "rows": [row]}))
    assert figures.TABLES["faster"]() == "In none of the cases.\n"
