"""Contexts: numbers the raw tuples in flight, and tracks the oldest one."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.config import DeviceConfig
from seustream.hdl.layouts import CONTEXT_BITS, EPOCH_BITS, Layouts
from seustream.hdl.probe_fifo import IN_FLIGHT


class Contexts(wiring.Component):
    """Gives each raw tuple in flight, up to 128, a context number of its own. Tuples in flight are counted per
    epoch of eight consecutive contexts. An epoch is free again when nothing of it is in flight, no context of
    it is still to be given, and all older epochs are free. When nothing else is in flight, the rest of an epoch
    is skipped.

    latency     an epoch is free 7 cycles after its last tuple is done
    throughput  a context per cycle

    gives, gives_wide   in: pulse: the context goes to a raw tuple; a copy, for registers that are placed elsewhere
    number      out: the context that is given
    numbered    out: a context may be given in the next cycle
    places      in: number of places that the raw tuple goes to, a cycle after `gives`
    sent, sent_context  in: number of places that a tuple made by an area went to, and its context
    done, done_contexts   in, per area and the output: one less in flight, of this context
    busy, oldest        out: contexts were in flight a cycle ago; the first context of the oldest epoch
    flies       out: contexts are in flight
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        n = config.streams
        super().__init__(
            {
                "gives": In(1),
                "gives_wide": In(1),
                "number": Out(CONTEXT_BITS),
                "numbered": Out(1),
                "places": In(range(n + 2)),
                "sent": In(range(n + 2)),
                "sent_context": In(CONTEXT_BITS),
                "done": In(n + 1),
                "done_contexts": In(data.ArrayLayout(CONTEXT_BITS, n + 1)),
                "busy": Out(1),
                "oldest": Out(CONTEXT_BITS),
                "flies": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        within = CONTEXT_BITS - EPOCH_BITS
        active = Signal(1 << EPOCH_BITS, name="active")
        number, oldest = self.number, Signal(EPOCH_BITS, name="oldest_epoch")
        epoch, open_ = number[within:], number[:within] != 0
        here = Signal(1 << EPOCH_BITS, init=1, name="here")  # the epoch, one-hot
        gave, was_here = Signal(name="gave"), Signal.like(here, name="was_here")  # a cycle before
        m.d.sync += [gave.eq(self.gives_wide), was_here.eq(here)]
        finished = self._count(m, active, gave, was_here)
        # `finished` comes late: a context may have been given meanwhile, or it may refer to the epoch before.
        of_oldest, moved, ends, skips = Signal(), Signal(), Signal(), Signal()
        late = moved | (gave & of_oldest)
        m.d.sync += [of_oldest.eq(epoch == oldest), self.busy.eq(active.any())]
        m.d.comb += [
            self.flies.eq(active.any()),
            self.oldest[:within].eq(Const(0, within)),
            self.oldest[within:].eq(oldest),
            ends.eq(finished.bit_select(oldest, 1) & ~late),
            skips.eq(ends & open_ & (epoch == oldest)),
        ]
        # Whether this context is free, and whether the next epoch is. When the rest of an epoch is skipped, all
        # others are free.
        crosses, free, next_free = (
            number[:within].all(),
            Signal(name="free"),
            Signal(name="next_free"),
        )
        gives = self.gives
        m.d.sync += [
            free.eq(Mux(gives, ~crosses | next_free, open_ | ~(active & here).any())),
            next_free.eq(~(active & here.rotate_left(1)).any()),
        ]
        m.d.comb += self.numbered.eq(Mux(gives, ~crosses | next_free, free))
        with m.If(Mux(gives, crosses, skips)):
            m.d.sync += here.eq(here.rotate_left(1))
        with m.If(gives):
            m.d.sync += number.eq(number + 1)
        with m.Elif(skips):
            m.d.sync += [number[:within].eq(0), epoch.eq(epoch + 1)]
        ended, moves = Signal(1 << EPOCH_BITS), ends & ~(open_ & (epoch == oldest))
        m.d.sync += moved.eq(moves)
        with m.If(moves):
            m.d.comb += ended.eq(1 << oldest)
            m.d.sync += oldest.eq(oldest + 1)
        m.d.sync += active.eq((active & ~ended) | Mux(self.gives_wide, here, 0))
        return m

    def _count(self, m: Module, active: Signal, gave: Signal, was_here: Signal) -> Signal:
        """Counts tuples in flight. Returns the epochs that have none, apart from contexts given meanwhile."""
        config, within = self.config, CONTEXT_BITS - EPOCH_BITS
        levels = Layouts(config).levels
        most = (config.streams * levels * (config.probe_fifo_depth + IN_FLIGHT)
                + config.output_fifo_depth + IN_FLIGHT + 2 * config.streams + 1)  # fmt: skip
        # `done` is counted two cycles later than `sent`, so that it comes after the last tuple that its probe sent;
        # this only keeps a context longer. A raw tuple is counted when it goes.
        sent, sent_context = Signal.like(self.sent), Signal.like(self.sent_context)
        m.d.sync += [sent.eq(self.sent), sent_context.eq(self.sent_context)]
        done, done_contexts = self.done, self.done_contexts
        for stage in range(3):
            later = Signal.like(done, name=f"done{stage}")
            later_contexts = Signal.like(done_contexts, name=f"done_contexts{stage}")
            m.d.sync += [later.eq(done), later_contexts.eq(done_contexts)]
            done, done_contexts = later, later_contexts
        finished = Signal(1 << EPOCH_BITS, name="finished")
        for number in range(1 << EPOCH_BITS):
            count = Signal(ceil_log2(most) + 2, name=f"in_flight_{number}")
            more = Mux(sent_context[within:] == number, sent, 0)
            begins = Signal(name=f"begins_{number}")  # the context given is of this epoch
            m.d.comb += begins.eq(gave & was_here[number])
            less = sum(
                done[i] & (done_contexts[i][within:] == number) for i in range(config.streams + 1)
            )
            # Two pipeline stages: a sum of so many terms is too long a path for one cycle.
            change, began = (
                Signal(signed(len(count)), name=f"change_{number}"),
                Signal(name=f"began_{number}"),
            )
            m.d.sync += [change.eq(more + Mux(begins, self.places, 0) - less), began.eq(begins)]
            m.d.sync += count.eq(count + change)
            m.d.sync += finished[number].eq(active[number] & (count == 0) & ~began & ~begins)
        return finished
