"""The examples as their readers use them: READMEs typed as printed, results compared with
DuckDB."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from examples.judge import JUDGED, in_milliseconds
from seustream.cli import main
from tests.docs.blocks import ROOT, blocks, execute, sandbox

EXAMPLES = ROOT / "examples"
NAMES = sorted(path.name for path in EXAMPLES.iterdir() if (path / "README.md").exists())
TUPLES = {"eight": 120, "road": 900, "network": 900, "tolls": 1000, "stocks": 2000, "fraud": 600}


def command(*words: object, cwd: Path = ROOT) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=cwd,
        env={"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def generate(name: str, directory: Path, seed: int, form: str) -> None:
    """Runs the generator in this process; another test checks that a separate process gives the
    same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", list(map(str, generator(name, directory, seed, form))))
        runpy.run_path(sys.argv[0], run_name="__main__")


def generator(name: str, directory: Path, seed: int, form: str) -> tuple[object, ...]:
    given = ("--tuples", TUPLES[name], "--seed", seed, "--format", form, "-o", directory)
    return EXAMPLES / "generate.py", name, *given


def run(name: str, data: Path, results: Path, *options: str) -> None:
    inputs = [f"--input={path.stem}={path}" for path in sorted(data.iterdir())]
    query = EXAMPLES / name / f"{name}.xsql"
    assert main(["run", str(query), *inputs, "-o", str(results), *options]) == 0


def test_every_folder_is_an_example() -> None:
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir()}
    folders -= {"__pycache__", "litex"}  # litex is tested in tests/examples/test_litex.py
    judged = {*JUDGED, "linearroad", "nexmark", "users"}
    assert folders == set(NAMES) == judged, "the last three have a test of their own"


@pytest.mark.parametrize("name", NAMES)
def test_readme_works_as_typed(name: str, tmp_path: Path) -> None:
    environment = sandbox(tmp_path)
    for block in blocks((EXAMPLES / name / "README.md").read_text("utf-8")):
        if block.language == "sh":
            execute(block, tmp_path, environment)
    results = [path for path in (tmp_path / "results").rglob("*") if path.is_file()]
    assert len(results) >= len(JUDGED.get(name, ()))
    for path in results:
        lines = path.read_text("utf-8").splitlines()
        assert len(lines) > (path.suffix == ".csv"), f"{path.name} is empty"


@pytest.mark.parametrize("backend", ["golden", "iss"])
@pytest.mark.parametrize("plan", ["cost", "thesis"])
@pytest.mark.parametrize("name", sorted(JUDGED))
def test_results_are_those_of_duckdb(name: str, plan: str, backend: str, tmp_path: Path) -> None:
    data, results = tmp_path / "data", tmp_path / "results"
    generate(name, data, 7, "parquet")
    run(name, data, results, "--plan", plan, "--backend", backend, "--format", "parquet")
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for path in data.iterdir():
            # Generated times are timestamps; the judge computes in milliseconds.
            (kind,) = connection.sql(f"SELECT DISTINCT typeof(ts) FROM '{path}'").fetchall()
            ts = "ts" if kind == ("BIGINT",) else "epoch_us(ts) // 1000"
            connection.execute(
                f"CREATE TABLE {path.stem} AS SELECT * REPLACE ({ts} AS ts) FROM '{path}'"
            )
        for query, sql in JUDGED[name].items():
            got = in_milliseconds(connection, f"'{results / query}.parquet'", f"({sql})")
            some = connection.sql(f"SELECT * FROM {got} LIMIT 1").fetchall()
            assert some, f"{query} has no results: this shows nothing"
            for one, other in ((got, f"({sql})"), (f"({sql})", got)):
                differ = connection.sql(f"{one} EXCEPT ALL {other} LIMIT 5").fetchall()
                assert not differ, f"{query}: {differ}"


@pytest.mark.parametrize("name", sorted(JUDGED))
def test_every_format_gives_the_same_results(name: str, tmp_path: Path) -> None:
    found = {}
    for form in ("csv", "jsonl", "parquet"):
        data, results = tmp_path / form, tmp_path / f"results-{form}"
        generate(name, data, 3, form)
        run(name, data, results)
        found[form] = {path.name: path.read_text("utf-8") for path in results.iterdir()}
    assert set(found["csv"]) >= {f"{query}.csv" for query in JUDGED[name]}
    assert found["csv"] == found["jsonl"] == found["parquet"]


@pytest.mark.parametrize("name", sorted(JUDGED))
def test_generators_are_deterministic(name: str, tmp_path: Path) -> None:
    generate(name, tmp_path / "a", 1, "csv")
    command(*generator(name, tmp_path / "b", 1, "csv"))
    generate(name, tmp_path / "c", 2, "csv")
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
        assert path.read_bytes() != (tmp_path / "c" / path.name).read_bytes()


def test_examples_are_listed() -> None:
    lines = command(EXAMPLES / "generate.py", "--list").splitlines()
    assert {line.split()[0] for line in lines} == {*NAMES} - {"users"}
    assert all(line.endswith(".") and len(line) <= 100 for line in lines)


def test_demo_verifies_every_query() -> None:
    models = ("golden", "iss")  # the demo's own session tests the RTL, whose build takes minutes
    printed = command(EXAMPLES / "eight" / "demo.py", "--tuples", "100", "--devices", *models)
    runs = 2 * len(models)  # both plans on each model
    assert printed.count(f"{runs}/{runs} ✓") == 8
    assert printed.count("8/8 ✓") == runs


def test_demo_fails_on_a_difference(tmp_path: Path) -> None:
    """The device gets one tuple more than DuckDB."""
    sandbox(tmp_path)
    script = tmp_path / "examples" / "eight" / "demo.py"
    text = script.read_text("utf-8")
    honest = "wanted = judge(streams)"
    assert honest in text
    fewer = "judge({name: rows.slice(1) for name, rows in streams.items()})"
    script.write_text(text.replace(honest, f"wanted = {fewer}"), "utf-8")
    done = subprocess.run(
        [sys.executable, script, "--tuples", "100", "--devices", "golden"],
        env={"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 1
    assert "too many: (" in done.stdout
