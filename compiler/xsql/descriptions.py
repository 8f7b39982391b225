"""Describes streams and queries of all three languages, for DESCRIBE, SHOW CREATE and SHOW QUERIES.

before  Stream("R", (Column("a", INT, nullable=False),), out_of_orderness=5000)
after   CREATE STREAM R (a int NOT NULL) WITH (max_out_of_orderness = 5000)
"""

from __future__ import annotations

import re

from seustream.compiler.apas.compile import Compiled
from seustream.compiler.apas.tree import RESERVED
from seustream.compiler.catalogue import Stream
from seustream.compiler.language.types import list_of
from seustream.compiler.logical.levels import Node
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.fields import fields


def quoted(name: str) -> str:
    """Quotes a name so that any statement can contain it."""
    plain = re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) is not None
    return name if plain else f'"{name.replace(chr(34), chr(34) * 2)}"'


def statement_of(stream: Stream) -> str:
    """Returns the statement that defines a stream."""
    if stream.defined_by is not None:
        return f"CREATE STREAM {quoted(stream.name)} AS {stream.defined_by}"
    kind = "TABLE" if stream.table else "STREAM"
    columns = (
        f"{quoted(c.name)} {c.type}{'' if c.nullable else ' NOT NULL'}" for c in stream.columns
    )
    options = [] if stream.path is None else [f"path = {_text(stream.path)}"]
    if stream.out_of_orderness:
        options.append(f"max_out_of_orderness = {stream.out_of_orderness}")
    options += [f"late = '{stream.late}'"] * (stream.late != "drop")
    options += [] if stream.time is None else [f"time = {_text(stream.time)}"]
    if stream.idle_timeout is not None:
        options.append(f"idle_timeout = {stream.idle_timeout}")
    said = f" WITH ({', '.join(options)})" if options else ""
    return f"CREATE {kind} {quoted(stream.name)} ({', '.join(columns)}){said}"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def registration_of(query: Node) -> str:
    """Returns the statement that registers a query."""
    return f"REGISTER QUERY {quoted(query.name)} AS {text_of(query)}"


def text_of(query: Node) -> str:
    """Returns the text of a query, as it stands behind AS."""
    if isinstance(query, Compiled):
        text = f"APAS $$ {query.source.text.strip()} $$"
        return f"{text} WITH (strict)" if query.strict else text
    return query.written if isinstance(query, ir.MatchQuery) else query.text


def columns_of(query: Node) -> list[str]:
    """Returns the columns of a query's results, with their types."""
    if isinstance(query, Compiled):
        leaves = zip(query.tree.paths, query.tree.types, strict=True)
        times = (f"{name} bigint" for name in RESERVED)
        return [*times, *(f"{'.'.join(path)} {type}" for path, type in leaves)]
    if isinstance(query, ir.MatchQuery):
        return [
            f"{name} {e.type if each is None else list_of(e.type)}"
            for name, e, each in fields(query)
        ]
    return [f"{item.name} {item.expression.type}" for item in query.items]
