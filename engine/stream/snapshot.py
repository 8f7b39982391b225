"""The format in which every operator saves its state: one codec, versioned and checked.

    magic 4 · format version 2 · length of the header 8 · header (JSON) · Arrow tables · digest 16

The header names the kind of operator and the version of its state, holds the JSON values, and gives
each table's length. The digest covers everything before it, so a flipped bit is found.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from seustream.engine.stream.errors import EngineError

MAGIC = b"SEUS"
VERSION = 1
_DIGEST = 16
_LENGTH = 14  # bytes before the header


class SnapshotDamaged(EngineError):
    """Bytes that are not a snapshot of this kind and version."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An operator's state: plain values for JSON, and tables by name."""

    kind: str
    plain: dict[str, Any] = field(default_factory=dict)
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    version: int = 1

    def pack(self) -> bytes:
        parts = {name: _written(table) for name, table in self.tables.items()}
        header = json.dumps(
            {
                "kind": self.kind,
                "version": self.version,
                "plain": self.plain,
                "tables": [[name, len(part)] for name, part in parts.items()],
            },
            separators=(",", ":"),
        ).encode()
        lead = MAGIC + VERSION.to_bytes(2, "little") + len(header).to_bytes(8, "little")
        body = b"".join((lead, header, *parts.values()))
        return body + _digest(body)


def unpack(data: bytes, kind: str, *versions: int) -> Snapshot:
    """Returns the state in `data`; raises `SnapshotDamaged` unless it is whole, of this kind and
    of one of the versions, 1 if none is given."""
    header, rest = _opened(data)
    version, wanted = header["version"], versions or (1,)
    if header["kind"] != kind or version not in wanted:
        has, one = f"{header['kind']} {version}", f"{kind} {' or '.join(map(str, wanted))}"
        raise SnapshotDamaged(f"a snapshot of {has} where one of {one} is wanted")
    return Snapshot(kind, header["plain"], _tables(header, rest), version)


def opened(data: bytes) -> Snapshot:
    """Returns a state of any kind and version."""
    header, rest = _opened(data)
    return Snapshot(header["kind"], header["plain"], _tables(header, rest), header["version"])


def kind_of(data: bytes) -> str:
    """Returns the kind of operator whose state this is."""
    kind: str = _opened(data)[0]["kind"]
    return kind


def tables_of(data: bytes) -> dict[str, pa.Table]:
    """Returns the tables of a state of any kind."""
    return _tables(*_opened(data))


def plain_of(data: bytes) -> dict[str, Any]:
    """Returns the plain values of a state of any kind."""
    plain: dict[str, Any] = _opened(data)[0]["plain"]
    return plain


def _opened(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Returns the header of a state and the bytes of its tables; raises `SnapshotDamaged` unless it
    is whole."""
    if len(data) < _LENGTH + _DIGEST or data[:4] != MAGIC:
        raise SnapshotDamaged("this is no snapshot")
    if (found := int.from_bytes(data[4:6], "little")) != VERSION:
        raise SnapshotDamaged(f"a snapshot of format {found}, this release reads {VERSION}")
    body, digest = data[:-_DIGEST], data[-_DIGEST:]
    if _digest(body) != digest:
        raise SnapshotDamaged("a snapshot whose bytes have changed")
    end = _LENGTH + int.from_bytes(data[6:_LENGTH], "little")
    return json.loads(data[_LENGTH:end]), body[end:]


def _tables(header: dict[str, Any], rest: bytes) -> dict[str, pa.Table]:
    tables, end = {}, 0
    for name, length in header["tables"]:
        tables[name] = pa.ipc.open_stream(pa.py_buffer(rest[end : end + length])).read_all()
        end += length
    return tables


def _written(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as file:
        file.write_table(table)
    return bytes(sink.getvalue())


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST).digest()
