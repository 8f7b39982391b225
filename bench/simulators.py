"""The same processor and the same tuples, driven from Python by cocotb and by the C++ clock loop.

Like the tests of components, this module is imported twice: by `seustream bench`, and by the
simulator, which finds the cocotb test in it.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path

import cocotb
import numpy as np

from bench import device as processor
from seustream.commands.bench import Measurement
from seustream.compiler.pipeline import Options, compile_text
from seustream.compiler.wjasip.image import decode
from seustream.cosim.verilated.device import VerilatedDevice
from seustream.hdl.control_words import Command, ControlOperation, load_commands
from seustream.hdl.device import Batch
from seustream.hdl.top import Wjasip
from tests.hdl.bench import Bench, Driver, Monitor, simulate

TITLE = "simulators: clock cycles a second, by cocotb and by the C++ clock loop"

CONFIG = processor.config(lanes=8)
CASES = {"two streams": lambda: Wjasip(CONFIG)}
TUPLES = 400  # for cocotb; the clock loop gets enough to stay busy for a while
TIMES = 100
_RESULT = "SIMULATORS_RESULT"


def measure() -> Measurement:
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        os.environ[_RESULT] = str(result)
        simulate("bench.simulators", CASES, "two streams")
        by_cocotb, slow = json.loads(result.read_text())
    device = VerilatedDevice(CONFIG)
    device.load(_image())
    cycles, began = device.cycles, time.process_time()
    device.push(_tuples(TUPLES * TIMES))
    by_loop, fast = device.cycles - cycles, time.process_time() - began
    rate = {"cocotb": by_cocotb / slow, "C++ clock loop": by_loop / fast}
    return Measurement(
        ("driven by", "cycles", "cpu s", "cycles/s"),
        [
            ("cocotb", by_cocotb, slow, rate["cocotb"]),
            ("C++ clock loop", by_loop, fast, rate["C++ clock loop"]),
        ],
        {"C++ clock loop over cocotb, cycles/s": rate["C++ clock loop"] / rate["cocotb"]},
        "two areas of 8 lanes, 32-bit attributes, indexed equality join; cocotb drives one input"
        f" and watches three outputs; {TUPLES:,} tuples, and {TIMES} times as many in the loop;"
        " processor time",
    )


def _image() -> bytes:
    text = processor.STREAMS + processor.EQUAL.format(256)
    return compile_text(text, options=Options(CONFIG)).image


def _tuples(n: int) -> Batch:
    return processor.alternating(n, lambda i: i % 256)


@cocotb.test()
async def driven_by_cocotb(dut: object) -> None:
    bench = Bench(dut, CASES)
    await bench.reset()
    commands, raws = Driver(bench, "commands"), Driver(bench, "raw")
    answers, results = Monitor(bench, "responses"), Monitor(bench, "results")
    Monitor(bench, "handed_over")
    load = [
        Command(ControlOperation.BEGIN),
        *load_commands(decode(_image(), CONFIG), CONFIG),
        Command(ControlOperation.COMMIT, data=1),
    ]
    for command in load:
        members = Command.__dataclass_fields__
        commands.queue.append({name: int(getattr(command, name)) for name in members})
    await bench.until(lambda: len(answers.got) == len(load), 100_000)
    batch = _tuples(TUPLES)
    for i in range(len(batch)):
        raws.queue.append(
            {
                "stream": batch.stream[i],
                "admit": 1,
                "timestamp": batch.timestamp[i],
                "sequence": batch.sequence[i],
                "attributes": batch.attributes[i].astype(np.int64).tolist(),
            }
        )
    cycle, began = bench.cycle, time.process_time()
    await bench.until(lambda: not raws.queue and bool(bench.bits("idle")), 100_000)
    seconds = time.process_time() - began
    assert len(results.got) == TUPLES // 2, "each S meets the R before it"
    Path(os.environ[_RESULT]).write_text(json.dumps([bench.cycle - cycle, seconds]))
