"""Inputs of several files, compressed files, and standard input."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from types import SimpleNamespace

import pytest

from seustream.cli import main

QUERY = ("run", "-c", "SELECT a FROM R WHERE a > 1 WINDOW NOW", "-o", "-", "--quiet")
ROWS = "a,ts_oldest,ts_newest\n2,2,2\n3,3,3\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    Path("data/1.csv").write_text("ts,a\n1,1\n2,2\n")
    Path("data/2.csv.gz").write_bytes(gzip.compress(b"ts,a\n3,3\n"))
    Path("data/notes.txt").write_text("no rows")


@pytest.mark.parametrize("given", ["data", "data/*.csv*", "data/[12].csv*"])
def test_folders_and_patterns(given: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*QUERY, "--input", f"R={given}"]) == 0
    assert capfd.readouterr().out == ROWS


@pytest.mark.parametrize("text", ["ts,a\n2,2\n3,3\n", '{"ts": 2, "a": 2}\n{"ts": 3, "a": 3}\n'])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_standard_input(
    mark: str, text: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(f"{mark}{text}".encode())))
    assert main([*QUERY, "--input", "R=-"]) == 0
    assert capfd.readouterr().out == ROWS


def test_hidden_files_of_a_folder_are_no_inputs(capfd: pytest.CaptureFixture[str]) -> None:
    Path("data/._1.csv").write_bytes(b"\0\5\x16\7")
    assert main([*QUERY, "--input", "R=data"]) == 0
    assert capfd.readouterr().out == ROWS


def test_a_folder_in_a_folder_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    Path("data/old.csv").mkdir()
    query = ("run", "-c", "CREATE STREAM R (a int); SELECT a FROM R", "-o", "-", "--quiet")
    assert main([*query, "--input", "R=data"]) == 2
    assert "data/old.csv: is a folder in a folder" in capfd.readouterr().err


def test_messages_name_the_file_that_was_given(capfd: pytest.CaptureFixture[str]) -> None:
    Path("data/2.csv.gz").write_bytes(gzip.compress(b"ts,a\n3,x\n"))
    text = "CREATE STREAM R (a int); SELECT a FROM R WINDOW NOW"
    assert main(["run", "-c", text, "--input", "R=data"]) == 2
    assert "data/2.csv.gz:2: column a: 'x'" in capfd.readouterr().err
    Path("data/2.csv.gz").write_bytes(b"ts,a\n3,3\n")
    assert main(["run", "-c", text, "--input", "R=data"]) == 2
    assert "data/2.csv.gz: is no gzip file, or is cut off" in capfd.readouterr().err
    Path("data/2.csv.gz").write_bytes(gzip.compress(b"ts,a\n2026-01-05,3\n"))
    assert main(["run", "-c", text, "--input", "R=data"]) == 2
    assert "the times of its files have several types" in capfd.readouterr().err


def test_a_file_without_rows_has_no_type_of_time(capfd: pytest.CaptureFixture[str]) -> None:
    Path("some").mkdir()
    Path("some/1.csv").write_text("ts,a\n")
    Path("some/2.jsonl").write_text("")
    Path("some/3.csv").write_text("ts,a\n2026-01-05T00:00:00Z,1\n")
    text = "CREATE STREAM R (a int); CREATE STREAM S (a int); SELECT R.a FROM R LEFT JOIN S ON R.a = S.a WINDOW 5"
    inputs = ["--input", "R=some", "--input", "S=some/1.csv"]
    assert main(["run", "-c", text, *inputs, "-o", "-", "--quiet"]) == 0
    last = "1,2026-01-05T00:00:00.000Z,2026-01-05T00:00:00.000Z"
    assert capfd.readouterr().out.splitlines()[1:] == [last]


@pytest.mark.parametrize("name", ["r.csv", "r.jsonl"])
def test_a_file_may_begin_with_a_byte_order_mark(
    name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    text = "ts,a\n2,2\n3,3\n" if name == "r.csv" else '{"ts": 2, "a": 2}\n{"ts": 3, "a": 3}\n'
    Path(name).write_text(f"\ufeff{text}", encoding="utf-8")
    assert main([*QUERY, "--input", f"R={name}"]) == 0
    assert capfd.readouterr().out == ROWS
