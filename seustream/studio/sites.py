"""Joins across sites, message by message: each stream at a site of its own, the query node beside them.

before  a text, rows of its streams
after   the sites, the messages in their order with the content and cost of each, the number of results,
        and the rows of all sites, which is the cost of sending everything to the queries

A row costs 1 between any two sites, an entry of a synopsis `ENTRY`; a site's messages to itself are free.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from seustream.compiler.pipeline import Compilation
from seustream.cosim.sites.process import Process, Setup
from seustream.engine.sites import messages as m
from seustream.engine.sites.costs import ENTRY, UnitCosts
from seustream.engine.sites.errors import FeederBlocked
from seustream.engine.sites.exchange import plan_exchange
from seustream.engine.sites.query import blocks_of
from seustream.engine.sites.shared import Bundle, SharedLayout
from seustream.errors import UserError
from seustream.frames import Rows
from seustream.studio.rows import left_out, page_rows
from seustream.studio.wanted import check_wanted, while_wanted

_BLOCK = 8
"""Rows of a block: few, to show many routes."""
_QUERIES = "queries"


def crossing(c: Compilation, rows: Mapping[str, Rows]) -> dict[str, Any]:
    """Returns the messages of a run over sites, as JSON."""
    exchange = plan_exchange(c.program, {stream.name.lower() for stream in c.program.base})
    if not exchange.queries:
        why = ", ".join(dict.fromkeys(exchange.whole.values())) or "no query joins two streams"
        raise UserError(["no query of the text joins at sites"], hint=why)
    names = [site.name for site in exchange.sites]
    come = {
        stream.name: page_rows(stream, rows, "seustream run --site")
        for stream in dict.fromkeys(exchange.of)
    }
    tables = {name: one.taken for name, one in come.items()}
    every = range(len(names) + 1)
    costs = UnitCosts.of([[float(a != b) for b in every] for a in every])
    layout = SharedLayout(exchange.sites, exchange.joins, costs, len(names))
    process = Process(Setup(layout, dict.fromkeys(every, 0), (None,)), 0)
    messages: list[dict[str, Any]] = []

    def note(sender: int, to: int, bundle: Bundle) -> None:
        if sender != to:
            messages.extend(_told(sender, to, one) for _, one in bundle.parts)

    process.on_message = note
    _feed(process, layout, tables)
    return {
        "sites": [*names, _QUERIES],
        "messages": messages,
        "results": len(process.results),
        "shipped": sum(tables[stream.name].num_rows for stream in exchange.of),
        "whole": exchange.whole,
        "left_out": left_out(c.program, come),
    }


def _feed(process: Process, layout: SharedLayout, tables: Mapping[str, pa.Table]) -> None:
    """Hands the blocks of all streams to their sites in the order of time, and waits for the last result."""
    blocks = [
        block
        for k, stream in enumerate(layout.sites)
        for block in blocks_of(stream, k, tables[stream.name.partition("#")[0]], most=_BLOCK)
    ]
    for block in while_wanted(sorted(blocks, key=lambda one: one.tau)):
        while True:
            try:
                process.submit(block)
                break
            except FeederBlocked:
                process.tick()
    while not process.state()["idle"]:
        check_wanted()
        process.tick()
    if process.fault is not None:
        raise UserError([process.fault])


def _told(sender: int, to: int, message: m.SiteMessage) -> dict[str, Any]:
    rows, entries = 0, 0
    match message:
        case m.Probe(parts=some) | m.Deliver(results=some) | m.Ship(rows=some):
            rows = len(some)
        case m.Delta(counts=counts) | m.Expire(counts=counts) | m.Plan(keep=counts):
            entries = len(counts)
    kind, cost = type(message).__name__, rows + ENTRY * entries
    return {"from": sender, "to": to, "kind": kind, "rows": rows, "entries": entries, "cost": cost}
