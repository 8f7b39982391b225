"""The demo runs from end to end, and notices errors."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from examples import demo
from seustream.compiler.pipeline import compile_text
from seustream.cosim.golden import GoldenDevice
from seustream.engine.graph import GraphRun
from seustream.engine.intake import accepted
from seustream.engine.stream.answers import result_schema
from tests.docs.blocks import ROOT


@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java 17")
def test_the_whole_way() -> None:
    """Uses the golden model, which needs no build; `nox -s demo` uses the RTL."""
    options = (
        "--backend",
        "golden",
        "--examples",
        "network",
        "--tuples",
        "300",
        "--seed",
        "7",
        "--rows",
        "0",
    )
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/demo.py"), *options],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "── network, by the golden: 4 queries over 3 streams" in done.stdout
    assert done.stdout.count("✓") >= 3
    assert "✗" not in done.stdout
    assert "Every result is DuckDB's, and none is missing." in done.stdout
    assert done.stdout.endswith(demo.next_steps() + "\n")
    assert done.stderr == ""


@pytest.mark.parametrize("change", ["none", "one row less", "one row twice", "another value"])
def test_it_notices(change: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "examples/eight/eight.xsql").read_text("utf-8")
    compilation = compile_text(text)
    streams = demo.module(ROOT / "examples/eight/generate.py").streams(60, 3)
    driver = GraphRun(compilation, GoldenDevice(compilation.options.config))
    for stream in driver.streams:
        driver.push(stream.name, accepted(stream, streams[stream.name]))
    parts: dict[str, list[pa.Table]] = {
        q.name: [result_schema(q).empty_table()] for q in compilation.program.queries
    }
    for name, rows in driver.finish():
        parts[name].append(rows)
    results = {name: pa.concat_tables(tables) for name, tables in parts.items()}
    victim = max(results, key=lambda name: results[name].num_rows)
    rows = results[victim]
    if change == "one row less":
        results[victim] = rows.slice(1)
    elif change == "one row twice":
        results[victim] = pa.concat_tables([rows, rows.slice(0, 1)])
    elif change == "another value":
        times = rows.column("ts_newest").to_pylist()
        times[0] += 1
        at = rows.schema.get_field_index("ts_newest")
        results[victim] = rows.set_column(at, rows.schema.field(at), pa.array(times))
    for name, table in results.items():
        (tmp_path / name).mkdir()
        pq.write_table(table, tmp_path / name / "0.parquet")
    wrong = demo.verify("eight", compilation, streams, tmp_path)
    shown = capsys.readouterr().out
    if change == "none":
        assert wrong == []
        assert shown.count("✓") == 8
        return
    assert wrong
    assert all(line.startswith(f"eight {victim}, ") for line in wrong)
    assert shown.count("✗") == 1
    kinds = {line.split(", ")[1].split(":")[0] for line in wrong}
    assert (
        kinds
        == {
            "one row less": {"missing"},
            "one row twice": {"too many"},
            "another value": {"missing", "too many"},
        }[change]
    )


def test_figures_say_where_the_time_went(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Boards are rerouted again and again, so test the rule for the figures, not today's clock.
    monkeypatch.setattr(demo, "clocks", {"default3": [("a board", 125.0)]}.__getitem__)
    demo.report(
        [
            demo.Run("q", "rtl", 100, 5, 2.0, bridge=1.5, device=1.0, cycles=5000),
            demo.Run("one", "engine", 1000, 7, 2.0, bridge=0.5),
            demo.Run("one", "Spark's join", 1000, 7, 5.0),
        ]
    )
    shown = capsys.readouterr().out
    assert "one      Spark's join  1,000        7  5.0 s     200" in shown
    assert "q        rtl        0.5 s          0.5 s   1.0 s" in shown
    assert "one      engine     1.5 s          0.5 s   –" in shown
    assert "5,000 cycles of the processor, 50 a row. " in shown
    assert "Rows a second: 2,500,000 at the 125 MHz of a board." in shown
    assert "Spark's join took 2.5 times as long as the engine behind the bridge." in shown


def test_a_build_is_seen() -> None:
    what = "building the processor (default3), once"
    notes = [
        f"{what}: {step}" for step in ("Verilog", "C++", "compiling 0 of 4", "compiling 4 of 4")
    ]
    assert [demo.progress(note) for note in notes] == [
        ("Verilog", 0.0), ("C++", 0.25), ("compiling", 0.4), ("compiling", 1.0),
    ]  # fmt: skip


def test_what_to_try_next_can_be_typed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In nox's environment, which ends with the demo, it is entered again first."""
    monkeypatch.delenv("NOX_CURRENT_SESSION", raising=False)
    assert "activate" not in demo.next_steps()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "activate").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("NOX_CURRENT_SESSION", "demo")
    lines = demo.next_steps().splitlines()
    assert lines[1:3] == [
        "What to try next:",
        f"  . {tmp_path}/bin/activate   # first: the commands are there",
    ]
    monkeypatch.chdir(tmp_path)
    assert demo.next_steps().splitlines()[2].startswith("  . bin/activate ")
