"""Equality index: finds the window tuples that have an attribute value, without a scan."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In

from seustream.hdl.config import DeviceConfig
from seustream.hdl.hashing import seed_bits
from seustream.hdl.layouts import Layouts
from seustream.hdl.ports import IndexLookup

_PART = 8


def hashed(value: Value, seed: Value, bits: int) -> Value:
    """Partial hashes of an attribute value, one for each eight of its bits; `seustream.hdl.hashing` defines the
    hash. They are registered before `bucket` combines them."""
    return Cat(
        (value[start : start + _PART] & seed[bit + start : bit + start + _PART]).xor()
        for start in range(0, len(value), _PART)
        for bit in range(bits)
    )


def bucket(parts: Value, bits: int) -> Value:
    """Combines partial hashes to the bucket."""
    whole = parts[:bits]
    for start in range(bits, len(parts), bits):
        whole = whole ^ parts[start : start + bits]
    return whole


class EqualityIndex(wiring.Component):
    """Keeps chains of window slots, one per bucket, newest first.

    One table gives the newest slot of every bucket, another gives for every slot the next older one
    of its bucket. Nothing is ever removed. A chain leads from newer to older tuples, so it ends
    where a step leads to a newer tuple, because the slot was overwritten, or out of the window, or to the slot
    itself. A slot is linked to itself if the one before it was overwritten since; the parity of the laps
    over the slots, which is stored with the newest slot, reveals this. It does not for a slot that was written
    more than a lap before, or for a table entry that no tuple of the bucket has written yet.
    Such a slot leads into the chain of another bucket. The chain ends there, too, because a few bits
    of the bucket (`mark`) are stored with every slot; if they match by chance, the factors reject the
    candidate.

    The newest slot of a bucket is read and replaced in one access, so that inserts need no pause; an
    ask waits meanwhile.

    latency     ask and step: answer 2 cycles later; insert: 4 cycles
    throughput  an insert or an ask, and a step, per cycle

    seed                  in: seed of the hash, held
    insert, key, slot     in: pulse: `slot` has attribute value `key`; slots come in order, except when all are
                          inserted again
    lookup                in (`IndexLookup`)
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
                "lookup": In(IndexLookup(config)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layouts = self.layouts
        slot, bits, depth = layouts.slot_bits, layouts.bucket_bits, self.config.depth
        # Pipeline stages: hash, bucket, newest before, link.
        put = data.StructLayout(
            {"valid": 1, "slot": slot, "lap": 1, "mark": len(self.lookup.older.mark)}
        )
        hashes, olds, links = (Signal(put, name=name) for name in ("hashes", "olds", "links"))
        # Starts as the opposite of the tables' initial value, so that an entry never written counts as overwritten.
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
            to.eq(Mux(hashes.valid, bucket(parts, bits), self.lookup.bucket)),
            # The read port returns the content before this cycle's write.
            newest_read.addr.eq(to),
            newest_read.en.eq(1),
            newest_write.addr.eq(to),
            newest_write.data.slot.eq(hashes.slot),
            newest_write.data.lap.eq(hashes.lap),
            newest_write.en.eq(hashes.valid),
            older_read.addr.eq(self.lookup.after),
            older_read.en.eq(1),
            older_write.addr.eq(links.slot),
            # Written less than a lap ago: further on in the lap before, or less far in this one.
            stays.eq((before.slot < links.slot) ^ (before.lap != links.lap)),
            older_write.data.slot.eq(Mux(stays, before.slot, links.slot)),
            older_write.data.mark.eq(links.mark),
            older_write.en.eq(links.valid),
            self.lookup.ready.eq(~self.insert),
            self.lookup.newest.eq(before.slot),
        ]
        m.d.sync += [before.eq(newest_read.data), self.lookup.older.eq(older_read.data)]
        return m
