"""Adapts query sets of a journal to what can run here, without what no longer compiles.

A user's function may be gone, or a later version may refuse what an earlier one accepted. Such a
query has failed; it does not end the others, and can be dropped.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.errors import CompileError, Problems, SourceText
from seustream.compiler.manifest import ImageDiffers
from seustream.compiler.xsql.parse import parse
from seustream.compiler.xsql.statements import split
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.loading import compile_load
from seustream.cosim.bridge.statements import made_by


def standing(load: p.Load, devices: int, libraries: Libraries) -> tuple[p.Load, dict[str, str]]:
    """Returns the load without statements that do not compile, and those that depend on them; also
    the reason by query. Raises `BridgeError` if no statement of a query or derived stream is the
    cause."""
    lost: dict[str, str] = {}
    while True:
        try:
            compile_load(load, devices, libraries)
        except BridgeError as error:
            wrong = error.__cause__ and error.__cause__.__cause__
            data = json.loads(load.manifest)
            if isinstance(wrong, CompileError):
                rest, names = _without(wrong)
                if rest == wrong.source.text:
                    raise
                lost |= {name: why for name, why in names.items() if name not in lost}
                data["source"]["text"] = rest
            elif not isinstance(error.__cause__, ImageDiffers):
                raise
            # Devices get the image that this release compiles.
            data["options"]["devices"] = None
            load = replace(load, manifest=json.dumps(data))
        else:
            return load, lost


def _without(error: CompileError) -> tuple[str, dict[str, str]]:
    """Blanks the statements with problems in a text; also returns the reasons by the queries that
    they defined."""
    text, lost = error.source.text, {}
    for span in split(text, Problems()):
        here = [one for one in error.problems if span.start <= one.span.start < span.end]
        written = text[span.start : span.end]
        for statement in parse(SourceText(written), Problems()) if here else ():
            found = made_by(statement, [])
            if found is None or not found[2] or _is_base(written):
                continue
            if found[0] == "query":
                lost[found[1]] = error.source.render(here[0]).splitlines()[0]
            text = text[: span.start] + " " * len(written) + text[span.end :]
    return text, lost


def _is_base(written: str) -> bool:
    words: Sequence[str] = written.upper().split()
    return words[:1] == ["CREATE"] and "AS" not in words
