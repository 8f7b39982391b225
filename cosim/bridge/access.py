"""Access to a bridge through files, the safest way to pass secrets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Access:
    """Files, each if the bridge requires it: its token, the certificate of the authority that
    signed the bridge's, and the client's own certificate with its key (PEM)."""

    token_file: str | None = None
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None

    def __post_init__(self) -> None:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("a client's certificate and its key come together")

    def read(self) -> dict[str, Any]:
        """Returns the content of the files, as `BridgeClient` takes it; raises `OSError` and
        `UnicodeDecodeError`."""
        token, key = self.token_file, self.tls_key
        return {
            "token": Path(token).read_text(encoding="ascii").strip() if token else None,
            "certificate": Path(self.tls_ca).read_bytes() if self.tls_ca else None,
            "identity": (Path(self.tls_cert).read_bytes(), Path(key).read_bytes())
            if self.tls_cert and key
            else None,
        }


NONE = Access()
"""For a bridge that is open to everyone."""
