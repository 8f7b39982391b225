"""The RTL behind the device contract."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from seustream.cosim.processor.bits import Column, flatten, unpack, words_of
from seustream.cosim.processor.device import TRACE, ProcessorDevice
from seustream.cosim.verilated import library
from seustream.cosim.verilated.build import BuildOptions, Note
from seustream.cosim.verilated.build import library as build
from seustream.hdl.config import DeviceConfig


class VerilatedDevice(ProcessorDevice):
    """The processor of `hdl` in this process, compiled. `close` completes waves.

    trace  keeps the executed instructions for `executed`
    """

    def __init__(
        self,
        config: DeviceConfig,
        *,
        waves: Path | None = None,
        trace: bool = False,
        coverage: bool = False,
        note: Note | None = None,
    ) -> None:
        options = BuildOptions(waves is not None, coverage)
        self._processor = library.CompiledProcessor(build(config, options, note), waves)
        from seustream.hdl.layouts import Layouts  # after the build, which reports what it lacks

        # Pairs that are decided by rows execute no instruction that a trace could show.
        super().__init__(config, self._processor, by_rows=not trace)
        self._processor.record(trace)
        layout = Layouts(config).trace
        self._trace, self._trace_bits = flatten(layout), layout.size

    @property
    def cycles(self) -> int:
        """Returns the clock cycles since the device was made, loading included."""
        return self._processor.cycles

    def hold(self, seed: int, inputs: float = 0.0, outputs: float = 0.0) -> None:
        """Holds ports back at random from now on: incoming tuples, and all outputs."""
        self._processor.hold(seed, inputs, outputs)

    def executed(self) -> dict[str, Column]:
        """Returns the instructions executed since the last call, in columns; needs `trace`.
        `factors` are the factor registers before the instruction, `joins` marks a JOIN whose
        register holds, `cycle` gives the lowest 32 bits of the clock cycle."""
        n = self._config.streams
        words = 2 + words_of(n * self._trace_bits)
        rows = self._processor.take(TRACE, words)
        parts: list[dict[str, Column]] = []
        for area in range(n):
            fields = {
                name: (at + area * self._trace_bits, bits)
                for name, (at, bits) in self._trace.items()
            }
            mine = np.flatnonzero(rows[:, 0] >> np.uint32(area) & 1)
            part = unpack(fields, rows[mine, 2:])
            part["area"] = np.full(len(mine), area, np.uint64)
            part["order"] = mine.astype(np.uint64)
            part["cycle"] = rows[mine, 1].astype(np.uint64)
            parts.append(part)
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
