"""Host port: converts between messages of the host link and the streams of the processor."""

from __future__ import annotations

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.boards.counts import BITS
from seustream.hdl.boards.protocol import COUNTERS, LinkCounter, Opcode, Reply
from seustream.hdl.boards.records import Deserializer, Serializer
from seustream.hdl.config import DeviceConfig
from seustream.hdl.control import COMMAND, RESPONSE
from seustream.hdl.control_words import ControlOperation, Verdict
from seustream.hdl.layouts import Layouts

_CALM = 8
"""Consecutive cycles for which the processor must be idle."""


class HostPort(wiring.Component):
    """Deserializer -> commands, raw tuples, marks; responses, results, hand-overs, marks ->
    serializer. A command waits for the answer to the one before; a mark waits for all results of the
    raw tuples before it. A READ of the link's own counters is answered here.

    `clear` ends whatever a host left behind: everything that comes from it is dropped, and so is the output of
    the processor, until the processor is empty. A command or a raw tuple on offer is withdrawn, which the
    processor's inputs allow.

    latency     that of serializer and deserializer, plus a cycle on the output side
    throughput  that of serializer and deserializer

    from_host, to_host   in, out: streams of the bytes of messages
    commands, raw        out: streams to the processor
    responses, results, handed_over   in: streams from it
    idle                 in: nothing is in flight in it
    clear, cleared       in: drop everything in flight; out: nothing is in flight
    counter, count       out, in: number of a counter of the link; its value, a cycle later
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = layouts = Layouts(config)
        super().__init__(
            {
                "from_host": In(stream.Signature(8)),
                "to_host": Out(stream.Signature(8)),
                "commands": Out(stream.Signature(COMMAND)),
                "responses": In(stream.Signature(RESPONSE)),
                "raw": Out(stream.Signature(layouts.raw)),
                "results": In(stream.Signature(layouts.result)),
                "handed_over": In(stream.Signature(layouts.handed_over)),
                "idle": In(1),
                "clear": In(1),
                "cleared": Out(1),
                "counter": Out(range(len(LinkCounter))),
                "count": In(BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.incoming = incoming = Deserializer(self.config)
        m.submodules.outgoing = outgoing = Serializer(self.config)
        answers = stream.Signature(RESPONSE).create()
        streams = {
            Reply.RESPONSE: (answers, outgoing.response),
            Reply.RESULT: (self.results, outgoing.result),
            Reply.HANDED_OVER: (self.handed_over, outgoing.handed_over),
        }
        wiring.connect(m, wiring.flipped(self.from_host), incoming.bytes)
        wiring.connect(m, outgoing.bytes, wiring.flipped(self.to_host))
        m.d.comb += [incoming.clear.eq(self.clear), outgoing.clear.eq(self.clear)]

        calm = Signal(range(_CALM + 1))  # cycles without anything in flight
        chosen = Signal(max(Reply) + 1)  # the message to send next, one-hot
        busy = ~outgoing.ready | chosen.any()
        with m.If(~self.idle | (self.raw.valid & ~self.clear) | busy):
            m.d.sync += calm.eq(0)
        with m.Elif(calm != _CALM):
            m.d.sync += calm.eq(calm + 1)
        quiet = Signal()
        m.d.comb += quiet.eq(calm == _CALM)

        # In: the registers of the message drive the payloads on offer.
        asked = Signal()  # a command is not answered yet
        counts = Signal()  # and its answer is a counter of the link
        of_link, taken = Signal(), Signal()
        mark = Signal(8)
        marked = Signal()
        m.d.comb += [
            self.commands.payload.eq(incoming.command),
            self.raw.payload.eq(incoming.raw),
            of_link.eq(
                (incoming.command.operation == ControlOperation.READ)
                & (incoming.command.address >= COUNTERS)
            ),
        ]
        with m.If(incoming.valid):
            with m.Switch(incoming.opcode):
                with m.Case(Opcode.COMMAND):
                    m.d.comb += [
                        self.commands.valid.eq(~asked & ~of_link),
                        incoming.ready.eq(~asked & (of_link | self.commands.ready)),
                    ]
                    m.d.comb += taken.eq(of_link & incoming.ready)
                with m.Case(Opcode.RAW):
                    m.d.comb += [
                        self.raw.valid.eq(1),
                        incoming.ready.eq(self.raw.ready),
                    ]
                with m.Case(Opcode.MARK):
                    m.d.comb += incoming.ready.eq(quiet & ~marked)
                    with m.If(incoming.ready):
                        m.d.sync += [mark.eq(incoming.mark), marked.eq(1)]
        with m.If(self.commands.valid & self.commands.ready):
            m.d.sync += asked.eq(1)
        with m.If(taken):
            m.d.sync += [asked.eq(1), counts.eq(1)]
            m.d.sync += self.counter.eq(incoming.command.address - COUNTERS)

        # Out: one message at a time, answers first, a mark when there is nothing else. The choice is made a cycle
        # before the message is taken.
        m.d.comb += [
            answers.valid.eq(self.responses.valid | counts),
            answers.payload.eq(self.responses.payload),
            self.responses.ready.eq(answers.ready),
        ]
        with m.If(counts):
            m.d.comb += [
                answers.payload.verdict.eq(Verdict.OK),
                answers.payload.data.eq(self.count),
            ]
        earlier: Value = self.clear | ~outgoing.ready | chosen.any()
        for reply, (port, message) in streams.items():
            m.d.sync += chosen[reply].eq(port.valid & ~earlier)
            m.d.comb += [message.eq(port.payload), port.ready.eq(self.clear | chosen[reply])]
            with m.If(chosen[reply]):
                m.d.comb += outgoing.opcode.eq(reply)
            earlier = earlier | port.valid
        m.d.sync += chosen[Reply.MARK].eq(marked & ~earlier)
        with m.If(chosen[Reply.MARK]):
            m.d.comb += outgoing.opcode.eq(Reply.MARK)
            m.d.sync += marked.eq(0)
        m.d.comb += [outgoing.mark.eq(mark), outgoing.valid.eq(chosen.any())]
        with m.If(answers.valid & answers.ready):
            m.d.sync += [asked.eq(0), counts.eq(0)]
        with m.If(self.clear):
            m.d.sync += marked.eq(0)
        # Registered, because a whole message must be decoded to know where it goes; after the first cycle of
        # `clear` none comes.
        nothing = quiet & ~asked & ~taken & ~self.commands.valid
        m.d.sync += self.cleared.eq(self.clear & nothing)
        return m
