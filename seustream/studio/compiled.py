"""Shows a text: its problems, or every stage and the provenance of its parts."""

from __future__ import annotations

import bisect
import functools
import json
import re
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from seustream.compiler import explain as compiler
from seustream.compiler.catalogue import Stream
from seustream.compiler.errors import CompileError, Problem, Span, suggest
from seustream.compiler.explain.provenance import provenance
from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.language.functions import FUNCTIONS
from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.engine.explain import explain
from seustream.engine.pattern.explain import STAGES
from seustream.errors import Error, QueryError
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig

_DRAWN = ("tree", "graph", "routes", None)
"""Stages of the compiler that are drawn; None is the overview."""
_GRAMMARS = (
    ("language", "expressions"),
    ("xsql", "xsql"),
    ("pattern", "pattern"),
    ("pattern", "match_recognize"),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a compilation and its run. With `rows`, the streams are those of the dropped
    files."""

    config: str = "default"
    plan: str = "cost"
    streams: tuple[Stream, ...] = ()


def compilation(text: str, settings: Settings, stop_after: str = "split") -> Compilation:
    """Compiles for one simulated device, over input that ends."""
    options = Options(
        _configuration(settings.config), settings.plan, streams=settings.streams, bounded=True
    )
    return compile_text(text, "<query>", options, stop_after)


def _configuration(name: str) -> DeviceConfig:
    """Returns a configuration by name: a page must not have files of the server read."""
    if not isinstance(name, str) or name not in CONFIGURATIONS:
        hint = suggest(str(name), CONFIGURATIONS, "configurations")
        raise QueryError(f"there is no configuration {name!r}", hint)
    return CONFIGURATIONS[name]


def shown(text: str, settings: Settings) -> dict[str, Any]:
    """Returns everything the page shows of a text, as JSON; for a text with problems, only these."""
    try:
        c = compilation(text, settings)
    except CompileError as error:
        return {"problems": [_problem(error, problem) for problem in error.problems]}
    except Error as error:
        place = {"start": 0, "end": _Places(text).of(len(text)), "line": 1, "column": 1}
        return {"problems": [{"message": str(error), "hint": error.hint, "kind": "", **place}]}
    made, places = provenance(c), _Places(c.source.text)
    return {
        "problems": [],
        "queries": [query.name for query in c.program.relations],
        "streams": {
            stream.name: [[column.name, str(column.type)] for column in stream.columns]
            for stream in c.program.base
        },
        "areas": list(c.slot_names),
        "facts": json.loads(compiler.explain(c, None, "json")),
        "texts": _texts(c),
        "pictures": _pictures(c),
        "parts": [
            {"id": part.id, "label": part.label, "spans": [places.span(s) for s in part.spans]}
            for part in made.parts.values()
        ],
        "links": sorted(made.links),
    }


@functools.cache
def words() -> dict[str, list[str]]:
    """Returns the words of the languages from their own grammars and registries, for the editor."""
    grammars = files("seustream.compiler")
    found: set[str] = set()
    for room, name in _GRAMMARS:
        text = (grammars / room / f"{name}.lark").read_text("utf-8")
        for written in re.findall(r'"([A-Z_]+)"i|/([^/\n]+)/i', text):
            found |= set(re.findall(r"\b[A-Z_]{2,}\b", " ".join(written)))
    calls = sorted({*FUNCTIONS, *AGGREGATES})
    return {"keywords": sorted(found), "functions": [one.lower() for one in calls]}


def _texts(c: Compilation) -> dict[str, str]:
    """Returns every stage as text, by its name; those of patterns only if there are some."""
    found = {name: compiler.explain(c, name, "text") for name in compiler.SHOWN}
    if c.program.patterns:
        found |= {name: explain(c, name) for name in STAGES}
    return found | {one.name: explain(c, query=one.name) for one in c.program.asked_apas}


def _pictures(c: Compilation) -> dict[str, str]:
    """Returns the pictures worth showing: of some stages, of each pattern, of each APAS query."""
    found = {name or "overview": compiler.explain(c, name, "svg") for name in _DRAWN}
    names = [one.name for one in c.program.patterns] + [one.name for one in c.program.asked_apas]
    return found | {name: explain(c, None, "svg", name) for name in names}


class _Places:
    """Counts places of a text as a page does: a character beyond 16 bits is two."""

    def __init__(self, text: str) -> None:
        self._wide = [place for place, letter in enumerate(text) if ord(letter) > 0xFFFF]

    def of(self, place: int) -> int:
        return place + bisect.bisect_left(self._wide, place)

    def span(self, span: Span) -> list[int]:
        return [self.of(span.start), self.of(span.end)]


def _problem(error: CompileError, problem: Problem) -> dict[str, Any]:
    line, column = error.source.position(problem.span.start)
    start, end = _Places(error.source.text).span(problem.span)
    return {
        "kind": problem.kind,
        "message": problem.message,
        "hint": problem.hint,
        "start": start,
        "end": end,
        "line": line,
        "column": column,
    }
