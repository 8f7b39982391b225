"""A bridge for living queries, and what its clients do: send statements and rows, and read
results."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from seustream.compiler.apas.libraries import Libraries
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.bridge import Bridge
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.limits import USUAL, Limits
from seustream.cosim.bridge.service import IDLE
from tests.cosim.bridge.serving import bridge, feed_epoch

STREAM = "CREATE STREAM I (te bigint, v bigint);"
TEXT = "where $I.v > 5 select [x = $I.v]"
FEW = replace(USUAL, queries=2, query_text=200, live_rows=5, sources=2)


@contextlib.contextmanager
def served(
    folder: Path,
    limits: Limits = USUAL,
    libraries: Libraries | None = None,
    idle: float = IDLE,
) -> Iterator[tuple[Bridge, BridgeClient]]:
    """Yields a bridge in this process, and a client of it."""
    with (
        bridge(folder, limits=limits, libraries=libraries, idle=idle) as (made, url),
        BridgeClient(url, patience=2) as client,
    ):
        yield made, client


def say(client: BridgeClient, text: str) -> dict[str, Any]:
    return dict(client.act("statement", p.Statement(text, "some.xsql"), patience=0))


def register(client: BridgeClient, name: str = "q", text: str = TEXT) -> dict[str, Any]:
    return dict(client.act("query-register", p.Register(name, text, "some.apas"), patience=0))


def phases(client: BridgeClient) -> dict[str, str]:
    return {one["name"]: one["phase"] for one in client.act("query-list")["queries"]}


class Inserts:
    """Feeds stream I."""

    def __init__(self, client: BridgeClient) -> None:
        self.client, self.epoch, self.now = client, 0, 0

    def __call__(self, *values: int) -> None:
        """Feeds values, one per millisecond, and promises that the stream is past them."""
        ts = [self.now + place for place in range(len(values))]
        rows = pa.table({"ts": ts, "te": [t + 1 for t in ts], "v": list(values)})
        self.now += len(values)
        feed_epoch(self.client, self.epoch, {"I": rows})
        self.epoch += 1
        self.client.promise("I", self.now)
        self.client.flush()


def values(client: BridgeClient, name: str = "q", start: int = 0) -> list[tuple[object, ...]]:
    found = client.latest(name)
    rows = client.read(name, max(start, found["first"]), found["end"])
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))
