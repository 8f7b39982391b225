"""Probe loader: fetches the data of the next probes while the area is busy with the one before."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.config import DeviceConfig
from seustream.hdl.factors import BUFFER_BITS, FACTOR, all_kept, put_layout
from seustream.hdl.hashing import seed_bits
from seustream.hdl.index import bucket, hashed
from seustream.hdl.layouts import CONTEXT_BITS, SELECTIONS, TAG_BITS, Layouts
from seustream.hdl.ports import Fetching, Meter

ASKED = 16
"""Probes that are fetched ahead of the staged one."""


def staged_layout(config: DeviceConfig) -> data.StructLayout:
    """Layout of a probe ready for its area; `buffer` tells where its comparisons were put."""
    layouts = Layouts(config)
    return data.StructLayout(
        {
            "reference": layouts.reference,
            "level": layouts.level_bits,
            "bits": SELECTIONS,
            "tail": layouts.slot_bits,
            "count": layouts.pointer_bits,
            "plan": layouts.probe_plan,
            "bucket": layouts.bucket_bits,
            "buffer": BUFFER_BITS if config.lanes else 0,
        }
    )


class ProbeLoader(wiring.Component):
    """Takes the probe of the highest level, fetches the data it carries, picks the operand of each factor and
    computes the bucket to look up. A raw tuple brings its data along the first time it is taken.

    The highest level goes first: probes nearest to the output are finished first, so that a probe
    waiting for room downstream does not block those that make room.

    latency     11 cycles plus one per factor for a raw tuple, about 18 for a joined one
    throughput  a probe per cycle, or per as many cycles as there are factors; up to sixteen are
                being fetched meanwhile

    available    in, from the probe FIFO: by level, there is a probe to take in the next cycle
    take         out: pulse: take a probe
    level        out: its level, valid with `take`
    reference    in: the probe taken last (`Layouts.reference`), from the cycle after `take` on
    brings       in: it is a raw tuple, taken for the first time; valid as `reference` is
    raw          in: what the first raw tuple brought whose data is not given yet (`Layouts.brought`)
    give         out: pulse: `raw` is taken
    fetch        out (`Fetching`): answers come 2 cycles after their requests at the earliest
    context      out, to the window buffer: a context
    tail, count  in: its view, 2 cycles later
    tag          out, to the area's probe plan: a route tag
    plan         in: what is done with its probes (`Layouts.probe_plan`), 1 cycle later
    seed         in: seed of the indexes' hash, held
    factors      in: the factors (`FACTOR`), held while probes are here
    used         in: number of factors, held as `factors`
    last_turn    in: last turn of a row, held as `factors`
    put          out: the comparison of a factor (`put_layout`, with a bit `valid`)
    staged       out: stream of probes (`staged_layout`)
    attributes   out: what the probe carries, by stream; nothing for the area's own `number`, which no probe carries.
                 Without lanes it stays while `hold`
    hold         in: the attributes of the last probe are still needed; 0 with lanes
    freed        in: pulse: the comparisons of the oldest staged probe are no longer needed
    flush        in: pulse: forget all probes; one taken or handed on in this cycle does not count
    meter        out (`Meter`): blocked while the area still needs the comparisons of as many probes as there is room for
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
                "brings": In(1),
                "raw": In(layouts.brought),
                "give": Out(1),
                "fetch": Out(Fetching(config)),
                "context": Out(CONTEXT_BITS),
                "tail": In(layouts.slot_bits),
                "count": In(layouts.pointer_bits),
                "tag": Out(TAG_BITS),
                "plan": In(layouts.probe_plan),
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
                "meter": Out(Meter()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._staged = Signal(name="staged")  # pulse: the oldest probe that is ready is handed on
        self._picked = Signal(name="all_picked")  # pulse: the last comparison of a probe is picked
        self._fetch(m)
        self._stage(m)
        return m

    def _fetch(self, m: Module) -> None:
        """Takes probes, requests the data they carry, and meanwhile looks up what they are compared by. A probe
        is taken only if it has a place, so that nothing after the take can stall, except a request until its turn."""
        config, layouts = self.config, self.layouts
        # Level of the next probe, unless a flush puts back those that were taken.
        highest, next_level, some = Signal(layouts.level_bits), Signal(layouts.level_bits), Signal()
        for number in range(layouts.levels):
            with m.If(self.available[number]):
                m.d.comb += highest.eq(number)
        # Places, used in turn. A bit per place: its probe is still to be staged (`_wanted`), its comparisons are
        # still to be put (`_fresh`), its data is not complete (`_missing`). Fetches begun before a flush run to
        # their end, and their data goes unused.
        count = ceil_log2(ASKED)
        asked, self._used, self._picks = (
            Signal(count, name=name) for name in ("asked", "used", "picks")
        )
        self._wanted, self._fresh, self._missing = (
            Signal(ASKED, name=name) for name in ("wanted", "fresh", "missing")
        )
        takes, room = Signal(), Signal()
        # A choice made before the FIFO counts the probes put back would begin with the one that was just left,
        # and could block the higher levels for ever.
        m.d.sync += [
            next_level.eq(highest),
            some.eq(self.available.any() & ~self.flush),
        ]
        places, asked_next = ~(self._wanted | self._missing), (asked + 1)[:count]
        m.d.comb += [
            self.level.eq(next_level),
            self.take.eq(some & room),
            takes.eq(self.take & ~self.flush),
        ]
        m.d.sync += room.eq(
            Mux(takes, places.bit_select(asked_next, 1), places.bit_select(asked, 1))
        )
        with m.If(takes):
            m.d.sync += asked.eq(asked_next)

        # Whether the next probe to be picked is complete, found a cycle ahead so that it is not searched for then.
        self._have, whole = Signal(), self._fresh & ~self._missing
        after_it = (self._picks + 1)[:count]
        here = Mux(self._picked, whole.bit_select(after_it, 1), whole.bit_select(self._picks, 1))
        m.d.sync += self._have.eq(here & ~self.flush)

        # Pipeline stages: FIFO, here.
        taken = data.StructLayout({"reference": layouts.reference, "level": layouts.level_bits})
        after, level, brings = Signal(taken), Signal(layouts.level_bits), Signal()
        self._moves, place = Signal(2), [Signal(count, name=f"place{i}") for i in range(2)]
        m.d.sync += [
            self._moves.eq(Cat(takes, self._moves)),
            place[0].eq(asked),
            place[1].eq(place[0]),
            level.eq(next_level),
            brings.eq(self.brings),
            after.reference.eq(self.reference),
            after.level.eq(level),
        ]
        moves = self._moves[-1]
        m.submodules.taken = self._taken = memory.Memory(shape=taken, depth=ASKED, init=[])
        write = self._taken.write_port()
        m.d.comb += [
            self.context.eq(after.reference.context),
            self.tag.eq(after.reference.tag),
            write.addr.eq(place[1]),
            write.data.eq(after),
            write.en.eq(moves),
        ]
        # Queue of requests, in order. Once raised a request stays valid, as a stream must.
        m.submodules.requests = requests = memory.Memory(
            shape=layouts.reference, depth=ASKED, init=[]
        )
        write, read = requests.write_port(), requests.read_port(domain="comb")
        put, got = Signal(count, name="requests_put"), Signal(count, name="requests_got")
        m.d.comb += [
            write.addr.eq(put),
            write.data.eq(after.reference),
            write.en.eq(moves & ~brings),
            read.addr.eq(got),
        ]
        m.d.sync += put.eq(put + write.en)
        with m.If(~self.fetch.request.valid | self.fetch.request.ready):
            m.d.sync += [
                self.fetch.request.valid.eq(got != put),
                self.fetch.request.payload.eq(read.data),
                got.eq(got + (got != put)),
            ]
        self._others = [s for s in range(config.streams) if s != self.number]
        came, at = self._look_up(m, moves, brings, place[1])

        begins = (
            (self._missing, came, at),
            (self._fresh, self._picked, self._picks),
            (self._wanted, self._staged, self._used),
        )
        for bits, ends, at_place in begins:
            begun, gone = Mux(takes, 1 << asked, 0), Mux(ends, 1 << at_place, 0)
            m.d.sync += bits.eq((bits | begun[:ASKED]) & ~gone[:ASKED])
        with m.If(self.flush):
            m.d.sync += [
                Cat(self._wanted, self._fresh).eq(0),
                self._picks.eq(asked),
                self._used.eq(asked),
            ]

    def _look_up(
        self, m: Module, move: Value, brings: Signal, asked: Signal
    ) -> tuple[Value, Value]:
        """Keeps the plan and the view of a probe while its data is fetched, and then the bucket of its key.
        Returns a pulse when the data of a probe is complete, and the place of that probe."""
        config, layouts = self.config, self.layouts
        # Pipeline stages: table, register, kept.
        plan = Signal(layouts.probe_plan)
        moved, raw_moved = Signal(2), Signal(2)
        place_before, place = Signal.like(asked), Signal.like(asked, name="place")
        m.d.sync += [
            plan.eq(self.plan),
            moved.eq(Cat(move, moved)),
            raw_moved.eq(Cat(move & brings, raw_moved)),
            place_before.eq(asked),
            place.eq(place_before),
        ]
        looked = data.StructLayout(
            {
                "plan": layouts.probe_plan,
                "tail": layouts.slot_bits,
                "count": layouts.pointer_bits,
            }
        )
        m.submodules.looked = self._looked = memory.Memory(shape=looked, depth=ASKED, init=[])
        write = self._looked.write_port()
        m.d.comb += [
            write.addr.eq(place),
            write.data.plan.eq(plan),
            write.data.tail.eq(self.tail),
            write.data.count.eq(self.count),
            write.en.eq(moved[-1]),
        ]
        # For each probe being fetched, in order: its place, and where in the answer its key is.
        where = data.StructLayout(
            {
                "place": len(place),
                "stream": len(plan.stream),
                "attribute": len(plan.attribute),
            }
        )
        fetched, answering = Signal.like(place, name="fetched"), Signal.like(place)
        m.submodules.keys = keys = memory.Memory(shape=where, depth=ASKED, init=[])
        write, read = keys.write_port(), keys.read_port(domain="comb")
        m.d.comb += [
            write.addr.eq(fetched),
            write.data.place.eq(place),
            write.data.stream.eq(plan.stream),
            write.data.attribute.eq(plan.attribute),
            write.en.eq(moved[-1] & ~raw_moved[-1]),
            read.addr.eq(answering),
        ]
        # The same for the next answer. From a register, because the answer comes from another end of the area.
        its_key = Signal(where)
        m.d.sync += [
            fetched.eq(fetched + write.en),
            answering.eq(answering + self.fetch.answering),
            its_key.eq(read.data),
        ]
        # A raw tuple passes once its plan is there, in a cycle without an answer; otherwise it waits here.
        response, passes, raw = Signal(), Signal(), self.raw
        m.d.sync += response.eq(self.fetch.answering)
        waits = data.StructLayout({"place": len(place), "attribute": len(plan.attribute)})
        m.submodules.raws = raws = memory.Memory(shape=waits, depth=ASKED, init=[])
        write, read = raws.write_port(), raws.read_port(domain="comb")
        put, got = Signal.like(place, name="raws_put"), Signal.like(place, name="raws_got")
        held, first, coming, its = Signal(), Signal(waits), Signal(waits), Signal(waits)
        more = got != put
        m.d.comb += [
            coming.place.eq(place),
            coming.attribute.eq(plan.attribute),
            passes.eq((held | raw_moved[-1]) & ~response),
            its.eq(Mux(held, first, coming)),
            write.addr.eq(put),
            write.data.eq(coming),
            write.en.eq(raw_moved[-1] & held & (more | ~passes)),
            read.addr.eq(got),
            self.give.eq(passes),
        ]
        m.d.sync += [put.eq(put + write.en), got.eq(got + (held & passes & more))]
        with m.If(~held | passes):
            m.d.sync += [
                held.eq(Mux(held, more | raw_moved[-1], raw_moved[-1] & response)),
                first.eq(Mux(more, read.data, coming)),
            ]

        answer = data.StructLayout(
            {
                "bits": SELECTIONS,
                "attributes": data.ArrayLayout(layouts.attributes, len(self._others)),
            }
        )
        m.submodules.answers = self._answers = memory.Memory(shape=answer, depth=ASKED, init=[])
        fetched_bits = Mux(_joined(self.fetch.data.reference), 0, self.fetch.data.bits)
        write, at_place = self._answers.write_port(), Signal.like(place)
        m.d.comb += at_place.eq(Mux(response, its_key.place, its.place))
        # Registers are possible here: the entry is read two cycles later at the earliest.
        m.d.sync += [
            write.addr.eq(at_place),
            # Only a raw tuple has selection bits; a joined tuple is fully described by its tag.
            write.data.bits.eq(Mux(response, fetched_bits, raw.bits)),
            write.en.eq(response | passes),
        ]
        attributes = Signal(data.ArrayLayout(layouts.attributes, config.streams))
        for number, stream_number in enumerate(self._others):
            came = self.fetch.data.components[stream_number].attributes
            m.d.sync += write.data.attributes[number].eq(Mux(response, came, raw.attributes))
            m.d.comb += attributes[stream_number].eq(came)

        # Pipeline stages: answer, key, parts, kept.
        key, parts = Signal(config.attribute_width), Signal(layouts.hashed)
        came = Signal(2)
        at = [Signal.like(place, name=f"at{stage}") for stage in range(2)]
        m.submodules.buckets = self._buckets = memory.Memory(
            shape=layouts.bucket_bits, depth=ASKED, init=[]
        )
        m.d.sync += [
            came.eq(Cat(response | passes, came)),
            at[0].eq(at_place),
            at[1].eq(at[0]),
            key.eq(
                Mux(
                    response,
                    attributes[its_key.stream][its_key.attribute],
                    raw.attributes[its.attribute],
                )
            ),
            parts.eq(hashed(key, self.seed, layouts.bucket_bits)),
        ]
        write = self._buckets.write_port()
        m.d.comb += [
            write.addr.eq(at[-1]),
            write.data.eq(bucket(parts, layouts.bucket_bits)),
            write.en.eq(came[-1]),
        ]
        return came[-1], at[-1]

    def _stage(self, m: Module) -> None:
        """Puts the comparisons of complete probes, and then hands these probes on."""
        config, layouts = self.config, self.layouts
        taken, answer, looked, bucket_of = ports = [
            one.read_port(domain="comb")
            for one in (self._taken, self._answers, self._looked, self._buckets)
        ]
        m.d.comb += [port.addr.eq(self._used) for port in ports]
        of_taken, of_answer = (one.read_port(domain="comb") for one in (self._taken, self._answers))
        m.d.comb += [of_taken.addr.eq(self._picks), of_answer.addr.eq(self._picks)]
        attributes = Signal(data.ArrayLayout(layouts.attributes, config.streams))
        for place, stream_number in enumerate(self._others):
            m.d.comb += attributes[stream_number].eq(of_answer.data.attributes[place])

        # One factor per cycle, so that a single multiplexer serves them all.
        probe, staged = self.staged.payload, self._staged
        in_use, pick, picked = Signal(), Signal(), Signal(3)
        last = Const(1)
        begun = Signal()  # pulse: the last factor of a probe was picked
        put = Signal(range(ASKED + 1))  # number of probes whose comparisons are all put, or nearly
        m.d.comb += [
            pick.eq(self._have & ~in_use & ~self.flush),
            staged.eq((put != 0) & (~self.staged.valid | self.staged.ready) & ~self.flush),
        ]
        number = Signal(range(config.factors + 1))
        if config.lanes:
            # Whether the next number is the last, found from what is known before it is chosen.
            last, one, more = Signal(), self.used <= 1, number + 2 >= self.used
            m.d.sync += last.eq(Mux(pick & ~last, more, one))
            self._put(m, number, picked[-1], of_taken.data.reference, attributes)
            buffers = Signal(BUFFER_BITS + 1)  # number of probes whose comparisons the area needs
            m.d.sync += buffers.eq(Mux(self.flush, 0, buffers + self._picked - self.freed))
            # `freed` takes effect a cycle later.
            same, one_more = (all_kept(config, buffers + by, self.last_turn) for by in range(2))
            m.d.sync += in_use.eq(Mux(self._picked, one_more, same))
            # Buffers for the comparisons of the next probe, of those in flight, and of the next one to be staged.
            to, buffer = Signal(BUFFER_BITS, name="to"), Signal(BUFFER_BITS, name="buffer")
            on_the_way = [Signal(BUFFER_BITS, name=f"to{stage}") for stage in range(2)]
            m.d.sync += [
                to.eq(to + self._picked),
                on_the_way[0].eq(to),
                on_the_way[1].eq(on_the_way[0]),
                self.put.buffer.eq(on_the_way[1]),
                buffer.eq(Mux(self.flush, to, buffer + staged)),
            ]
            m.d.comb += self.attributes.eq(attributes)
        else:
            buffer = Const(0, 0)
            before = Signal()  # the area takes a cycle to assert `hold` for a probe it took
            m.d.sync += before.eq(self.staged.valid)
            m.d.comb += in_use.eq(self.hold | begun | (put != 0) | self.staged.valid | before)
            # The execution unit reads the attributes while it works on the probe.
            with m.If(pick):
                m.d.sync += self.attributes.eq(attributes)
        m.d.comb += self._picked.eq(pick & last)
        m.d.sync += [
            picked.eq(Cat(pick, picked)),
            number.eq(Mux(pick & ~last, number + 1, 0)),
            begun.eq(self._picked),
            put.eq(Mux(self.flush, 0, put + begun - staged)),
        ]
        with m.If(self._picked):
            m.d.sync += self._picks.eq(self._picks + 1)
        with m.If(self.staged.ready | self.flush):
            m.d.sync += self.staged.valid.eq(0)
        with m.If(staged):
            m.d.sync += [
                self.staged.valid.eq(1),
                self._used.eq(self._used + 1),
                probe.reference.eq(taken.data.reference),
                probe.level.eq(taken.data.level),
                probe.bits.eq(answer.data.bits),
                probe.tail.eq(looked.data.tail),
                probe.count.eq(looked.data.count),
                probe.plan.eq(looked.data.plan),
                probe.bucket.eq(bucket_of.data),
                probe.buffer.eq(buffer),
            ]
        waits = Mux(put != 0, self.staged.valid, self._have & in_use)
        m.d.comb += [
            self.meter.blocked.eq(waits),
            self.meter.working.eq((self._have | begun | (put != 0) | self._moves[-1]) & ~waits),
        ]

    def _put(
        self, m: Module, number: Value, valid: Value, reference: data.View, attributes: data.View
    ) -> None:
        """Reads a factor, then selects its attribute in every stream, then the stream that it compares."""
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


def _joined(reference: data.View) -> Value:
    carries = reference.carries
    return (carries & (carries - 1)[: len(carries)]) != 0
