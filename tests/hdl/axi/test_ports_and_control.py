"""Tests the AXI ports without the processor behind them, driven by third-party bus models."""

from __future__ import annotations

import logging
from collections import deque
from typing import Any

import cocotb
import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring

from seustream.hdl.axi.control import AxiControl
from seustream.hdl.axi.ports import RecordPorts
from seustream.hdl.axi.records import BEAT, RecordKind, input_record, output_record
from seustream.hdl.axi.registers import MAGIC, REGISTERS
from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.control_words import Verdict
from tests.hdl.bench import MUCH, NONE, PACES, Bench, Driver, Monitor, simulate

CONFIG = CONFIGURATIONS["tiny"]
OFFSETS = {register.name: register.offset for register in REGISTERS}
PENDING = 2


class Both(wiring.Component):
    """Both parts side by side, so that one build is enough."""

    def __init__(self) -> None:
        self.parts = RecordPorts(CONFIG), AxiControl(CONFIG)
        members = {}
        for part in self.parts:
            members |= {
                n: member for n, member in part.signature.members.items() if n != "malformed"
            }
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for part in self.parts:
            m.submodules += part
            mine = {n: member for n, member in part.signature.members.items() if n != "malformed"}
            here = {name: getattr(self, name) for name in mine}
            for name, member in mine.items():
                if member.is_signature:
                    m.d.comb += [*_joined(getattr(part, name), here[name], member.flow)]
                elif member.flow is wiring.In:
                    m.d.comb += getattr(part, name).eq(here[name])
                else:
                    m.d.comb += here[name].eq(getattr(part, name))
        ports, control = self.parts
        m.d.comb += control.malformed.eq(ports.malformed)
        return m


def _joined(inner: Any, outer: Any, flow: wiring.Flow) -> list[Any]:
    source, sink = (outer, inner) if flow is wiring.In else (inner, outer)
    return [
        sink.payload.eq(source.payload), sink.valid.eq(source.valid), source.ready.eq(sink.ready)
    ]  # fmt: skip


CASES = {"tiny": Both}
TESTS = ["records_both_ways", "commands_and_their_answers"]


@pytest.mark.parametrize("test", TESTS)
def test_ports_and_control(test: str) -> None:
    simulate(__name__, CASES, "tiny", [test])


def _calm(dut: Any) -> None:
    logging.getLogger(f"cocotb.{dut._name}").setLevel(logging.WARNING)


@cocotb.test()
async def records_both_ways(dut: Any) -> None:
    from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource

    _calm(dut)
    bench = Bench(dut, CASES)
    chance, record = bench.chance, input_record(CONFIG)
    await bench.reset(idle=1)
    source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "p_s_axis"), dut.clk)
    sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "p_m_axis"), dut.clk)
    for idle, pressure in PACES:
        source.set_pause_generator(iter(lambda idle=idle: chance.random() < idle, None))
        sink.set_pause_generator(iter(lambda much=pressure: chance.random() < much, None))
        await bench.reset(idle=1)
        raws = Monitor(bench, "raw", pressure)
        results = Driver(bench, "results", chance.choice([NONE, MUCH]))
        handed = Driver(bench, "handed_over", chance.choice([NONE, MUCH]))
        want_raws: list[np.void] = []
        want: dict[int, deque[bytes]] = {kind: deque() for kind in RecordKind}
        for _ in range(25):
            row = np.frombuffer(chance.randbytes(record.bytes), record.dtype).copy()
            row["kind"] = RecordKind.TUPLE
            keep = [1] * record.bytes
            what = chance.random()
            if what < 0.15:
                row["kind"] = RecordKind.MARK
                out = _output(kind=RecordKind.MARK, mark=int(row["mark"][0]))
                want[RecordKind.MARK].append(out)
            elif what < 0.25:
                row["kind"] = chance.choice([0, RecordKind.RESULT, 200])
            elif what < 0.3:
                keep[chance.randrange(record.bytes)] = 0
            else:
                want_raws.append(row[0])
                _leads_to(chance, results, handed, want)
            data = row.tobytes()
            if chance.random() < 0.1:  # a piece of a record before it
                await source.send(AxiStreamFrame(data[: BEAT * chance.randrange(1, record.beats)]))
            await source.send(AxiStreamFrame(data, tkeep=keep))
        marks = len(want[RecordKind.MARK])
        await source.send(AxiStreamFrame(_mark(77)))
        want[RecordKind.MARK].append(_output(kind=RecordKind.MARK, mark=77))
        for _ in range(20_000):
            bench.set("idle", not (results.queue or handed.queue))
            await bench.tick()
            if sink.count() == marks + 1:
                break
        else:
            raise AssertionError("it does not get on")
        size = output_record(CONFIG).bytes
        for number in range(marks + 1):
            data = bytes(sink.recv_nowait().tdata)
            pieces = [data[at : at + size] for at in range(0, len(data), size)]
            kinds = [piece[0] for piece in pieces]
            assert kinds.count(RecordKind.MARK) == 1, f"packet {number}"
            assert kinds[-1] == RecordKind.MARK
            for piece in pieces:
                assert piece == want[piece[0]].popleft()
        assert not any(want.values())
        assert len(raws.got) == len(want_raws)
        for got, row in zip(raws.got, want_raws, strict=True):
            wanted = {
                "stream": int(row["stream"]) & 3, "admit": int(row["flags"]) & 1,
                "filler": int(row["flags"]) >> 1 & 1,
                "timestamp": int(row["timestamp"]) & (1 << CONFIG.timestamp_width) - 1,
                "sequence": int(row["sequence"]) & (1 << CONFIG.sequence_width) - 1,
                "attributes": [int(value) for value in row["attributes"]],
            }  # fmt: skip
            assert got == wanted
        sink.clear()


def _leads_to(chance: Any, results: Driver, handed: Driver, want: dict[int, deque[bytes]]) -> None:
    """Makes up what a processor might send for a tuple."""
    count = (1 << CONFIG.sequence_width) - 1
    if chance.random() < 0.6:
        sequences = [chance.randint(0, count) for _ in range(CONFIG.streams)]
        result = {
            "queries": chance.getrandbits(CONFIG.queries), "carries": chance.getrandbits(CONFIG.streams),
            "newest": chance.getrandbits(CONFIG.timestamp_width),
            "oldest": chance.getrandbits(CONFIG.timestamp_width),
        }  # fmt: skip
        results.queue.append({**result, "sequences": sequences})
        out = _output(kind=RecordKind.RESULT, sequences=sequences, **result)
        want[RecordKind.RESULT].append(out)
    if chance.random() < 0.3:
        left = {"stream": chance.getrandbits(2), "taker": chance.getrandbits(2)}
        counts = [chance.randint(0, count), chance.randint(0, count)]
        handed.queue.append({**left, "sequence": counts[0], "taken_by": counts[1]})
        sequences = counts + [0] * (CONFIG.streams - 2)
        out = _output(kind=RecordKind.HANDED_OVER, sequences=sequences, **left)
        want[RecordKind.HANDED_OVER].append(out)


def _output(**members: Any) -> bytes:
    row = np.zeros(1, output_record(CONFIG).dtype)
    for name, value in members.items():
        row[name] = value
    return row.tobytes()


def _mark(number: int) -> bytes:
    row = np.zeros(1, input_record(CONFIG).dtype)
    row["kind"], row["mark"] = RecordKind.MARK, number
    return row.tobytes()


@cocotb.test()
async def commands_and_their_answers(dut: Any) -> None:
    from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

    _calm(dut)
    bench = Bench(dut, CASES)
    chance = bench.chance
    await bench.reset(idle=1)
    master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "p_s_axil"), dut.clk)
    commands = Monitor(bench, "commands", 0.5)
    answers = Driver(bench, "responses", 0.5)

    async def told(operation: Any) -> Any:
        """Runs cycles until the bus has answered."""
        task = cocotb.start_soon(operation)
        await bench.until(task.done)
        return task.result()

    async def read(name: str) -> int:
        return int.from_bytes((await told(master.read(OFFSETS[name], 4))).data, "little")

    async def write(name: str, value: int, width: int = 4, at: int = 0) -> AxiResp:
        data = value.to_bytes(width, "little")
        return (await told(master.write(OFFSETS[name] + at, data))).resp

    assert await read("ID") == MAGIC
    held = [0, 0]
    for number in range(30):
        for half, name in enumerate(("DATA_LOW", "DATA_HIGH")):
            byte = chance.choice([None, 0, 1, 2, 3])  # whole, or one byte of it
            if byte is None:
                held[half] = chance.getrandbits(32)
                assert await write(name, held[half]) == AxiResp.OKAY
            else:
                value = chance.getrandbits(8)
                held[half] = held[half] & ~(0xFF << 8 * byte) | value << 8 * byte
                assert await write(name, value, 1, byte) == AxiResp.OKAY
            assert await read(name) == held[half]
        head = chance.getrandbits(19)
        assert await write("COMMAND", head) == AxiResp.OKAY
        await bench.until(lambda number=number: len(commands.got) == number + 1)
        # Nothing that it needs can be changed before the answer.
        assert await read("STATUS") == 1 | PENDING
        for name in ("COMMAND", "DATA_LOW", "DATA_HIGH"):
            assert await write(name, 1) == AxiResp.SLVERR
        answer = {"verdict": chance.choice([*Verdict]), "data": chance.getrandbits(64)}
        answers.queue.append(answer)
        while await read("STATUS") & PENDING:
            pass
        assert await read("ANSWER") == answer["verdict"]
        assert await read("ANSWER_LOW") | await read("ANSWER_HIGH") << 32 == answer["data"]
        got = commands.got[-1]
        assert got["data"] == held[0] | held[1] << 32
        fields = ("operation", 3), ("target", 4), ("unit", 2), ("address", 10)
        at = 0
        for name, width in fields:
            assert got[name] == head >> at & (1 << width) - 1
            at += width
    for offset in (0x2C, 0x800, 0xFFC):
        assert (await told(master.read(offset, 4))).resp == AxiResp.SLVERR
    for name in ("ID", "STATUS", "ANSWER"):
        assert await write(name, 1) == AxiResp.SLVERR
    assert await write("COMMAND", 1, 1) == AxiResp.SLVERR
    assert len(commands.got) == 30
