"""Probe loader: fetches the next probe while the area is busy with the one before."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.config import DeviceConfig
from seustream.hdl.factors import FACTOR, put_layout
from seustream.hdl.hashing import seed_bits
from seustream.hdl.index import hashed
from seustream.hdl.layouts import CONTEXT_BITS, SELECTIONS, TAG_BITS, Layouts


def staged_layout(config: DeviceConfig) -> data.StructLayout:
    """A probe ready for its area; `buffer` says where its comparisons were put, `bucket` is in
    parts."""
    layouts = Layouts(config)
    return data.StructLayout(
        {
            "reference": layouts.reference,
            "level": layouts.level_bits,
            "bits": SELECTIONS,
            "tail": layouts.slot_bits,
            "count": layouts.pointer_bits,
            "plan": layouts.probe_plan,
            "terms": layouts.terms if config.lanes else 0,
            "bucket": layouts.hashed,
            "buffer": 1 if config.lanes else 0,
        }
    )


class ProbeLoader(wiring.Component):
    """Takes the probe of the highest level, fetches what it carries, picks each factor's
    operand and the bucket it looks into.

    The highest level first: what is nearest to the output is done first, so that what
    waits for room further on is not in the way of what makes room.

    latency     about 15 cycles and one a factor
    throughput  a probe in 12 cycles and one a factor: while the area works on one, the next is
                fetched and the one after read

    available, take, level, reference   of the probe FIFO
    request, response, fetched          of the tuple fetch; the response is a pulse
    context, tail, count                of the window buffer
    tag, plan, terms                    of the area's probe plan
    seed                                of the indexes' hash, held
    factors, used                       what is compared, and how many factors there are
    put         a factor's comparison
    staged      the probe
    attributes  what it carries; of the area's own `number` nothing, which no probe carries
    hold        the comparisons of the probe before the last (without lanes, the attributes of
                the last) are still needed
    flush       pulse: forget all probes; one taken or handed on in this cycle does not count
    working, blocked   it is busy; it waits until the area needs the comparisons no more
    """

    def __init__(self, config: DeviceConfig, number: int) -> None:
        self.config, self.number = config, number
        self.layouts = layouts = Layouts(config)
        super().__init__(
            {
                "available": In(layouts.levels),
                "take": Out(1),
                "level": Out(layouts.level_bits),
                "reference": In(layouts.reference),
                "request": Out(stream.Signature(layouts.reference)),
                "response": In(1),
                "fetched": In(layouts.fetched),
                "context": Out(CONTEXT_BITS),
                "tail": In(layouts.slot_bits),
                "count": In(layouts.pointer_bits),
                "tag": Out(TAG_BITS),
                "plan": In(layouts.probe_plan),
                "terms": In(layouts.terms),
                "seed": In(seed_bits(config)),
                "factors": In(data.ArrayLayout(FACTOR, config.factors)),
                "used": In(range(config.factors + 1)),
                "put": Out(put_layout(config)),
                "staged": Out(stream.Signature(staged_layout(config))),
                "attributes": Out(data.ArrayLayout(layouts.attributes, config.streams)),
                "hold": In(1),
                "flush": In(1),
                "working": Out(1),
                "blocked": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, layouts = self.config, self.layouts
        # The probe that is fetched, and the one after.
        reference, reference_after = Signal(layouts.reference), Signal(layouts.reference)
        level, level_after = Signal(layouts.level_bits), Signal(layouts.level_bits)
        highest = Signal(layouts.level_bits)
        for number in range(layouts.levels):
            with m.If(self.available[number]):
                m.d.comb += highest.eq(number)
        m.d.comb += [
            self.level.eq(level_after),
            self.context.eq(reference.context),
            self.tag.eq(reference.tag),
            self.request.payload.eq(reference),
        ]
        probe = self.staged.payload
        plan = Signal(layouts.probe_plan)
        terms = Signal(layouts.terms)
        m.d.sync += [plan.eq(self.plan), terms.eq(self.terms)]
        key = Signal(config.attribute_width)
        m.d.sync += key.eq(self.attributes[plan.stream][plan.attribute])
        bits = Signal(SELECTIONS)
        parts = Signal(layouts.hashed)
        m.d.sync += parts.eq(hashed(key, self.seed, layouts.slot_bits))

        # Without lanes the execution unit reads `attributes`, with lanes only operands matter.
        staged_before = Signal()  # the area takes a cycle to say that it holds what was staged
        m.d.sync += staged_before.eq(self.staged.valid)
        in_use = Const(0, 1) if config.lanes else self.hold | self.staged.valid | staged_before
        if config.lanes:
            # The other one is the area's until it begins with this.
            with m.If(self.staged.valid & self.staged.ready):
                m.d.sync += probe.buffer.eq(~probe.buffer)
        self._pick_operands(m, reference)
        move, kept = Signal(), Signal()
        # After a flush `available` has yet to know of the probes that were taken back. To choose
        # without them is to begin with what was left, and be in the way of the higher ones for ever.
        flushed_before = Signal()
        m.d.sync += flushed_before.eq(self.flush)
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += level_after.eq(highest)
                with m.If(self.available.any() & ~self.flush & ~flushed_before):
                    m.next = "TAKE"
            with m.State("TAKE"):
                m.d.comb += self.take.eq(1)
                m.next = "READ"
                with m.If(self.flush):
                    m.next = "IDLE"
            with m.State("READ"):
                m.d.sync += reference_after.eq(self.reference)
                m.next = "KEPT"
                with m.If(self.flush):
                    m.next = "IDLE"
            with m.State("KEPT"):
                m.d.comb += kept.eq(1)
                with m.If(move | self.flush):
                    m.next = "IDLE"

        with m.If(self.response):
            for stream_number in range(config.streams):
                if stream_number != self.number:
                    m.d.sync += self.attributes[stream_number].eq(
                        self.fetched.components[stream_number].attributes
                    )
            # Only a raw tuple has selection bits; a joined one's tag says it all.
            m.d.sync += bits.eq(Mux(_joined(reference), 0, self.fetched.bits))
        flushed = Signal()
        with m.If(self.staged.ready | self.flush):
            m.d.sync += self.staged.valid.eq(0)
        with m.FSM() as fsm:
            with m.State("NEXT"):
                m.d.comb += self.blocked.eq(kept & in_use)
                m.d.sync += [reference.eq(reference_after), level.eq(level_after)]
                with m.If(kept & ~in_use & ~self.flush):
                    m.d.comb += move.eq(1)
                    m.next = "REQUEST"
            with m.State("REQUEST"):
                # Once raised the request stays, as a stream must; what comes is ignored.
                m.d.comb += self.request.valid.eq(1)
                with m.If(self.request.ready):
                    m.next = "FETCH"
                with m.If(self.flush):
                    m.d.sync += flushed.eq(1)
            with m.State("FETCH"):
                with m.If(self.flush):
                    m.d.sync += flushed.eq(1)
                with m.If(self.response):
                    m.d.sync += flushed.eq(0)
                    m.next = "OPERANDS"
                    with m.If(flushed | self.flush):
                        m.next = "NEXT"
            self._operands(m)
            with m.State("PLACE"):
                with m.If(~self._stages[0]):
                    m.d.sync += [
                        self.staged.valid.eq(1),
                        probe.reference.eq(reference),
                        probe.level.eq(level),
                        probe.bits.eq(bits),
                        probe.tail.eq(self.tail),
                        probe.count.eq(self.count),
                        probe.plan.eq(plan),
                        *([probe.terms.eq(terms)] if config.lanes else []),
                        probe.bucket.eq(parts),
                    ]
                    m.next = "NEXT"
                with m.If(self.flush):
                    m.d.sync += self.staged.valid.eq(0)
                    m.next = "NEXT"
        m.d.comb += self.working.eq((~fsm.ongoing("NEXT") | kept) & ~self.blocked)
        return m

    def _pick_operands(self, m: Module, reference: data.View) -> None:
        """One factor a cycle, so that one multiplexer serves them all: which, its operand; put."""
        self._number = number = Signal(range(self.config.factors + 1))
        self._pick, self._stages = Signal(), Signal(2)
        m.d.sync += self._stages.eq(Cat(self._pick, self._stages))
        if self.config.lanes:
            factor, put = Signal(FACTOR), self.put
            m.d.sync += [
                factor.eq(self.factors[number]),
                put.comparator.eq(factor.comparator),
                put.turn.eq(factor.turn),
                put.comparison.operand.eq(
                    self.attributes[factor.probe_stream][factor.probe_attribute]
                ),
                put.comparison.carried.eq(reference.carries.bit_select(factor.probe_stream, 1)),
                put.comparison.condition.eq(factor.condition),
                put.comparison.window_attribute.eq(factor.window_attribute),
            ]
            m.d.comb += [
                put.valid.eq(self._stages[1]),
                put.buffer.eq(self.staged.payload.buffer),
            ]

    def _operands(self, m: Module) -> None:
        number = self._number
        with m.State("OPERANDS"):
            if self.config.lanes:
                with m.If(~self.hold & ~self.staged.valid):
                    m.d.comb += self._pick.eq(1)
                    m.d.sync += number.eq(number + 1)
                    with m.If(number + 1 >= self.used):
                        m.d.sync += number.eq(0)
                        m.next = "PLACE"
                with m.Else():
                    m.d.comb += self.blocked.eq(1)
            else:
                m.d.comb += self._pick.eq(1)  # the bucket takes as long
                m.next = "PLACE"
            with m.If(self.flush):
                m.d.sync += number.eq(0)
                m.next = "NEXT"


def _joined(reference: data.View) -> object:
    carries = reference.carries
    return (carries & (carries - 1)[: len(carries)]) != 0
