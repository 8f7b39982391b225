"""Probe loader: fetches the next probe while the area is busy with the one before."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.config import DeviceConfig
from seustream.hdl.factors import BUFFER_BITS, FACTOR, all_kept, put_layout
from seustream.hdl.hashing import seed_bits
from seustream.hdl.index import bucket, hashed
from seustream.hdl.layouts import CONTEXT_BITS, SELECTIONS, TAG_BITS, Layouts

ASKED = 8
"""Probes that are fetched ahead of the one that is staged."""


def staged_layout(config: DeviceConfig) -> data.StructLayout:
    """A probe ready for its area; `buffer` says where its comparisons were put."""
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
            "bucket": layouts.slot_bits,
            "buffer": BUFFER_BITS if config.lanes else 0,
        }
    )


class ProbeLoader(wiring.Component):
    """Takes the probe of the highest level, fetches what it carries, picks each factor's
    operand and the bucket it looks into.

    The highest level first: what is nearest to the output is done first, so that what
    waits for room further on is not in the way of what makes room.

    latency     about 16 cycles and one a factor
    throughput  a probe in 3 cycles, or in as many as there are factors and 2; up to eight are
                being fetched meanwhile

    available, take, level, reference   of the probe FIFO
    request, answering, fetched         of the tuple fetch; a pulse, 2 cycles after the request is taken at
                                        the earliest, and the answer in the cycle after it
    context, tail, count                of the window buffer
    tag, plan, terms                    of the area's probe plan, 1 cycle after `tag`
    seed                                of the indexes' hash, held
    factors, used, last_turn            what is compared, how many factors there are, and in how many
                                        turns a row is
    put         a factor's comparison
    staged      the probe; it stays for the cycle after it was taken
    attributes  what it carries; of the area's own `number` nothing, which no probe carries
    hold        without lanes: the attributes of the last probe are still needed
    freed       pulse: the comparisons of the oldest probe staged are no longer needed
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
                "answering": In(1),
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
                "last_turn": In(range(config.turns)),
                "put": Out(put_layout(config)),
                "staged": Out(stream.Signature(staged_layout(config))),
                "attributes": Out(data.ArrayLayout(layouts.attributes, config.streams)),
                "hold": In(1),
                "freed": In(1),
                "flush": In(1),
                "working": Out(1),
                "blocked": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._staged = Signal(name="staged")  # pulse: the oldest one that is ready is handed on
        self._fetch(m)
        self._stage(m)
        return m

    def _fetch(self, m: Module) -> None:
        """Takes probes, asks for what they carry, and looks up meanwhile what they are compared by."""
        config, layouts = self.config, self.layouts
        reference_after, level_after = Signal(layouts.reference), Signal(layouts.level_bits)
        highest = Signal(layouts.level_bits)
        for number in range(layouts.levels):
            with m.If(self.available[number]):
                m.d.comb += highest.eq(number)
        m.d.comb += [
            self.level.eq(level_after),
            self.context.eq(reference_after.context),
            self.tag.eq(reference_after.tag),
        ]
        move, self._kept = Signal(), Signal()
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
                m.d.comb += self._kept.eq(1)
                with m.If(move):
                    m.d.sync += level_after.eq(highest)
                    m.next = "IDLE"
                    with m.If(self.available.any()):
                        m.next = "TAKE"
                with m.If(self.flush):
                    m.next = "IDLE"

        # Asked for, answered, ready, used: counted. What was asked for before a flush is answered,
        # not used.
        count = ceil_log2(ASKED) + 2
        asked, answered, ready = (Signal(count, name=n) for n in ("asked", "answered", "ready"))
        self._used = used = Signal(count)
        # How many are ready to be staged; negative after a flush, until all answers have come that are not used.
        self._ahead, self._have = Signal(signed(count)), Signal()
        room = Signal()  # a cycle late, for two moves are three cycles apart
        m.d.sync += room.eq(((asked - used)[:count] < ASKED) & ((asked - ready)[:count] < ASKED))
        m.d.comb += [
            self._have.eq(self._ahead > 0),
            move.eq(self._kept & room & (~self.request.valid | self.request.ready) & ~self.flush),
        ]
        taken = data.StructLayout({"reference": layouts.reference, "level": layouts.level_bits})
        m.submodules.taken = self._taken = memory.Memory(shape=taken, depth=ASKED, init=[])
        write = self._taken.write_port()
        m.d.comb += [
            write.addr.eq(asked),
            write.data.reference.eq(reference_after),
            write.data.level.eq(level_after),
            write.en.eq(move),
        ]
        # Once raised a request stays, as a stream must.
        with m.If(self.request.ready):
            m.d.sync += self.request.valid.eq(0)
        with m.If(move):
            m.d.sync += [
                self.request.valid.eq(1),
                self.request.payload.eq(reference_after),
                asked.eq(asked + 1),
            ]
        with m.If(self.flush):
            m.d.sync += used.eq(asked)

        self._others = [s for s in range(config.streams) if s != self.number]
        answer = data.StructLayout(
            {
                "bits": SELECTIONS,
                "attributes": data.ArrayLayout(layouts.attributes, len(self._others)),
            }
        )
        self._response = Signal()
        m.d.sync += self._response.eq(self.answering)
        m.submodules.answers = self._answers = memory.Memory(shape=answer, depth=ASKED, init=[])
        write = self._answers.write_port()
        m.d.comb += [
            write.addr.eq(answered),
            # Only a raw tuple has selection bits; a joined one's tag says it all.
            write.data.bits.eq(Mux(_joined(self.fetched.reference), 0, self.fetched.bits)),
            write.en.eq(self._response),
        ]
        for place, stream_number in enumerate(self._others):
            m.d.comb += write.data.attributes[place].eq(
                self.fetched.components[stream_number].attributes
            )
        m.d.sync += answered.eq(answered + self._response)
        self._look_up(m, move, asked, ready)

    def _look_up(self, m: Module, move: Signal, asked: Signal, ready: Signal) -> None:
        """Keeps the plan and the view of a probe while it is fetched, and the bucket that its key
        leads to once it is there."""
        config, layouts = self.config, self.layouts
        # Stages: table, register, kept.
        plan, terms = Signal(layouts.probe_plan), Signal(layouts.terms)
        moved, place = Signal(2), Signal(ceil_log2(ASKED))
        m.d.sync += [plan.eq(self.plan), terms.eq(self.terms), moved.eq(Cat(move, moved))]
        with m.If(move):
            m.d.sync += place.eq(asked)
        looked = data.StructLayout(
            {
                "plan": layouts.probe_plan,
                "terms": layouts.terms if config.lanes else 0,
                "tail": layouts.slot_bits,
                "count": layouts.pointer_bits,
            }
        )
        m.submodules.looked = self._looked = memory.Memory(shape=looked, depth=ASKED, init=[])
        write = self._looked.write_port()
        m.d.comb += [
            write.addr.eq(place),
            write.data.plan.eq(plan),
            *([write.data.terms.eq(terms)] if config.lanes else []),
            write.data.tail.eq(self.tail),
            write.data.count.eq(self.count),
            write.en.eq(moved[-1]),
        ]
        where = data.StructLayout({"stream": len(plan.stream), "attribute": len(plan.attribute)})
        answering = Signal(ceil_log2(ASKED))
        m.submodules.keys = keys = memory.Memory(shape=where, depth=ASKED, init=[])
        write, read = keys.write_port(), keys.read_port(domain="comb")
        m.d.comb += [
            write.addr.eq(place),
            write.data.stream.eq(plan.stream),
            write.data.attribute.eq(plan.attribute),
            write.en.eq(moved[-1]),
            read.addr.eq(answering),
        ]
        # Where the key of the next answer is. By the register, for it comes from another end of the area.
        its_key = Signal(where)
        m.d.sync += [answering.eq(answering + self.answering), its_key.eq(read.data)]

        # Stages: answer, key, parts, kept.
        key, parts = Signal(config.attribute_width), Signal(layouts.hashed)
        attributes = Signal(data.ArrayLayout(layouts.attributes, config.streams))
        for stream_number in self._others:
            m.d.comb += attributes[stream_number].eq(
                self.fetched.components[stream_number].attributes
            )
        came = Signal(2)
        m.submodules.buckets = self._buckets = memory.Memory(
            shape=layouts.slot_bits, depth=ASKED, init=[]
        )
        write = self._buckets.write_port()
        m.d.sync += [
            came.eq(Cat(self._response, came)),
            key.eq(attributes[its_key.stream][its_key.attribute]),
            parts.eq(hashed(key, self.seed, layouts.slot_bits)),
            ready.eq(ready + came[-1]),
            self._ahead.eq(self._ahead + came[-1] - self._staged),
        ]
        with m.If(self.flush):
            m.d.sync += self._ahead.eq(ready + came[-1] - asked)
        m.d.comb += [
            write.addr.eq(ready),
            write.data.eq(bucket(parts, layouts.slot_bits)),
            write.en.eq(came[-1]),
        ]

    def _stage(self, m: Module) -> None:
        """Puts the comparisons of what is ready, and hands it on."""
        config, layouts = self.config, self.layouts
        memories = (self._taken, self._answers, self._looked, self._buckets)
        taken, answer, looked, bucket_of = ports = [
            one.read_port(domain="comb") for one in memories
        ]
        m.d.comb += [port.addr.eq(self._used) for port in ports]
        reference = taken.data.reference
        attributes = Signal(data.ArrayLayout(layouts.attributes, config.streams))
        for place, stream_number in enumerate(self._others):
            m.d.comb += attributes[stream_number].eq(answer.data.attributes[place])

        probe, staged = self.staged.payload, self._staged
        in_use, pick, picked = Signal(), Signal(), Signal(3)
        m.d.sync += picked.eq(Cat(pick, picked))
        number = Signal(range(config.factors + 1))
        last = Const(1)
        if config.lanes:
            last = number + 1 >= self.used
            self._put(m, number, picked[-1], reference, attributes)
            buffers = Signal(BUFFER_BITS + 1)  # whose comparisons the area needs
            m.d.sync += buffers.eq(Mux(self.flush, 0, buffers + staged - self.freed))
            m.d.comb += in_use.eq(all_kept(config, buffers, self.last_turn))
            buffer = Signal(BUFFER_BITS)
            m.d.sync += [buffer.eq(buffer + staged), self.put.buffer.eq(buffer)]
            m.d.comb += self.attributes.eq(attributes)
        else:
            buffer = Const(0, 0)
            before = Signal()  # the area takes a cycle to say that it holds what was staged
            m.d.sync += before.eq(self.staged.valid)
            m.d.comb += in_use.eq(self.hold | self.staged.valid | before)
        with m.If(self.staged.ready | self.flush):
            m.d.sync += self.staged.valid.eq(0)
        with m.If(staged):
            m.d.sync += [
                self.staged.valid.eq(1),
                self._used.eq(self._used + 1),
                probe.reference.eq(reference),
                probe.level.eq(taken.data.level),
                probe.bits.eq(answer.data.bits),
                probe.tail.eq(looked.data.tail),
                probe.count.eq(looked.data.count),
                probe.plan.eq(looked.data.plan),
                *([probe.terms.eq(looked.data.terms)] if config.lanes else []),
                probe.bucket.eq(bucket_of.data),
                probe.buffer.eq(buffer),
            ]
        with m.FSM() as fsm:
            with m.State("OPERANDS"):
                # One factor a cycle, so that one multiplexer serves them all.
                m.d.comb += [
                    self.blocked.eq(self._have & in_use),
                    pick.eq(self._have & ~in_use & ~self.flush),
                ]
                m.d.sync += number.eq(Mux(pick & ~last, number + 1, 0))
                with m.If(pick & last):
                    m.next = "PLACE"
                if not config.lanes:
                    # The execution unit reads them while it works on the probe.
                    with m.If(pick):
                        m.d.sync += self.attributes.eq(attributes)
            with m.State("PLACE"):
                free = ~self.staged.valid
                m.d.comb += staged.eq(~picked[0] & free & ~self.flush)
                m.d.comb += self.blocked.eq(~free)
                with m.If(staged | self.flush):
                    m.next = "OPERANDS"
        here = self._have | fsm.ongoing("PLACE") | self._kept
        m.d.comb += self.working.eq(here & ~self.blocked)

    def _put(
        self, m: Module, number: Value, valid: Value, reference: data.View, attributes: data.View
    ) -> None:
        """Reads a factor, then the attribute it may compare of each stream, then the one it does."""
        factor, chosen, put = Signal(FACTOR), Signal(FACTOR), self.put
        carries, carries_after = Signal.like(reference.carries), Signal.like(reference.carries)
        carried = Signal.like(attributes, name="carried")
        of_stream = Signal(data.ArrayLayout(self.config.attribute_width, len(carried)))
        m.d.sync += [
            carries.eq(reference.carries),
            carried.eq(attributes),
            factor.eq(self.factors[number]),
            *(of_stream[s].eq(carried[s][factor.probe_attribute]) for s in range(len(carried))),
            carries_after.eq(carries),
            chosen.eq(factor),
            put.comparator.eq(chosen.comparator),
            put.turn.eq(chosen.turn),
            put.comparison.operand.eq(of_stream[chosen.probe_stream]),
            put.comparison.carried.eq(carries_after.bit_select(chosen.probe_stream, 1)),
            put.comparison.condition.eq(chosen.condition),
            put.comparison.window_attribute.eq(chosen.window_attribute),
        ]
        m.d.comb += put.valid.eq(valid)


def _joined(reference: data.View) -> object:
    carries = reference.carries
    return (carries & (carries - 1)[: len(carries)]) != 0
