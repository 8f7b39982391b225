"""Access to a bridge, by files: the way in which secrets are best handed around."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Access:
    """Files, each where the bridge wants it: its token, the certificate of who signed the bridge's, and
    a certificate of the client's own with its key (PEM)."""

    token_file: str | None = None
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None

    def __post_init__(self) -> None:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("a client's certificate and its key come together")

    def read(self) -> dict[str, Any]:
        """Returns what is in the files, as `BridgeClient` takes it; raises `OSError` and
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
"""For a bridge that lets everybody in."""
