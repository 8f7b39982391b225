"""Host port: messages of the host link to and from the streams of the processor."""

from __future__ import annotations

from amaranth.hdl import C, Cat, Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.boards.protocol import Opcode, Reply
from seustream.hdl.config import DeviceConfig
from seustream.hdl.control import COMMAND, RESPONSE
from seustream.hdl.layouts import Layouts

_CALM = 8
"""Cycles in which the processor must say that it is idle, one after the other."""


def bytes_of(bits: int) -> int:
    return -(-bits // 8)


class Deserializer(wiring.Component):
    """Bytes to messages: an opcode, then as many bytes as its payload takes.

    latency     1 cycle from a message's last byte
    throughput  a byte a cycle

    bytes       the stream
    opcode, payload, valid, ready   the message, its payload from the highest bit down
    clear       drop what there is
    """

    def __init__(self, lengths: dict[int, int]) -> None:
        self.lengths = {int(opcode): length for opcode, length in lengths.items()}
        self.most = max(lengths.values())
        super().__init__(
            {
                "bytes": In(stream.Signature(8)),
                "opcode": Out(3),
                "payload": Out(8 * self.most),
                "valid": Out(1),
                "ready": In(1),
                "clear": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        left = Signal(range(self.most + 1))
        inside = Signal()
        m.d.comb += self.bytes.ready.eq(~self.valid)
        byte = self.bytes.payload
        with m.If(self.valid & self.ready):
            m.d.sync += self.valid.eq(0)
        with m.If(self.bytes.valid & self.bytes.ready):
            with m.If(inside):
                m.d.sync += [
                    self.payload.eq(Cat(self.payload[8:], byte)),
                    left.eq(left - 1),
                ]
                with m.If(left == 1):
                    m.d.sync += [self.valid.eq(1), inside.eq(0)]
            with m.Else():
                m.d.sync += self.opcode.eq(byte)
                with m.Switch(byte):
                    for opcode, length in self.lengths.items():
                        with m.Case(opcode):
                            m.d.sync += [left.eq(length), inside.eq(1)]
        with m.If(self.clear):
            m.d.sync += [self.valid.eq(0), inside.eq(0)]
        return m

    def field(self, opcode: int, width: int) -> Value:
        """The payload of a message with this opcode."""
        return self.payload[8 * (self.most - self.lengths[opcode]) :][:width]


class Serializer(wiring.Component):
    """Messages to bytes. The shifted word is wide, so only registers control it.

    latency     1 cycle to the opcode
    throughput  a byte in 2 cycles

    opcode, payload, valid, ready   a message
    bytes       the stream
    clear       drop what there is
    """

    def __init__(self, lengths: dict[int, int]) -> None:
        self.lengths = {int(opcode): length for opcode, length in lengths.items()}
        self.most = max(lengths.values())
        super().__init__(
            {
                "opcode": In(3),
                "payload": In(8 * self.most),
                "valid": In(1),
                "ready": Out(1, init=1),
                "bytes": Out(stream.Signature(8)),
                "clear": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        shifted = Signal(8 * (1 + self.most))
        left = Signal(range(self.most + 2))  # bytes, the one at hand included
        shift = Signal()
        m.d.comb += self.bytes.payload.eq(shifted[:8])
        m.d.sync += shift.eq(self.bytes.valid & self.bytes.ready)
        with m.If(self.bytes.ready):
            m.d.sync += self.bytes.valid.eq(0)
        with m.If(shift):
            m.d.sync += [
                shifted.eq(shifted >> 8),
                left.eq(left - 1),
                self.bytes.valid.eq(left != 1),
                self.ready.eq(left == 1),
            ]
        with m.If(self.valid & self.ready):
            m.d.sync += [
                shifted.eq(Cat(self.opcode, C(0, 5), self.payload)),
                self.bytes.valid.eq(1),
                self.ready.eq(0),
            ]
            with m.Switch(self.opcode):
                for opcode, length in self.lengths.items():
                    with m.Case(opcode):
                        m.d.sync += left.eq(1 + length)
        with m.If(self.clear):
            m.d.sync += [self.bytes.valid.eq(0), shift.eq(0), self.ready.eq(1)]
        return m


class HostPort(wiring.Component):
    """Deserializer -> commands, raw tuples, marks; responses, results, hand-overs, marks ->
    serializer. A command waits for the answer to the one before; a mark for all results of the
    raw tuples before it.

    `clear` is an end to whatever a host left behind: what comes from it is dropped, and so is
    what the processor still gives, until it is empty. A command or a raw tuple that waits is taken
    back, which the processor's doors allow.

    latency     that of serializer and deserializer, and a cycle on the way out
    throughput  a byte a cycle in, and one in 2 cycles out

    from_host, to_host   messages
    commands ... idle    of the processor
    clear, cleared       drop what is under way; nothing is
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
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        sizes = {
            Opcode.COMMAND: COMMAND.size,
            Opcode.RAW: self.layouts.raw.size,
            Opcode.MARK: 8,
        }
        m.submodules.incoming = incoming = Deserializer(
            {opcode: bytes_of(size) for opcode, size in sizes.items()}
        )
        streams = {
            Reply.RESPONSE: self.responses,
            Reply.RESULT: self.results,
            Reply.HANDED_OVER: self.handed_over,
        }
        replies = {reply: len(Value.cast(port.payload)) for reply, port in streams.items()}
        m.submodules.outgoing = outgoing = Serializer(
            {reply: bytes_of(size) for reply, size in (*replies.items(), (Reply.MARK, 8))}
        )
        wiring.connect(m, wiring.flipped(self.from_host), incoming.bytes)
        wiring.connect(m, outgoing.bytes, wiring.flipped(self.to_host))
        m.d.comb += [incoming.clear.eq(self.clear), outgoing.clear.eq(self.clear)]

        calm = Signal(range(_CALM + 1))  # cycles without anything in flight
        chosen = Signal(max(Reply) + 1)  # what goes out next, a bit each
        busy = ~outgoing.ready | chosen.any()
        with m.If(~self.idle | (self.raw.valid & ~self.clear) | busy):
            m.d.sync += calm.eq(0)
        with m.Elif(calm != _CALM):
            m.d.sync += calm.eq(calm + 1)
        quiet = Signal()
        m.d.comb += quiet.eq(calm == _CALM)

        # In: the message itself is what is offered.
        asked = Signal()  # a command is not answered yet
        mark = Signal(8)
        marked = Signal()
        m.d.comb += [
            self.commands.payload.eq(incoming.field(Opcode.COMMAND, COMMAND.size)),
            self.raw.payload.eq(incoming.field(Opcode.RAW, self.layouts.raw.size)),
        ]
        with m.If(incoming.valid):
            with m.Switch(incoming.opcode):
                with m.Case(Opcode.COMMAND):
                    m.d.comb += [
                        self.commands.valid.eq(~asked),
                        incoming.ready.eq(~asked & self.commands.ready),
                    ]
                with m.Case(Opcode.RAW):
                    m.d.comb += [
                        self.raw.valid.eq(1),
                        incoming.ready.eq(self.raw.ready),
                    ]
                with m.Case(Opcode.MARK):
                    m.d.comb += incoming.ready.eq(quiet & ~marked)
                    with m.If(incoming.ready):
                        m.d.sync += [mark.eq(incoming.field(Opcode.MARK, 8)), marked.eq(1)]
        with m.If(self.commands.valid & self.commands.ready):
            m.d.sync += asked.eq(1)

        # Out: one of them at a time, answers first, a mark when there is nothing else. Which it is to
        # be is known a cycle before it is taken.
        earlier: Value = self.clear | ~outgoing.ready | chosen.any()
        for reply, port in streams.items():
            m.d.sync += chosen[reply].eq(port.valid & ~earlier)
            m.d.comb += port.ready.eq(self.clear | chosen[reply])
            with m.If(chosen[reply]):
                m.d.comb += [
                    outgoing.opcode.eq(reply),
                    outgoing.payload.eq(Value.cast(port.payload)),
                ]
            earlier = earlier | port.valid
        m.d.sync += chosen[Reply.MARK].eq(marked & ~earlier)
        with m.If(chosen[Reply.MARK]):
            m.d.comb += [outgoing.opcode.eq(Reply.MARK), outgoing.payload.eq(mark)]
            m.d.sync += marked.eq(0)
        m.d.comb += outgoing.valid.eq(chosen.any())
        with m.If(self.responses.valid & self.responses.ready):
            m.d.sync += asked.eq(0)
        with m.If(self.clear):
            m.d.sync += marked.eq(0)
        m.d.comb += self.cleared.eq(quiet & ~asked & ~self.commands.valid)
        return m
