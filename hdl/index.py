"""Equality index: finds the window tuples with an attribute value without a scan."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.config import DeviceConfig
from seustream.hdl.hashing import seed_bits
from seustream.hdl.layouts import Layouts

_PART = 8


def hashed(value: Value, seed: Value, bits: int) -> Value:
    """An attribute value's bucket in parts, one for each eight of its bits; `seustream.hdl.hashing` says
    what they come to. They stand in registers before they are put together."""
    return Cat(
        (value[start : start + _PART] & seed[bit + start : bit + start + _PART]).xor()
        for start in range(0, len(value), _PART)
        for bit in range(bits)
    )


def bucket(parts: Value, bits: int) -> Value:
    """The bucket that the parts come to."""
    whole = parts[:bits]
    for start in range(bits, len(parts), bits):
        whole = whole ^ parts[start : start + bits]
    return whole


class EqualityIndex(wiring.Component):
    """Chains of window slots, one a bucket, newest first.

    A table gives the newest slot of every bucket, another for every slot the next older one
    of its bucket. Nothing is ever removed: a chain leads from newer to older tuples, so it
    ends where a step leads to a newer one, whose slot was written again, or out of the
    window. A table entry that no tuple of the bucket has written yet may lead into the chain
    of another bucket; that costs a few candidates, which the factors then reject.

    The newest slot of a bucket is exchanged in one access, so that inserts follow each other at once.
    An insert makes way for an ask for a cycle: a walker that asks in every fourth cycle would else
    never get its turn where a tuple is stored in every fourth.

    latency     ask: answer 2 cycles later; insert: 3 cycles, or 4
    throughput  an insert a cycle; an ask for the newest slot where none was put off and none follows at
                once, one for the slot after in every cycle

    seed                  of the hash, held
    insert, key, slot     pulse: `slot` has attribute value `key`
    ask, newest, bucket, after   want the newest slot of a bucket (`newest`), or the slot `after`
    ready                 the ask is taken
    answer                the slot, 2 cycles after
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = layouts = Layouts(config)
        slot = layouts.slot_bits
        super().__init__(
            {
                "seed": In(seed_bits(config)),
                "insert": In(1),
                "key": In(config.attribute_width),
                "slot": In(slot),
                "ask": In(1),
                "newest": In(1),
                "bucket": In(slot),
                "after": In(slot),
                "ready": Out(1),
                "answer": Out(slot),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layouts = self.layouts
        bits, depth = layouts.slot_bits, self.config.depth
        # Stages: hash, bucket, link.
        put = data.StructLayout({"valid": 1, "slot": bits})
        hashes, links = Signal(put), Signal(put)
        parts, to = Signal(layouts.hashed), Signal(bits)
        waits, waited = Signal(), Signal()
        m.d.comb += waits.eq(hashes.valid & self.newest & ~waited & ~self.insert)
        with m.If(~waits):
            m.d.sync += [
                hashes.valid.eq(self.insert),
                hashes.slot.eq(self.slot),
                parts.eq(hashed(self.key, self.seed, bits)),
            ]
        puts = hashes.valid & ~waits
        m.d.sync += [waited.eq(waits), links.valid.eq(puts), links.slot.eq(hashes.slot)]

        m.submodules.newest = newest = memory.Memory(shape=bits, depth=depth, init=[])
        newest_write, newest_read = newest.write_port(), newest.read_port()
        m.submodules.older = older = memory.Memory(shape=bits, depth=depth, init=[])
        older_write, older_read = older.write_port(), older.read_port()
        m.d.comb += [
            to.eq(Mux(puts, bucket(parts, bits), self.bucket)),
            # The memory reads what was there before this cycle's write.
            newest_read.addr.eq(to),
            newest_read.en.eq(1),
            newest_write.addr.eq(to),
            newest_write.data.eq(hashes.slot),
            newest_write.en.eq(puts),
            older_read.addr.eq(self.after),
            older_read.en.eq(1),
            older_write.addr.eq(links.slot),
            older_write.data.eq(newest_read.data),
            older_write.en.eq(links.valid),
        ]

        asked_newest = Signal()
        m.d.sync += asked_newest.eq(self.newest)
        m.d.sync += self.answer.eq(Mux(asked_newest, newest_read.data, older_read.data))
        m.d.comb += self.ready.eq(~self.newest | ~puts)
        return m
