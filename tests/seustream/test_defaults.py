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


def test_options_of_sub_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("seustream.toml").write_text(
        '[query]\nbridge = "grpc://host:1"\nformat = "jsonl"\n[journal]\no = "saved"\n'
    )
    assert parsed(["query", "list"]).bridge == "grpc://host:1"
    found = parsed(["query", "results", "q"])
    assert (found.bridge, found.format, found.follow) == ("grpc://host:1", "jsonl", False)
    assert parsed(["journal", "export", "kept"]).out == Path("saved")
    monkeypatch.setenv("SEUSTREAM_BRIDGE", "grpc://host:2")
    monkeypatch.setenv("SEUSTREAM_FOLLOW", "1")
    monkeypatch.setenv("SEUSTREAM_ACCEPT_LOSS", "true")
    assert parsed(["query", "register", "q.xsql"]).bridge == "grpc://host:2"
    assert parsed(["query", "list", "--bridge", "grpc://host:3"]).bridge == "grpc://host:3"
    assert parsed(["query", "results", "q"]).follow
    assert parsed(["journal", "repair", "kept"]).accept_loss
    monkeypatch.setenv("SEUSTREAM_FORMAT", "parquet")  # for run; only `query results` refuses it
    assert parsed(["query", "stop", "q"]).bridge == "grpc://host:2"


@pytest.mark.parametrize("action", [["list"], ["results", "q"], []])
def test_an_option_that_no_sub_command_has(
    action: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    Path("seustream.toml").write_text('[query]\nbrigde = "grpc://host:1"\n')
    with pytest.raises(SystemExit) as ended:
        main(["query", *action])
    assert ended.value.code == 2
    said = "option brigde, which query has not\n  hint: did you mean bridge?"
    assert said in capfd.readouterr().err


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
