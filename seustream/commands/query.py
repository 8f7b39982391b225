"""`seustream query`: queries of all three languages in a running bridge."""

from __future__ import annotations

import argparse
import datetime
import sys
from pathlib import Path

from seustream.commands.common import access, add_access_arguments, read_text, table
from seustream.compiler.xsql.descriptions import quoted
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.errors import BridgeError
from seustream.devices import client
from seustream.engine.completeness import BEGINNING
from seustream.errors import UserError
from seustream.writing import OutputSet

_WAIT_MS = 1000
_MOST = 1 << 14
"""The most results of one answer."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(
        dest="action", metavar="register|list|stop|drop|log|results", required=True
    )
    for name, what in (
        ("register", "compile and start the queries of a file"),
        ("list", "queries and streams, as they are now"),
        ("stop", "end a query; its results stay"),
        ("drop", "end a query and forget its results"),
        ("log", "what happened to a query, over all its runs"),
        ("results", "the last results of a query, on stdout"),
    ):
        one = actions.add_parser(name, help=what, description=what)
        if name == "register":
            one.add_argument(
                "name", nargs="?", metavar="NAME", help="of the query, if the file has one without"
            )
            one.add_argument(
                "file", type=Path, metavar="FILE", help="Q.apas, or statements in Q.xsql"
            )
        elif name != "list":
            one.add_argument("name", metavar="NAME", help="of the query")
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
            help="talk to this bridge (default: %(default)s)",
        )
        add_access_arguments(one)


def run(arguments: argparse.Namespace) -> int:
    text = read_text(arguments.file) if arguments.action == "register" else ""
    if arguments.action == "results" and arguments.start < 0:
        raise UserError([f"--start {arguments.start}: want 0 or more"])
    with client(arguments.bridge, access(arguments), patience=5) as bridge:
        match arguments.action:
            case "register":
                return _register(bridge, arguments, text)
            case "list":
                print(listing(bridge))
            case "stop":
                found = bridge.act("query-stop", p.Named(arguments.name))
                print(f"{found['name']} is {found['phase']}", file=sys.stderr)
            case "drop":
                bridge.act("statement", p.Statement(f"DROP QUERY {quoted(arguments.name)}"))
                print(f"{arguments.name} is dropped", file=sys.stderr)
            case "log":
                _log(bridge, arguments.name)
            case "results":
                _results(bridge, arguments)
    return 0


def _register(bridge: BridgeClient, arguments: argparse.Namespace, text: str) -> int:
    file = str(arguments.file)[-p.MAX_NAME :]
    apas = arguments.file.suffix == ".apas"
    if apas and arguments.name is None:
        hint = f"seustream query register NAME {arguments.file}"
        raise UserError([f"{arguments.file}: an APAS query needs a name"], hint=hint)
    try:
        # No retry if the answer is lost: this very query would have taken the name.
        if arguments.name is None:
            found = bridge.act("statement", p.Statement(text, file), patience=0)
        else:
            language = "apas" if apas else "sql"
            message = p.Register(arguments.name, text, file, language)
            found = {"registered": [bridge.act("query-register", message, patience=0)]}
    except BridgeError as error:
        if error.kind != "compile":
            raise
        print(error, file=sys.stderr)
        return 2
    for line in found.get("shown", ()):
        print(line, file=sys.stderr)
    for kind, names in (("stream", found.get("created", ())), ("query", found.get("dropped", ()))):
        for name in names:
            print(
                f"{kind} {name} is {'created' if kind == 'stream' else 'dropped'}", file=sys.stderr
            )
    for one in found["registered"]:
        late = "" if one["complete"] == BEGINNING else f", complete {one['complete']}"
        print(f"{one['name']} is {one['phase']}, run {one['run']}{late}", file=sys.stderr)
    return 0


def listing(bridge: BridgeClient) -> str:
    """Returns tables of the queries, of their performance, and of the streams; each fits a narrow
    terminal."""
    found = bridge.act("query-list")
    queries, figures = [], []
    for q in found["queries"]:
        until, runs = _when(q["until"]), (q["name"], q["phase"], q["run"])
        queries.append(
            (*runs, q["results"], q["kept"], _shown(q["priority"]), until, q["complete"])
        )
        state = "-" if q["state_bytes"] is None else f"{q['state_bytes'] / 1024:,.1f}"
        times = (_shown(q[each]) for each in ("p50_ms", "p99_ms", "lag_ms", "selectivity"))
        shares = (_percent(q[share]) for share in ("time_share", "cycle_share"))
        figures.append((q["name"], *times, *shares, state))
    streams = [
        (s["name"], s["state"], s["accepted"], sum(s["rejected"].values()), s["schema"])
        for s in found["streams"]
    ]
    parts = [
        table(
            queries,
            ("query", "phase", "run", "results", "kept", "priority", "until", "complete"),
        ),
        "",
        table(
            figures,
            ("query", "p50 ms", "p99 ms", "lag ms", "selectivity", "time", "cycles", "state KiB"),
        ),
        "",
        table(streams, ("stream", "state", "accepted", "rejected", "schema")),
    ]
    return "\n".join(parts)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.3g} %"


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def _when(time: int | None) -> str:
    if time is None:
        return "-"
    try:
        shown = datetime.datetime.fromtimestamp(time / 1000, datetime.UTC)
    except (OverflowError, ValueError):  # past the year 9999
        return "never"
    return shown.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _log(bridge: BridgeClient, name: str) -> None:
    start, end = 0, 1
    while start < end:
        found = bridge.act("query-log", p.QueryLog(name, start))
        for time, run_number, level, event, detail in found["events"]:
            print(f"{_when(time)} run {run_number} {level:7} {event}: {detail}".rstrip())
        start, end = start + len(found["events"]), found["end"]


def _results(bridge: BridgeClient, arguments: argparse.Namespace) -> None:
    """Prints the kept results; with --follow, until the query ends. A run that restarts meanwhile
    is an error, since its results differ."""
    name, start = arguments.name, arguments.start
    found = bridge.latest(name)
    run_number, end = found["run"], found["end"]
    if start > end:
        raise BridgeError("gap", f"there are {end:,} results, none from {start:,} on")
    shed = ""
    with OutputSet("-", arguments.format, {name: bridge.schema("query", name)}) as output:
        while True:
            if found["shed"] != shed:
                shed = found["shed"]
                said = f"gives way to others: {shed}" if shed else "is back"
                print(f"warning: {name} {said}", file=sys.stderr)
            if found["run"] != run_number:
                what = f"{name}: the results of run {run_number} are gone"
                raise BridgeError("trimmed", what, f"run {found['run']} is the latest")
            if found["first"] > start:
                lost = found["first"] - start
                print(f"warning: the first {lost:,} results are not kept any more", file=sys.stderr)
                start = found["first"]
            stop = min(found["end"], start + _MOST)
            if stop > start:
                try:
                    output.write(name, bridge.read(name, start, stop))
                    start = stop
                except BridgeError as error:
                    if error.kind != "trimmed":  # else newer ones came meanwhile
                        raise
                sys.stdout.flush()
            elif found["over"] or not arguments.follow:
                return
            if not arguments.follow and start >= end:
                return
            wait = _WAIT_MS if arguments.follow else 0
            found = bridge.latest(name, start, wait)
