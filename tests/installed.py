"""Runs Python of this environment as if less were installed: no source tree on its path, and
without some packages."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path


def installed(
    code: str, folder: Path, without: Collection[str] = ()
) -> subprocess.CompletedProcess[str]:
    gone = f"import sys; sys.modules.update(dict.fromkeys({sorted(without)!r}))\n"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, "-P", "-c", gone + code],
        cwd=folder, env=environment, text=True, capture_output=True, timeout=300,
    )  # fmt: skip
