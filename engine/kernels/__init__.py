"""Compiled kernels: the row-by-row loops of the engine's operators.

Installing the package builds `native` (`setup.py`). In a checkout, an import rebuilds it if its
sources have changed since.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from seustream.engine.kernels.errors import KernelsMissing

_HERE = Path(__file__).resolve().parent
_ROOT = _HERE.parents[1]
_HINT = 'run "python -m pip install -e ." in the checkout; it needs g++ and the headers of Python'


def _stale() -> bool:
    built = max((file.stat().st_mtime for file in _HERE.glob("native.*.so")), default=0.0)
    return any(
        source.stat().st_mtime > built for source in (*_HERE.glob("*.h"), *_HERE.glob("*.cpp"))
    )


def _build() -> None:
    """Builds the module in place; if several processes import it, one of them builds it."""
    import fcntl  # not on every system

    with open(_ROOT / "setup.py") as lock, tempfile.TemporaryDirectory() as scratch:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _stale():
            return
        command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace", "--force"]
        done = subprocess.run(
            [*command, "--build-temp", scratch], cwd=_ROOT, text=True, capture_output=True
        )
        if done.returncode:
            raise KernelsMissing(
                f"the kernels of the engine do not build:\n{done.stderr}\n  hint: {_HINT}"
            )


if (_ROOT / "setup.py").exists() and _stale():
    _build()
