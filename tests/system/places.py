"""Places for nodes of a join across sites, as far apart as this machine allows.

    with apart(5, loss=0.05, delay=0.02) as places:
        Cluster(layout, folder, delay=places.delay, places=places.of) ...

Where the kernel and our rights permit it, each node has a network namespace of its own, joined by a
bridge; delay and loss are those of `tc netem` on every link. Where there is no netem, or there are no
namespaces, the nodes themselves send late. `what` tells which it is. In any case the nodes lose and
repeat messages: TCP sends packets again that netem loses.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.cosim.sites.cluster import ClusterPlace

PORT = 7000


@dataclass
class Places:
    """Places by node. `before(k)` goes before any command that is to run where node k is."""

    of: dict[int, ClusterPlace]
    what: str
    delay: float
    before: Callable[[int], tuple[str, ...]] = field(default=lambda node: ())


@contextlib.contextmanager
def apart(nodes: int, loss: float = 0.0, delay: float = 0.0) -> Iterator[Places]:
    """Yields this many places; `delay` is at most, in seconds. The part of it left to the nodes is
    their `delay`."""
    with _namespaces(nodes) as spaces:
        if spaces is None:
            of = {k: ClusterPlace() for k in range(nodes)}
            yield Places(of, "processes with ports of their own, which send late", delay)
            return
        netem = spaces.netem(loss, delay)
        what = "delay and loss by tc netem" if netem else "processes send late"
        of = {
            k: ClusterPlace(f"grpc://{spaces.host(k)}:{PORT + k}", spaces.before(k))
            for k in range(nodes)
        }
        yield Places(of, f"network namespaces; {what}", 0.0 if netem else delay, spaces.before)


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
        """Returns the address of this process, as the namespaces see it."""
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
        """Puts delay and loss on every link; returns whether this kernel has them."""
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
    """Yields namespaces, or None where they are not available."""
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
