"""SEUSTREAM's Python interface: `import seustream`. The command line is in `seustream.cli`.

    import seustream as ss
    out = ss.run("SELECT a FROM R WINDOW NOW", R=frame)     # rows that are complete
    con = ss.connect()                                      # rows as they arrive

Names are loaded on first use, so that commands start fast.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seustream.api import DataWarning, run
    from seustream.errors import Error, QueryError
    from seustream.live import LiveQueries, connect
    from seustream.results import Explanation, QueryResult

__all__ = [
    "DataWarning",
    "Error",
    "Explanation",
    "LiveQueries",
    "QueryError",
    "QueryResult",
    "connect",
    "run",
]

_PLACES = {
    "DataWarning": "api",
    "Error": "errors",
    "Explanation": "results",
    "LiveQueries": "live",
    "QueryError": "errors",
    "QueryResult": "results",
    "connect": "live",
    "run": "api",
}


def _version() -> str:
    """Returns the version of the tag that this was built from; the build stores it in a file."""
    try:
        with open(os.path.join(os.path.dirname(__file__), "version.txt"), encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return UNKNOWN


UNKNOWN = "0+checkout"
"""The version of a checkout that is used without being built."""

__version__ = _version()


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'seustream' has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(f"seustream.{_PLACES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
