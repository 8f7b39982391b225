"""Defines the build parameters of a device, its limits, and the named configurations.

One object describes a device to the compiler (what fits), to the models (how
wide, how deep) and to the hardware (what to elaborate).
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass

MAX_STREAMS = 4
"""Limited by the two bits of stream number in a CMP."""
MAX_ATTRIBUTES = 4
"""Limited by the two bits of attribute number in a CMP."""
MAX_DEPTH = 1 << 20
"""More tuples than any board's memory holds; catches typing errors."""

CONTEXTS, EPOCHS = 128, 16
"""Raw tuples in flight at once, and the epochs by which they are counted."""
_SPARE = 96
"""Slots of a window buffer beyond its capacity, for tuples that have left but that raw tuples in flight
still see. These are some 70 tuples when only one stream arrives."""


class ConfigError(ValueError):
    """A parameter that no device can be built with; the message quotes the value."""


def _capacity(depth: int) -> int:
    return depth - min(_SPARE, depth // 4)


def depth_for(tuples: int) -> int:
    """The smallest depth whose capacity is at least `tuples`."""
    depth = 2
    while _capacity(depth) < tuples:
        depth *= 2
    return depth


@dataclass(frozen=True, slots=True)
class DeviceConfig:
    """Parameters of one device build.

    streams             join areas, one per stream, 2 to 4
    attribute_width     bits of an attribute: 8, 16 or 32
    timestamp_width     bits of a timestamp counter, 16 to 64; compared as serial numbers
    sequence_width      bits of a sequence number counter, 8 to 64; compared as serial numbers
    depth               slots of a window buffer, a power of two; it keeps `capacity` tuples
    lanes               window tuples that a join area compares per cycle, a power of two;
                        0: no factor array, the serial execution unit also compares
    indexes             equality indexes of a join area, each for one window attribute, 0 to 4
    comparisons         entries of a stream's selection table, 1 to 1024, in rows of `selectors`: its
                        comparisons and its admission masks (`Tables.selection_entries`)
    selectors           entries evaluated per cycle: 1, 2, 4, 8 or 16
    comparators         factors that a lane compares per cycle, the same number for each attribute; a row of an
                        area with more factors of one attribute takes several cycles
    probe_fifo_depth    probe tuples waiting before a join area
    output_fifo_depth   results waiting before the output
    groups              table entries for groups of results, 0 or a power of two from 8 to 4096; with 0, the
                        host does the grouping
    """

    name: str = "default"
    streams: int = MAX_STREAMS
    attribute_width: int = 32
    timestamp_width: int = 48
    sequence_width: int = 32
    depth: int = 2048
    lanes: int = 4
    indexes: int = 2
    comparisons: int = 1024
    selectors: int = 16
    comparators: int = 8
    probe_fifo_depth: int = 64
    output_fifo_depth: int = 64
    groups: int = 512

    # Limits of the instruction format; the same for every build.
    attributes: int = MAX_ATTRIBUTES
    factors: int = 16
    scratch_registers: int = 16
    selections: int = 16
    probe_selections: int = 15
    tags: int = 256
    instructions: int = 1024
    queries: int = 64

    def __post_init__(self) -> None:
        def check(member: str, ok: bool, want: str) -> None:
            if not ok:
                raise ConfigError(f"{member} = {getattr(self, member)!r}: want {want}")

        def power_of_two(value: int) -> bool:
            return value > 0 and value & (value - 1) == 0

        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            wanted = str if field.name == "name" else int
            if type(value) is not wanted:
                raise ConfigError(f"{field.name} = {value!r}: want {wanted.__name__}")
        check("streams", 2 <= self.streams <= MAX_STREAMS, f"2 to {MAX_STREAMS}")
        check("attribute_width", self.attribute_width in (8, 16, 32), "8, 16 or 32")
        check("timestamp_width", 16 <= self.timestamp_width <= 64, "16 to 64")
        check("sequence_width", 8 <= self.sequence_width <= 64, "8 to 64")
        check("name", 0 < len(self.name) <= 64 and self.name.isprintable(), "1 to 64 characters")
        check(
            "depth",
            power_of_two(self.depth) and 2 <= self.depth <= MAX_DEPTH,
            f"a power of two, 2 to {MAX_DEPTH}",
        )
        check("lanes", self.lanes == 0 or power_of_two(self.lanes), "0 or a power of two")
        check("lanes", self.lanes <= self.depth, f"no more than depth = {self.depth}")
        check("indexes", 0 <= self.indexes <= MAX_ATTRIBUTES, f"0 to {MAX_ATTRIBUTES}")
        check("comparisons", 1 <= self.comparisons <= 1024, "1 to 1024")
        check("selectors", self.selectors in (1, 2, 4, 8, 16), "1, 2, 4, 8 or 16")
        check(
            "groups",
            self.groups == 0 or (power_of_two(self.groups) and 8 <= self.groups <= 4096),
            "0 or a power of two, 8 to 4096",
        )
        for fifo in ("probe_fifo_depth", "output_fifo_depth"):
            check(fifo, 1 <= getattr(self, fifo) <= MAX_DEPTH, f"1 to {MAX_DEPTH}")
        check("attributes", 1 <= self.attributes <= MAX_ATTRIBUTES, f"1 to {MAX_ATTRIBUTES}")
        check("factors", 1 <= self.factors <= 16, "1 to 16")
        check("comparators", self.comparators in (1, 2, 4, 8, 16), "1, 2, 4, 8 or 16")
        check("scratch_registers", 0 <= self.scratch_registers <= 16, "0 to 16")
        check("selections", 0 <= self.selections <= 16, "0 to 16")
        check("probe_selections", 0 <= self.probe_selections <= 15, "0 to 15")
        check("tags", self.streams < self.tags <= 256, "more than streams, at most 256")
        check("instructions", 1 <= self.instructions <= 1024, "1 to 1024")
        check("queries", 1 <= self.queries <= 64, "1 to 64")

    @property
    def longest_range(self) -> int:
        """The longest RANGE window that serial-number arithmetic can resolve, in ticks."""
        return (1 << (self.timestamp_width - 1)) - 1

    @property
    def longest_rows(self) -> int:
        """The longest ROWS window that serial-number arithmetic can resolve, in tuples."""
        return (1 << (self.sequence_width - 1)) - 1

    @property
    def capacity(self) -> int:
        """Tuples that a window buffer keeps: its slots, less spare ones for tuples that have left but may
        still be seen by raw tuples in flight. Without the spare slots, each arrival at a full window would
        wait for all raw tuples before it. The smallest rings spare a quarter, and wait at times."""
        return _capacity(self.depth)

    @property
    def bucket_bits(self) -> int:
        """Width of a bucket number. An index has twice as many buckets as slots, so that few tuples share one."""
        return self.depth.bit_length()

    @property
    def kinds(self) -> int:
        """Number of kinds of comparators: a comparator serves the attributes that are congruent to its number
        modulo this, a single one if there are enough comparators. A multiplexer for several takes more logic and
        wires than the comparison."""
        return min(self.comparators, MAX_ATTRIBUTES)

    @property
    def comparators_alike(self) -> int:
        """Comparators of a lane that serve the same attributes."""
        return max(1, self.comparators // MAX_ATTRIBUTES)

    @property
    def turns(self) -> int:
        """The most cycles that a row takes, when all factors are of one attribute."""
        return -(-self.factors // self.comparators_alike)

    def to_json(self) -> dict[str, object]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, text: str) -> DeviceConfig:
        """Reads a configuration from JSON text; members left out keep their defaults."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:  # RecursionError: nested too deeply
            raise ConfigError(f"not JSON: {error}") from None
        if not isinstance(data, dict):
            raise ConfigError("want a JSON object of parameters")
        known = {field.name for field in dataclasses.fields(cls)}
        for member in data:
            if member not in known:
                raise ConfigError(
                    f"unknown parameter {member!r}; known: {', '.join(sorted(known))}"
                )
        return cls(**data)


CONFIGURATIONS: dict[str, DeviceConfig] = {
    config.name: config
    for config in (
        # The product: every X-SQL type of up to 32 bits is exact in the device.
        DeviceConfig(),
        # The product on an ECP5-85: its block RAM suffices for three areas, and its routing for half of the
        # comparators.
        DeviceConfig(name="default3", streams=3, groups=0, comparators=4),
        # With groups, on the same part: for two streams.
        DeviceConfig(name="grouping", streams=2, comparators=4),
        # The thesis: 8-bit attributes, so that a joined tuple is 8 + 4*4*8 = 136 bits.
        DeviceConfig(
            name="thesis", attribute_width=8, lanes=8, comparisons=256, selectors=1, groups=0
        ),
        # The smallest: it executes as the thesis does, one comparison at a time.
        DeviceConfig(
            name="serial",
            attribute_width=8,
            lanes=0,
            indexes=0,
            comparisons=256,
            selectors=1,
            groups=0,
        ),
        # Small enough to fill, wrap around and overflow within a short test.
        DeviceConfig(
            name="tiny",
            attribute_width=16,
            timestamp_width=24,
            sequence_width=16,
            depth=16,
            lanes=2,
            comparisons=256,
            selectors=2,
            comparators=4,
            probe_fifo_depth=4,
            output_fifo_depth=4,
            groups=8,
        ),
    )
}
