"""Simulates the network between clients and a bridge: Flight's calls, which are late, lost, repeated and cut.

A client calls the same methods as on a connection of Flight, and the bridge's own service answers. The
content of a call is not written and read again: the protocol's fuzzers do that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.bridge import Bridge
from seustream.cosim.bridge.service import Service
from tests.cosim.bridge.serving import Chunk
from tests.world.faults import Faults
from tests.world.simulation import Process, SimTask, Simulation

_GIVEN_UP = 5.0
"""Seconds until a client considers an answer lost."""


class SimService:
    """The service without its socket."""

    do_action = Service.do_action
    do_exchange = Service.do_exchange
    get_flight_info = Service.get_flight_info
    _answering, _exchange, _info = Service._answering, Service._exchange, Service._info

    def _let_in(self, context: Any) -> None:
        """Lets every client in: no token is required here."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge

    def do_get(self, context: Any, ticket: flight.Ticket) -> pa.Table:
        with self._answering(context):
            return self.bridge.read(p.read(p.Read, ticket.ticket))


class Network:
    def __init__(self, simulation: Simulation, faults: Faults) -> None:
        self.simulation, self.faults = simulation, faults
        self.server: tuple[Process, SimService] | None = None
        self.down_until = 0.0
        self.exchanges: list[SimExchange] = []
        self._peers = 0

    def connect(self, process: Process) -> Callable[..., SimConnection]:
        """Connects a process, as `flight.connect` does."""

        def dial(address: str, **options: Any) -> SimConnection:
            self._peers += 1
            return SimConnection(self, process, f"ipv4:10.0.0.{self._peers % 200}:{self._peers}")

        return dial

    def cut(self, peer: str) -> None:
        for exchange in [one for one in self.exchanges if one.peer == peer]:
            exchange.end("cut by the bridge")

    def pause(self) -> None:
        self.simulation.park(self.simulation.chance.random() * 0.01)

    def there(self) -> tuple[Process, SimService]:
        server = self.server
        if server is None or not server[0].alive or self.simulation.time < self.down_until:
            self.simulation.park(0.2)
            raise flight.FlightUnavailableError("nobody answers")
        return server

    def request(self, what: str, work: Callable[[SimService], Any]) -> Any:
        """Makes one call; returns its answer."""
        simulation, faults = self.simulation, self.faults
        self.pause()
        if faults.happens("request delayed", simulation.time):
            simulation.park(4 * faults.of("request delayed").random())
        process, service = self.there()
        if faults.happens("request lost", simulation.time):
            simulation.tell(f"network: {what} is lost")
            simulation.park(_GIVEN_UP)
            raise flight.FlightUnavailableError("no answer")
        if faults.happens("request repeated", simulation.time):
            simulation.tell(f"network: {what} comes twice")
            later = simulation.time + 3 * faults.of("request repeated").random()
            simulation.at(later, lambda: self._again(process, what, work))
        task = simulation.spawn(process, what, lambda: work(service))
        simulation.join(task)
        if faults.happens("answer lost", simulation.time):
            simulation.tell(f"network: the answer to {what} is lost")
            simulation.park(_GIVEN_UP)
            raise flight.FlightUnavailableError("no answer")
        self.pause()
        return _outcome(task)

    def _again(self, process: Process, what: str, work: Callable[[SimService], Any]) -> None:
        if self.server is not None and process.alive:
            service = self.server[1]
            self.simulation.spawn(process, f"{what} again", lambda: work(service))


def _outcome(task: SimTask) -> Any:
    if isinstance(task.error, flight.FlightError):
        raise task.error
    if task.error is not None or not task.process.alive:
        raise flight.FlightUnavailableError(f"the connection broke: {task.error}")
    return task.result


class SimConnection:
    """Behaves like `flight.FlightClient`."""

    def __init__(self, network: Network, process: Process, peer: str) -> None:
        self._network, self._process, self._peer = network, process, peer

    def peer(self) -> str:
        return self._peer

    def do_action(self, action: flight.Action) -> Any:
        return self._network.request(action.type, lambda one: one.do_action(self, action))

    def get_flight_info(self, descriptor: flight.FlightDescriptor) -> Any:
        return self._network.request("info", lambda one: one.get_flight_info(self, descriptor))

    def do_get(self, ticket: flight.Ticket) -> Rows:
        return Rows(self._network.request("read", lambda one: one.do_get(self, ticket)))

    def do_exchange(self, descriptor: flight.FlightDescriptor) -> tuple[Any, Any]:
        self._network.pause()
        server = self._network.there()
        made = SimExchange(self._network, self._process, self, server, descriptor)
        return made, made

    def close(self) -> None:
        """Does nothing, because nothing is held."""


class Rows:
    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def read_all(self) -> pa.Table:
        return self._rows


class SimExchange:
    """Both ends of an exchange: the client's writer and reader, and what the service reads from and
    writes to."""

    def __init__(
        self,
        network: Network,
        process: Process,
        connection: SimConnection,
        server: tuple[Process, SimService],
        descriptor: flight.FlightDescriptor,
    ) -> None:
        self.network, self.peer = network, connection.peer()
        self._inbox: list[Chunk] = []
        self._answers: list[Chunk] = []
        self._ended = self._silent = False
        self._waiting: list[SimTask] = []
        network.exchanges.append(self)
        service = server[1]
        far = SimpleEnd(self)
        self._task = network.simulation.spawn(
            server[0], "stage", lambda: service.do_exchange(connection, descriptor, far, far)
        )
        process.hooks.append(self._client_died)

    def _client_died(self) -> None:
        faults = self.network.faults
        silent = faults.happens("exchange half-open", self.network.simulation.time)
        if not silent and not self._silent:
            self.end("the client died")

    def end(self, why: str) -> None:
        self._ended = True
        if self in self.network.exchanges:
            self.network.exchanges.remove(self)
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for task in waiting:
            self.network.simulation.wake(task)

    def _wait(self, timeout: float | None = None) -> None:
        task = self.network.simulation.current
        assert task is not None
        self._waiting.append(task)
        self._task.joining.append(task)
        self.network.simulation.park(timeout)

    # --- the client's end -------------------------------------------------------

    def begin(self, schema: pa.Schema) -> None:
        """Does nothing: the schema comes with each batch."""

    def write_batch(self, batch: pa.RecordBatch) -> None:
        self._send(Chunk(batch, None))

    def write_metadata(self, metadata: bytes) -> None:
        self._send(Chunk(None, metadata))

    def _send(self, chunk: Chunk) -> None:
        simulation, faults = self.network.simulation, self.network.faults
        self.network.pause()
        if faults.happens("exchange cut", simulation.time):
            simulation.tell("network: an exchange is cut")
            self.end("cut")
        if faults.happens("exchange half-open", simulation.time):
            simulation.tell("network: an exchange goes silent")
            self._silent = True
        if self._ended or self._task.done:
            _outcome(self._task)
            raise flight.FlightUnavailableError("the exchange has ended")
        if not self._silent:
            self._inbox.append(chunk)
            self._wake()

    def read_chunk(self) -> Chunk:
        """Returns the service's answer."""
        until = self.network.simulation.time + 20
        while not self._answers:
            if self._task.done:
                _outcome(self._task)
            left = until - self.network.simulation.time
            if self._ended or self._task.done or left <= 0:
                raise flight.FlightUnavailableError("the exchange has ended")
            self._wait(left)
        return self._answers.pop(0)

    def close(self) -> None:
        self.cancel()

    def cancel(self) -> None:
        """Ends the exchange, but if it has gone silent, not even this reaches the service."""
        if not self._silent:
            self.end("closed")


class SimpleEnd:
    """The service's end."""

    def __init__(self, exchange: SimExchange) -> None:
        self._exchange = exchange

    def read_chunk(self) -> Chunk:
        one = self._exchange
        while not one._inbox:
            if one._ended:
                raise StopIteration
            one._wait()
        return one._inbox.pop(0)

    def write_metadata(self, metadata: bytes) -> None:
        one = self._exchange
        if not one._silent:
            one._answers.append(Chunk(None, metadata))
            one._wake()
