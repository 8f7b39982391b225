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
    window. A slot that was written again by a tuple of another bucket, or a table entry that none
    of the bucket has written yet, leads into the chain of another bucket: there it ends, too, for a few
    bits of the bucket (`mark`) stand with every slot. Where they are the same by chance, the factors
    reject the candidate.

    The newest slot of a bucket is exchanged in one access, so that inserts follow each other at once; an
    ask waits meanwhile.

    latency     ask and step: answer 2 cycles later; insert: 3 cycles
    throughput  an insert or an ask, and a step, a cycle

    seed                  of the hash, held
    insert, key, slot     pulse: `slot` has attribute value `key`
    ask, bucket           want the newest slot of a bucket
    ready                 an ask is taken in the next cycle
    newest                the slot, 2 cycles after
    after, older          the slot before `after` in its chain, and the mark of `after`, 2 cycles later
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
                "bucket": In(layouts.bucket_bits),
                "ready": Out(1),
                "newest": Out(slot),
                "after": In(slot),
                "older": Out(layouts.link),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layouts = self.layouts
        slot, bits, depth = layouts.slot_bits, layouts.bucket_bits, self.config.depth
        # Stages: hash, bucket, link.
        put = data.StructLayout({"valid": 1, "slot": slot, "mark": len(self.older.mark)})
        hashes, links = Signal(put), Signal(put)
        parts, to = Signal(layouts.hashed), Signal(bits)
        m.d.sync += [
            hashes.valid.eq(self.insert),
            hashes.slot.eq(self.slot),
            parts.eq(hashed(self.key, self.seed, bits)),
            links.valid.eq(hashes.valid),
            links.slot.eq(hashes.slot),
            links.mark.eq(to),
        ]

        m.submodules.newest = newest = memory.Memory(shape=slot, depth=1 << bits, init=[])
        newest_write, newest_read = newest.write_port(), newest.read_port()
        m.submodules.older = older = memory.Memory(shape=layouts.link, depth=depth, init=[])
        older_write, older_read = older.write_port(), older.read_port()
        m.d.comb += [
            to.eq(Mux(hashes.valid, bucket(parts, bits), self.bucket)),
            # The memory reads what was there before this cycle's write.
            newest_read.addr.eq(to),
            newest_read.en.eq(1),
            newest_write.addr.eq(to),
            newest_write.data.eq(hashes.slot),
            newest_write.en.eq(hashes.valid),
            older_read.addr.eq(self.after),
            older_read.en.eq(1),
            older_write.addr.eq(links.slot),
            older_write.data.slot.eq(newest_read.data),
            older_write.data.mark.eq(links.mark),
            older_write.en.eq(links.valid),
            self.ready.eq(~self.insert),
        ]
        m.d.sync += [self.newest.eq(newest_read.data), self.older.eq(older_read.data)]
        return m
