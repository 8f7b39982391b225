"""Several nodes as processes on this machine: started, fed, killed, started again, read from.

with Cluster(layout, folder) as cluster:
    cluster.submit(BlockRows(0, tau, rows, no=0))
    cluster.kill(centre); cluster.start(centre)
    cluster.settle()
    for member, result in cluster.results(): ...
"""

from __future__ import annotations

import random
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from engine.sites.errors import MultiJoinError
from engine.sites.explain import Block, with_costs
from engine.sites.model import BlockId, BlockRows, Result
from engine.sites.node import Layout
from engine.sites.process import Address, Plan
from engine.sites.wire import decode, encode

PATIENCE = 60.0
PAUSE = 0.02

_PORTS = range(20_000, 32_000)
"""Below those that systems hand out to whoever connects, of which one could be taken before a node is
up."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where and how a node's process runs: what it listens at, how others reach it if that is
    another address, what goes before its command (`ip netns exec …`), and the module it is, with
    arguments of its own."""

    listen: Address
    reach: Address | None = None
    before: tuple[str, ...] = ()
    module: tuple[str, ...] = ("engine.sites.process",)


class ClusterError(MultiJoinError):
    """A process that does not start or answer."""


class Cluster:
    """The processes of a layout. `folder` takes the plan they read, and what they say on stderr.
    `loss`, `repeat` and `delay` (seconds, at most) make the network between them bad. `places` says
    where nodes are that are not simply processes with a port of this machine."""

    def __init__(
        self,
        layout: Layout,
        folder: Path,
        loss: float = 0.0,
        repeat: float = 0.0,
        delay: float = 0.0,
        places: Mapping[int, Place] | None = None,
    ) -> None:
        self.layout, self.folder = layout, folder
        ports = free_ports(max(layout.nodes) + 1)
        plain = {number: Place(("127.0.0.1", port)) for number, port in enumerate(ports)}
        self.places = plain | dict(places or {})
        listen = tuple(self.places[number].listen for number in plain)
        reach = tuple(self.places[number].reach or listen[number] for number in plain)
        self.plan = Plan(layout, listen, reach, secrets.token_hex(16), loss, repeat, delay)
        self.lives: dict[int, int] = {}
        self.processes: dict[int, subprocess.Popen[str]] = {}
        self._control: dict[int, socket.socket] = {}
        self._read = 0

    def __enter__(self) -> Cluster:
        self.plan.save(self.folder / "plan.json")
        try:
            for number in self.layout.nodes:
                self._launch(number)
            for number in self.layout.nodes:
                self._wait_ready(number)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    # --- life and death -------------------------------------------------------

    def start(self, number: int) -> None:
        """Starts a node again; it remembers nothing."""
        self._launch(number)
        self._wait_ready(number)

    def kill(self, number: int) -> None:
        """Ends a node's process without warning."""
        process = self.processes.pop(number)
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
        control = self._control.pop(number, None)
        if control is not None:
            control.close()

    def _launch(self, number: int) -> None:
        attempt = self.lives.get(number, -1) + 1
        self.lives[number] = attempt
        place = self.places[number]
        command = [*place.before, sys.executable, "-m", *place.module]
        command += [str(self.folder / "plan.json"), str(number), "--attempt", str(attempt)]
        with (self.folder / f"node{number}.log").open("a") as log:
            self.processes[number] = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=_root()
            )

    def _wait_ready(self, number: int) -> None:
        out = self.processes[number].stdout
        assert out is not None
        if out.readline().strip() != "ready":
            log = (self.folder / f"node{number}.log").read_text()
            raise ClusterError(f"node {number} did not start", log.strip()[-500:] or None)

    def _end(self) -> None:
        for number in list(self.processes):
            self.kill(number)

    # --- commands ---------------------------------------------------------------

    def ask(self, number: int, *command: object) -> Any:
        """A command to a node and its answer."""
        try:
            control = self._control.get(number)
            if control is None:
                control = socket.create_connection(self.plan.listen[number], PATIENCE)
                self._control[number] = control
                _send(control, (self.plan.token, None))
            _send(control, command)
            return _receive(control)
        except OSError as error:
            if (lost := self._control.pop(number, None)) is not None:
                lost.close()
            raise ClusterError(f"node {number} does not answer: {error}") from None

    def submit(self, block: BlockRows) -> None:
        """Hands a block to its site; waits while the site has too many open."""
        end = time.monotonic() + PATIENCE
        while True:
            answer = self.ask(block.stream, "submit", block)
            if answer[0] == "taken":
                return
            if answer[0] == "refused":
                raise ClusterError(f"site {block.stream} refused a block: {answer[1]}")
            if time.monotonic() > end:
                raise ClusterError(f"site {block.stream} stays full")
            time.sleep(PAUSE)

    def state(self, number: int) -> dict[str, Any]:
        found: dict[str, Any] = self.ask(number, "state")[1]
        return found

    def settle(self) -> None:
        """Waits until no node has anything left to do."""
        end = time.monotonic() + PATIENCE
        quiet = 0
        while quiet < 2:
            idle = all(self.state(number)["idle"] for number in self.processes)
            quiet = quiet + 1 if idle else 0
            if time.monotonic() > end:
                states = {number: self.state(number) for number in self.processes}
                raise ClusterError(f"no end within {PATIENCE:g} s: {states}")
            time.sleep(PAUSE)

    def results(self) -> list[tuple[int, Result]]:
        """The results that came since the last call."""
        found = list(self.ask(self.layout.query_node, "results", self._read)[1])
        self._read += len(found)
        return found

    def blocks(self) -> list[Block]:
        """The latest blocks whose plan somebody alive remembers, with what their rows cost on their
        way as the nodes on it added it up; in the order of time."""
        decisions: dict[BlockId, Block] = {}
        costs: dict[BlockId, float] = {}
        for number in self.processes:
            _, decided, spent = self.ask(number, "blocks")
            for key, block in decided.items():
                if key not in decisions or decisions[key].epoch < block.epoch:
                    decisions[key] = block
            costs |= spent
        return sorted(with_costs(decisions, costs), key=lambda b: (b.tau, b.stream, b.block))


def _send(control: socket.socket, value: object) -> None:
    data = encode(value)
    control.sendall(len(data).to_bytes(4, "big") + data)


def _receive(control: socket.socket) -> Any:
    return decode(_exactly(control, int.from_bytes(_exactly(control, 4), "big")))


def _exactly(control: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = control.recv(count - len(data))
        if not part:
            raise ConnectionError("closed")
        data += part
    return data


def free_ports(count: int) -> tuple[int, ...]:
    """Ports nobody listens on now; held together, so that they differ."""
    held: list[socket.socket] = []
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        if len(held) == count:
            break
        one = socket.socket()
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            one.close()
        else:
            held.append(one)
    ports = tuple(one.getsockname()[1] for one in held)
    for one in held:
        one.close()
    if len(ports) < count:
        raise ClusterError(f"{count} ports are wanted, {len(ports)} are free")
    return ports


def _root() -> Path:
    """Where the packages are, whether installed or not."""
    return Path(__file__).resolve().parents[2]
