"""The client of a site's service."""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa
import pyarrow.flight as flight

from seustream.compiler.catalogue import Stream as Definition
from seustream.cosim.bridge.errors import from_flight
from seustream.cosim.bridge.security import Address, Bearer
from seustream.engine.sites.codec import decode, encode
from seustream.engine.times import UNKNOWN, Tuples

CALL_SECONDS = 60.0
TIME = b"time"
"""The key, in the schema of a whole stream, of the type that its times have at the source."""


class Pass(Protocol):
    """The credentials of a call; a run's setup has them."""

    @property
    def token(self) -> str | None: ...
    @property
    def certificate(self) -> bytes | None: ...
    @property
    def session(self) -> str: ...


class Client:
    """One connection to a service, for one run. Calls raise `BridgeError`."""

    def __init__(self, address: str, of: Pass) -> None:
        options: dict[str, Any] = {}
        if of.token is not None:
            options["middleware"] = [Bearer(of.token)]
        if of.certificate is not None:
            options["tls_root_certs"] = of.certificate
        self.address, self._session = Address.parse(address), of.session
        self._connection = flight.connect(str(self.address), **options)
        self._options = flight.FlightCallOptions(timeout=CALL_SECONDS)

    def close(self) -> None:
        self._connection.close()

    def act(self, name: str, *arguments: object) -> Any:
        """Returns an action's answer."""
        action = flight.Action(name, encode((self._session, *arguments)))
        try:
            (answer,) = self._connection.do_action(action, self._options)
        except (flight.FlightError, OSError, pa.ArrowException) as error:
            raise from_flight(error) from None
        return decode(answer.body.to_pybytes())

    def tuples(self, definition: Definition) -> Tuples:
        """Returns a whole stream."""
        try:
            ticket = flight.Ticket(encode((definition,)))
            rows = self._connection.do_get(ticket, self._options).read_all()
        except (flight.FlightError, OSError, pa.ArrowException) as error:
            raise from_flight(error) from None
        noted = (rows.schema.metadata or {}).get(TIME)
        time = UNKNOWN if noted is None else decode(noted)
        return Tuples(rows.replace_schema_metadata(None), time)
