"""The Flight service: a bridge on a socket.

    bridge = Bridge(device, folder, backend="golden")
    service = Service(bridge, "grpc://127.0.0.1:0")     # answers from here on
    ...
    service.stop(grace=5)
    bridge.close()

`Bridge` implements the operations, `Service` the calls. Whatever a client sends, it gets an answer or a
typed error, and the next client finds the service unaffected.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator

import pyarrow.flight as flight

from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.bridge import Bridge
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.exchanges import Exchange, cut, host_of
from seustream.cosim.bridge.idle import let_idle_streams_follow
from seustream.cosim.bridge.security import Calls, OpenGate

IDLE = 300.0
"""Seconds without a message on an exchange before its connection is ended."""
KNOCKS = 20.0
"""Calls per second that a host may make without the token; each further one ends its connection."""


class Service(flight.FlightServerBase):  # type: ignore[misc]  # untyped base
    """Maps Flight's calls to the bridge's, and its errors to typed ones."""

    def __init__(
        self,
        bridge: Bridge,
        location: str,
        token: str | None = None,
        tls: tuple[bytes, bytes] | None = None,
        idle: float = IDLE,
        client_ca: bytes | None = None,
    ) -> None:
        """With `client_ca`, only clients whose certificate it has signed pass the handshake."""
        self.bridge = bridge
        self._idle, self._down, self._port = idle, threading.Event(), 0
        self._knocks = Calls(KNOCKS, bridge.world.now)
        super().__init__(
            location,
            middleware={"gate": OpenGate(token)},
            tls_certificates=[tls] if tls is not None else None,
            verify_client=client_ca is not None,
            root_certificates=client_ca,
        )
        self._port = self.port
        self._watch = threading.Thread(target=self._watching, name="idle", daemon=True)
        self._watch.start()
        # It waits from the beginning: once the interpreter exits, no thread can be started.
        self._ending = threading.Thread(target=self._end, name="shutdown", daemon=True)
        self._ending.start()

    def _watching(self) -> None:
        """Ends connections with an idle exchange, and keeps idle streams from holding others back."""
        while not self._down.wait(min(1.0, self._idle / 4)):
            if self.bridge.has_session:
                with contextlib.suppress(BridgeError):
                    let_idle_streams_follow(self.bridge.session)
            for peer in self.bridge.exchanges.idle(self._idle):
                cut(self._port, peer)

    def stop(self, grace: float) -> bool:
        """Takes no more calls, and ends the running ones: after half of the grace, by ending their
        connections. Returns False if something of the server still runs when the grace is over."""
        until = time.monotonic() + grace
        self.bridge.stop()
        self._down.set()
        self._ending.join(grace / 2)
        if self._ending.is_alive():
            cut(self._port)
            self._ending.join(grace / 2)
        self._watch.join(max(0.0, until - time.monotonic()))
        return not (self._ending.is_alive() or self._watch.is_alive())

    def _end(self) -> None:
        self._down.wait()
        self.shutdown()

    @contextlib.contextmanager
    def _answering(self, context: flight.ServerCallContext) -> Iterator[None]:
        """Sends every internal failure to the client as a typed error."""
        try:
            self._let_in(context)
            if self.bridge.stopping.is_set():
                raise BridgeError("stopping", "the bridge is going down")
            self.bridge.calls.take(host_of(context.peer()))
            yield
        except BridgeError as error:
            self.bridge.counts.error(error.kind)
            raise error.to_flight() from None
        except (flight.FlightError, GeneratorExit):
            raise
        except Exception as error:
            self.bridge.counts.error("internal")
            what = f"{type(error).__name__}: {error}"
            raise BridgeError("internal", what).to_flight() from error

    def _let_in(self, context: flight.ServerCallContext) -> None:
        """Raises `BridgeError` (unauthenticated) for an unknown caller; cuts off one that tries too
        often."""
        caller = context.get_middleware("gate")
        if caller.refusal is None:
            return
        try:
            self._knocks.take(host_of(context.peer()))
        except BridgeError as error:
            self.bridge.counts.error(error.kind)
            cut(self._port, context.peer())
        raise caller.refusal

    def do_action(
        self, context: flight.ServerCallContext, action: flight.Action
    ) -> list[flight.Result]:
        with self._answering(context):
            body = action.body.to_pybytes() if action.body is not None else b""
            answer = self.bridge.act(action.type, body)
            return [flight.Result(json.dumps(answer).encode())]

    def list_actions(self, context: flight.ServerCallContext) -> list[tuple[str, str]]:
        with self._answering(context):
            return [(name, what) for name, (_, what) in p.ACTIONS.items()]

    def do_exchange(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.MetadataRecordBatchWriter,
    ) -> None:
        with self._answering(context):
            command = descriptor.command or b""
            if b'"lease"' in command[:20]:
                p.read(p.Lease, command)
                with self._exchange(context, "lease") as exchange:
                    self.bridge.lend(exchange.watched(reader), writer)
                return
            stage = p.read(p.Stage, command)
            with self._exchange(context, "stage") as exchange:
                staged = self.bridge.stage(stage, exchange.watched(reader))
                writer.write_metadata(p.write(staged))

    @contextlib.contextmanager
    def _exchange(self, context: flight.ServerCallContext, what: str) -> Iterator[Exchange]:
        """Counts an exchange, and keeps it while it is open."""
        with self.bridge.exchanges.open(context.peer()) as exchange:
            self.bridge.counts.call(what)
            yield exchange

    def do_get(
        self, context: flight.ServerCallContext, ticket: flight.Ticket
    ) -> flight.RecordBatchStream:
        with self._answering(context):
            rows = self.bridge.read(p.read(p.Read, ticket.ticket))
            return flight.RecordBatchStream(rows)

    def get_flight_info(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.FlightInfo:
        with self._answering(context):
            return self._info(_path(descriptor))

    def list_flights(
        self, context: flight.ServerCallContext, criteria: bytes
    ) -> Iterator[flight.FlightInfo]:
        with self._answering(context):
            found = self.bridge.queries() if self.bridge.health()["session"] else {}
            paths = [["stream", name] for name in found.get("streams", ())]
            for kind in ("queries", "swapped_out"):
                paths += [["query", name] for name in found.get(kind, ())]
            return iter([self._info(path) for path in paths])

    def _info(self, path: list[str]) -> flight.FlightInfo:
        """Returns flight info; that of a query has the ticket for all current results."""
        schema = self.bridge.schema(path)
        endpoints, rows = [], -1
        if path[0] == "query":
            log = self.bridge.session.reading.log(path[1])
            first, end = log.first, log.end
            rows = end - first
            ticket = p.write(p.Read(path[1], first, end))
            endpoints = [flight.FlightEndpoint(ticket, [])]
        descriptor = flight.FlightDescriptor.for_path(*path)
        return flight.FlightInfo(schema, descriptor, endpoints, rows, -1)


def _path(descriptor: flight.FlightDescriptor) -> list[str]:
    return [part.decode("utf-8", "replace") for part in descriptor.path or []]
