"""Patterns to explain, and the facts of EXPLAIN about them as plain values."""

from __future__ import annotations

from typing import Any

from seustream.compiler.explain.text import plain
from seustream.compiler.pattern.ir import MatchQuery
from seustream.engine.pattern.choice import Sample
from seustream.engine.pattern.explain import pattern


def facts(query: MatchQuery, seen: Sample | None = None) -> Any:
    return plain(pattern(query, seen))


TEXTS = [
    "PATTERN A; !N; B+ k; C WHERE a.x > 1 AND n.x > a.x AND k[i].x > k[i-1].x AND count(k) > 1"
    " WITHIN 5 ms USING NEXT RETURN *",
    "PATTERN A; B; C WHERE a.x < c.x WITHIN 5 ms RETURN a.x, c",
    "PATTERN A{2,3}; ANY b; !C PARTITION BY k WITHIN 5 ms RETURN count(a)",
]
