"""Traces a device's work on one raw tuple: probes, the factor bits of their pairs, joined tuples.

before  calls of the models (`GoldenDevice(joins=…)`, `IssDevice(trace=…, probed=…)`), or the trace of the RTL
after   moments, the probes they belong to, and joined tuples, all by sequence numbers of the streams

The RTL names stored tuples by their place in a window. They are stored in consecutive places, so counting
them gives the place of each.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from seustream.cosim.iss import Probed
from seustream.hdl import isa
from seustream.hdl.config import MAX_STREAMS
from seustream.hdl.device import NOT_IN_RESULT, Ints

MOST_MOMENTS = 400
"""The most moments of a step that are kept; a tuple that meets full windows causes many thousands."""
MOST_PAIRS = 24
"""Pairs of a probe whose factor bits are kept, those with the newest stored tuples."""

Event = tuple[int, int, int, int, int, int]
"""Route tag, area, address, the number of the probe in its step, and the place and the sequence
number of the stored tuple, -1 if the device does not report it."""
Join = tuple[int, int, int, tuple[int, ...]]
"""Tag of the probe, area, tag of the joined tuple, and its sequence numbers by stream, -1 for an
absent part."""
_OF_TRACE = (
    "order",
    "cycle",
    "tag",
    "area",
    "address",
    "slot",
    "word",
    "factors",
    "joins",
    "carries",
)


@dataclass(frozen=True, slots=True)
class SteppedProbe:
    """A tuple that met a window: its route tag and the sequence numbers of its parts by stream, the
    area, and for each pair the sequence number of the stored tuple and the factor bits, register 0
    the lowest."""

    tag: int
    area: int
    parts: list[int]
    pairs: list[tuple[int, int]]


@dataclass
class StepTrace:
    """
    moments   what is executed at once, in its order
    cycles    the clock cycle of each moment, where the device has a clock
    probes    in the order of their first moment
    joins     what made a probe before what the probe finds
    """

    moments: list[list[Event]] = field(default_factory=list)
    cycles: list[int] = field(default_factory=list)
    probes: list[SteppedProbe] = field(default_factory=list)
    joins: list[Join] = field(default_factory=list)

    def begin(self) -> None:
        """Begins a new step."""
        self.moments, self.cycles, self.probes, self.joins = [], [], [], []

    # --- the models ---------------------------------------------------------------

    def instruction(self, tag: int, area: int, address: int, what: isa.Instruction) -> None:
        self.moments.append([(tag, area, address, len(self.probes), -1, -1)])

    def probed(self, probe: Probed) -> None:
        parts = [probe.parts.get(stream, NOT_IN_RESULT) for stream in range(MAX_STREAMS)]
        pairs = list(zip(probe.stored, probe.factors, strict=True))[-MOST_PAIRS:]
        self.probes.append(SteppedProbe(probe.tag, probe.area, parts, pairs))
        for post, hit in probe.joined:
            whole = _with(parts, probe.area, probe.stored[hit])
            self.joins.append((probe.tag, probe.area, post, whole))

    def joined(self, tag: int, area: int, post: int, sequences: Ints) -> None:
        self.joins += [(tag, area, post, tuple(whole)) for whole in sequences.tolist()]

    # --- the RTL ------------------------------------------------------------------

    def take(
        self,
        columns: Mapping[str, npt.NDArray[np.uint64]],
        raw: tuple[int, int],
        places: Sequence[Mapping[int, int]],
        clock: int,
    ) -> None:
        """Takes the trace of a step whose first cycle is `clock`. `raw` are the stream and the
        sequence number of its tuple; `places` gives the sequence number of the tuple stored in each
        place."""
        streams = range(len(places))
        order = np.argsort(columns["order"], kind="stable")
        names = (*_OF_TRACE, *(f"probe.{stream}" for stream in streams))
        rows = list(zip(*(columns[name][order].tolist() for name in names), strict=True))
        numbers: dict[tuple[int, ...], int] = {}
        pairs: list[dict[int, int]] = []
        joins: dict[Join, None] = {}  # a join that a resumed probe finds again is listed once
        for (_, cycle), now in itertools.groupby(rows, key=lambda row: row[:2]):
            events: list[Event] = []
            for _, _, tag, area, address, slot, word, factors, joining, carries, *slots in now:
                parts = [NOT_IN_RESULT] * MAX_STREAMS
                for stream in streams:
                    if carries >> stream & 1:
                        own = stream == raw[0]
                        parts[stream] = raw[1] if own else places[stream][slots[stream]]
                key = (tag, area, *parts)
                if key not in numbers:
                    numbers[key] = len(self.probes)
                    self.probes.append(SteppedProbe(tag, area, parts, []))
                    pairs.append({})
                stored = places[area][slot]
                pairs[numbers[key]][stored] = factors
                instruction = isa.decode(word)
                if joining and isinstance(instruction, isa.Emit):
                    joins[tag, area, instruction.tag, _with(parts, area, stored)] = None
                events.append((tag, area, address, numbers[key], slot, stored))
            self.moments.append(events)
            self.cycles.append(clock + ((cycle - clock) & 0xFFFFFFFF))
        for probe, some in zip(self.probes, pairs, strict=True):
            probe.pairs.extend(sorted(some.items())[-MOST_PAIRS:])
        self.joins.extend(joins)

    def kept_probes(self) -> list[SteppedProbe]:
        """Returns the probes of the moments that are kept."""
        kept = (event[3] for now in self.moments[:MOST_MOMENTS] for event in now)
        return self.probes[: max(kept, default=-1) + 1]


def _with(parts: Sequence[int], stream: int, sequence: int) -> tuple[int, ...]:
    return (*parts[:stream], sequence, *parts[stream + 1 :])
