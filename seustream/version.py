"""The version of the package."""

from __future__ import annotations

import os

UNKNOWN = "0+checkout"
"""The version of a checkout that is used without being built."""


def _version() -> str:
    """Returns the version of the tag that this was built from; the build stores it in a file."""
    try:
        with open(os.path.join(os.path.dirname(__file__), "version.txt"), encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return UNKNOWN


VERSION = _version()
