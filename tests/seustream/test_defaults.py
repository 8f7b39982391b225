"""Defaults from `seustream.toml` and the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from seustream.cli import main, parsed


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_file_environment_and_options_in_that_order(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("seustream.toml").write_text(
        '[run]\nslack = "5s"\nbackend = "golden"\ninput = ["R=r.csv"]\nquiet = true\n'
    )
    found = parsed(["run", "q.xsql", "--input", "S=s.csv"])
    assert (found.slack, found.backend, found.quiet) == (5000, "golden", True)
    assert found.input == ["R=r.csv", "S=s.csv"]
    found = parsed(["run", "q.xsql", "--input", "S=s.csv", "--input", "r=other.csv"])
    assert found.input == ["S=s.csv", "r=other.csv"]
    monkeypatch.setenv("SEUSTREAM_BACKEND", "iss")
    monkeypatch.setenv("SEUSTREAM_QUIET", "0")
    found = parsed(["run", "q.xsql"])
    assert (found.backend, found.quiet) == ("iss", False)
    assert parsed(["run", "q.xsql", "--backend", "engine"]).backend == "engine"
    assert parsed(["explain", "q.xsql"]).format == "text"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[run]\nslakc = 5\n", "option slakc, which run has not\n  hint: did you mean slack?"),
        ("[rnu]\nslack = 5\n", "rnu is no command\n  hint: did you mean run?"),
        ('[run]\nslack = "5x"\n', "slack: 5x: want milliseconds"),
        ('[run]\nformat = "xml"\n', "format: xml\n  hint: one of csv, jsonl, parquet"),
        ("[run]\nquiet = 7\n", "quiet: 7 is neither true nor false"),
        ("[run\n", "seustream.toml: "),
        ("run = 5\n", "run is no table\n  hint: its options under [run]"),
    ],
)
def test_a_bad_default(text: str, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("seustream.toml").write_text(text)
    with pytest.raises(SystemExit) as ended:
        main(["run", "q.xsql"])
    assert ended.value.code == 2
    assert said in capfd.readouterr().err
