"""The reference page of functions and aggregates, written from the registry."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.language.functions import FUNCTIONS
from seustream.compiler.language.registry import AggregateFunction, ArgumentKind, ScalarFunction

_HEAD = """\
# Functions

The functions and aggregates of all three languages, as the registry has them (`python -m tests.docs.refresh`
writes this page). A function of NULL is NULL unless it says otherwise. One that has no value although all its
arguments have one is a *fault*: its value is NULL, and it is counted at its place; under `--strict` it is an error.

## Scalar functions

| function | takes | gives | example |
|---|---|---|---|
"""

_MIDDLE = """
## Aggregates

Each may have `DISTINCT` before its argument and `FILTER (WHERE condition)` behind it. A row counts unless an
argument is NULL; of no rows `count` and `approx_count_distinct` are 0, all others NULL. What is *kept by removal* takes
away the rows that leave a window; the others are merged from parts of the window.

| aggregate | takes | gives | kept by | example |
|---|---|---|---|---|
"""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _takes(lists: Sequence[Sequence[ArgumentKind]], optional: int, variadic: bool = False) -> str:
    """Shows the arguments of a function with one or several lists of them; those of the first that
    may be left out come last."""
    fewest, shown = min(len(lists[0]) - optional, *map(len, lists)), ""
    for place, kinds in enumerate(itertools.zip_longest(*lists)):
        names = dict.fromkeys(kind.name for kind in kinds if kind is not None)
        if "a number" in names:
            names.pop("an integer", None)
        name = " or ".join(names)
        if place < fewest:
            shown += ", " * bool(shown) + name
        else:
            shown += f" [, {name}]" if shown else f"[{name}]"
    return (shown or "nothing") + ", …" * variadic


def _names(entry: ScalarFunction | AggregateFunction) -> str:
    return ", ".join(f"`{name}`" for name in (entry.name, *entry.aliases))


def text() -> str:
    """Returns the whole page."""
    rows = [
        f"| {_names(f)} | {_takes([f.parameters, *(o.parameters for o in f.overloads)], f.optional, f.variadic)} | {_cell(f.doc)}"
        f" | `{_cell(f.example)}` |\n"
        for _, f in sorted(FUNCTIONS.items())
        if not f.hidden
    ]
    aggregates = [
        f"| {_names(a)} | {_takes([a.parameters], a.optional)} | {_cell(a.doc)}"
        f" | {'removal' if a.remove is not None else 'merging'} | `{_cell(a.example)}` |\n"
        for a in AGGREGATES.values()
    ]
    return _HEAD + "".join(rows) + _MIDDLE + "".join(aggregates)
