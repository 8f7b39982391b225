"""A site's rows on a device: the device finds the rows with a probe's key.

The device runs one query for each class of the stream. Stored rows stay for ever, a probe for its
moment.

    SELECT s.id, p.id FROM stored s, probes p WHERE s.k0 = p.k0 WINDOW UNBOUNDED, NOW

Keys of any type go there as hashes of 63 bits; windows, block numbers and true equality are checked
here. A device forgets nothing of an unbounded window. So once most of its rows are deleted, it is
emptied and loaded with the live rows again.

The device is passed in: a model, the RTL, or one behind a bridge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.engine.graph import GraphRun
from seustream.engine.sites.errors import BadQuery
from seustream.engine.sites.keys import Key, hashed
from seustream.engine.sites.model import EquiJoin, Partial, Stored, admitted, extend
from seustream.engine.sites.store import Ends
from seustream.engine.stream.schema import stream_schema
from seustream.hdl.config import MAX_ATTRIBUTES
from seustream.hdl.device import Device

FEWEST_DELETED = 256
"""Deleted rows up to which a device is not emptied."""


class DeviceStore:
    """The rows of one stream. The device belongs to this store alone."""

    def __init__(self, join: EquiJoin, stream: int, device: Device) -> None:
        self.join, self.stream, self.device = join, stream, device
        self.classes = join.classes_of(stream)
        if len(self.classes) > MAX_ATTRIBUTES:
            raise BadQuery(
                f"stream {join.streams[stream].name} is joined by {len(self.classes)} columns, a "
                f"device compares {MAX_ATTRIBUTES}",
                "keep its rows in memory",
            )
        self.compiled = _compiled(len(self.classes), device)
        self.stored, self.probes = (stream_schema(s) for s in self.compiled.streams)
        self.clear()

    def clear(self) -> None:
        self.live: dict[int, Stored] = {}
        self.number: dict[Stored, int] = {}
        self.ends = Ends()
        self.next = 0
        self._restart()

    def _restart(self) -> None:
        self.driver = GraphRun(self.compiled, self.device)
        self.clock, self.deleted = 0, 0

    def rows(self) -> Iterator[Stored]:
        return iter(self.live.values())

    def store(self, rows: Iterable[Stored]) -> None:
        new = {}
        for row in rows:
            new[self.next] = row
            self.number[row] = self.next
            self.ends.add(row)
            self.next += 1
        self.live |= new
        self._push_stored(new)

    def _push_stored(self, rows: dict[int, Stored]) -> None:
        self.clock += 1
        given = [
            {"ts": self.clock, "id": number, **_columns(dict(enumerate(row.values)))}
            for number, row in rows.items()
        ]
        self.driver.push("stored", pa.Table.from_pylist(given, self.stored))

    def probe(self, parts: Iterable[Partial], visible: int) -> list[Partial]:
        asked = list(parts)
        self.clock += 1
        given = []
        for number, part in enumerate(asked):
            place, value = next(
                (place, value)
                for place, c in enumerate(self.classes)
                if (value := part.values[c]) is not None
            )
            given.append({"ts": self.clock, "id": number, **_columns({place: value})})
        self.driver.push("probes", pa.Table.from_pylist(given, self.probes))
        found = []
        for stored, probe in self._answers():
            row = self.live.get(stored)
            if row is not None and row.tid[1] <= visible:
                extended = extend(self.join, asked[probe], row)
                if extended is not None:
                    found.append(extended)
        return admitted(self.join, self.stream, found)

    def _answers(self) -> list[tuple[int, int]]:
        """Returns pairs of stored row and probe. Rows without a key advance both streams, so that
        the driver waits for nothing."""
        self.clock += 1
        for name, schema in (("stored", self.stored), ("probes", self.probes)):
            self.driver.push(name, pa.Table.from_pylist([{"ts": self.clock, "id": -1}], schema))
        found: list[tuple[int, int]] = []
        for _, rows in self.driver.advance():
            stored, probe = (rows.column(place).to_pylist() for place in (0, 1))
            found += zip(stored, probe, strict=True)
        return found

    def expire(self, watermark: float) -> list[Stored]:
        gone = list(self.ends.before(watermark))
        for row in gone:
            del self.live[self.number.pop(row)]
        self.deleted += len(gone)
        if self.deleted > max(FEWEST_DELETED, len(self.live)):
            self._restart()
            self._push_stored(self.live)
        return gone


def _columns(values: dict[int, Key]) -> dict[str, int]:
    return {f"k{place}": hashed(value, 0, 1 << 63) for place, value in values.items()}


def _compiled(classes: int, device: Device) -> Compilation:
    keys = ", ".join(f"k{place} bigint" for place in range(classes))
    text = f"CREATE STREAM stored (id bigint, {keys}); CREATE STREAM probes (id bigint, {keys});"
    for place in range(classes):
        text += (
            f"REGISTER QUERY c{place} AS SELECT s.id AS row, p.id AS probe FROM stored s, probes p"
            f" WHERE s.k{place} = p.k{place} WINDOW UNBOUNDED, NOW;"
        )
    return compile_text(text, "site", Options(config=device.config))
