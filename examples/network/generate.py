"""Ten minutes of a small network: name lookups, the flows that follow them, alerts."""

from __future__ import annotations

from datetime import UTC, datetime
from ipaddress import IPv4Address

import numpy as np
import pyarrow as pa

TUPLES = 3_000
SEED = 2006
BEGIN = int(datetime(2006, 3, 1, 12, 0, tzinfo=UTC).timestamp() * 1000)
FLOWS_A_SECOND = 5
HOSTS = 40
SERVERS = 60
FIRST_HOST = int(IPv4Address("10.0.0.1"))
FIRST_SERVER = int(IPv4Address("198.51.100.1"))
PORTS = np.array([443, 80, 25, 587, 53, 6667, 8333], np.int32)
RULES = np.array(["port scan", "bad login", "old protocol"])


def streams(tuples: int, seed: int) -> dict[str, pa.Table]:
    """Returns each stream's tuples, in the order of their times; `tuples` counts flows."""
    chance = np.random.default_rng(seed)
    length = max(tuples * 1000 // FLOWS_A_SECOND, 1)
    ts = np.sort(chance.integers(0, length, tuples))
    src = FIRST_HOST + chance.integers(0, HOSTS, tuples)
    server = chance.integers(0, SERVERS, tuples)
    packets = chance.integers(1, 200, tuples, dtype=np.int32)
    flow = pa.table(
        {
            "ts": _times(BEGIN + ts),
            "src": src,
            "dst": FIRST_SERVER + server,
            "port": chance.choice(PORTS, tuples, p=(0.5, 0.2, 0.05, 0.05, 0.1, 0.05, 0.05)),
            "bytes": packets
            * np.minimum(chance.pareto(1.2, tuples) * 500 + 40, 20_000).astype(int),
            "packets": packets,
            "proto": np.where(chance.random(tuples) < 0.8, "tcp", "udp"),
        }
    )
    alerts = max(tuples // 50, 3)
    raised = np.sort(chance.integers(0, length, alerts))
    alert = pa.table(
        {
            "ts": _times(BEGIN + raised),
            "host": FIRST_HOST + chance.integers(0, HOSTS, alerts),
            "rule": RULES[chance.integers(0, len(RULES), alerts)],
            "severity": chance.integers(1, 6, alerts, dtype=np.int16),
            "raised": pa.array((BEGIN + raised) * 1000 - chance.integers(0, 10**6, alerts)).cast(
                pa.timestamp("us")
            ),
        }
    )
    return {"flow": flow, "dns": _lookups(chance, ts, src, server), "alert": alert}


def _lookups(
    chance: np.random.Generator, ts: np.ndarray, src: np.ndarray, server: np.ndarray
) -> pa.Table:
    """Returns a lookup up to 40 seconds before about half of the flows; some names have no
    address."""
    asked = np.flatnonzero(chance.random(len(ts)) < 0.5)
    when = np.maximum(ts[asked] - chance.integers(1, 40_000, len(asked)), 0)
    domains = np.array(["example.org", "example.com", "EXAMPLE.NET", "example.net"])
    order = np.argsort(when, kind="stable")
    asked, when = asked[order], when[order]
    return pa.table(
        {
            "ts": _times(BEGIN + when),
            "client": src[asked],
            "name": [f"srv{number}.{domains[number % 4]}" for number in server[asked]],
            "answer": pa.array(FIRST_SERVER + server[asked], mask=chance.random(len(asked)) < 0.05),
            "ttl": chance.choice(np.array([60, 300, 3600], np.int32), len(asked)),
        }
    )


def _times(milliseconds: np.ndarray) -> pa.Array:
    return pa.array(milliseconds, pa.int64()).cast(pa.timestamp("ms"))
