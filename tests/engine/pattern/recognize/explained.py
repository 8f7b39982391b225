"""Row patterns to explain, and the facts of EXPLAIN about them as plain values."""

from __future__ import annotations

from typing import Any

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.explain.text import plain
from seustream.compiler.language.types import INT
from seustream.compiler.pattern.ir import MatchQuery
from seustream.compiler.pattern.statements import compile_pattern
from seustream.engine.pattern.explain import pattern as shown_of

S = Stream("s", (Column("x", INT),))


def facts(of: MatchQuery) -> Any:
    return plain(shown_of(of))


def query(pattern: str, define: str) -> MatchQuery:
    text = f"SELECT * FROM s MATCH_RECOGNIZE (ORDER BY ts MEASURES count(*) AS n PATTERN ({pattern}) DEFINE {define})"
    return compile_pattern(text, S, bounded=True)
