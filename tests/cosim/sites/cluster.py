"""The nodes of a layout as processes on this machine: started, fed, killed, started again, read from.

with Cluster(layout, folder) as cluster:
    cluster.submit(BlockRows(0, tau, rows, no=0))
    cluster.kill(centre); cluster.start(centre)
    cluster.settle()
    for member, result in cluster.results(): ...
"""

from __future__ import annotations

import secrets
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.sites.client import Client
from seustream.cosim.sites.process import Setup
from seustream.engine.sites.errors import SitesError
from seustream.engine.sites.explain import Block, gathered
from seustream.engine.sites.layout import SiteLayout
from seustream.engine.sites.model import BlockRows, Result

PATIENCE = 60.0
PAUSE = 0.02


@dataclass(frozen=True, slots=True)
class ClusterPlace:
    """The place of a node's process: the address it listens at, a prefix of its command (`ip netns
    exec …`), and the module that it runs, with arguments of its own."""

    listen: str = "grpc://127.0.0.1:0"
    before: tuple[str, ...] = ()
    module: tuple[str, ...] = ("tests.cosim.sites.node",)


class ClusterError(SitesError):
    """A process that does not start or answer."""


class Cluster:
    """The processes of a layout. `folder` takes what they print on stderr. `loss`, `repeat` and
    `delay` (at most, in seconds) degrade the network between them. `places` is for nodes that are
    not simply processes with a port of this machine."""

    def __init__(
        self,
        layout: SiteLayout,
        folder: Path,
        loss: float = 0.0,
        repeat: float = 0.0,
        delay: float = 0.0,
        places: Mapping[int, ClusterPlace] | None = None,
    ) -> None:
        self.layout, self.folder = layout, folder
        self.faults = (loss, repeat, delay)
        self.places = {node: ClusterPlace() for node in layout.nodes} | dict(places or {})
        self.token = secrets.token_hex(16)
        self.addresses: dict[int, str] = {}
        self.lives: dict[int, int] = {}
        self.processes: dict[int, subprocess.Popen[str]] = {}
        self._clients: dict[int, Client] = {}
        self._read = 0

    def __enter__(self) -> Cluster:
        token = self.folder / "token"
        token.touch(mode=0o600)
        token.write_text(self.token)
        try:
            for node in self.layout.nodes:
                self._launch(node, self.places[node].listen)
            for node in self.layout.nodes:
                self._wait_ready(node)
            # Process 0 would be the one that calls the others; here all are services.
            nodes = range(max(self.layout.nodes) + 1)
            where = {node: node + 1 for node in self.layout.nodes}
            addresses = (None, *(self.addresses.get(node) for node in nodes))
            loss, repeat, delay = self.faults
            self.setup = Setup(
                self.layout,
                where,
                addresses,
                token=self.token,
                loss=loss,
                repeat=repeat,
                delay=delay,
            )
            for node in self.layout.nodes:
                self._open(node)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._end()

    # --- life and death -------------------------------------------------------

    def start(self, node: int) -> None:
        """Starts a node again, at its address; it remembers nothing."""
        self._launch(node, self.addresses[node])
        self._wait_ready(node)
        self._open(node)

    def kill(self, node: int) -> None:
        """Ends a node's process without warning."""
        process = self.processes.pop(node)
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
        if (client := self._clients.pop(node, None)) is not None:
            client.close()

    def _launch(self, node: int, listen: str) -> None:
        place = self.places[node]
        command = [*place.before, sys.executable, "-m", *place.module]
        command += ["--listen", listen, "--token-file", str((self.folder / "token").resolve())]
        with (self.folder / f"node{node}.log").open("a") as log:
            self.processes[node] = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=_root()
            )

    def _wait_ready(self, node: int) -> None:
        out = self.processes[node].stdout
        assert out is not None
        line = out.readline()
        if " on grpc" not in line:
            log = (self.folder / f"node{node}.log").read_text()
            raise ClusterError(f"node {node} did not start", log.strip()[-500:] or None)
        self.addresses[node] = line.split(" on ")[1].strip()

    def _open(self, node: int) -> None:
        self._clients[node] = Client(self.addresses[node], self.setup)
        life = self.lives.get(node, -1) + 1
        self.lives[node] = life
        self.ask(node, "open", self.setup.plain(), node + 1, life)

    def _end(self) -> None:
        for node in list(self.processes):
            self.kill(node)

    # --- commands ---------------------------------------------------------------

    def ask(self, node: int, action: str, *arguments: object) -> Any:
        """Sends a command to a node; returns its answer."""
        client = self._clients.get(node)
        if client is None:
            raise ClusterError(f"node {node} does not answer: it was not started")
        try:
            return client.act(action, *arguments)
        except BridgeError as error:
            if error.kind == "unavailable":
                raise ClusterError(f"node {node} does not answer: {error}") from None
            raise ClusterError(f"node {node} refused: {error}", error.hint) from None

    def submit(self, block: BlockRows) -> None:
        """Hands a block to its site; waits while the site has too many open blocks."""
        end = time.monotonic() + PATIENCE
        while self.ask(block.stream, "submit", block) != "taken":
            if time.monotonic() > end:
                raise ClusterError(f"site {block.stream} stays full")
            time.sleep(PAUSE)

    def state(self, node: int) -> dict[str, Any]:
        state: dict[str, Any] = dict(self.ask(node, "state"))
        return {**state, **state["nodes"][node]}

    def settle(self) -> None:
        """Waits until no node has anything left to do."""
        end = time.monotonic() + PATIENCE
        quiet = 0
        while quiet < 2:
            idle = all(self.state(node)["idle"] for node in self.processes)
            quiet = quiet + 1 if idle else 0
            if time.monotonic() > end:
                states = {node: self.state(node) for node in self.processes}
                raise ClusterError(f"no end within {PATIENCE:g} s: {states}")
            time.sleep(PAUSE)

    def agreed(self) -> tuple[int, int]:
        """Waits until all sites are in the same epoch and returns it: a message that was in flight
        when nothing was left to do can make a centre that came back lead once more."""
        end = time.monotonic() + PATIENCE
        while len(epochs := {self.state(k)["epoch"] for k in range(len(self.layout.join))}) > 1:
            if time.monotonic() > end:
                raise ClusterError(f"sites of several epochs after {PATIENCE:g} s: {epochs}")
            time.sleep(PAUSE)
        epoch: tuple[int, int] = epochs.pop()
        return epoch

    def results(self) -> list[tuple[int, Result]]:
        """Returns the results that came since the last call."""
        new = list(self.ask(self.layout.query_node, "results", self._read))
        self._read += len(new)
        return new

    def blocks(self) -> list[Block]:
        """Returns the latest blocks whose plan a living node remembers, in the order of time."""
        return gathered(self.ask(node, "blocks") for node in self.processes)[0]


def _root() -> Path:
    """Returns the folder of the package `seustream`, installed or not."""
    return Path(sys.modules["seustream"].__file__ or "").resolve().parents[1]
