"""A site of a join across sites, its rows on a device behind a bridge; a process of its own.

    python -m cosim.sites --bridge grpc://127.0.0.1:8815 LAYOUT NUMBER [--attempt N]

`engine.sites.cluster` starts it where a place names this module. Nodes that are no sites, a centre
or the query node, need no device: they are `engine.sites.process`.
"""

from __future__ import annotations

import asyncio
import sys

from cosim.bridge.client import BridgeClient
from engine.sites.device_store import DeviceStore
from engine.sites.process import Host, Plan, parser


def main(argv: list[str] | None = None) -> int:
    arguments = parser()
    arguments.add_argument("--bridge", required=True, metavar="grpc://HOST:PORT")
    given = arguments.parse_args(argv)
    plan = Plan.load(given.plan)
    with BridgeClient(given.bridge) as client, client.device() as device:
        store = DeviceStore(plan.layout.join, given.number, device)
        asyncio.run(Host(plan, given.number, given.attempt, store).run())
    return 0


if __name__ == "__main__":
    sys.exit(main())
