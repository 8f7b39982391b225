"""The bridge's client, which Spark's workers, the command line and programs use.

    with BridgeClient("grpc://127.0.0.1:8815") as bridge:
        bridge.load(compilation)
        with bridge.stage(Stage("me", "R", epoch=0, partition=0, staging="a")) as part:
            part.write(rows)
        bridge.commit(Commit("me", 0, (part.staged,)))
        for rows in bridge.results("q0"): ...

Calls that may be repeated are, for as long as `patience` allows, when the bridge is away or has no
room. A stage is not repeated, since its rows are gone.
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.flight as flight

from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.access import NONE, Access
from seustream.cosim.bridge.errors import BridgeError, from_flight
from seustream.cosim.bridge.security import Address, Bearer
from seustream.cosim.bridge.world import MACHINE, World

if TYPE_CHECKING:
    from seustream.compiler.pipeline import Compilation
    from seustream.cosim.bridge.lease import RemoteDevice

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0


class BridgeClient:
    """One connection. `token` and `certificate` (PEM, of the authority that signed the bridge's)
    are those the bridge was started with; `patience` is in seconds; `connect` returns a Flight
    client. `identity` is the client's own certificate (PEM) and key, if the bridge requires one."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        certificate: bytes | None = None,
        patience: float = 60.0,
        world: World = MACHINE,
        connect: Callable[..., Any] = flight.connect,
        identity: tuple[bytes, bytes] | None = None,
    ) -> None:
        self.address = Address.parse(url)
        self.patience = patience
        self._world, self._dial = world, connect
        self._options: dict[str, Any] = {}
        if certificate is not None:
            self._options["tls_root_certs"] = certificate
        if identity is not None:
            self._options["cert_chain"], self._options["private_key"] = identity
        if token is not None:
            self._options["middleware"] = [Bearer(token)]
        self._connection = self._connect()

    @classmethod
    def of(
        cls,
        url: str,
        access: Access = NONE,
        patience: float = 60.0,
    ) -> BridgeClient:
        """Connects with the content of files."""
        return cls(url, patience=patience, **access.read())

    def _connect(self) -> flight.FlightClient:
        return self._dial(str(self.address), **self._options)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> BridgeClient:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- control --------------------------------------------------------------

    def act(self, name: str, message: object = None, patience: float | None = None) -> Any:
        """Returns an action's answer; raises `BridgeError`."""
        body = b"" if message is None else p.write(message)

        def call() -> Any:
            results = list(self._connection.do_action(flight.Action(name, body)))
            return json.loads(results[0].body.to_pybytes())

        return self._repeated(call, patience)

    def health(self, patience: float | None = None) -> dict[str, Any]:
        return dict(self.act("health", patience=patience))

    def status(self, patience: float | None = None) -> dict[str, Any]:
        return dict(self.act("status", patience=patience))

    def metrics(self) -> str:
        return str(self.act("metrics")["text"])

    def load(self, compilation: Compilation, run: p.Run = p.PLAIN) -> dict[str, Any]:
        """Loads the query set to run; one that already runs continues."""
        return dict(self.act("load", message_of(compilation, run)))

    def swap(self, compilation: Compilation, run: p.Run = p.PLAIN) -> dict[str, Any]:
        return dict(self.act("swap", message_of(compilation, run)))

    def reset(self) -> None:
        self.act("reset")

    def forget(self) -> None:
        """Ends the session with its queries, rows and results."""
        self.act("close")

    def device(self) -> RemoteDevice:
        """Leases the bare device until it is closed, on a connection of its own."""
        # Spark's workers import this module each time anew, and need no device.
        from seustream.cosim.bridge.lease import RemoteDevice

        return RemoteDevice(self._connect())

    # --- rows in --------------------------------------------------------------

    def stage(self, stage: p.Stage) -> StageWriter:
        return StageWriter(self._connection, stage)

    def commit(self, commit: p.Commit) -> dict[str, Any]:
        return dict(self.act("commit", commit))

    def abort(self, writer: str, epoch: int) -> None:
        self.act("abort", p.Abort(writer, epoch))

    def promise(self, stream: str, timestamp: int) -> None:
        self.act("promise", p.Promise(stream, timestamp))

    def end(self, *streams: str) -> None:
        """Ends these streams, or all."""
        self.act("end", p.End(streams or None))

    def flush(self) -> None:
        self.act("flush")

    # --- results out ----------------------------------------------------------

    def schema(self, kind: str, name: str) -> pa.Schema:
        """Returns a schema; `kind` is "stream" or "query"."""
        descriptor = flight.FlightDescriptor.for_path(kind, name)
        return self._repeated(lambda: self._connection.get_flight_info(descriptor).schema)

    def latest(
        self, query: str, beyond: int = -1, wait_ms: int = 0, least: int = 1
    ) -> dict[str, Any]:
        return dict(self.act("latest", p.Latest(query, beyond, wait_ms, least)))

    def read(self, query: str, start: int, end: int, run: int | None = None) -> pa.Table:
        ticket = flight.Ticket(p.write(p.Read(query, start, end, run)))
        return self._repeated(lambda: self._connection.do_get(ticket).read_all())

    def trim(self, query: str, offset: int, reader: str = "") -> None:
        self.act("trim", p.Trim(query, offset, reader))

    def results(
        self, query: str, start: int = 0, reader: str = "", most: int = 1 << 16
    ) -> Iterator[pa.Table]:
        """Yields a query's results from an offset until the input is over. Each request trims the
        results handed out before it."""
        while True:
            self.trim(query, start, reader)
            found = self.latest(query, start, wait_ms=1000)
            end = min(found["end"], start + most)
            if end > start:
                yield self.read(query, start, end)
                start = end
            elif found["over"]:
                return

    # --- patience -------------------------------------------------------------

    def _repeated(self, call: Any, patience: float | None = None) -> Any:
        """Repeats a call until there is an answer, or a permanent error."""
        until = self._world.now() + (self.patience if patience is None else patience)
        pause = _FIRST_PAUSE
        while True:
            try:
                return call()
            except (flight.FlightError, pa.ArrowException, OSError) as error:
                found = from_flight(error)
                if not found.retriable or self._world.now() + pause > until:
                    raise found from None
            self._world.sleep(pause * (0.5 + self._world.chance()))
            pause = min(2 * pause, _LONGEST_PAUSE)


class StageWriter:
    """Writes the rows of one part; `staged` is set once it is closed without an error. Rows are
    sent as they are written, and writing waits when the bridge does not keep up."""

    def __init__(self, connection: flight.FlightClient, stage: p.Stage) -> None:
        self._stage, self._connection = stage, connection
        self._writer: Any = None
        self._reader: Any = None
        self.rows = 0
        self.staged: p.StagedPart | None = None
        self.highest: int | None = None

    def __enter__(self) -> StageWriter:
        return self

    def write(self, rows: pa.Table | pa.RecordBatch, most: int = 1 << 16) -> None:
        """Sends rows with the stream's columns; all of one part have the same schema."""
        try:
            if self._writer is None:
                self._begin(rows.schema)
            if isinstance(rows, pa.RecordBatch):
                rows = pa.Table.from_batches([rows])
            for batch in rows.to_batches(max_chunksize=most):
                self._writer.write_batch(batch)
        except (flight.FlightError, pa.ArrowException, OSError) as error:
            raise self._why(error) from None
        self.rows += rows.num_rows

    def close(self) -> p.StagedPart:
        """Ends the part; the bridge then has all of it on disk."""
        try:
            if self._writer is None:
                self._begin(None)
            self._writer.write_metadata(p.write(p.StageEnd(self.rows)))
            answer = p.read(p.Staged, bytes(self._reader.read_chunk().app_metadata))
            self._writer.close()
        except (flight.FlightError, pa.ArrowException, OSError, StopIteration) as error:
            raise self._why(error) from None
        self.staged, self.highest = p.StagedPart(answer.staging, answer.rows), answer.highest
        return self.staged

    def cancel(self) -> None:
        if self._writer is not None:
            self._reader.cancel()
            # Otherwise Arrow prints the error again when the writer is collected.
            with contextlib.suppress(flight.FlightError, pa.ArrowException):
                self._writer.close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if error is not None:
            self.cancel()
            return
        try:
            self.close()
        except BaseException:
            self.cancel()
            raise

    def _begin(self, schema: pa.Schema | None) -> None:
        descriptor = flight.FlightDescriptor.for_command(p.write(self._stage))
        self._writer, self._reader = self._connection.do_exchange(descriptor)
        if schema is not None:
            self._writer.begin(schema)

    def _why(self, error: Exception) -> BridgeError:
        """Returns the bridge's last error before it hung up, which a failed write does not contain."""
        if self._reader is not None and not getattr(error, "extra_info", b""):
            try:
                self._reader.read_chunk()
            except (flight.FlightError, pa.ArrowException, OSError, StopIteration) as said:
                if getattr(said, "extra_info", b""):
                    return from_flight(said)
        return from_flight(error)


def message_of(compilation: Compilation, run: p.Run = p.PLAIN) -> p.Load:
    """Returns the message that a bridge needs to run a compilation."""
    # Imported here for the same reason: Spark's workers never compile.
    from seustream.compiler.manifest import manifest

    image = base64.b64encode(compilation.image).decode()
    return p.Load(manifest(compilation, "image", brief=True), image, run)
