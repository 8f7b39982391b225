"""Places for nodes of a join across sites, apart from each other as far as this machine allows.

    with apart(5, loss=0.05, repeat=0.05, delay=0.02) as places:
        Cluster(layout, folder, places=places.of) ...

Where the kernel and our rights give them, each node has a network namespace of its own, joined by a
bridge; delay and loss are `tc netem`'s on every link. Where there is no netem, or no namespaces, a
relay in front of each node delays, loses and repeats its messages. `what` says which it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from engine.sites.cluster import Place, free_ports
from engine.sites.process import Address, read_frame, write_frame

PORT = 7000


@dataclass
class Places:
    """`before(k)` goes before any command that is to run where node k is."""

    of: dict[int, Place]
    what: str
    before: Callable[[int], tuple[str, ...]] = field(default=lambda node: ())


@contextlib.contextmanager
def apart(
    nodes: int, loss: float = 0.0, repeat: float = 0.0, delay: float = 0.0, seed: int = 0
) -> Iterator[Places]:
    """So many places; `delay` in seconds, at most."""
    with contextlib.ExitStack() as stack:
        spaces = stack.enter_context(_namespaces(nodes))
        if spaces is None:
            listen = [("127.0.0.1", port) for port in free_ports(nodes)]
            what = ["processes with ports of their own"]
        else:
            listen = [(spaces.host(k), PORT + k) for k in range(nodes)]
            what = ["network namespaces"]
        reach: list[Address | None] = [None] * nodes
        if spaces is not None and spaces.netem(loss, delay):
            what.append("delay and loss by tc netem")
        else:
            relay = stack.enter_context(Relay(listen, loss, repeat, delay, seed, spaces))
            reach = list(relay.addresses)
            what.append("delay, loss and repetition by a relay before each")
        before = spaces.before if spaces is not None else lambda node: ()
        of = {k: Place(listen[k], reach[k], before(k)) for k in range(nodes)}
        yield Places(of, "; ".join(what), before)


# --- namespaces -----------------------------------------------------------------


@dataclass
class Spaces:
    """Namespaces of this process, each with one link to a bridge."""

    nodes: int
    name: str = field(default_factory=lambda: f"st{os.getpid() % 100000}")
    net: str = field(default_factory=lambda: f"198.18.{os.getpid() % 250 + 1}")

    def host(self, node: int) -> str:
        return f"{self.net}.{10 + node}"

    @property
    def gate(self) -> str:
        """This process, as the namespaces see it."""
        return f"{self.net}.1"

    def before(self, node: int) -> tuple[str, ...]:
        return ("ip", "netns", "exec", f"{self.name}n{node}")

    def make(self) -> None:
        _ip("link", "add", self.name, "type", "bridge")
        _ip("addr", "add", f"{self.gate}/24", "dev", self.name)
        _ip("link", "set", self.name, "up")
        for k in range(self.nodes):
            space, here, there = f"{self.name}n{k}", f"{self.name}a{k}", f"{self.name}b{k}"
            _ip("netns", "add", space)
            _ip("link", "add", here, "type", "veth", "peer", "name", there)
            _ip("link", "set", here, "master", self.name, "up")
            _ip("link", "set", there, "netns", space)
            _ip("-n", space, "addr", "add", f"{self.host(k)}/24", "dev", there)
            _ip("-n", space, "link", "set", there, "up")
            _ip("-n", space, "link", "set", "lo", "up")

    def netem(self, loss: float, delay: float) -> bool:
        """Delay and loss on every link, if this kernel has them."""
        if shutil.which("tc") is None:
            return False
        half = f"{delay * 500:.3f}ms"
        for k in range(self.nodes):
            rule = ["netem", "delay", half, half, "loss", f"{loss * 100:.2f}%"]
            done = subprocess.run(
                ["tc", "qdisc", "add", "dev", f"{self.name}a{k}", "root", *rule],
                capture_output=True,
                check=False,
            )
            if done.returncode:
                return False
        return True

    def remove(self) -> None:
        for k in range(self.nodes):
            _ip("netns", "del", f"{self.name}n{k}", check=False)
        _ip("link", "del", self.name, check=False)


def _ip(*arguments: str, check: bool = True) -> None:
    subprocess.run(["ip", *arguments], capture_output=True, check=check)


@contextlib.contextmanager
def _namespaces(nodes: int) -> Iterator[Spaces | None]:
    """None where they are not to be had."""
    spaces = Spaces(nodes)
    if shutil.which("ip") is None or os.geteuid():
        yield None
        return
    try:
        spaces.make()
    except subprocess.CalledProcessError:
        spaces.remove()
        yield None
        return
    try:
        yield spaces
    finally:
        spaces.remove()


# --- the relay ---------------------------------------------------------------------


class Relay:
    """Stands before each node: of what others send it, frame by frame, some is lost, some comes
    twice, all of it late, and not in the order in which it was sent."""

    def __init__(
        self,
        listen: list[Address],
        loss: float,
        repeat: float,
        delay: float,
        seed: int,
        spaces: Spaces | None,
    ) -> None:
        self.listen, self.loss, self.repeat, self.delay = listen, loss, repeat, delay
        host = "127.0.0.1" if spaces is None else spaces.gate
        self.addresses = [(host, port) for port in free_ports(len(listen))]
        self.chance = random.Random(seed)
        self.lost = self.passed = 0
        self.tasks: set[asyncio.Task[None]] = set()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)

    def __enter__(self) -> Relay:
        self.thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self.loop).result()
        return self

    def __exit__(self, *error: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    async def _open(self) -> None:
        self.servers = [
            await asyncio.start_server(self._serving(node), *address)
            for node, address in enumerate(self.addresses)
        ]

    async def _close(self) -> None:
        for server in self.servers:
            server.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def _serving(self, node: int) -> Callable[[Any, Any], None]:
        def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._start(self._pass_on(node, reader, writer))

        return serve

    def _start(self, work: Any) -> None:
        task = self.loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _pass_on(
        self, node: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        onward: asyncio.StreamWriter | None = None
        try:
            hello = await read_frame(reader)
            _, onward = await asyncio.open_connection(*self.listen[node])
            write_frame(onward, hello)
            while True:
                frame = await read_frame(reader)
                copies = 1 - (self.chance.random() < self.loss)
                copies += self.chance.random() < self.repeat
                self.lost += not copies
                self.passed += copies
                for _ in range(copies):
                    self._start(self._later(onward, frame))
        except (OSError, asyncio.IncompleteReadError):
            # One end is gone; the other is told by the end of its connection.
            pass
        finally:
            writer.close()
            if onward is not None:
                onward.close()

    async def _later(self, onward: asyncio.StreamWriter, frame: object) -> None:
        await asyncio.sleep(self.chance.random() * self.delay)
        if not onward.is_closing():
            write_frame(onward, frame)
