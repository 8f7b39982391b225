"""`run --site` and `--sites`, `serve --site`: separate processes, and users' mistakes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from seustream.cli import main
from tests.docs.blocks import ROOT

QUERIES = """
CREATE STREAM R (a int, b int);
CREATE STREAM S (d int, e int);
CREATE STREAM L (f int);
REGISTER QUERY pairs AS SELECT R.b AS x, S.e + 1 AS y FROM R, S WHERE R.a = S.d WINDOW RANGE 9;
REGISTER QUERY groups AS SELECT R.a, count(*) AS n FROM R, S, L WHERE R.a = S.d AND S.e = L.f
    GROUP BY R.a HAVING count(*) > 1 WINDOW RANGE 20;
REGISTER QUERY alone AS SELECT R.b FROM R WHERE R.b > 3 WINDOW NOW;
REGISTER QUERY last AS SELECT R.b, L.f FROM R, L WHERE R.a = L.f WINDOW ROWS 2;
"""
FILES = {
    "R": "ts,a,b\n1,1,5\n2,2,4\n3,1,3\n8,2,9\n",
    "S": "ts,d,e\n2,1,1\n3,2,2\n4,1,1\n",
    "L": "ts,f\n3,1\n4,2\n9,1\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "q.xsql").write_text(QUERIES)
    for name, text in FILES.items():
        (tmp_path / f"{name}.csv").write_text(text)
    return tmp_path


class Served:
    """Runs `seustream serve --site` as a process."""

    def __init__(self, folder: Path, stream: str, *options: str) -> None:
        command = [sys.executable, "-m", "seustream", "serve", "--site", f"{stream}={stream}.csv"]
        self.process = subprocess.Popen(
            [*command, "--listen", "grpc://127.0.0.1:0", *options],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )

    @property
    def address(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert " on grpc" in line, line
        return line.split(" on ")[1].strip()

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return self.process.wait(30)


@pytest.fixture
def served(folder: Path) -> Iterator[dict[str, str]]:
    processes = [Served(folder, "R"), Served(folder, "S")]
    try:
        yield dict(zip("RS", (one.address for one in processes), strict=True))
    finally:
        assert [one.end() for one in processes] == [0, 0]


def run(folder: Path, *options: str, out: str = "many") -> int:
    return main(["run", str(folder / "q.xsql"), *options, "-o", str(folder / out)])


def inputs(folder: Path, names: str) -> list[str]:
    return [word for name in names for word in ("--input", f"{name}={folder}/{name}.csv")]


def files(folder: Path, out: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / out).iterdir()}


def test_sites_as_processes(
    folder: Path, served: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(folder, *inputs(folder, "RSL"), out="one") == 0
    sites = [word for name in "RS" for word in ("--site", f"{name}={served[name]}")]
    capsys.readouterr()
    assert run(folder, *sites, *inputs(folder, "L")) == 0
    said = capsys.readouterr().err
    assert files(folder, "many") == files(folder, "one")
    assert "3 of 3 tuples of S came from their sites, those that join: pairs, groups" in said
    assert "stream R: 4 tuples fetched whole (query last: stream R has the window ROWS 2" in said
    described = folder / "sites.toml"
    described.write_text(
        f'strategy = "auto"\n[site.north]\naddress = "{served["R"]}"\nstreams = ["r"]\n'
        f'[site.south]\naddress = "{served["S"]}"\nstreams = ["S"]\n'
        "[cost.north]\nsouth = 5\nhere = 2\n"
    )
    record = ["--record", str(folder / "run.json")]
    assert run(folder, "--sites", str(described), *record, *inputs(folder, "L"), out="again") == 0
    assert main(["explain", str(folder / "q.xsql"), "--stage", "sites", *record]) == 0
    ways = capsys.readouterr().out
    assert "Query pairs across 2 sites" in ways
    assert "Ways taken" in ways
    assert files(folder, "again") == files(folder, "one")


def test_an_option_adds_a_stream_to_a_site_of_the_file(folder: Path) -> None:
    process = Served(folder, "R", "--site", "S=S.csv")
    try:
        address = process.address
        text = f'[site.north]\naddress = "{address}"\nstreams = ["R"]\n'
        (folder / "sites.toml").write_text(text)
        sites = ["--sites", str(folder / "sites.toml"), "--site", f"S={address}"]
        assert run(folder, *inputs(folder, "RSL"), out="one") == 0
        assert run(folder, *sites, *inputs(folder, "L")) == 0
    finally:
        process.end()
    assert files(folder, "many") == files(folder, "one")


def test_times_of_sites_keep_their_type(folder: Path, served: dict[str, str]) -> None:
    """Those of S come with its columns, those of R also with the stream as a whole."""
    for name in "RS":
        header, *lines = FILES[name].splitlines()
        rows = [f"2026-01-05T08:00:00.00{line}" for line in lines]
        (folder / f"{name}.csv").write_text("\n".join([header, *rows]))
    streams, _, queries = QUERIES.partition("CREATE STREAM L (f int);")
    pairs, _, _ = queries.partition("REGISTER QUERY groups")
    high = "REGISTER QUERY high AS SELECT S.e FROM S WHERE S.e > 1 WINDOW NOW;"
    last = "REGISTER QUERY last AS SELECT R.b FROM R WINDOW ROWS 2;"
    (folder / "q.xsql").write_text(f"{streams}{pairs}{high}{last}")
    assert run(folder, *inputs(folder, "RS"), out="one") == 0
    sites = [word for name in "RS" for word in ("--site", f"{name}={served[name]}")]
    assert run(folder, *sites) == 0
    assert files(folder, "many") == files(folder, "one")
    assert b"2026-01-05T08:00:00.003" in files(folder, "many")["high.csv"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--site", "R"], "--site R: want STREAM=grpc://HOST:PORT"),
        (["--site", "R=http://x"], "--site R=http://x: http://x: no address of a bridge"),
        (["--site", "Q=grpc://127.0.0.1:9"], "the queries have no stream Q"),
        (["--site", "R=grpc://127.0.0.1:9"], "site R at grpc://127.0.0.1:9 does not answer"),
        (
            ["--site", "R=grpc://127.0.0.1:9", "--site", "r=grpc://127.0.0.1:8"],
            "stream r is at grpc://127.0.0.1:9 and at grpc://127.0.0.1:8",
        ),
        (["--site", "L=grpc://127.0.0.1:9"], "--input L="),
        (["--record", "run.json"], "--record is of a run across sites"),
        (["--sites", "no.toml"], "no.toml: No such file or directory"),
    ],
)
def test_what_users_get_wrong(
    options: list[str],
    message: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("seustream.cosim.sites.run.PATIENCE", 0.3)
    given = inputs(folder, "L" if any("R=" in one for one in options) else "RSL")
    given += inputs(folder, "S") if "L" not in options[-1][:1] and len(given) == 2 else []
    assert run(folder, *given, *options) == 2
    assert message in capsys.readouterr().err
    assert not (folder / "many").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[site", "Expected"),
        ("x = 1", "there is no 'x' here"),
        ('strategy = "hub"', "strategy 'hub'"),
        ("[cost.a]\nb = 1", "no sites in it"),
        ("site = 3", "no sites in it"),
        ('[site.a]\naddress = "grpc://h"', "site a: want an address and streams"),
        ('[site.here]\naddress = "grpc://h"\nstreams = []', "site here: want an address"),
        ('[site.a]\naddress = "grpc://h"\nstreams = [3]', "site a: streams is a list of names"),
        ('[site.a]\naddress = "h"\nstreams = ["R"]', "site a: h: no address"),
        (
            '[site.a]\naddress = "grpc://h"\nstreams = ["R"]\n[cost.a]\nb = 1',
            "cost: there is no site b",
        ),
        (
            '[site.a]\naddress = "grpc://h"\nstreams = ["R"]\n[cost.a]\nhere = -1',
            "cost from a to here: want a number, 0 to 1e+100, or inf for never",
        ),
        (
            '[site.a]\naddress = "grpc://h"\nstreams = ["R"]\n'
            '[site.b]\naddress = "grpc://H:8815"\nstreams = ["S"]',
            "site b: site a has the address grpc://h:8815, too",
        ),
        (
            'token-file = "none"\n[site.a]\naddress = "grpc://h"\nstreams = ["R"]',
            "none: No such file",
        ),
    ],
)
def test_a_file_of_sites_is_read_with_suspicion(
    text: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "sites.toml").write_text(text)
    assert run(folder, "--sites", str(folder / "sites.toml")) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--site", "R"], "--site R: want STREAM=FILE"),
        (["--site", "R=nowhere.csv"], "nowhere.csv: no such file"),
        (["--site", "R=R.csv", "--site", "R=S.csv"], "stream R has a file already"),
        (["--site", "R=R.csv", "--listen", "grpc://0.0.0.0:1"], "there is no token"),
    ],
)
def test_what_a_site_refuses(
    options: list[str],
    message: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    assert main(["serve", *options]) == 2
    assert message in capsys.readouterr().err


def test_a_bad_file_at_a_site_is_told_here(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "R.csv").write_text("ts,a,b\n1,x,2\n")
    process = Served(folder, "R")
    try:
        sites = ["--site", f"R={process.address}"]
        assert run(folder, *sites, *inputs(folder, "SL")) == 2
    finally:
        process.end()
    said = capsys.readouterr().err
    assert "site R at grpc://127.0.0.1" in said
    assert "R.csv:2" in said


def test_costs_that_lead_nowhere_are_refused(
    folder: Path, served: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A run would wait for others for ever; by the strategy `auto` rows can go another way."""
    described = folder / "sites.toml"
    text = "".join(
        f'[site.{name.lower()}]\naddress = "{served[name]}"\nstreams = ["{name}"]\n'
        for name in "RS"
    )
    described.write_text(f"{text}[cost.r]\ns = inf\n")
    assert run(folder, "--sites", str(described), *inputs(folder, "L")) == 2
    said = capsys.readouterr().err
    assert "no way leads from the site of R through those of S to here" in said
    described.write_text(f'strategy = "auto"\n{text}[cost.r]\ns = inf\n')
    assert run(folder, "--sites", str(described), *inputs(folder, "L")) == 0


@pytest.mark.parametrize(
    ("strategy", "costs", "hint"),
    [
        ("auto", "[cost.r]\nhere = inf\n[cost.s]\nhere = inf\n[cost.l]\nhere = inf", ""),
        # L is joined to S only, so no row goes from L to R first.
        ("planned", "[cost.s]\nr = inf\n[cost.r]\ns = 1", ', or strategy = "auto"'),
        ("planned", "[cost.r]\ns = inf\nhere = inf\nl = inf", ""),
    ],
)
def test_auto_is_advised_and_taken_where_there_is_a_hub(
    strategy: str,
    costs: str,
    hint: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("seustream.cosim.sites.run.PATIENCE", 0.3)
    streams, *_ = QUERIES.partition("REGISTER QUERY pairs")
    joined = "WHERE R.a = S.d AND S.e = L.f WINDOW RANGE 9"
    (folder / "q.xsql").write_text(
        f"{streams}REGISTER QUERY q AS SELECT R.a FROM R, S, L {joined};"
    )
    described = folder / "sites.toml"
    sites = "".join(
        f'[site.{name.lower()}]\naddress = "grpc://127.0.0.{k}:9"\nstreams = ["{name}"]\n'
        for k, name in enumerate("RSL", 1)
    )
    described.write_text(f'strategy = "{strategy}"\n{sites}{costs}')
    assert run(folder, "--sites", str(described)) == 2
    said = capsys.readouterr().err
    assert "no way leads from the site of L through those of R, S to here" in said
    assert f"hint: give other costs{hint}\n" in said


@pytest.mark.parametrize(
    ("given", "late", "status"), [(5, "drop", 0), (2, "drop", 0), (2, "error", 2)]
)
def test_a_stream_at_a_site_keeps_its_own_slack(
    given: int, late: str, status: int, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The stream falls back by 4 ms; pairs of the row that does are results, or it is late."""
    options = f"WITH (max_out_of_orderness = '{given} ms', late = '{late}')"
    text = QUERIES.replace("R (a int, b int);", f"R (a int, b int) {options};")
    (folder / "q.xsql").write_text(text.partition("REGISTER QUERY groups")[0])
    (folder / "R.csv").write_text("ts,a,b\n1,1,5\n8,2,4\n4,1,3\n9,2,9\n")
    assert run(folder, *inputs(folder, "RSL"), out="one") == status
    process = Served(folder, "R")
    try:
        capsys.readouterr()
        sites = ["--site", f"R={process.address}"]
        assert run(folder, *sites, *inputs(folder, "SL")) == status
    finally:
        process.end()
    said = capsys.readouterr().err
    if status:
        assert "stream R: 1 late row" in said
        assert not (folder / "many").exists()
        return
    assert files(folder, "many") == files(folder, "one")
    assert ("1 late tuple" in said) == (given < 4)


@pytest.mark.parametrize(
    ("declared", "options", "message"),
    [
        (" WITH (late = 'side')", ["-o", "many"], "stream S: its late tuples stay at its site"),
        ("", ["-o", "-", "--late", "late"], "stream S: its late tuples stay at its site"),
        (" WITH (late = 'side')", ["-o", "-"], "site S at grpc://127.0.0.1:9 does not answer"),
    ],
)
def test_late_tuples_that_would_be_lost_are_refused(
    declared: str,
    options: list[str],
    message: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("seustream.cosim.sites.run.PATIENCE", 0.3)
    monkeypatch.chdir(folder)
    (folder / "q.xsql").write_text(QUERIES.replace("(d int, e int)", f"(d int, e int){declared}"))
    site = ["--site", "S=grpc://127.0.0.1:9"]
    assert main(["run", "q.xsql", *site, *inputs(folder, "RL"), *options]) == 2
    assert message in capsys.readouterr().err


def test_late_tuples_of_a_stream_that_comes_whole_are_written(folder: Path) -> None:
    text = QUERIES.replace("(a int, b int)", "(a int, b int) WITH (late = 'side')")
    (folder / "q.xsql").write_text(text)
    (folder / "R.csv").write_text("ts,a,b\n1,1,5\n8,2,4\n4,1,3\n")
    process = Served(folder, "R")
    try:
        assert run(folder, *inputs(folder, "RSL"), out="one") == 0
        assert run(folder, "--site", f"R={process.address}", *inputs(folder, "SL")) == 0
    finally:
        process.end()
    assert files(folder, "many")["late.R.csv"] == b"ts,a,b\n4,1,3\n"
    assert files(folder, "many") == files(folder, "one")
