"""Connects Spark's driver and workers to bridges."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from seustream.cosim.bridge.access import NONE, Access
from seustream.cosim.bridge.client import BridgeClient

_ACCESS = {"tokenFile": "token_file", "tlsCa": "tls_ca", "tlsCert": "tls_cert", "tlsKey": "tls_key"}


@dataclass(frozen=True)
class Connection:
    """The addresses of the bridges and the access to them; sent to the workers as it is."""

    bridges: tuple[str, ...]
    access: Access = NONE
    patience: float = 60.0

    @classmethod
    def of(cls, bridges: str, options: Mapping[str, str]) -> Connection:
        """Returns the connection to these addresses, with commas between, by options of the data
        source."""
        return cls(
            tuple(url.strip() for url in bridges.split(",")),
            Access(**{name: options.get(option) for option, name in _ACCESS.items()}),
            float(options.get("patience", "60")),
        )

    @property
    def options(self) -> dict[str, str | None]:
        """Returns the options of the data source."""
        urls = ",".join(self.bridges)
        given = {option: getattr(self.access, name) for option, name in _ACCESS.items()}
        return {"bridge": urls, "patience": f"{self.patience:g}", **given}

    def client(self, number: int = 0) -> BridgeClient:
        """Returns a client, one per process: Spark reuses its workers, and forks them."""
        key = (os.getpid(), self, number)
        if key not in _CLIENTS:
            _CLIENTS[key] = BridgeClient.of(self.bridges[number], self.access, self.patience)
        return _CLIENTS[key]

    def clients(self) -> list[BridgeClient]:
        """Returns one client for each bridge."""
        return [self.client(number) for number in range(len(self.bridges))]


_CLIENTS: dict[tuple[int, Connection, int], BridgeClient] = {}
