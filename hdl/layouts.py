"""Defines the layouts of everything that travels inside a WJASIP, bit by bit: the payloads of its streams.

Between router and areas a joined tuple travels as a *reference*: its route tag, the
streams it carries, and the slots of its components in their windows. The data it stands
for, the thesis's joined tuple, is fetched only where it is compared or delivered. FIFOs
and multiplexers therefore stay narrow whatever the width of the attributes.
"""

from __future__ import annotations

from amaranth.lib import data
from amaranth.utils import ceil_log2

from seustream.hdl.config import CONTEXTS, EPOCHS, MAX_ATTRIBUTES, DeviceConfig
from seustream.hdl.control_words import NEEDS_BITS, ROW_BITS, ROWS_BITS, TERMS
from seustream.hdl.isa import FACTOR_REGISTERS, WINDOW_SELECTION_REGISTERS
from seustream.hdl.window_tests import KIND_BITS, STEP_BITS, TEST_BITS, THEN_BITS

STREAM_BITS = 2
TAG_BITS = 8
SELECTIONS = len(WINDOW_SELECTION_REGISTERS)

CONTEXT_BITS = ceil_log2(CONTEXTS)
"""Width of a context number. Each raw tuple in flight has a context, its own view of the windows, so that its
probes see what had arrived when it did."""
MARK_BITS = 7
"""Bits of the bucket number stored with each slot of a chain."""
OFFERS = 4
"""Raw tuples offered to the router at once, for the output."""
QUERY_BITS = 6
GROUP_COUNT_BITS = 16
"""Width of a group's result count; a group whose count is at the limit takes no more."""
FOLLOWING = 2
"""Joined tuples behind the one that an area offers to the router, whose destinations it announces."""
EPOCH_BITS = ceil_log2(EPOCHS)
"""Most significant bits of a context number: consecutive contexts are counted together."""


class Layouts:
    """Layouts of one configuration.

    slot_bits   width of a slot number of a window buffer
    levels      number of levels of a probe; its level is the number of streams that it carries, less one
    attributes  attributes of one tuple
    raw         raw tuple at the input; a `filler` only advances the clock
    stamp       timestamp and sequence number of a stored tuple
    component   raw tuple as a window stores it
    reference   tuple on its way through router and areas
    joined      data that a reference stands for; 136 bits in the thesis's configuration
    context     raw tuple in flight: the tuple, and the sequence numbers at its arrival
    brought     data that a raw tuple brings to an area
    raw_probe   raw tuple on its way to an area
    operand     comparison of a selection table entry: equal with `equal`, otherwise less; inverted by `negated`
    selection_kind    purpose of the entry: a comparison for a bit, or a mask of bits that admits
    selection_entry   entry, as `SelectionEntry` encodes it
    window_test test of a joined tuple's ages and ranks
    query_set   queries that remain, the test that follows, and whether one does
    result      joined tuple and the queries that it satisfies, a bit each
    handed_over stored tuple that left early, and the arrival that displaced it
    group_plan  how a route tag's results are grouped: for which query, by which attribute, and which one is summed
    member      query, key and value of a result, as its group needs them
    group       group of results
    group_parts number of results, of no query, that a group is output as; their sequence numbers are its bits
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        n, width = config.streams, config.attribute_width
        self.slot_bits = ceil_log2(config.depth)
        self.bucket_bits = config.bucket_bits
        self.pointer_bits = self.slot_bits + 1
        self.levels = max(1, n - 1)
        self.level_bits = max(1, ceil_log2(self.levels))
        self.timestamp = config.timestamp_width
        self.sequence = config.sequence_width
        self.attributes = data.ArrayLayout(width, MAX_ATTRIBUTES)
        self.raw = data.StructLayout(
            {
                "stream": STREAM_BITS,
                "admit": 1,
                "filler": 1,
                "timestamp": self.timestamp,
                "sequence": self.sequence,
                "attributes": self.attributes,
            }
        )
        self.selected = data.StructLayout({"raw": self.raw, "bits": SELECTIONS, "admitted": 1})
        self.stamp = data.StructLayout({"timestamp": self.timestamp, "sequence": self.sequence})
        self.component = data.StructLayout(
            {
                "timestamp": self.timestamp,
                "sequence": self.sequence,
                "attributes": self.attributes,
            }
        )
        self.reference = data.StructLayout(
            {
                "context": CONTEXT_BITS,
                "tag": TAG_BITS,
                "stream": STREAM_BITS,  # of the raw tuple
                "carries": n,
                "slots": data.ArrayLayout(self.slot_bits, n),
            }
        )
        self.joined = data.StructLayout(
            {"tag": TAG_BITS, "attributes": data.ArrayLayout(self.attributes, n)}
        )
        self.context = data.StructLayout(
            {
                "stream": STREAM_BITS,
                "bits": SELECTIONS,
                "component": self.component,
                "counters": data.ArrayLayout(self.sequence, n),
            }
        )
        self.brought = data.StructLayout({"bits": SELECTIONS, "attributes": self.attributes})
        self.raw_probe = data.StructLayout(
            {"context": CONTEXT_BITS, "stream": STREAM_BITS, "brought": self.brought}
        )
        self.fetched = data.StructLayout(
            {
                "reference": self.reference,
                "components": data.ArrayLayout(self.component, n),
                "stream": STREAM_BITS,
                "bits": SELECTIONS,
                "now": self.timestamp,
                "counters": data.ArrayLayout(self.sequence, n),
            }
        )
        self.result = data.StructLayout(
            {
                "queries": config.queries,
                "carries": n,
                "newest": self.timestamp,
                "oldest": self.timestamp,
                "sequences": data.ArrayLayout(self.sequence, n),
            }
        )
        self.handed_over = data.StructLayout(
            {
                "stream": STREAM_BITS,
                "sequence": self.sequence,
                "taker": STREAM_BITS,
                "taken_by": self.sequence,
            }
        )
        self.place = data.StructLayout({"there": 1, "stream": STREAM_BITS, "attribute": 2})
        self.group_plan = data.StructLayout(
            {"grouped": 1, "query": QUERY_BITS, "key": self.place, "value": self.place}
        )
        self.member = data.StructLayout(
            {"grouped": 1, "query": QUERY_BITS, "key": width, "value": width}
        )
        self.group = data.StructLayout(
            {
                "query": QUERY_BITS,
                "key": width,
                "count": GROUP_COUNT_BITS,
                "total": width + GROUP_COUNT_BITS,
                "least": width,
                "greatest": width,
            }
        )
        self.group_parts = -(-self.group.size // (n * self.sequence))
        # A test of a joined tuple's ages and ranks (`seustream.hdl.window_tests`).
        self.limit = max(self.timestamp, self.sequence)
        self.step = data.StructLayout({"then": THEN_BITS, "index": STEP_BITS})
        self.window_test = data.StructLayout(
            {
                "steps": data.ArrayLayout(self.step, 3),
                "kinds": data.ArrayLayout(KIND_BITS, n),
                "low": self.limit,
                "high": self.limit,
            }
        )
        self.query_set = data.StructLayout(
            {"queries": config.queries, "next": TEST_BITS, "goes": 1}
        )
        # A step along a chain of an index (`seustream.hdl.index`): the next older slot, and as many low bits of the
        # bucket number as the block RAM has room for.
        self.link = data.StructLayout(
            {"slot": self.slot_bits, "mark": min(self.bucket_bits, MARK_BITS)}
        )
        # Width of the partial hashes of a value (`seustream.hdl.index.hashed`).
        self.hashed = self.bucket_bits * -(-width // 8)
        # Where the router sends a tuple: to the probe FIFOs of areas, and to the output.
        self.destination = data.StructLayout({"areas": n, "output": 1})
        # What an area does with probes of a route tag. The turns from `first` to `last` compare all factors that
        # decide its pairs.
        self.turns = data.StructLayout(
            {"first": range(config.turns), "last": range(config.turns)} if config.lanes else {}
        )
        self.probe_plan = data.StructLayout(
            {
                "indexed": 1,
                "index": 2,
                "stream": STREAM_BITS,
                "attribute": 2,
                "row": ROW_BITS,  # the first of its rows in `join_row`
                "rows": ROWS_BITS,  # number of rows; 0: the program is run
                "turns": self.turns,
            }
        )
        self.operand = data.StructLayout(
            {
                "attribute": 2,
                "equal": 1,
                "negated": 1,
                "constant": max(config.attribute_width, SELECTIONS),  # or a mask
            }
        )
        self.selection_kind = data.StructLayout(
            {"compares": 1, "admits": 1, "every": 1, "group": 4}
        )
        self.selection_entry = data.StructLayout(
            {"last": 1, "kind": self.selection_kind, "operand": self.operand}
        )
        # What a pair needs to join: factors, selection bits of the window tuple, selection bits of the probe.
        self.join_row = data.StructLayout({"needs": NEEDS_BITS, "tag": TAG_BITS, "first": 1})
        # ... and which pairs may join: at least one of the `factors` holds, or `always` is set; and in one of the
        # terms all factors hold.
        self.interest = data.StructLayout({"factors": config.factors, "always": 1})
        self.terms = data.ArrayLayout(config.factors, TERMS)
        self.worth = data.StructLayout({"interest": self.interest, "terms": self.terms})
        self.trace = data.StructLayout(
            {
                "tag": TAG_BITS,
                "carries": n,
                "probe": data.ArrayLayout(self.slot_bits, n),
                "slot": self.slot_bits,
                "address": 10,
                "word": 20,
                "factors": len(FACTOR_REGISTERS),
                "joins": 1,
            }
        )
