"""One process's part of a run across sites: its nodes, and the messages for other processes."""

from __future__ import annotations

import contextlib
import functools
import random
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias

import pyarrow as pa

from seustream.compiler.catalogue import Stream as Definition
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.sites.client import Client
from seustream.engine.sites import messages as m
from seustream.engine.sites.errors import FeederBlocked
from seustream.engine.sites.explain import Block, Decided, Report, block_of
from seustream.engine.sites.layout import SiteLayout
from seustream.engine.sites.model import BlockRows, EquiJoin, Result
from seustream.engine.sites.query import blocks_of
from seustream.engine.sites.shared import SharedLayout, node_of
from seustream.engine.sites.store import Store
from seustream.engine.stream.errors import EngineError
from seustream.engine.stream.merge import Merger

Frame: TypeAlias = tuple[int, int, Any]
"""A message in transit: the sending node, the receiving node, and the content."""
StoreOf: TypeAlias = Callable[["Setup", int], Store | None]
"""Returns the store of a site of a run; None keeps its rows in memory."""

REMEMBERED = 10_000
"""The most blocks whose order and cost a process can report."""
TICK = 0.02
WAIT = 0.05
"""Seconds between looks at the clock, and for which a call waits for frames to take back."""
KEPT = 10.0
"""Seconds for which frames are kept for a process that does not answer."""
BLOCK_ROWS = 1024


@dataclass(frozen=True)
class Setup:
    """The setup of a run, which every process is sent. `where[node]` is a node's process,
    `addresses` are those of processes (none for 0), `definitions` the streams of the sites that
    processes feed from their own sources; `slack`, if given, is that of all streams; `token` and
    `certificate` are for calls between services.
    The remaining members degrade the network between processes, for tests."""

    layout: SiteLayout | SharedLayout
    where: dict[int, int]
    addresses: tuple[str | None, ...]
    definitions: tuple[Definition, ...] = ()
    slack: int | None = None
    token: str | None = None
    certificate: bytes | None = None
    session: str = field(default_factory=secrets.token_hex)
    loss: float = 0.0
    repeat: float = 0.0
    delay: float = 0.0

    def plain(self) -> tuple[object, ...]:
        """Returns the form that crosses between processes."""
        return tuple(getattr(self, f.name) for f in fields(self))

    def streams(self, process: int) -> list[Definition]:
        """Returns the streams whose rows a process feeds."""
        if not isinstance(self.layout, SharedLayout):
            return []
        here = {s.name for k, s in enumerate(self.layout.sites) if self.where[k] == process}
        return [d for d in self.definitions if d.name in {name.partition("#")[0] for name in here}]


class Process:
    """One process's part of a run: its nodes, and the frames for others. `store_of` returns a
    site's store if it is not to be in memory."""

    def __init__(
        self,
        setup: Setup,
        number: int,
        attempt: int = 0,
        store_of: StoreOf = lambda setup, node: None,
    ) -> None:
        self.setup, self.number = setup, number
        self.results: list[tuple[int, Result]] = []
        self.decisions: dict[Decided, Block] = {}
        self.spent: dict[Decided, float] = {}
        self.fault: str | None = None
        self.feeding = 0
        self.late: dict[str, int] = {}
        self.rows: dict[str, int] = {}
        self.unreachable: dict[int, tuple[float, str]] = {}
        self.on_message: Callable[[int, int, Any], None] = lambda sender, to, message: None
        self.chance = random.Random(number + 1000 * attempt)
        self.stopped = threading.Event()
        self.changed = threading.Condition()
        self.queues: dict[int, list[tuple[float, Frame]]] = {}
        self.nodes: dict[int, Any] = {}
        for node in setup.layout.nodes:
            if setup.where[node] == number:
                store = store_of(setup, node)
                self.nodes[node] = node_of(setup.layout, node, self._emit, store, attempt)
        for node in self.nodes.values():
            for g, member in node.members.items():
                member.on_accept(functools.partial(self._note, g, member.layout.join))
                if member.site is not None:
                    member.site.on_over = functools.partial(self._over, g)
        self._threads = [threading.Thread(target=self._tick, daemon=True)]
        for other, address in enumerate(setup.addresses):
            if address is not None and other != number:
                send = threading.Thread(target=self._send, args=(other, address), daemon=True)
                self._threads.append(send)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self.stopped.set()
        with self.changed:
            self.changed.notify_all()

    # --- what nodes report --------------------------------------------------------

    def _emit(self, member: int, result: Result) -> None:
        self.results.append((member, result))

    def _note(self, g: int, join: EquiJoin, delta: m.Delta | m.Announce, plan: m.Plan) -> None:
        self.decisions[g, (plan.stream, plan.no)] = block_of(join, delta, plan)
        _forget(self.decisions)

    def _over(self, g: int, done: m.Done) -> None:
        self.spent[g, done.block] = done.spent
        _forget(self.spent)

    def report(self) -> Report:
        """Returns the plans and costs of blocks, for people."""
        with self.changed:
            return dict(self.decisions), dict(self.spent)

    def state(self) -> dict[str, Any]:
        with self.changed:
            nodes = {number: _state(node) for number, node in self.nodes.items()}
            now = time.monotonic()
            away = {p: (now - since, why) for p, (since, why) in self.unreachable.items()}
            return {
                "idle": not self.feeding and all(node.idle for node in self.nodes.values()),
                "fault": self.fault,
                "late": self.late,
                "rows": self.rows,
                "unreachable": away,
                "results": len(self.results),
                "nodes": nodes,
            }

    # --- messages -----------------------------------------------------------------

    def receive(self, frames: Iterable[Frame]) -> None:
        with self._acting():
            for sender, to, message in frames:
                if to in self.nodes:
                    self.nodes[to].receive(sender, message, _now())

    def submit(self, block: BlockRows) -> None:
        """Hands a block to its site in this process; raises `SitesError`."""
        with self._acting(record=False):
            self.nodes[block.stream].submit(block, _now())

    def take(self, process: int, wait: float) -> list[Frame]:
        """Takes the frames for a process; waits for the first."""
        end = time.monotonic() + wait
        with self.changed:
            while True:
                now, queue = time.monotonic(), self.queues.get(process, [])
                ready = [frame for due, frame in queue if due <= now]
                if ready or now >= end or self.stopped.is_set():
                    self.queues[process] = [one for one in queue if one[0] > now]
                    return ready
                self.changed.wait(min([end, *(due for due, _ in queue)]) - now)

    @contextlib.contextmanager
    def _acting(self, record: bool = True) -> Iterator[None]:
        """Lets one thread at a time act on the nodes, and sends their messages afterwards. A
        condition without a value ends the run, not only the call."""
        with self.changed:
            try:
                yield
            except EngineError as error:
                if not record:
                    raise
                self.fault = str(error)
            self._post()
            self.changed.notify_all()

    def _post(self) -> None:
        going = True
        while going:
            going = False
            for number, node in self.nodes.items():
                for to, message in node.drain():
                    self.on_message(number, to, message)
                    other = self.setup.where[to]
                    if other == self.number:
                        self.nodes[to].receive(number, message, _now())
                        going = True
                        continue
                    copies = 1 - (self.chance.random() < self.setup.loss)
                    copies += self.chance.random() < self.setup.repeat
                    for _ in range(copies):
                        due = time.monotonic() + self.chance.random() * self.setup.delay
                        self.queues.setdefault(other, []).append((due, (number, to, message)))

    def tick(self) -> None:
        """Advances the time of the nodes."""
        with self._acting():
            for node in self.nodes.values():
                node.tick(_now())

    def _tick(self) -> None:
        while not self.stopped.wait(TICK):
            self.tick()

    def _send(self, process: int, address: str) -> None:
        """Sends the frames for one other service; process 0 also takes what comes back."""
        client = Client(address, self.setup)
        while not self.stopped.is_set():
            frames = self.take(process, 0.0 if self.number == 0 else 10 * WAIT)
            if not frames and self.number:
                continue
            try:
                back = client.act("exchange", self.number, tuple(frames))
                self.unreachable.pop(process, None)
            except BridgeError as error:
                if self.stopped.is_set():
                    return
                now = time.monotonic()
                since, _ = self.unreachable.get(process, (now, ""))
                self.unreachable[process] = since, f"{error.kind}: {error}"
                if error.retriable and now - since < KEPT:
                    # A short silence then costs no more than its duration.
                    with self.changed:
                        later = self.queues.get(process, [])
                        self.queues[process] = [*((0.0, frame) for frame in frames), *later]
                self.stopped.wait(WAIT)
                continue
            self.receive(back)
        client.close()

    # --- feeding ------------------------------------------------------------------

    def feed(self, rows: Mapping[str, pa.Table]) -> None:
        """Feeds this process's sites from the streams' rows, each in the order of its times."""
        assert isinstance(self.setup.layout, SharedLayout)
        streams = {stream.name: stream for stream in self.setup.definitions}
        tables = {name: self._in_order(streams[name], table) for name, table in rows.items()}
        feeds = [
            blocks_of(stream, k, tables[stream.name.partition("#")[0]], most=BLOCK_ROWS)
            for k, stream in enumerate(self.setup.layout.sites)
            if k in self.nodes
        ]
        self.feeding = len(feeds)
        threading.Thread(target=self._feed, args=(feeds,), daemon=True).start()

    def _in_order(self, stream: Definition, rows: pa.Table) -> pa.Table:
        """Returns a stream's rows by time, without late ones."""
        name, slack = stream.name, self.setup.slack
        merger = Merger([name], stream.out_of_orderness if slack is None else slack)
        merger.push(name, rows)
        merger.stop(name)
        self.late |= merger.late
        if late := merger.late.get(name, 0) if stream.late == "error" else 0:
            self.fault = f"stream {name}: {late:,} late row{'s' * (late != 1)}, which it refuses"
        parts = [part.rows[0] for part in merger.release(max(rows.num_rows, 1))]
        table = pa.concat_tables(parts) if parts else rows.slice(0, 0)
        self.rows[name] = table.num_rows
        return table

    def _feed(self, feeds: list[Iterator[BlockRows]]) -> None:
        try:
            while feeds and not self.stopped.is_set():
                for feed in list(feeds):
                    block = next(feed, None)
                    if block is None:
                        feeds.remove(feed)
                        continue
                    while not self.stopped.is_set():
                        try:
                            self.submit(block)
                            break
                        except FeederBlocked:
                            self.stopped.wait(TICK)
        except EngineError as error:
            self.fault = str(error)
        self.feeding = 0


def _state(node: Any) -> dict[str, object]:
    state: dict[str, object] = {"idle": node.idle}
    if getattr(node, "site", None) is not None:
        state |= {"epoch": node.site.epoch, "next": node.site.next, "open": len(node.site.open)}
        state["counters"] = dict(node.site.counters)
    if getattr(node, "centre", None) is not None:
        state |= {"leads": node.centre.active, "rebuilds": node.centre.counters["rebuilds"]}
    if getattr(node, "sink", None) is not None:
        state["incomplete"] = node.sink.incomplete
    return state


def _forget(reports: dict[Decided, Any]) -> None:
    """Discards the oldest reports; a process may run for long."""
    while len(reports) > REMEMBERED:
        del reports[next(iter(reports))]


def _now() -> float:
    """Returns the time in milliseconds; a node itself has no clock."""
    return time.monotonic() * 1000
