"""Streams that an APAS query defines: its text is between $$ in a CREATE STREAM.

before  the text of the query, and the streams it may read
after   `Compiled`, and the stream of its results

A stream consists of points or, if it has an integer column te, of intervals. A result is a tuple at
the time its interval begins, with its end as column te, NULL if it never ends; the names of leaves in
groups are joined by _.
"""

from __future__ import annotations

from collections.abc import Mapping

from seustream.compiler.apas.compile import Compiled, compile_query
from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.apas.symbols import Schema
from seustream.compiler.apas.tree import RESERVED, Node, group, leaf
from seustream.compiler.catalogue import (
    NO_STREAM,
    STREAM_OF_TABLE,
    TIMESTAMP_NAMES,
    Column,
    Stream,
)
from seustream.compiler.errors import CompileError, Problems, SourceText, Span
from seustream.compiler.language import types
from seustream.compiler.language.bind import ParameterValue
from seustream.compiler.language.types import Kind

END = "te"
"""The column of an interval's end."""


def interval_stream(name: str, tree: Node) -> Stream:
    """Returns a stream of intervals: their ends and the leaves of a schema."""
    leaves = zip(tree.paths, tree.types, strict=True)
    return Stream(name, (Column(END, types.BIGINT), *(Column(".".join(p), t) for p, t in leaves)))


def leaves(stream: Stream) -> list[Column]:
    """Returns the columns that an APAS query sees, in the order of the leaves of `tree_of`."""
    seen = {c.name: c for c in _seen(stream)}
    return [seen[".".join(path)] for path in tree_of(stream).paths]


def tree_of(stream: Stream) -> Node:
    """Returns the schema that an APAS query sees: columns `at.x` and `at.y` are leaves of a group
    `at`."""
    root = group(stream.name)
    for column in _seen(stream):
        *groups, label = column.name.split(".")
        node = root
        for one in groups:
            inside = node.child(one)
            if inside is None:
                inside = group(one)
                node.children.append(inside)
            node = inside
        node.children.append(leaf(label, column.type))
    return root


def _seen(stream: Stream) -> list[Column]:
    return [c for c in stream.columns if c.name not in RESERVED and c.type.kind is not Kind.LIST]


def compile_apas(
    source: SourceText,
    span: Span,
    name: str,
    streams: Mapping[str, Stream],
    problems: Problems,
    libraries: Libraries,
    parameters: Mapping[str, ParameterValue] | None = None,
) -> Compiled | None:
    """Compiles the query at `span`; reports its problems and returns None if it has any."""
    known = [stream for stream in streams.values() if not (stream.unknown or stream.table)]
    catalogue = {stream.name: Schema(tree_of(stream)) for stream in known}
    text = " " * span.start + source.text[span.start : span.end]
    try:
        found = compile_query(text, catalogue, name, libraries, source.name, parameters)
    except CompileError as error:
        for problem in error.problems:
            place = max(problem.span, Span(span.start, span.start + 1))
            message, hint = problem.message, problem.hint
            named = source.text[place.start : place.end].removeprefix("$").partition(".")[0]
            read = streams.get(named.lower())
            if problem.kind == "UnknownStream" and read is not None and read.table:
                message, hint = f"{read.name} {NO_STREAM}", STREAM_OF_TABLE
            problems.add(problem.kind, message, place, hint)
        return None
    for stream in known:
        end = next((column for column in stream.columns if column.name == END), None)
        if end is not None and stream.name in found.versions and not end.type.is_integer:
            problems.add(
                "type-mismatch",
                f"column {END} of stream {stream.name} is {end.type}, and intervals end at a bigint",
                span,
                f"CREATE STREAM {stream.name} ({END} bigint, …), in milliseconds; or another name",
            )
            return None
    return found


def stream_of(name: str, c: Compiled, text: str, span: Span, problems: Problems) -> Stream:
    """Returns the stream of the query's results."""
    columns = [Column(END, types.BIGINT)]
    for path, type in zip(c.tree.paths, c.tree.types, strict=True):
        column = Column("_".join(path), type)
        taken = {*TIMESTAMP_NAMES, *(known.name.lower() for known in columns)}
        if column.name.lower() in taken:
            problems.add(
                "duplicate-name",
                f"stream {name} would have two columns {column.name}",
                span,
                "rename the attribute in the query's last select",
            )
        columns.append(column)
    return Stream(name, tuple(columns), text)
