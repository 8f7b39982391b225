"""Query texts passed from Python: streams described by frames, and errors with one base class."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from seustream.compiler.errors import CompileError, Problems, SourceText, Span
from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.compiler.xsql.statements import split, written
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.security import AddressRefused
from seustream.cosim.link.errors import LinkError
from seustream.cosim.verilated.build import BuildFailed
from seustream.engine.stream.errors import EngineError
from seustream.errors import Error, InputError, QueryError
from seustream.hdl.device import LoadRefused

NAME = "<sql>"


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Raises every error caused by the user as one of `seustream.Error`."""
    try:
        yield
    except Error:
        raise
    except CompileError as error:
        first = error.problems[0]
        line, column = error.source.position(first.span.start)
        raise QueryError(str(error), first.hint, line, column) from None
    except (EngineError, LoadRefused, BridgeError, AddressRefused, LinkError, BuildFailed) as error:
        raise QueryError(str(error), getattr(error, "hint", None)) from error


def check_text(**given: object) -> None:
    """Raises for an argument that is no text: callers need not check their types."""
    for name, value in given.items():
        if not isinstance(value, str):
            raise InputError(f"{name} = {value!r}: want a text")


def text_of(sql: str | Path) -> str:
    """Returns a text, or that of a file."""
    if isinstance(sql, str):
        return sql
    if not isinstance(sql, Path):
        raise InputError(
            f"queries are a text or the Path of a file, not {type(sql).__name__}",
            "such as: SELECT … FROM orders …",
        )
    try:
        return sql.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:  # ValueError: no UTF-8, or a null in the name
        raise InputError(f"{sql}: cannot be read: {error}") from None


def compiled(after: Compilation | None, text: str, options: Options) -> Compilation:
    """Compiles a text after an earlier one, which is not compiled again; its errors, and the faults
    of its queries, have places in the new text alone."""
    known = "" if after is None else after.source.text
    glue = "" if not known or known.endswith(";\n") else "\n;\n"
    shift = len(known) + len(glue)
    try:
        c = compile_text(glue + text, NAME, options, after=after)
    except CompileError as error:
        problems = [
            replace(p, span=Span(max(p.span.start - shift, 0), max(p.span.end - shift, 0)))
            for p in error.problems
        ]
        raise CompileError(SourceText(text, NAME), problems) from None
    earlier = () if after is None else after.source.parts
    return replace(c, source=replace(c.source, parts=(*earlier, shift)))


def lasting(text: str) -> str:
    """Blanks the statements that only ask: SHOW, DESCRIBE and EXPLAIN."""
    source = SourceText(text, NAME)
    for span in split(text, Problems()):
        first = next(written(source, span)).group().split()[0].upper()
        if first in ("SHOW", "DESCRIBE", "EXPLAIN"):
            text = text[: span.start] + " " * (span.end - span.start) + text[span.end :]
    return text
