"""A site as a service: holds streams, and takes its part in runs.

with SiteService("grpc://127.0.0.1:0", {"R": lambda definition: read_timed(path, definition)}) as site:
    ...                                    # grpc://127.0.0.1:{site.port} has stream R
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.flight as flight

from seustream.compiler.catalogue import Stream as Definition
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.security import Gate
from seustream.cosim.sites.client import TIME
from seustream.cosim.sites.process import WAIT, Frame, Process, Setup, StoreOf
from seustream.engine.sites.codec import Malformed, decode, encode
from seustream.engine.sites.errors import FeederBlocked
from seustream.engine.sites.model import BlockRows, Result
from seustream.engine.times import Tuples

Source: TypeAlias = Callable[[Definition], Tuples]
"""Returns the tuples of a stream, once its definition is known."""


class SiteService(flight.FlightServerBase):  # type: ignore[misc]  # untyped base
    """Takes part in one run at a time: a new one replaces the last."""

    def __init__(
        self,
        location: str,
        sources: Mapping[str, Source] | None = None,
        token: str | None = None,
        tls: tuple[bytes, bytes] | None = None,
        store_of: StoreOf = lambda setup, node: None,
    ) -> None:
        self.sources = {name.lower(): source for name, source in (sources or {}).items()}
        self.process: Process | None = None
        self._rows: dict[str, pa.Table] = {}
        self._store_of = store_of
        self._acts: dict[str, Callable[..., object]] = {
            "exchange": self._exchange,
            "feed": self._feed,
            "submit": self._submit,
            "state": lambda process: process.state(),
            "results": self._results,
            "blocks": lambda process: process.report(),
            "close": self._close,
        }
        super().__init__(
            location,
            middleware={"gate": Gate(token)},
            tls_certificates=[tls] if tls is not None else None,
        )

    def close(self) -> None:
        if self.process is not None:
            self.process.close()
        self.shutdown()

    def __enter__(self) -> SiteService:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- calls ----------------------------------------------------------------------

    def do_action(
        self, context: flight.ServerCallContext, action: flight.Action
    ) -> list[flight.Result]:
        with _typed():
            session, *arguments = decode(action.body.to_pybytes())
            if action.type == "open":
                return [flight.Result(encode(self._open(*arguments)))]
            if action.type not in self._acts:
                raise BridgeError("unknown", f"there is no action {action.type}")
            process = self.process
            if process is None or process.setup.session != session:
                why = "it was started again, or another run has taken its place"
                raise BridgeError("no-session", f"the site knows nothing of this run: {why}")
            return [flight.Result(encode(self._acts[action.type](process, *arguments)))]

    def do_get(
        self, context: flight.ServerCallContext, ticket: flight.Ticket
    ) -> flight.RecordBatchStream:
        """Returns a whole stream, as its source has it, with the type of its times in the schema."""
        with _typed():
            (definition,) = decode(ticket.ticket)
            tuples = self._read(definition)
            noted = tuples.rows.replace_schema_metadata({TIME: encode(tuples.time)})
            return flight.RecordBatchStream(noted)

    def _read(self, definition: Definition) -> Tuples:
        source = self.sources.get(definition.name.lower())
        if source is None:
            known = ", ".join(self.sources) or "none"
            raise BridgeError(
                "unknown", f"it has no stream {definition.name}; its streams: {known}"
            )
        return source(definition)

    def _open(self, plain: tuple[Any, ...], number: int, attempt: int) -> dict[str, pa.DataType]:
        """Begins the part of a run; returns the type of the times of each stream that it feeds."""
        setup = Setup(*plain)
        if self.process is not None:
            if self.process.setup.session == setup.session and self.process.number != number:
                raise BridgeError(
                    "refused",
                    "this run has it under another address, too",
                    "call a site by one address, for all of its streams",
                )
            self.process.close()
        found = {d.name: self._read(d) for d in setup.streams(number)}
        self._rows = {name: tuples.rows for name, tuples in found.items()}
        self.process = Process(setup, number, attempt, self._store_of)
        self.process.start()
        return {name: tuples.time for name, tuples in found.items()}

    def _feed(self, process: Process) -> None:
        process.feed(self._rows)
        self._rows = {}

    def _exchange(self, process: Process, caller: int, frames: tuple[Frame, ...]) -> object:
        process.receive(frames)
        return () if caller else tuple(process.take(caller, WAIT))

    def _submit(self, process: Process, block: BlockRows) -> str:
        try:
            process.submit(block)
        except FeederBlocked:
            return "blocked"
        return "taken"

    def _results(self, process: Process, first: int) -> tuple[tuple[int, Result], ...]:
        return tuple(process.results[first:])

    def _close(self, process: Process) -> None:
        process.close()
        self.process = None


@contextlib.contextmanager
def _typed() -> Iterator[None]:
    """Converts errors for the client: those with a hint or messages are for the caller to fix."""
    try:
        yield
    except BridgeError as error:
        raise error.to_flight() from None
    except Malformed as error:
        raise BridgeError("malformed", str(error)).to_flight() from None
    except Exception as error:
        hint = getattr(error, "hint", None)
        if hasattr(error, "hint") or hasattr(error, "messages"):
            raise BridgeError("refused", str(error), hint).to_flight() from None
        raise BridgeError("internal", f"{type(error).__name__}: {error}").to_flight() from error
