"""Benchmarks are found, listed and imported from an installed command, which has neither `bench`
nor `tests` on its path."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from seustream.cli import main
from seustream.commands import bench
from seustream.hdl.boards.identity import processor_version
from tests.installed import installed

NAMES = sorted(bench.available())


def test_list(tmp_path: Path) -> None:
    code = "from seustream.cli import main; sys.exit(main(['bench', '--list']))"
    done = installed(code, tmp_path, ["duckdb", "amaranth", "cocotb"])
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()[2:]] == NAMES


def test_all_are_imported(tmp_path: Path) -> None:
    code = "from seustream.commands import bench\nfor name in bench.available():\n"
    done = installed(f"{code}    print(name, bench._load(name).TITLE)", tmp_path)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == NAMES


def test_a_clock_of_earlier_gateware_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "folder", lambda: tmp_path)
    assert bench.clocks("tiny") == []
    (tmp_path / "results").mkdir()
    head = ["board", "configuration", "processor", "MHz asked"]
    rows = [
        ["one", "tiny", f"{processor_version():08x}", 100.0],
        ["one", "small", f"{processor_version():08x}", 50.0],
        ["other", "tiny", "00000000", 80.0],
    ]
    (tmp_path / "results" / "boards.json").write_text(json.dumps({"head": head, "rows": rows}))
    assert bench.clocks("tiny") == [("one", 100.0), ("other (of earlier gateware)", 80.0)]


def test_a_package_that_is_missing(tmp_path: Path) -> None:
    code = "from seustream.cli import main; sys.exit(main(['bench', 'golden']))"
    done = installed(code, tmp_path, ["duckdb"])
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "seustream: the benchmark 'golden' needs the package 'duckdb'",
        "  hint: nox -s bench -- golden installs it",
    ]


def test_a_module_of_ours_that_is_missing(tmp_path: Path) -> None:
    code = "from seustream.cli import main; sys.exit(main(['bench', 'largest']))"
    done = installed(code, tmp_path, ["bench.boards"])
    assert done.returncode == 1
    assert "bench.boards" in done.stderr
    assert "internal error" in done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_what_is_drawn_has_a_seed_that_is_said(name: str) -> None:
    text = bench.available()[name].read_text("utf-8")
    drawn = re.search(r"default_rng\(|random\.Random\(|generator\(\)", text)
    measured = text.partition("\ndef measure(")[2].partition("\ndef ")[0]
    assert not drawn or re.search("seed", measured, re.IGNORECASE)


def test_where_and_of_what_a_run_is() -> None:
    found = bench.environment()
    assert "cores" in str(found["machine"])
    assert re.fullmatch(r"([0-9a-f]{7,}( \+ changes)?)?", str(found["commit"]))
    assert {"python", "pyarrow"} <= set(found["versions"])  # type: ignore[call-overload]


@pytest.mark.parametrize("name", NAMES)
def test_a_short_run_has_sizes_that_are_there(name: str) -> None:
    module = bench._load(name)
    short = getattr(module, "SHORT", {})
    assert set(short.get("PARTS", ())) <= set(getattr(module, "PARTS", ()))
    assert all(hasattr(module, constant) for constant in short)
    assert not short or short != {constant: getattr(module, constant) for constant in short}


def test_a_short_run_says_so_and_takes_its_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    taken: list[object] = []

    def measure(parts: Sequence[str] = ("a", "b")) -> bench.Measurement:
        taken.append((module.EVENTS, parts))  # type: ignore[attr-defined]
        return bench.Measurement(("n",), [(1,)], {}, "none")

    module = ModuleType("one")
    given = {"TITLE": "one", "EVENTS": 9, "PARTS": ("a", "b"), "measure": measure}
    vars(module).update(given, SHORT={"EVENTS": 2, "PARTS": ("b",)})
    (tmp_path / "results").mkdir()
    (tmp_path / "one.py").write_text("TITLE = 'one'\n")
    monkeypatch.setattr(bench, "folder", lambda: tmp_path)
    monkeypatch.setattr(bench, "_load", lambda name: module)
    for arguments, short in (
        (("one",), None),
        (("--short", "one"), True),
        (("--short", "one:a"), True),
    ):
        vars(module).update(given)
        assert main(["bench", *arguments]) == 0
        found = json.loads((tmp_path / "results" / "one.json").read_text())
        assert found.get("short") is short
    assert found["parts"] == ["a"]
    assert taken == [(9, ("a", "b")), (2, ("b",)), (2, ["a"])]
    capsys.readouterr()


def test_what_came_of_a_part_is_written_before_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "results" / "one.json"

    def measure(parts: Sequence[str]) -> bench.Measurement:
        rows = bench.measured_before("one", ("n",), lambda row: row[0] not in parts)
        if "c" in parts:
            raise KeyboardInterrupt
        found = [*rows, *((part,) for part in parts)]
        return bench.Measurement(("n",), found, {}, "none", remarks=(f"some of {parts}",))

    module = ModuleType("one")
    vars(module).update(TITLE="one", PARTS=("a", "b", "c"), measure=measure)
    written.parent.mkdir()
    (tmp_path / "one.py").write_text("TITLE = 'one'\nPART_BY_PART = True\n")
    monkeypatch.setattr(bench, "folder", lambda: tmp_path)
    monkeypatch.setattr(bench, "_load", lambda name: module)
    main(["bench", "one"])
    found = json.loads(written.read_text())
    assert found["rows"] == [["a"], ["b"]]
    assert found["remarks"] == ["some of ['a']", "some of ['b']"]
    capsys.readouterr()


def test_a_part_that_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "boards:ulx3s-tini"]) == 2
    assert "has no part 'ulx3s-tini'" in capsys.readouterr().err
    assert main(["bench", "compile:some"]) == 2
    assert "it has no parts" in capsys.readouterr().err
