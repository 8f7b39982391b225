"""One device, several or none, and their services to clients: the actions, exchanges and results of
a bridge.

The devices serve one query set (a `Session`) or one lease at a time.
`seustream.cosim.bridge.service` puts it on a socket.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.pipeline import Options, compile_text
from seustream.cosim.bridge import lease, metrics
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.client import message_of
from seustream.cosim.bridge.disk import Disk
from seustream.cosim.bridge.epochs import PartWriter
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.exchanges import Exchanges
from seustream.cosim.bridge.journal import Journal
from seustream.cosim.bridge.limits import USUAL, Limits
from seustream.cosim.bridge.loading import compile_load, identity
from seustream.cosim.bridge.registry import Catalogue
from seustream.cosim.bridge.runner import check_queries
from seustream.cosim.bridge.security import Address, Calls
from seustream.cosim.bridge.session import Session
from seustream.cosim.bridge.sources import Note, Sources
from seustream.cosim.bridge.world import MACHINE, World
from seustream.engine.assembly import as_tuple
from seustream.engine.host.errors import RowsRefused
from seustream.engine.intake import accepted
from seustream.engine.stream.schema import stream_schema
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.hdl.device import Device

MOST_CALLS = 2000.0
"""Calls per second from one peer."""


class Bridge:
    """Serves one device, several or none. Without a device, `config` is the configuration for which
    clients compile, and the engine joins by itself. `folder` holds the journal; a session in it is
    resumed. `libraries` are those that APAS queries may call, and `note` is called with the events
    of sources. `disk` holds the folder, usually this machine's. With `fit` "strict" a statement is
    refused if no device has room for its query."""

    def __init__(
        self,
        devices: Device | Sequence[Device] | None,
        folder: Path,
        backend: str = "device",
        limits: Limits = USUAL,
        world: World = MACHINE,
        most_calls: float = MOST_CALLS,
        libraries: Libraries | None = None,
        note: Note | None = None,
        disk: Disk | None = None,
        strict: bool = False,
        config: DeviceConfig = CONFIGURATIONS["default"],
        fit: str = "auto",
    ) -> None:
        self.devices = devices if isinstance(devices, Sequence) else as_tuple(devices)
        self.config = self.devices[0].config if self.devices else config
        self.backend, self.limits = backend, limits
        self._libraries, self._note = libraries or Libraries(), note
        self._registry: Catalogue | None = None
        self.sources: Sources | None = None
        self._strict, self._fit = strict, fit
        self.journal = Journal(folder, disk)
        self.counts = metrics.ServiceCounts()
        self.calls = Calls(most_calls, world.now)
        self.world = world
        self.exchanges = Exchanges(world.now)
        self.stopping = world.event()
        self._lock = world.lock()
        self._leased = False
        self._session: Session | None = None
        self._resume()

    @property
    def has_session(self) -> bool:
        return self._session is not None

    @property
    def session(self) -> Session:
        session = self._session
        if session is None:
            raise _no_session()
        return session

    def registry(self) -> Catalogue:
        """Returns the catalogue of the session, or of an empty session that begins now."""
        with self._lock:
            self._resume()
            if self._registry is None:
                self._check_lease()
                options = Options(self.config, devices=len(self.devices), fit=self._fit)
                self._begin(message_of(compile_text("", "catalogue", options)))
            assert self._registry is not None
            return self._registry

    def _resume(self) -> None:
        """Resumes the session in the journal, if there is one and it does not run."""
        if self._session is None and Session.exists(self.journal):
            self._begin(None)

    def _begin(self, load: p.Load | None) -> Session:
        """Begins a session, or resumes the one in the journal."""
        if load is not None:
            load = self._as_run_here(load)
        session = Session(
            self.devices, self.journal, self.limits, load, self.world, self._libraries
        )
        self._session, self._registry = session, Catalogue(session, self._note)
        return session

    def listen(self, address: Address) -> Address:
        """Accepts live sources at an address; returns it with the port."""
        if self.sources is None:
            self.sources = Sources(self, self._note)
        return self.sources.listen(address)

    def stop(self) -> None:
        """Accepts nothing more, and ends the waiting calls with an error."""
        if self.sources is not None:
            self.sources.close()
        self.stopping.set()
        if self._registry is not None:
            self._registry.close()
        session = self._session
        if session is not None:
            session.stop()

    def close(self, patience: float | None = None, save: bool = False) -> bool:
        """Ends sources, queries and the thread, with `save` takes a snapshot, and releases the
        journal. Returns False if the thread is still working after `patience` seconds."""
        self.stop()
        with self._lock:
            try:
                return self._session is None or self._session.close(patience, save)
            finally:
                self.journal.close()

    # --- actions --------------------------------------------------------------

    def act(self, name: str, body: bytes) -> dict[str, Any]:
        """Returns an action's answer."""
        if name not in p.ACTIONS:
            raise BridgeError("unknown", f"there is no action {name!r:.40}", ", ".join(p.ACTIONS))
        request = p.read(p.ACTIONS[name][0], body)
        self.counts.call(name)
        match name, request:
            case "health", _:
                return self.health()
            case "status", _:
                return self.status()
            case "metrics", _:
                return {"text": metrics.prometheus(self.samples())}
            case "load", p.Load():
                return self.load(self._as_run_here(request))
            case "swap", p.Load():
                return self._swap(self._as_run_here(request))
            case "queries", _:
                return self.queries()
            case "reset", _:
                return self.reset()
            case "close", _:
                return self.forget()
            case "flush", p.Flush(wait_ms):
                self.session.flush(None if wait_ms is None else wait_ms / 1000)
                return {}
            case "statement", p.Statement():
                return self.registry().statement(request)
            case "query-register", p.Register():
                return self.registry().register(request)
            case "query-stop", p.Named():
                return self._known_queries(request.name).stop(request.name)
            case "query-log", p.QueryLog():
                return self._known_queries(request.name).log(request)
            case "latest", p.Latest():
                return self.session.reading.latest(request)
            case "trim", p.Trim():
                return self.session.reading.trim(request)
            case "query-list", _:
                return self.listed()
            case "catalogue", _:
                return self.catalogue()
        handler: Callable[[Any], dict[str, Any]] = getattr(self.session, name)
        return handler(request)

    def health(self) -> dict[str, Any]:
        session = self._session
        return {
            "protocol": p.VERSION,
            "backend": self.backend,
            "config": self.config.to_json(),
            "session": session.identity if session else None,
            "failure": session.failure if session else None,
            "storage": self.journal.trouble,
            "leased": self._leased,
            "queries": session.book.running if session else 0,
            "stopping": self.stopping.is_set(),
        }

    def samples(self) -> metrics.Samples:
        session, sources, name = self._session, self.sources, self.config.name
        return metrics.samples(self.counts, self.exchanges, session, self.backend, name, sources)

    def status(self) -> dict[str, Any]:
        found = {**self.health(), **metrics.as_object(self.samples())}
        session = self._session
        if session is not None:
            with session.changed:
                report = session.run.report
                found["faults"] = report.faults
                found["refused"] = dict(report.refused)
                found["bad_keys"] = dict(report.bad_keys)
                found["full"] = session.delivery.waits_for if session.delivery.full else None
        return found

    def _as_run_here(self, load: p.Load) -> p.Load:
        """Returns the query set, strict if this bridge is."""
        return replace(load, run=replace(load.run, strict=True)) if self._strict else load

    def load(self, load: p.Load) -> dict[str, Any]:
        with self._lock:
            self._resume()
            if self._session is not None:
                assert self._registry is not None
                if self._session.identity == identity(load) or self._registry.stands(load):
                    return {"session": self._session.identity, "already": True}
                raise BridgeError(
                    "in-use", "another query set is loaded", "swap to it, or close the session"
                )
            self._check_lease()
            program = compile_load(load, len(self.devices), self._libraries).program
            check_queries(program, load.run)
            return {"session": self._begin(load).identity, "already": False}

    def _swap(self, load: p.Load) -> dict[str, Any]:
        if (registry := self._registry) is None:
            raise _no_session()
        return registry.swap(load)

    def reset(self) -> dict[str, Any]:
        with self._lock:
            self.session.leave(again=True)
            self._end_session()
            return {"session": self._begin(None).identity, "already": False}

    def forget(self) -> dict[str, Any]:
        with self._lock:
            if self._session is not None:
                self._session.leave()
                self._end_session()
            elif self.journal.load is not None:
                self.journal.begin(None)
            else:
                return {"closed": False}
            return {"closed": True}

    def _end_session(self) -> None:
        """Ends what runs of a session that is no longer in the journal."""
        if self.sources is not None:
            self.sources.forget()
        if self._registry is not None:
            self._registry.close()
        if self._session is not None:
            self._session.close()
        self._session = self._registry = None
        self._reset_devices()

    def _reset_devices(self) -> None:
        for device in self.devices:
            device.reset()

    def _known_queries(self, name: str) -> Catalogue:
        """Returns the catalogue, if it may contain a query of this name."""
        if self._registry is None:
            raise BridgeError("unknown", f"there is no query {name!r:.60}", "none is registered")
        return self._registry

    def listed(self) -> dict[str, Any]:
        """Lists queries in order of registration, and the base streams."""
        if self._registry is None:
            return {"queries": [], "streams": []}
        entered = self.sources.states() if self.sources is not None else {}
        return {"queries": self._registry.listed(), "streams": self._registry.streams(entered)}

    def catalogue(self) -> dict[str, Any]:
        """Returns the statements that are in effect, and how they run; None without a session."""
        registry, session = self._registry, self._session
        if registry is None or session is None:
            return {"text": "", "run": None}
        return {"text": registry.text(), "run": asdict(session.latest_load.run)}

    def queries(self) -> dict[str, Any]:
        session = self.session
        program = session.compilation.program
        texts = {q.name: q.text for q in program.relations}
        texts |= {pattern.name: pattern.text for pattern in program.patterns}
        texts |= {c.name: c.source.text.strip() for c in program.asked_apas}
        return {
            "streams": {s.name: _columns(stream_schema(s)) for s in session.run.streams},
            "queries": {
                name: {"text": texts[name], "columns": _columns(session.reading.log(name).schema)}
                for name in program.names
            },
            "swapped_out": {
                name: {"columns": _columns(log.schema), "first": log.first, "end": log.end}
                for name, log in session.swapped_out.items()
            },
        }

    # --- exchanges ------------------------------------------------------------

    def stage(self, stage: p.Stage, reader: Any) -> p.Staged:
        """Writes rows to disk as they come; they count once the client states their number."""
        p.check_name("writer", stage.writer)
        p.check_name("staging", stage.staging)
        if stage.epoch < 0 or stage.partition < 0:
            raise BridgeError("malformed", "epochs and partitions count from 0")
        session = self.session
        stream = session.stream(stage.stream)
        session.epochs.check_writer(stage.writer, stage.stream)
        with PartWriter(self.journal, stage, stream_schema(stream)) as part:
            while True:
                chunk = _next(reader)
                if self.stopping.is_set():
                    # Regardless of what ended the rows, the client is to send them to the next
                    # bridge.
                    raise BridgeError("stopping", "the bridge is going down")
                if chunk is None:
                    with self.counts.lock:
                        self.counts.vanished += 1
                    raise BridgeError("malformed", "the rows end without an end message")
                if chunk.data is not None and chunk.data.num_rows:
                    part.write(self._taken(stream, chunk.data), chunk.data.num_rows)
                if part.content.rows > self.limits.epoch_rows:
                    what = f"more than {self.limits.epoch_rows:,} rows in an epoch"
                    raise BridgeError("too-large", what, "let the source give less at a time")
                if part.bytes > self.limits.epoch_bytes:
                    what = f"more than {self.limits.epoch_bytes:,} bytes in an epoch"
                    raise BridgeError("too-large", what, "let the source give less at a time")
                if full := session.over_memory():
                    raise BridgeError("busy", full, "read and trim results, or drop queries")
                if chunk.app_metadata is not None:
                    break
            said = p.read(p.StageEnd, bytes(chunk.app_metadata)).rows
            rows = part.content.rows + part.timeless
            if said != rows:
                raise BridgeError("conflict", f"{rows:,} rows came, the client sent {said:,}")
            return session.keep(part)

    def _taken(self, stream: Any, batch: pa.RecordBatch) -> pa.Table:
        """Returns a batch as rows of the stream, unless it is too large."""
        size = batch.nbytes
        if batch.num_rows > self.limits.batch_rows or size > self.limits.batch_bytes:
            raise BridgeError(
                "too-large",
                f"a batch of {batch.num_rows:,} rows, {size:,} bytes; at most"
                f" {self.limits.batch_rows:,} and {self.limits.batch_bytes:,}",
                "send several batches",
            )
        self.counts.staged(batch.num_rows, size)
        try:
            batch.validate(full=True)
            return accepted(stream, pa.Table.from_batches([batch]))
        except RowsRefused as error:
            raise BridgeError("schema", str(error), error.hint) from None
        except pa.ArrowInvalid as error:
            raise BridgeError("malformed", f"a batch that is none: {error}") from None

    def lend(self, reader: Any, writer: Any) -> None:
        """Lends the bare device to one client."""
        with self._lock:
            if self._session is not None:
                what = "the bridge serves a query set"
                raise BridgeError("in-use", what, "feed that one, or close the session")
            if not self.devices:
                hint = "load the queries here, or serve a device: --backend golden"
                raise BridgeError("refused", "this bridge joins without a device", hint)
            self._check_lease()
            self._leased = True
        try:
            lease.serve_device(self.devices[0], reader, writer, self.limits.batch_rows)
        finally:
            self._reset_devices()
            self._leased = False

    def _check_lease(self) -> None:
        if self._leased:
            raise BridgeError(
                "in-use", "another client holds the device", "wait until it is done, or stop it"
            )

    # --- results --------------------------------------------------------------

    def read(self, read: p.Read) -> pa.Table:
        rows = self.session.reading.read(read)
        with self.counts.lock:
            self.counts.calls["read"] += 1
            self.counts.sent += rows.num_rows
        return rows

    def schema(self, path: list[str]) -> pa.Schema:
        """Returns the schema of `stream/NAME` or `query/NAME`."""
        if len(path) != 2 or path[0] not in ("stream", "query"):
            raise BridgeError("malformed", "want the path stream/NAME or query/NAME")
        session = self.session
        if path[0] == "stream":
            return stream_schema(session.stream(path[1]))
        return session.reading.log(path[1]).schema


def _next(reader: Any) -> Any:
    """Returns the next chunk; None when the client is gone, for any reason."""
    try:
        return reader.read_chunk()
    except StopIteration:
        return None


def _no_session() -> BridgeError:
    return BridgeError("no-session", "no query set is loaded", "load one first")


def _columns(schema: pa.Schema) -> dict[str, str]:
    return {field.name: str(field.type) for field in schema}
