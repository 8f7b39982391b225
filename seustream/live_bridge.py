"""Runs queries behind a bridge: the result of `connect` for an address."""

from __future__ import annotations

import json
import secrets
import warnings
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from seustream.api import DataWarning
from seustream.compiler.pipeline import Compilation, Options
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.errors import BridgeError
from seustream.hdl.config import DeviceConfig
from seustream.live import LiveQueries
from seustream.texts import NAME, compiled, translated

_UNREAD = (0, 0)


class BridgeQueries(LiveQueries):
    """Writes to and reads from the queries behind a bridge."""

    def __init__(
        self,
        url: str,
        token: str | None,
        certificate: bytes | None,
        slack: int | None,
        strict: bool,
        writer: str | None,
    ) -> None:
        self._client = client = BridgeClient(url, token, certificate, 10)
        super().__init__(
            Options(DeviceConfig.from_json(json.dumps(client.health(patience=5)["config"])))
        )
        self._how = p.Run(slack=slack, strict=strict)
        self._writer = writer or f"python-{secrets.token_hex(6)}"
        epochs = client.status().get("writer_epoch", {}) if writer else {}
        self._epoch = epochs.get(writer, -1) + 1
        self._has_session = False
        self._standing: Compilation | None = None  # the catalogue as it was last seen
        self._loaded: set[str] = set()  # queries whose results wait for readers
        self._read: dict[str, tuple[int, int]] = {}  # by query, the run and results read
        self._failed: dict[str, str] = {}
        with translated():
            self._catch_up()

    def close(self) -> None:
        self._finished = True
        self._client.close()

    def _catch_up(self) -> None:
        """Compiles what this or other clients have added to the catalogue since."""
        standing = self._client.act("catalogue")["text"]
        if not standing:
            return
        before, known = self._standing, "" if self._standing is None else self._standing.source.text
        if standing != known:
            on = before if before is not None and standing.startswith(known) else None
            rest = standing.removeprefix(known) if on is not None else standing
            self._standing = compiled(on, rest, self._options)
        self._compiled, self._has_session = self._standing, True

    def _install(self, c: Compilation, text: str, asked: Compilation) -> list[str]:
        if not self._has_session and not c.program.names:
            return self._answers(asked)  # streams come with the first query
        if not self._has_session:
            self._client.load(c, self._how)
            self._has_session = True
            self._loaded = {*c.program.names}
            self._read = dict.fromkeys(c.program.names, _UNREAD)
            return self._answers(asked)
        # No retry if the answer is lost: this very statement would have taken a name.
        found = self._client.act("statement", p.Statement(text, NAME), patience=0)
        for name in found["dropped"]:
            self._read.pop(name, None)
            self._failed.pop(name, None)
        self._read |= {one["name"]: _UNREAD for one in found["registered"]}
        self._loaded -= {*found["dropped"], *(one["name"] for one in found["registered"])}
        return list(found["shown"])

    def _subscribe(self, query: str) -> None:
        self._read.setdefault(query, _UNREAD)

    def _queries(self) -> list[dict[str, Any]]:
        return list(self._client.act("query-list")["queries"])

    def _push(self, stream: str, rows: pa.Table) -> None:
        if not rows.num_rows or not self._reads(stream):
            return
        stage = p.Stage(self._writer, stream, self._epoch, 0, secrets.token_hex(8))
        with self._client.stage(stage) as part:
            part.write(rows)
        assert part.staged is not None
        seen = {} if part.highest is None else {stream: part.highest}
        commit = p.Commit(self._writer, self._epoch, (part.staged,), seen)
        self._client.commit(commit)
        self._epoch += 1

    def _reads(self, stream: str) -> bool:
        """Returns whether the bridge has the stream, through this connection or another client's
        queries."""
        if self._has_session:
            return True
        there = self._client.act("query-list")["streams"]
        return any(one["name"].lower() == stream.lower() for one in there)

    def _end(self, stream: str) -> None:
        if self._reads(stream):
            self._client.end(stream)

    def _watermark(self, stream: str, timestamp: int) -> None:
        if self._reads(stream):
            self._client.promise(stream, timestamp)

    def _results(self) -> Iterator[tuple[str, pa.Table]]:
        if self._read:
            self._client.flush()
        for name, (run, start) in list(self._read.items()):
            try:
                if name in self._loaded:
                    self._client.trim(name, start)
                found = self._client.latest(name)
            except BridgeError as error:
                if error.kind != "unknown":
                    raise
                self._read.pop(name)  # another client has dropped it
                self._failed.pop(name, None)
                continue
            if found["run"] != run:  # or replaced it
                start = 0
            if found["first"] > start:
                said = f"{name}: {found['first'] - start:,} results are not kept any more"
                warnings.warn(said, DataWarning, stacklevel=4)
            first, end = max(start, found["first"]), found["end"]
            if end > first:
                yield name, self._client.read(name, first, end)
            self._read[name] = found["run"], end
            self._failed.pop(name, None)
            if found["over"] and (why := self._why(name, end)):
                self._failed[name] = why

    def _why(self, query: str, end: int) -> str | None:
        """Returns why a query gives no results beyond these, if it has failed."""
        try:
            self._client.latest(query, end)
        except BridgeError as error:
            if error.kind == "failed":
                return str(error)
            raise
        return None

    def _failures(self) -> dict[str, str]:
        return self._failed

    def _finish(self) -> Iterator[tuple[str, pa.Table]]:
        if self._has_session:
            self._client.end()
        yield from self._results()
