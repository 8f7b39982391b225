"""A service without streams of its own: its rows are handed in, and with `--bridge` kept on the device
behind a bridge.

    python -m tests.cosim.sites.node --listen grpc://127.0.0.1:0 [--token-file F] [--bridge grpc://…]
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import threading
from pathlib import Path

from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.security import Address, read_token
from seustream.cosim.sites.process import Setup
from seustream.cosim.sites.service import SiteService
from seustream.engine.sites.device_store import DeviceStore
from seustream.engine.sites.layout import SiteLayout
from seustream.engine.sites.store import Store
from seustream.hdl.device import Device


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen", default="grpc://127.0.0.1:0")
    parser.add_argument("--token-file", type=Path)
    parser.add_argument("--bridge", metavar="grpc://HOST:PORT")
    given = parser.parse_args(argv)
    at = Address.parse(given.listen)
    token = read_token(given.token_file) if given.token_file else None
    with contextlib.ExitStack() as stack:
        device: Device | None = None
        if given.bridge is not None:
            client = stack.enter_context(BridgeClient(given.bridge))
            device = stack.enter_context(client.device())

        def store_of(setup: Setup, node: int) -> Store | None:
            layout = setup.layout
            if device is None or not isinstance(layout, SiteLayout) or node >= layout.sources:
                return None
            return DeviceStore(layout.join, node, device)

        service = stack.enter_context(SiteService(str(at), token=token, store_of=store_of))
        stopped = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stopped.set())
        print(f"site on {Address(at.host, service.port)}", flush=True)
        stopped.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
