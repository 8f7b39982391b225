"""Rules of access: who may listen where, who may call, and how often."""

from __future__ import annotations

import functools
import hmac
import ipaddress
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow.flight as flight

from seustream.cosim.bridge.errors import BridgeError

DEFAULT_PORT = 8815
SCHEMES = ("grpc", "grpc+tls")


class AddressRefused(ValueError):
    """An address on which the bridge does not listen, or which a client does not call; `hint` gives
    the reason."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Address:
    """`grpc://host:port`, or `grpc+tls://`."""

    host: str
    port: int
    tls: bool = False

    @classmethod
    @functools.lru_cache(maxsize=64)
    def parse(cls, text: str) -> Address:
        hint = f"want grpc://127.0.0.1:{DEFAULT_PORT}, or grpc+tls://…"
        try:
            parts = urlsplit(text)
        except ValueError:  # of an unclosed bracket
            raise AddressRefused(f"{text}: no address of a bridge", hint) from None
        try:
            port = DEFAULT_PORT if parts.port is None else parts.port
        except ValueError:
            raise AddressRefused(f"{text}: the port is none from 0 to 65535", hint) from None
        host = parts.hostname or ""
        if parts.scheme not in SCHEMES or not host.isprintable() or " " in host or not host:
            raise AddressRefused(f"{text}: no address of a bridge", hint)
        if parts.path.strip("/"):
            raise AddressRefused(f"{text}: no address of a bridge", hint)
        return cls(host, port, parts.scheme == "grpc+tls")

    @property
    def loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{SCHEMES[self.tls]}://{host}:{self.port}"


def check_listening(address: Address, token: str | None) -> None:
    """Raises `AddressRefused` for an address that others can reach without a token."""
    if not address.loopback and token is None:
        raise AddressRefused(
            f"{address}: others can reach this address, and there is no token",
            "give --token-file F, or listen on 127.0.0.1",
        )


def read_token(path: Path) -> str:
    """Reads a token from a file; raises `AddressRefused` for one that is not secret."""
    try:
        token = path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise AddressRefused(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise AddressRefused(f"{path}: a token is ASCII text") from None
    if len(token) < 16 or not token.isprintable() or " " in token:
        hint = "for example: python -c 'import secrets; print(secrets.token_urlsafe())'"
        raise AddressRefused(f"{path}: want a token of 16 characters or more", hint)
    return token


class Calls:
    """Limits the calls per second of one peer; after a pause, as many may come at once."""

    def __init__(self, most: float, clock: Callable[[], float]) -> None:
        self.most, self.clock = most, clock
        self._lock = threading.Lock()
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, peer: str) -> None:
        now = self.clock()
        with self._lock:
            if len(self._left) > 10_000:  # peers that were quiet for a second count as new
                self._left = {p: one for p, one in self._left.items() if now - one[1] < 1}
            left, before = self._left.get(peer, (self.most, now))
            left = min(left + (now - before) * self.most, self.most)
            if left < 1:
                raise BridgeError("rate-limited", f"more than {self.most:g} calls a second")
            self._left[peer] = (left - 1, now)


class Caller(flight.ServerMiddleware):  # type: ignore[misc]  # untyped base
    """The caller: a client, or with `refusal` an unauthenticated one."""

    def __init__(self, refusal: BridgeError | None = None) -> None:
        self.refusal = refusal


class Gate(flight.ServerMiddlewareFactory):  # type: ignore[misc]  # untyped base
    """Admits calls with the token; without a token, all."""

    def __init__(self, token: str | None) -> None:
        self._token = token

    def start_call(self, info: flight.CallInfo, headers: dict[str, list[str | bytes]]) -> Caller:
        refusal = self._refusal(headers)
        return Caller() if refusal is None else self._refuse(refusal)

    def _refuse(self, refusal: BridgeError) -> Caller:
        raise refusal.to_flight()

    def _refusal(self, headers: dict[str, list[str | bytes]]) -> BridgeError | None:
        if self._token is None:
            return None
        given = [
            value
            for name, all in headers.items()
            if name.lower() == "authorization"
            for value in all
        ]
        if not given:
            hint = "give the bridge's token"
            return BridgeError("unauthenticated", "this bridge wants a token", hint)
        first = given[0].encode() if isinstance(given[0], str) else given[0]
        if len(given) != 1 or not hmac.compare_digest(first, f"Bearer {self._token}".encode()):
            return BridgeError("unauthenticated", "the token is not the bridge's")
        return None


class OpenGate(Gate):
    """Marks unauthenticated callers for a service that refuses them itself: it knows their
    addresses, which a gate does not."""

    def _refuse(self, refusal: BridgeError) -> Caller:
        return Caller(refusal)


class _Bearer(flight.ClientMiddleware):  # type: ignore[misc]  # untyped base
    def __init__(self, token: str) -> None:
        self._token = token

    def sending_headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self._token}"}


class Bearer(flight.ClientMiddlewareFactory):  # type: ignore[misc]  # untyped base
    """Sends a token with every call. White space around it is that of the file it was read from;
    raises `AddressRefused` for what no header can hold."""

    def __init__(self, token: str) -> None:
        self._token = token.strip()
        if not (self._token.isascii() and self._token.isprintable()):
            raise AddressRefused("the token is no line of ASCII text", "give the bridge's token")

    def start_call(self, info: flight.CallInfo) -> flight.ClientMiddleware:
        return _Bearer(self._token)
