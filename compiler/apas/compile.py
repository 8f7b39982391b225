"""Compiles APAS, top to bottom: text and schemas in, a network out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.errors import CompileError, Problem, SourceText, Span
from seustream.compiler.language.bind import ParameterValue

if TYPE_CHECKING:  # the first query imports the passes
    from seustream.compiler.apas.analyse import Analysed
    from seustream.compiler.apas.network import Network
    from seustream.compiler.apas.symbols import Schema
    from seustream.compiler.apas.syntax import ApasQuery
    from seustream.compiler.apas.tree import Node


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled query, ready to start. `versions` are those of the catalogue streams it read.
    `asked` marks results that are delivered as they are, not as a stream. Under `strict` its first
    fault is an error."""

    name: str
    source: SourceText
    query: ApasQuery
    analysed: Analysed
    network: Network
    asked: bool = False
    strict: bool = False

    @property
    def tree(self) -> Node:
        """Returns the output's schema."""
        return self.analysed.definitions[-1].tree

    @property
    def versions(self) -> dict[str, int]:
        return {name: schema.version for name, schema in self.analysed.symbols.met.items()}

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.analysed.warnings


def compile_query(
    text: str,
    catalogue: Mapping[str, Schema],
    name: str = "q0",
    libraries: Libraries | None = None,
    file: str = "<query>",
    parameters: Mapping[str, ParameterValue] | None = None,
) -> Compiled:
    """Compiles a query; raises `CompileError` with all of its problems."""
    from seustream.compiler.apas.analyse import analyse
    from seustream.compiler.apas.parse import parse
    from seustream.compiler.apas.plan import plan

    source = SourceText(text, file)
    try:
        query = parse(source)
        known = libraries or Libraries()
        analysed = analyse(source, query, catalogue, known, name, parameters or {})
        return Compiled(name, source, query, analysed, plan(analysed))
    except RecursionError:
        hint = "compute parts of it in attributes of their own"
        problem = Problem("Syntax", "nested too deep", Span(0, 1), hint)
        raise CompileError(source, [problem]) from None
