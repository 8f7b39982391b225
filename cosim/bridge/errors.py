"""Errors of the bridge: one kind of error in the service, on the wire and in the client.

On the wire an error is a Flight error whose `extra_info` is JSON: kind, message, hint.
"""

from __future__ import annotations

import json

import pyarrow.flight as flight

RETRIABLE = ("busy", "storage", "stopping", "rate-limited", "unavailable")
"""Kinds that are not the fault of the request: the same one may succeed later."""

KINDS = {
    "unauthenticated": "no token, or a wrong one",
    "malformed": "a message that is none, or lacks something",
    "unknown": "an action, stream, query or staged part there is not",
    "compile": "a query text with errors, each with its place and hint",
    "refused": "an image, a query set, a query or a swap the bridge does not take",
    "in-use": "the device serves another query set, or another client holds it; a live query's name",
    "no-session": "no query set is loaded",
    "schema": "rows that are not of their stream",
    "too-large": "a batch, an epoch or a text over the limit",
    "conflict": "a stream that another writer feeds, or an epoch that was something else",
    "gap": "an epoch, or a range of results, that does not follow what came before",
    "trimmed": "results that were given up as read",
    "failed": "the run stopped: its queries cannot go on",
    "busy": "no room now; results wait for a reader",
    "storage": "the journal cannot be written; reads go on",
    "stopping": "the bridge is going down",
    "rate-limited": "more calls than one client may make",
    "unavailable": "nobody answers there",
    "internal": "a fault of the bridge",
}


class BridgeError(Exception):
    """`kind` is one of KINDS; `hint` suggests what might help."""

    def __init__(self, kind: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.kind, self.hint = kind, hint

    def __reduce__(self) -> tuple[type[BridgeError], tuple[str, str, str | None]]:
        """Supports pickling, which Spark uses to send errors from its workers."""
        return BridgeError, (self.kind, str(self), self.hint)

    @property
    def retriable(self) -> bool:
        return self.kind in RETRIABLE

    def to_flight(self) -> flight.FlightError:
        info = json.dumps({"kind": self.kind, "message": str(self), "hint": self.hint})
        make = {
            "unauthenticated": flight.FlightUnauthenticatedError,
            "unavailable": flight.FlightUnavailableError,
            "stopping": flight.FlightUnavailableError,
        }.get(self.kind, flight.FlightServerError)
        return make(f"{self.kind}: {self}", extra_info=info.encode())


def from_flight(error: Exception) -> BridgeError:
    """Returns the error that a client was sent, or an equivalent one."""
    extra = getattr(error, "extra_info", b"")
    try:
        found = json.loads(bytes(extra))
        return BridgeError(str(found["kind"]), str(found["message"]), found["hint"])
    except (ValueError, KeyError, TypeError):
        pass
    text = str(error).split(". Detail:")[0].strip() or type(error).__name__
    if isinstance(error, flight.FlightUnauthenticatedError):
        return BridgeError("unauthenticated", text)
    # Any other error of Flight or gRPC concerns the connection.
    hint = next((hint for said, hint in _HINTS.items() if said in text), _AWAY)
    return BridgeError("unavailable", text, hint)


_AWAY = "is the bridge running there?"
_HINTS = {
    "certificate verify failed": "give the certificate of the authority that signed the bridge's: --tls-ca F,"
    " certificate=; is the bridge's own still valid?",
    "not in peer certificate": "the bridge's certificate is for another name; call the bridge by that",
    "empty address list": "the certificate or the key cannot be read: both must be PEM, and the key must belong to"
    " the certificate",
    "Socket closed": f"{_AWAY} Is there TLS on one side alone (grpc://, grpc+tls://)? Or does the bridge want a"
    " client's certificate: --tls-cert F, --tls-key F?",
}
"""By what gRPC says of a connection, what may help."""
