"""A node as a process of its own, with TCP between the nodes.

    python -m engine.sites.process LAYOUT NUMBER [--attempt N]

A connection starts with the token; then come frames, four bytes of length and a message. A frame
that cannot be delivered is lost: whoever needs an answer says it again. The same port takes
commands (`Command`), answered in order: blocks from a feeder, questions about the state, results.
`attempt` is another number for each life of the same node.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import hmac
import random
import sys
from pathlib import Path
from typing import Any, TypeAlias

from engine.sites.errors import FeederBlocked, MultiJoinError
from engine.sites.explain import Block, block_of
from engine.sites.messages import Announce, Delta, Done, Message
from engine.sites.messages import Plan as Decided
from engine.sites.model import BlockId, BlockRows, Join, Result
from engine.sites.node import Layout, Node
from engine.sites.store import Store
from engine.sites.wire import Malformed, decode, encode

Address: TypeAlias = tuple[str, int]
LONGEST = 64 << 20
REMEMBERED = 10_000
"""Blocks whose order and cost a process can tell."""
TICK = 0.02
"""Seconds between looks at the clock."""


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """What every process is told: the join, who is where, and how bad its network is to be. A
    node listens at one address and may be reached by another, if something is in between."""

    layout: Layout
    listen: tuple[Address, ...]
    reach: tuple[Address, ...]
    token: str
    loss: float = 0.0
    repeat: float = 0.0
    delay: float = 0.0

    def save(self, path: Path) -> None:
        layout = {
            field.name: getattr(self.layout, field.name) for field in dataclasses.fields(Layout)
        }
        join = self.layout.join
        # A condition that is no expression is code, which no process is sent: the wire refuses it.
        layout["join"] = {
            name: getattr(join, name)
            for name in ("streams", "equal", "windows", "residuals", "horizons")
        }
        rest = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        path.touch(mode=0o600)
        path.write_bytes(encode(rest | {"layout": layout}))

    @classmethod
    def load(cls, path: Path) -> Plan:
        found = decode(path.read_bytes())
        layout = found.pop("layout")
        layout["join"] = Join(**layout["join"])
        return cls(Layout(**layout), **found)


class Host:
    """One node and its connections."""

    def __init__(
        self, plan: Plan, number: int, attempt: int = 0, store: Store | None = None
    ) -> None:
        self.plan, self.number = plan, number
        self.node = Node(plan.layout, number, self._emit, attempt, store)
        self.results: list[tuple[int, Result]] = []
        self.decisions: dict[BlockId, Block] = {}
        self.spent: dict[BlockId, float] = {}
        self.node.on_accept(self._note)
        if self.node.site is not None:
            self.node.site.on_over = self._over
        self.peers: dict[int, asyncio.StreamWriter] = {}
        self.chance = random.Random(number + 1000 * attempt)
        self.stopped = asyncio.Event()
        self.tasks: set[asyncio.Task[None]] = set()

    def _emit(self, member: int, result: Result) -> None:
        self.results.append((member, result))

    def _note(self, delta: Delta | Announce, plan: Decided) -> None:
        self.decisions[plan.stream, plan.no] = block_of(self.plan.layout.join, delta, plan)
        _forget(self.decisions)

    def _over(self, done: Done) -> None:
        self.spent[done.block] = done.spent
        _forget(self.spent)

    async def run(self) -> None:
        host, port = self.plan.listen[self.number]
        server = await asyncio.start_server(self._serve, host, port, limit=LONGEST)
        ticking = asyncio.create_task(self._tick())
        async with server:
            print("ready", flush=True)
            await self.stopped.wait()
        ticking.cancel()
        for task in self.tasks:
            task.cancel()

    @property
    def now(self) -> float:
        """Milliseconds; the node itself has no clock."""
        return asyncio.get_running_loop().time() * 1000

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            self.node.tick(self.now)
            self._post()

    def _post(self) -> None:
        for to, message in self.node.drain():
            if to == self.number:
                self._later(0, self._receive_own(message))
                continue
            copies = 1 - (self.chance.random() < self.plan.loss)
            copies += self.chance.random() < self.plan.repeat
            for _ in range(copies):
                self._later(self.chance.random() * self.plan.delay, self._send(to, message))

    def _later(self, seconds: float, what: Any) -> None:
        async def wait() -> None:
            if seconds:
                await asyncio.sleep(seconds)
            await what

        task = asyncio.create_task(wait())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _receive_own(self, message: Message) -> None:
        self.node.receive(self.number, message, self.now)
        self._post()

    async def _send(self, to: int, message: Message) -> None:
        try:
            writer = self.peers.get(to)
            if writer is None or writer.is_closing():
                _, writer = await asyncio.open_connection(*self.plan.reach[to])
                write_frame(writer, (self.plan.token, self.number))
                self.peers[to] = writer
            write_frame(writer, message)
            await writer.drain()
        except OSError:
            self.peers.pop(to, None)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            hello = await read_frame(reader)
            match hello:
                case (str(token), int() | None as sender) if hmac.compare_digest(
                    token.encode(), self.plan.token.encode()
                ):
                    pass
                case _:
                    return
            while True:
                frame = await read_frame(reader)
                if sender is None:
                    write_frame(writer, self._command(frame))
                    await writer.drain()
                else:
                    self.node.receive(sender, frame, self.now)
                self._post()
        except (asyncio.IncompleteReadError, ConnectionError, Malformed):
            # Whoever sent this is gone, or no node of ours.
            pass
        finally:
            writer.close()

    def _command(self, frame: Any) -> object:
        match frame:
            case ("submit", BlockRows() as block):
                try:
                    self.node.submit(block, self.now)
                except FeederBlocked:
                    return ("blocked",)
                except MultiJoinError as error:
                    return ("refused", str(error))
                return ("taken",)
            case ("results", int(first)):
                return ("results", tuple(self.results[first:]))
            case ("state",):
                return ("state", self._state())
            case ("blocks",):
                return ("blocks", self.decisions, self.spent)
            case ("stop",):
                self.stopped.set()
                return ("stopping",)
        return ("refused", "no such command")

    def _state(self) -> dict[str, object]:
        node = self.node
        found: dict[str, object] = {"idle": node.idle}
        if node.site is not None:
            found |= {"epoch": node.site.epoch, "next": node.site.next, "open": len(node.site.open)}
            found["counters"] = dict(node.site.counters)
        if node.centre is not None:
            found |= {"leads": node.centre.active, "rebuilds": node.centre.counters["rebuilds"]}
        if node.sink is not None:
            found |= {"results": len(self.results), "incomplete": node.sink.incomplete}
        return found


def _forget(told: dict[BlockId, Any]) -> None:
    """The oldest of what is remembered for people; a process may run for long."""
    while len(told) > REMEMBERED:
        del told[next(iter(told))]


def write_frame(writer: asyncio.StreamWriter, value: object) -> None:
    data = encode(value)
    writer.write(len(data).to_bytes(4, "big") + data)


async def read_frame(reader: asyncio.StreamReader) -> Any:
    length = int.from_bytes(await reader.readexactly(4), "big")
    if length > LONGEST:
        raise Malformed(f"a frame of {length} bytes")
    return decode(await reader.readexactly(length))


def parser() -> argparse.ArgumentParser:
    """The arguments of every program that is a node."""
    made = argparse.ArgumentParser(description="One node of a join across sites.")
    made.add_argument("plan", type=Path)
    made.add_argument("number", type=int)
    made.add_argument("--attempt", type=int, default=0)
    return made


def main(argv: list[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    host = Host(Plan.load(arguments.plan), arguments.number, arguments.attempt)
    asyncio.run(host.run())
    return 0


if __name__ == "__main__":
    sys.exit(main())
