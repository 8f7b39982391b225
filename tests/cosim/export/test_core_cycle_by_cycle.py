"""Compares the core's Verilog with Amaranth's own simulation of its source: every output, in every
cycle, of both interfaces. The core with its own ports gets the inputs that reached it inside the
one with AXI."""

from __future__ import annotations

import ctypes
import os
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from amaranth.hdl import Value
from amaranth.lib.wiring import In
from amaranth.sim import Simulator

from seustream.compiler.pipeline import Options, compile_text
from seustream.cosim.export import core
from seustream.cosim.export.vectors import input_rows
from seustream.cosim.export.words import load_words
from seustream.cosim.verilated.build import compile_units, compiler, package, run_tool
from seustream.hdl.axi import top as axi_top
from seustream.hdl.axi.records import BEAT
from seustream.hdl.axi.registers import REGISTERS
from seustream.hdl.axi.top import AxiWjasip
from seustream.hdl.config import DeviceConfig
from seustream.hdl.top import Wjasip
from tests.cosim.queries import Raw, batch
from tests.hdl.axi.test_top import SMALL

INPUTS = [
    "aresetn",
    *(f"s_axil_{name}" for name in ("awaddr", "awprot", "awvalid", "wdata", "wstrb", "wvalid", "bready")),
    *(f"s_axil_{name}" for name in ("araddr", "arprot", "arvalid", "rready")),
    *(f"s_axis_t{name}" for name in ("data", "keep", "last", "valid")),
    "m_axis_tready",
]  # fmt: skip
OUTPUTS = [
    *(f"s_axil_{name}" for name in ("awready", "wready", "bresp", "bvalid")),
    *(f"s_axil_{name}" for name in ("arready", "rdata", "rresp", "rvalid")),
    "s_axis_tready",
    *(f"m_axis_t{name}" for name in ("data", "keep", "last", "valid")),
]
OFFSETS = {register.name: register.offset for register in REGISTERS}
GROUPS, CASES, TUPLES = 5, 20, 12
"""Images, cases per image, and tuples per case."""
TYPES = ("R.a = S.a", "R.b = S.b", "R.a < S.b", "R.a > S.a AND R.b = S.b")

Trace = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Port:
    name: str
    signal: Any

    @property
    def words(self) -> int:
        """Returns the number of words: one of up to 64 bits, or several of 32 bits for a wider
        port."""
        width = len(Value.cast(self.signal))
        return 1 if width <= 64 else -(-width // 32)

    def cut(self, value: int) -> list[int]:
        return (
            [value]
            if self.words == 1
            else [value >> 32 * n & 0xFFFFFFFF for n in range(self.words)]
        )

    @property
    def setting(self) -> str:
        each = (f"top.{self.name}[{n}] = *in++;" for n in range(self.words))
        return f"top.{self.name} = *in++;" if self.words == 1 else " ".join(each)

    @property
    def getting(self) -> str:
        each = (f"*out++ = top.{self.name}[{n}];" for n in range(self.words))
        return f"*out++ = top.{self.name};" if self.words == 1 else " ".join(each)


@dataclass
class Played:
    """Inputs and outputs of a core, cycle by cycle."""

    inputs: list[Port]
    outputs: list[Port]
    given: list[list[int]] = field(default_factory=list)
    found: list[list[int]] = field(default_factory=list)

    def note(self, ctx: Any) -> None:
        for ports, rows in ((self.inputs, self.given), (self.outputs, self.found)):
            rows.append([w for p in ports for w in p.cut(ctx.get(Value.cast(p.signal)))])


def ports_of(core: Wjasip, reset: Any) -> Played:
    """Returns the ports of the core inside, under the names they have where it stands alone."""
    inputs, outputs = [Port("rst", reset)], []
    for path, member, signal in core.signature.flatten(core):
        # Verilator encodes two underscores like this.
        port = Port("___05F".join(map(str, path)), signal)
        (inputs if member.flow is In else outputs).append(port)
    return Played(inputs, outputs)


class Driver:
    """Drives writes and records by the rules of AXI, with pauses, and keeps all inputs and
    outputs."""

    def __init__(self, ctx: Any, top: AxiWjasip, inside: Played, chance: random.Random) -> None:
        self._ctx, self._top, self.inside, self.chance = ctx, top, inside, chance
        self.inputs: list[list[int]] = []
        self.outputs: list[list[int]] = []
        self.marks = 0

    def set(self, **values: int) -> None:
        for name, value in values.items():
            self._ctx.set(getattr(self._top, name), value)

    async def cycle(self) -> dict[str, int]:
        """Runs a cycle; returns the outputs before the clock edge."""
        self.set(m_axis_tready=self.chance.random() < 0.7, s_axil_bready=1)
        self.set(s_axil_rready=self.chance.random() < 0.7)
        await self._ctx.delay(1e-9)
        self.inputs.append([self._ctx.get(getattr(self._top, name)) for name in INPUTS])
        now = {name: self._ctx.get(getattr(self._top, name)) for name in OUTPUTS}
        self.outputs.append([*now.values()])
        self.inside.note(self._ctx)
        taken = now["m_axis_tvalid"] and self._ctx.get(self._top.m_axis_tready)
        self.marks += bool(taken and now["m_axis_tlast"])
        self.set(aclk=1)
        await self._ctx.delay(1e-9)
        self.set(aclk=0)
        return now

    async def reset(self) -> None:
        self.set(aresetn=0)
        for _ in range(3):
            await self.cycle()
        self.set(aresetn=1)

    async def write(self, name: str, value: int) -> None:
        open_ = {"aw", "w"}
        self.set(s_axil_awaddr=OFFSETS[name], s_axil_wdata=value, s_axil_wstrb=15)
        while open_:
            self.set(s_axil_awvalid="aw" in open_, s_axil_wvalid="w" in open_)
            now = await self.cycle()
            open_ -= {channel for channel in open_ if now[f"s_axil_{channel}ready"]}
        self.set(s_axil_awvalid=0, s_axil_wvalid=0)
        while not (await self.cycle())["s_axil_bvalid"]:
            pass

    async def read(self, name: str) -> int:
        self.set(s_axil_araddr=OFFSETS[name], s_axil_arvalid=1)
        while not (await self.cycle())["s_axil_arready"]:
            pass
        self.set(s_axil_arvalid=0)
        while not (now := await self.cycle())["s_axil_rvalid"]:
            pass
        return now["s_axil_rdata"]

    async def send(self, data: bytes) -> None:
        """Sends beats, now and then after a malformed record."""
        beats = [int.from_bytes(data[at : at + BEAT], "little") for at in range(0, len(data), BEAT)]
        cut = [(beats[0], 255, 1)] if self.chance.random() < 0.2 else []
        for beat, keep, last in [*cut, *((beat, 255, 0) for beat in beats)]:
            while self.chance.random() < 0.2:
                await self.cycle()
            self.set(s_axis_tdata=beat, s_axis_tkeep=keep, s_axis_tlast=last, s_axis_tvalid=1)
            while not (await self.cycle())["s_axis_tready"]:
                pass
            self.set(s_axis_tvalid=0)


def amaranths(
    seed: int, groups: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[Trace, Trace, Played, int]:
    """Runs this many images with their cases; returns the inputs and outputs of each cycle, those
    of the core inside, and the number of results."""
    cores: list[Wjasip] = []

    def made(config: DeviceConfig) -> Wjasip:
        cores.append(Wjasip(config))
        return cores[-1]

    monkeypatch.setattr(axi_top, "Wjasip", made)
    top = AxiWjasip(SMALL)
    assert {*INPUTS, *OUTPUTS, "aclk"} == {*top.signature.members}
    found: list[Driver] = []

    async def bench(ctx: Any) -> None:
        driver = Driver(ctx, top, ports_of(cores[-1], ~top.aresetn), random.Random(seed))
        found.append(driver)
        for _ in range(groups):
            await group(driver)

    simulator = Simulator(top)
    simulator.add_testbench(bench)
    simulator.run()
    (driver,) = found
    valid, tready = OUTPUTS.index("m_axis_tvalid"), INPUTS.index("m_axis_tready")
    inputs, outputs = (np.array(rows, np.uint64) for rows in (driver.inputs, driver.outputs))
    return inputs, outputs, driver.inside, int((outputs[:, valid] & inputs[:, tready]).sum())


async def group(driver: Driver) -> None:
    """Loads another image and sends cases of consecutive tuples; the last case may be cut off."""
    chance = driver.chance
    await driver.reset()
    streams = "".join(f"CREATE STREAM {name} (a int, b int);" for name in "RS")
    bounds = (f"RANGE {chance.randrange(1, 60)}", f"ROWS {chance.randrange(1, 6)}")
    query = f"SELECT * FROM R, S WHERE {chance.choice(TYPES)} WINDOW {chance.choice(bounds)};"
    image = compile_text(streams + query, options=Options(config=SMALL)).image
    for head, low, high in load_words(image, SMALL):
        await driver.write("DATA_LOW", low)
        await driver.write("DATA_HIGH", high)
        await driver.write("COMMAND", head)
        while await driver.read("STATUS") & 2:
            pass
        assert await driver.read("ANSWER") == 0
    now, counts = 0, [0, 0]
    for case in range(CASES):
        raws = []
        for _ in range(TUPLES):
            now += chance.choice((0, 1, 1, 2, 7))
            of = chance.randrange(2)
            values = [chance.randrange(4) for _ in range(4)]
            raws.append(Raw(of, now, counts[of], chance.random() < 0.95, (*values,)))
            counts[of] += 1
        wanted = driver.marks + 1
        await driver.send(input_rows(batch(raws), SMALL, mark=case).tobytes())
        if case == CASES - 1 and chance.random() < 0.5:
            return  # in flight when the reset comes
        while driver.marks < wanted:
            await driver.cycle()


SHIM = """\
#include <cstdint>
#include "Vseustream.h"
extern "C" void play(const uint64_t *in, uint64_t *out, uint64_t cycles) {{
    VerilatedContext context;
    Vseustream top(&context);
    while (cycles--) {{
        {set}
        top.{clock} = 0;
        top.eval();
        {get}
        top.{clock} = 1;
        top.eval();
    }}
    top.final();
}}
"""


def verilators(
    text: str, folder: Path, clock: str, set_: str, get: str, inputs: Trace, width: int
) -> Trace:
    """Returns the outputs of the Verilog text for the same inputs."""
    folder.mkdir()
    verilog = folder / "seustream.v"
    verilog.write_text(text)
    command = compiler()
    assert command is not None
    generated = folder / "generated"
    run_tool(
        [
            str(package() / "bin" / "verilator_bin"), "--cc", "--no-timing", "-Wno-fatal", "-Wno-lint",
            "--top-module", core.TOP, "--Mdir", str(generated), str(verilog),
        ],
        {**os.environ, "VERILATOR_ROOT": str(package())},
    )  # fmt: skip
    shim = folder / "shim.cpp"
    shim.write_text(SHIM.format(clock=clock, set=set_, get=get))
    units = dict.fromkeys([*generated.glob("*.cpp"), shim], "-O1")
    units |= {package() / "include" / f"verilated{part}.cpp": "-O1" for part in ("", "_threads")}
    compile_units(
        command, units, ["-DVM_COVERAGE=0", "-DVM_TRACE=0"], generated, folder / "core.so"
    )
    outputs = np.zeros((len(inputs), width), np.uint64)
    arrays = (np.ascontiguousarray(inputs), outputs)
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]
    ctypes.CDLL(str(folder / "core.so")).play(*pointers, ctypes.c_uint64(len(inputs)))
    return outputs


@pytest.mark.campaign
def test_a_hundred_cases_cycle_by_cycle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = 23
    print(f"seed {seed}")
    inputs, want, inside, came = amaranths(seed, GROUPS, monkeypatch)
    print(f"{len(inputs)} cycles, {came} beats out")
    assert came > GROUPS * CASES * 4
    set_ = " ".join(f"top.{name} = *in++;" for name in INPUTS)
    get = " ".join(f"*out++ = top.{name};" for name in OUTPUTS)
    got = verilators(core.axi(SMALL), tmp_path / "axi", "aclk", set_, get, inputs, len(OUTPUTS))
    differ = np.argwhere(got != want)
    assert not len(differ), f"cycle {differ[0][0]}: {OUTPUTS[differ[0][1]]}"
    given, want = (np.array(rows, np.uint64) for rows in (inside.given, inside.found))
    set_ = " ".join(port.setting for port in inside.inputs)
    get = " ".join(port.getting for port in inside.outputs)
    got = verilators(core.plain(SMALL), tmp_path / "stream", "clk", set_, get, given, want.shape[1])
    differ = np.argwhere(got != want)
    names = [port.name for port in inside.outputs for _ in range(port.words)]
    assert want.any(axis=0).sum() > len(names) / 2
    assert not len(differ), f"cycle {differ[0][0]}: {names[differ[0][1]]}"
