"""SEUSTREAM's Python interface: `import seustream`. The command line is in `seustream.cli`.

    import seustream as ss
    out = ss.run("SELECT a FROM R WINDOW NOW", R=frame)     # rows that are complete
    con = ss.connect()                                      # rows as they arrive

Names are loaded on first use, so that commands start fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seustream.version import VERSION

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

__version__ = VERSION


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'seustream' has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(f"seustream.{_PLACES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
