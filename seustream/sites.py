"""Streams at sites: their addresses, runs over them, and the service of a site.

    run    --site R=grpc://10.0.0.1:8815 --sites sites.toml
    serve  --site R=r.csv

A file describes sites by name, with the streams of each and the cost of sending a row between them, 1 by
default; `here` is the machine that runs the queries. With the strategy `auto` rows go to one site if
joining there costs less than planned joins do:

    token-file = "token"
    strategy = "auto"
    [site.north]
    address = "grpc+tls://10.0.0.1:8815"
    streams = ["R", "S"]
    [cost.north]
    south = 5
    here = 2
"""

from __future__ import annotations

import argparse
import math
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from seustream.compiler.catalogue import Stream
from seustream.compiler.errors import suggest
from seustream.compiler.pipeline import Compilation
from seustream.engine.sites.costs import MOST
from seustream.engine.times import UNKNOWN, Tuples
from seustream.errors import UserError
from seustream.reading import read_timed

if TYPE_CHECKING:  # imported only by a run across sites
    from seustream.cosim.sites.process import Setup
    from seustream.cosim.sites.run import SitesRun
    from seustream.cosim.sites.service import Source
    from seustream.engine.sites.costs import UnitCosts
    from seustream.engine.sites.exchange import SiteExchange
    from seustream.engine.sites.explain import Block
    from seustream.engine.sites.layout import Strategy
    from seustream.engine.sites.shared import SharedLayout

HERE = "here"
RETRY = 60_000.0
"""Milliseconds after which an unanswered message is sent again."""


@dataclass(frozen=True)
class SiteEntry:
    name: str
    address: str
    streams: tuple[str, ...]


@dataclass(frozen=True)
class Sites:
    """The sites of a run, and the costs between them other than 1."""

    sites: tuple[SiteEntry, ...] = ()
    costs: Mapping[tuple[str, str], float] = field(default_factory=dict)
    token: str | None = None
    certificate: bytes | None = None
    strategy: Strategy = "planned"

    def __bool__(self) -> bool:
        return bool(self.sites)

    @property
    def of(self) -> dict[str, int]:
        """Returns the process of each stream, by its folded name; 0 is this machine."""
        return {
            stream.lower(): number
            for number, site in enumerate(self.sites, start=1)
            for stream in site.streams
        }

    @property
    def names(self) -> dict[int, str]:
        """Returns the name of each process, for messages."""
        return {
            number: f"site {', '.join(site.streams)} at {site.address}"
            for number, site in enumerate(self.sites, start=1)
        }

    def unit_costs(self, processes: Iterable[int]) -> UnitCosts:
        """Returns the cost of a row between nodes, by the process of each."""
        nodes = [HERE if p == 0 else self.sites[p - 1].name for p in processes]
        from seustream.engine.sites.costs import UnitCosts

        return UnitCosts.of(
            [[0 if a == b else self.costs.get((a, b), 1) for b in nodes] for a in nodes]
        )


# --- where streams are ------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--site",
        action="append",
        default=[],
        metavar="STREAM=grpc://HOST:PORT",
        help="a stream that lives at a site (seustream serve --site); once for each",
    )
    parser.add_argument(
        "--sites", type=Path, metavar="FILE.toml", help="sites, their streams and costs in a file"
    )
    parser.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="write how rows went between sites, for seustream explain --stage sites --record",
    )


def given_sites(arguments: argparse.Namespace) -> Sites:
    """Returns the sites that a command line names, possibly none."""
    sites: list[SiteEntry] = []
    costs: dict[tuple[str, str], float] = {}
    strategy: Strategy = "planned"
    token_file, tls_ca = arguments.token_file, arguments.tls_ca
    if arguments.sites is not None:
        described = _described(arguments.sites)
        sites, costs, strategy = (described[key] for key in ("sites", "costs", "strategy"))
        token_file, tls_ca = token_file or described["token"], tls_ca or described["ca"]
    by_address: dict[str, SiteEntry] = {site.address: site for site in sites}
    for text in arguments.site:
        stream, equals, address = text.partition("=")
        if not equals or not stream or not address:
            raise UserError([f"--site {text}: want STREAM=grpc://HOST:PORT"])
        address = _address(f"--site {text}", address)
        known = by_address.get(address, SiteEntry(stream, address, ()))
        by_address[address] = replace(known, streams=(*known.streams, stream))
    sites = list(by_address.values())
    seen: dict[str, str] = {}
    for site in sites:
        for stream in site.streams:
            if stream.lower() in seen:
                raise UserError(
                    [f"stream {stream} is at {seen[stream.lower()]} and at {site.address}"],
                    hint="a stream lives at one site",
                )
            seen[stream.lower()] = site.address
    if not sites:
        return Sites()
    from seustream.cosim.bridge.security import AddressRefused, read_token

    try:
        token = read_token(Path(token_file)) if token_file else None
        certificate = Path(tls_ca).read_bytes() if tls_ca else None
    except AddressRefused as error:
        raise UserError([str(error)], hint=error.hint) from None
    except OSError as error:
        raise UserError([f"{error.filename}: {error.strerror}"]) from None
    return Sites(tuple(sites), costs, token, certificate, strategy)


def _address(where: str, text: str) -> str:
    from seustream.cosim.bridge.security import Address, AddressRefused

    try:
        return str(Address.parse(text))
    except AddressRefused as error:
        raise UserError([f"{where}: {error}"], hint=error.hint) from None


def _described(path: Path) -> dict[str, Any]:
    """Reads a file of sites and validates it."""

    def wrong(what: str) -> UserError:
        hint = (
            '[site.NAME] with address = "grpc://…" and streams = [...]; [cost.NAME] with NAME = 5'
        )
        return UserError([f"{path}: {what}"], hint=hint)

    try:
        found = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise UserError([f"{path}: {error.strerror}"]) from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise wrong(str(error)) from None
    if strange := sorted(found.keys() - {"site", "cost", "strategy", "token-file", "tls-ca"}):
        raise wrong(f"there is no {strange[0]!r} here")
    strategy = found.get("strategy", "planned")
    if strategy not in ("planned", "auto"):
        raise UserError([f"{path}: strategy {strategy!r}"], hint="planned or auto")
    sites: list[SiteEntry] = []
    costs: dict[tuple[str, str], float] = {}
    tables = found.get("site"), found.get("cost", {})
    if not all(
        isinstance(t, dict) and all(isinstance(v, dict) for v in t.values()) for t in tables
    ):
        raise wrong("no sites in it")
    for name, one in found["site"].items():
        if set(one) != {"address", "streams"} or name == HERE:
            raise wrong(f"site {name}: want an address and streams")
        streams = one["streams"]
        if not isinstance(streams, list) or not all(isinstance(s, str) and s for s in streams):
            raise wrong(f"site {name}: streams is a list of names")
        address = _address(f"{path}: site {name}", str(one["address"]))
        if same := [site.name for site in sites if site.address == address]:
            raise UserError(
                [f"{path}: site {name}: site {same[0]} has the address {address}, too"],
                hint="one site has all streams of an address: streams = [...]",
            )
        sites.append(SiteEntry(name, address, (*streams,)))
    known = [site.name for site in sites] + [HERE]
    for a, row in found.get("cost", {}).items():
        for b, cost in row.items():
            for name in (a, b):
                if name not in known:
                    raise UserError(
                        [f"{path}: cost: there is no site {name}"],
                        hint=suggest(name, known, "sites"),
                    )
            number = isinstance(cost, int | float) and not isinstance(cost, bool)
            if not number or not (0 <= cost <= MOST or cost == math.inf):
                raise wrong(f"cost from {a} to {b}: want a number, 0 to {MOST:g}, or inf for never")
            costs[a, b] = float(cost)
    costs = {(b, a): cost for (a, b), cost in costs.items()} | costs
    beside = {
        key: str(path.parent / str(found[name])) if name in found else None
        for key, name in (("token", "token-file"), ("ca", "tls-ca"))
    }
    return {"sites": sites, "costs": costs, "strategy": strategy, **beside}


def check_streams(c: Compilation, sites: Sites) -> None:
    """Refuses a stream at a site that the query set lacks."""
    known = [s.name for s in c.streams if s.defined_by is None]
    folded = {name.lower() for name in known}
    for site in sites.sites:
        for stream in site.streams:
            if stream.lower() not in folded:
                raise UserError(
                    [f"site {site.address}: the queries have no stream {stream}"],
                    hint=suggest(stream, known, "streams"),
                )


# --- a run ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exchanged:
    """The tuples, by stream, that the graph reads from streams at sites; by query, the routes of
    its blocks between the sites; and lines for people."""

    tuples: dict[str, Tuples] = field(default_factory=dict)
    record: dict[str, list[Block]] = field(default_factory=dict)
    lines: tuple[str, ...] = ()


def exchanged(
    c: Compilation,
    sites: Sites,
    local: Callable[[Stream], pa.Table],
    slack: int | None = None,
    strict: bool = False,
    aside: Collection[str] = (),
) -> Exchanged:
    """Has the sites find the rows that can be in a result, and fetches the streams that are needed
    whole. Raises `SitesError`. `local` returns the rows of a local stream; `aside` are the streams
    whose late tuples the run is to write."""
    from seustream.cosim.sites.run import SitesRun
    from seustream.engine.sites.exchange import plan_exchange

    exchange = plan_exchange(c.program, sites.of, strict)
    if lost := [name for name in exchange.met if name in aside]:
        raise UserError(
            [f"stream {name}: its late tuples stay at its site" for name in lost],
            hint="without --late, and with late = 'drop', they are counted; --slack MS accepts them",
        )
    streams = {stream.name: stream for stream in c.streams}
    setup = _setup(exchange, sites, slack)
    feeds = setup.streams(0)
    with SitesRun(setup, sites.names, {d.name: local(d) for d in feeds}) as run:
        whole = {name: run.fetch(streams[name], sites.of[name.lower()]) for name in exchange.whole}
        if exchange.queries:
            run.wait()
        blocks = run.blocks()
    record = {
        exchange.queries[q].name: [b.named(exchange.aliases(q)) for b in blocks.get(g, ())]
        for g, group in enumerate(run.layout.groups)
        for q, _ in group.members
    }
    met = {
        name: Tuples(rows, run.times.get(name, UNKNOWN))
        for name, rows in exchange.rows(run.results).items()
    }
    lines = _lines(exchange, met, whole, run)
    return Exchanged(whole | met, record, tuple(lines))


def _setup(exchange: SiteExchange, sites: Sites, slack: int | None) -> Setup:
    """Lays out a node for each logical site, then the query node, which is here."""
    from seustream.cosim.sites.process import Setup
    from seustream.engine.sites.shared import SharedLayout

    processes = [sites.of.get(stream.name.lower(), 0) for stream in exchange.of]
    where = dict(enumerate([*processes, 0]))
    costs = sites.unit_costs(where.values())
    layout = SharedLayout(
        exchange.sites, exchange.joins, costs, len(processes), retry=RETRY, strategy=sites.strategy
    )
    _check_reach(layout, exchange)
    return Setup(
        layout,
        where,
        (None, *(site.address for site in sites.sites)),
        tuple(dict.fromkeys(exchange.of)),
        slack,
        sites.token,
        sites.certificate,
    )


def _check_reach(layout: SharedLayout, exchange: SiteExchange) -> None:
    """Raises `BadCosts` if the rows of a site can neither go through all others and come here nor,
    by the strategy `auto`, go to a hub: its blocks would wait for other costs, which a run does not
    get."""
    from seustream.engine.sites.errors import BadCosts
    from seustream.engine.sites.planner import PLANNERS, Task, plan

    for group, own in zip(layout.groups, layout.layouts, strict=True):
        if own.hubs and own.strategy == "auto":
            continue
        for source, site in enumerate(group.sites):
            size, linked = lambda visited: 1.0, own.join.linked
            task = Task(len(group.sites), source, size, own.costs, own.query_node, linked)
            if plan(task, PLANNERS["auto"]) is None:
                others = ", ".join(exchange.of[k].name for k in group.sites if k != site)
                through = f" through those of {others}" if others else ""
                raise BadCosts(
                    f"no way leads from the site of {exchange.of[site].name}{through} to here: some"
                    " costs are infinite",
                    'give other costs, or strategy = "auto"' if own.hubs else "give other costs",
                )


def _lines(
    exchange: SiteExchange,
    met: Mapping[str, Tuples],
    whole: Mapping[str, Tuples],
    run: SitesRun,
) -> list[str]:
    lines = []
    if exchange.queries:
        came = ", ".join(
            f"{tuples.rows.num_rows:,} of {run.taken[name]:,} tuples of {name}"
            for name, tuples in met.items()
        )
        names = ", ".join(dict.fromkeys(q.name.partition("#")[0] for q in exchange.queries))
        lines.append(f"{came} came from their sites, those that join: {names}")
    lines += [
        f"note: stream {name}: {tuples.rows.num_rows:,} tuples fetched whole"
        f" ({exchange.whole[name]})"
        for name, tuples in whole.items()
    ]
    for name in run.late.keys() & (met.keys() | whole.keys()):
        count = run.late[name]
        tuples = f"{count:,} late tuple{'s' * (count != 1)}"
        lines.append(f"warning: stream {name}: {tuples}, not processed; --slack MS accepts them")
    return lines


# --- a site's service -------------------------------------------------------------------


def site_sources(given: Iterable[str]) -> dict[str, Source]:
    """Returns streams from files, each read when a run has sent its columns."""
    sources: dict[str, Source] = {}
    for text in given:
        stream, equals, path = text.partition("=")
        if not equals or not stream or not path:
            raise UserError([f"--site {text}: want STREAM=FILE"])
        if stream in sources:
            raise UserError([f"--site {text}: stream {stream} has a file already"])
        if not Path(path).is_file():
            raise UserError([f"--site {text}: {path}: no such file"])
        sources[stream] = _from_file(Path(path))
    return sources


def _from_file(path: Path) -> Source:
    return lambda definition: read_timed(path, definition, lambda text: None)
