"""Parts shared by several commands: tables, and texts from standard input."""

from __future__ import annotations

import io
import sys

import pytest

from seustream.cli import main
from seustream.commands.common import table

ROWS = [("settled", 3, "results/settled.csv and more"), ("x", 12345, "abc")]
HEAD = ("query", "results", "file")


def test_a_table_has_numbers_to_the_right() -> None:
    assert table(ROWS, HEAD).splitlines() == [
        "query    results  file",
        "───────  ───────  ────────────────────────────",
        "settled        3  results/settled.csv and more",
        "x         12,345  abc",
    ]


@pytest.mark.parametrize("columns", [30, 46])
def test_a_table_fits_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = table(ROWS, HEAD)
    assert max(map(len, shown.splitlines())) <= columns
    assert ("results/settled.csv and more" in shown) == (columns == 46)
    assert "".join(shown.split()).endswith("x12,345abc")


def test_standard_input_is_not_read_twice(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"SELECT a FROM e WINDOW NOW")))
    assert main(["run", "-", "--input", "e=-", "-o", "-"]) == 2
    assert capsys.readouterr().err == (
        "seustream: --input e=-: standard input has the queries already\n"
        '  hint: give them with -c "SELECT …"\n'
    )
