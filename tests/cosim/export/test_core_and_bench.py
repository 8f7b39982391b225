"""Runs other tools on the folder of `seustream verilog`: Verilator's lint, yosys for three
families, and its own test bench. This takes minutes; `nox -s verilog` runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from seustream.cli import main
from seustream.cosim.export import core
from seustream.cosim.export.estimate import FAMILIES, estimate
from seustream.cosim.verilated.build import package
from seustream.hdl.boards.flow import tools
from tests.hdl.axi.test_top import SMALL


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns one folder for all tests."""
    here = tmp_path_factory.mktemp("core")
    (here / "small.json").write_text(json.dumps(SMALL.to_json()))
    given = ["--config", str(here / "small.json"), "-o"]
    assert main(["verilog", *given, str(here / "axi")]) == 0
    assert main(["verilog", "--interface", "stream", *given, str(here / "stream")]) == 0
    return here


@pytest.mark.campaign
@pytest.mark.parametrize("interface", core.INTERFACES)
def test_verilator_finds_nothing_in_it(folder: Path, interface: str) -> None:
    command = [
        str(package() / "bin" / "verilator_bin"),
        "--lint-only",
        "-Wall",
        "--top-module",
        core.TOP,
    ]
    environment = {**os.environ, "VERILATOR_ROOT": str(package())}
    done = subprocess.run(
        [*command, str(folder / interface / "seustream.v")],
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    assert "%Warning" not in done.stderr
    assert done.returncode == 0, done.stderr


@pytest.mark.campaign
@pytest.mark.parametrize("interface", core.INTERFACES)
def test_yosys_elaborates_it(folder: Path, interface: str) -> None:
    script = f"read_verilog seustream.v; hierarchy -check -top {core.TOP}; proc; check -assert"
    status, said = tools.run("yosys", ["-q", "-p", script], folder / interface)
    assert status == 0, said


@pytest.mark.campaign
@pytest.mark.parametrize("family", FAMILIES)
def test_yosys_maps_it_to_a_family(folder: Path, family: str) -> None:
    text = (folder / "axi" / "seustream.v").read_text()
    counts = estimate(text, FAMILIES[family], print)
    print(family, counts)
    assert counts["LUT"] > 1000
    assert counts["flip-flop"] > 1000


@pytest.mark.campaign
def test_its_own_bench_passes_and_notices_a_wrong_result(folder: Path) -> None:
    bench = folder / "axi" / "test_seustream.py"
    assert _failures(bench) == 0
    vectors = bench.with_name("vectors.json")
    right = vectors.read_text()
    try:
        # Expects a record that does not come.
        wrong = right.replace('"expected": ["03', '"expected": ["04', 1)
        assert wrong != right
        vectors.write_text(wrong)
        assert _failures(bench) > 0
    finally:
        vectors.write_text(right)


def _failures(bench: Path) -> int:
    """Runs a bench as a user does, in its folder and without this package; returns the number of
    failed tests."""
    # cocotb names its results differently when it runs inside a pytest test.
    left_out = ("PYTHONPATH", "PYTEST_CURRENT_TEST")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    subprocess.run([sys.executable, bench.name], cwd=bench.parent, env=environment, check=False)
    results = ET.parse(next(bench.parent.rglob("results.xml"))).getroot()
    assert len([*results.iter("testcase")]) == 2
    return len([*results.iter("failure")])


@pytest.mark.campaign
def test_fusesoc_lints_it(folder: Path) -> None:
    environment = {
        **os.environ,
        "VERILATOR_ROOT": str(package()),
        "PATH": f"{package() / 'bin'}{os.pathsep}{os.environ['PATH']}",
    }
    subprocess.run(
        ["fusesoc", "--cores-root", ".", "run", "--target", "lint", "seustream_small_axi"],
        cwd=folder / "axi", env=environment, check=True,
    )  # fmt: skip
