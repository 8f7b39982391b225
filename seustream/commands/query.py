"""`seustream query`: queries on live sources, kept by a bridge that takes sources."""

from __future__ import annotations

import argparse
import datetime
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

from seustream.commands.common import read_text, table
from seustream.compiler.apas.tree import Node, from_lists
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.errors import BridgeError
from seustream.devices import client
from seustream.engine.temporal.values import taken
from seustream.errors import UserError
from seustream.intervals import result_schema
from seustream.writing import OutputSet

_WAIT_MS = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(
        dest="action", metavar="register|list|stop|log|results", required=True
    )
    for name, what in (
        ("register", "compile and start a query"),
        ("list", "queries and streams, as they are now"),
        ("stop", "end a query"),
        ("log", "what happened to a query, over all its runs"),
        ("results", "the last results of a query, on stdout"),
    ):
        one = actions.add_parser(name, help=what, description=what)
        if name != "list":
            one.add_argument("name", metavar="NAME", help="of the query")
        if name == "register":
            one.add_argument("file", type=Path, metavar="Q.apas", help="its text")
        if name == "results":
            one.add_argument("--follow", action="store_true", help="go on until the query ends")
            one.add_argument(
                "--start", type=int, default=0, metavar="N", help="from result N on (default: 0)"
            )
            one.add_argument("--format", choices=("csv", "jsonl"), default="csv", help="(csv)")
        one.add_argument(
            "--bridge",
            default="grpc://127.0.0.1:8815",
            metavar="grpc://HOST:PORT",
            help="which bridge (default: %(default)s)",
        )
        one.add_argument("--token-file", metavar="F", help="the bridge's token")
        one.add_argument("--tls-ca", metavar="F", help="who signed its certificate, PEM")


def run(arguments: argparse.Namespace) -> int:
    text = _text(arguments.file) if arguments.action == "register" else ""
    if arguments.action == "results" and arguments.start < 0:
        raise UserError([f"--start {arguments.start}: want 0 or more"])
    with client(arguments.bridge, arguments.token_file, arguments.tls_ca, patience=5) as bridge:
        match arguments.action:
            case "register":
                return _register(bridge, arguments, text)
            case "list":
                _list(bridge)
            case "stop":
                found = bridge.act("query-stop", p.Named(arguments.name))
                print(f"{found['name']} is {found['phase']}", file=sys.stderr)
            case "log":
                _log(bridge, arguments.name)
            case "results":
                _results(bridge, arguments)
    return 0


def _text(file: Path) -> str:
    if file.suffix != ".apas":
        hint = "X-SQL runs on a device: seustream run, or seustream feed"
        raise UserError([f"{file}: live queries are APAS, a file Q.apas"], hint=hint)
    return read_text(file)


def _register(bridge: BridgeClient, arguments: argparse.Namespace, text: str) -> int:
    message = p.Register(arguments.name, text, str(arguments.file)[-p.MAX_NAME :])
    try:
        # Not again if the answer is lost: the name would be taken, by this very query.
        found = bridge.act("query-register", message, patience=0)
    except BridgeError as error:
        if error.kind != "compile":
            raise
        print(error, file=sys.stderr)
        return 2
    for warning in found["warnings"]:
        print(f"warning: {warning}", file=sys.stderr)
    print(f"{found['name']} is RUNNING, run {found['run']}", file=sys.stderr)
    return 0


def _list(bridge: BridgeClient) -> None:
    found = bridge.act("query-list")
    queries = [(q["name"], q["phase"], q["run"], q["results"], q["kept"]) for q in found["queries"]]
    streams = [
        (s["name"], s["state"], s["accepted"], sum(s["rejected"].values()), s["schema"])
        for s in found["streams"]
    ]
    print(table(queries, ("query", "phase", "run", "results", "kept")))
    print()
    print(table(streams, ("stream", "state", "accepted", "rejected", "schema")))


def _log(bridge: BridgeClient, name: str) -> None:
    start, end = 0, 1
    while start < end:
        found = bridge.act("query-log", p.QueryLog(name, start))
        for time, run_number, level, event, detail in found["events"]:
            shown = datetime.datetime.fromtimestamp(time / 1000, datetime.UTC)
            when = shown.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            print(f"{when} run {run_number} {level:7} {event}: {detail}".rstrip())
        start, end = start + len(found["events"]), found["end"]


def _results(bridge: BridgeClient, arguments: argparse.Namespace) -> None:
    """Returns what is kept; with --follow, until the query ends. A run that begins anew meanwhile is an
    error: its results are others."""
    name, start = arguments.name, arguments.start
    wait = _WAIT_MS if arguments.follow else 0
    found = bridge.act("query-results", p.Results(name, start))
    tree = from_lists(name, found["schema"])
    schema = result_schema(tree)
    end = found["end"]
    with OutputSet("-", arguments.format, {name: schema}) as output:
        while True:
            if found["start"] > start:
                lost = found["start"] - start
                print(f"warning: {lost:,} results were given up for newer ones", file=sys.stderr)
            output.write(name, _rows(found["rows"], tree, schema))
            sys.stdout.flush()
            start = found["start"] + len(found["rows"])
            if found["over"] or (not arguments.follow and start >= end):
                return
            found = bridge.act("query-results", p.Results(name, start, found["run"], wait))


def _rows(rows: list[list[Any]], tree: Node, schema: pa.Schema) -> pa.Table:
    """Results as they travel, in their types: a DATETIME comes as milliseconds."""
    begin, end, *leaves = zip(*rows, strict=True) if rows else [()] * len(schema)
    values = [[taken(v, of) for v in c] for c, of in zip(leaves, tree.types, strict=True)]
    columns = (begin, end, *values)
    arrays = [pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)
