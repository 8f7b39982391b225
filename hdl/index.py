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
    window, or to the slot itself: that is linked where the one before was written again since, as the
    parity of the laps over the slots says, which stands with the newest slot. Of one that was written
    more than a lap before this it does not, nor of a table entry that none of the bucket has written yet.
    Such a slot leads into the chain of another bucket: there it ends, too, for a few
    bits of the bucket (`mark`) stand with every slot. Where they are the same by chance, the factors
    reject the candidate.

    The newest slot of a bucket is exchanged in one access, so that inserts follow each other at once; an
    ask waits meanwhile.

    latency     ask and step: answer 2 cycles later; insert: 4 cycles
    throughput  an insert or an ask, and a step, a cycle

    seed                  of the hash, held
    insert, key, slot     pulse: `slot` has attribute value `key`; slots follow each other, but where all are
                          inserted again
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
        # Stages: hash, bucket, newest before, link.
        put = data.StructLayout({"valid": 1, "slot": slot, "lap": 1, "mark": len(self.older.mark)})
        hashes, olds, links = (Signal(put, name=name) for name in ("hashes", "olds", "links"))
        # Begins with another than the tables have, so that what was never written counts as written again.
        lap, last_slot = Signal(init=1), Signal(slot)
        lap_now = lap ^ (self.slot < last_slot)
        with m.If(self.insert):
            m.d.sync += [lap.eq(lap_now), last_slot.eq(self.slot)]
        parts, to = Signal(layouts.hashed), Signal(bits)
        m.d.sync += [
            hashes.valid.eq(self.insert),
            hashes.slot.eq(self.slot),
            hashes.lap.eq(lap_now),
            parts.eq(hashed(self.key, self.seed, bits)),
            olds.valid.eq(hashes.valid),
            olds.slot.eq(hashes.slot),
            olds.lap.eq(hashes.lap),
            olds.mark.eq(to),
            links.eq(olds),
        ]

        m.submodules.newest = newest = memory.Memory(
            shape=data.StructLayout({"slot": slot, "lap": 1}), depth=1 << bits, init=[]
        )
        before, stays = Signal(newest.shape), Signal()
        newest_write, newest_read = newest.write_port(), newest.read_port()
        m.submodules.older = older = memory.Memory(shape=layouts.link, depth=depth, init=[])
        older_write, older_read = older.write_port(), older.read_port()
        m.d.comb += [
            to.eq(Mux(hashes.valid, bucket(parts, bits), self.bucket)),
            # The memory reads what was there before this cycle's write.
            newest_read.addr.eq(to),
            newest_read.en.eq(1),
            newest_write.addr.eq(to),
            newest_write.data.slot.eq(hashes.slot),
            newest_write.data.lap.eq(hashes.lap),
            newest_write.en.eq(hashes.valid),
            older_read.addr.eq(self.after),
            older_read.en.eq(1),
            older_write.addr.eq(links.slot),
            # Less than a lap before, if it is further in the lap before, or not as far in this one.
            stays.eq((before.slot < links.slot) ^ (before.lap != links.lap)),
            older_write.data.slot.eq(Mux(stays, before.slot, links.slot)),
            older_write.data.mark.eq(links.mark),
            older_write.en.eq(links.valid),
            self.ready.eq(~self.insert),
            self.newest.eq(before.slot),
        ]
        m.d.sync += [before.eq(newest_read.data), self.older.eq(older_read.data)]
        return m
