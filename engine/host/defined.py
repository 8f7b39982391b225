"""Rows of streams that joins define, in order of their times.

A query that begins late may read streams behind the time that the join has reached. A row of such a
stream finds partners that came before it and are younger, so that the results of a step are out of
order, and later steps have earlier ones. The readers of a stream are promised that its rows are in
order: they wait until the watermark of the join has reached them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from seustream.compiler.logical.program import Query
from seustream.engine.stream.merge import Merger, never_late
from seustream.engine.stream.operator import Answer
from seustream.engine.stream.snapshot import Snapshot

_ANY = (1 << 64) - 1
"""Rows may be behind others by any time."""


class DefinedRows:
    """The rows of all streams that the joins among some queries define. Results of other queries
    wait for nothing."""

    def __init__(self, queries: Iterable[Query]) -> None:
        self._of: dict[str, tuple[Query, Merger]] = {}
        self.change(queries)

    def change(self, queries: Iterable[Query]) -> None:
        """Goes on with other queries; those that are the same keep their rows."""
        before = self._of
        self._of = {}
        for query in queries:
            if query.defines is not None and len(query.sources) > 1:
                known, merger = before.get(query.name, (None, None))
                if merger is None or known is not query:
                    merger = Merger([query.name], _ANY, never_late)
                self._of[query.name] = query, merger

    def in_order(self, answers: Iterable[Answer]) -> Iterator[Answer]:
        """Yields the answers that need not wait."""
        for name, rows in answers:
            if name in self._of:
                self._of[name][1].push(name, rows)
            else:
                yield name, rows

    def released(self, watermark: int) -> Iterator[Answer]:
        """Yields the rows that nothing can precede any more; one at the next time may still have
        company, which comes behind it."""
        for name, (_, merger) in self._of.items():
            merger.advance(name, watermark)
            for part in merger.release(1 << 30):
                yield name, part.rows[0]

    def waiting(self) -> tuple[dict[str, str], dict[str, pa.Table]]:
        """Returns what waits, for a snapshot: the texts of queries, and rows by name."""
        texts, tables = {}, {}
        for name, (query, merger) in self._of.items():
            (queue,) = merger.queues
            if queue.runs:
                texts[name] = query.text
                tables[_table(name)] = merger.waiting_rows(name, queue.runs[0].rows.schema)
        return texts, tables

    def resume(self, state: Snapshot) -> None:
        """Continues with the rows that waited in another run, of queries whose text is the same."""
        texts: Mapping[str, str] = state.plain.get("held", {})
        for name, (query, merger) in self._of.items():
            if texts.get(name) == query.text:
                merger.push(name, state.tables[_table(name)])


def _table(query: str) -> str:
    return f"held {query}"
