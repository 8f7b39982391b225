"""Records: converts messages of the host link to and from a stream of bytes, a byte per cycle."""

from __future__ import annotations

from amaranth.hdl import C, Cat, Elaboratable, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.arbiter import lowest
from seustream.hdl.boards.messages import (
    ATTRIBUTES,
    HEAD_BITS,
    INCOMING,
    MESSAGES,
    OPCODE_BITS,
    OUTGOING,
    QUERY_BITS,
    REPLIES,
    SEQUENCES,
    Message,
    bytes_of,
    widths,
)
from seustream.hdl.boards.protocol import Opcode, Reply
from seustream.hdl.config import MAX_STREAMS, DeviceConfig
from seustream.hdl.control import COMMAND, RESPONSE
from seustream.hdl.layouts import Layouts


def _member(message: Message, name: str, head: Value) -> Value:
    return head[message.at(name) :][: message.head.get(name, 1)]


class Deserializer(wiring.Component):
    """Converts bytes to messages. Missing fields are filled in: times and sequence numbers continue from
    the last ones, which start at 0 after a clear.

    latency     2 cycles from a message's last byte
    throughput  a byte per cycle, plus 2 cycles per message

    bytes       in: the stream
    opcode, valid, ready   out, out, in: handshake of a message
    raw, command, mark     out: its content, depending on the opcode; valid with `valid`
    clear       in: drop everything
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = Layouts(config)
        super().__init__(
            {
                "bytes": In(stream.Signature(8)),
                "opcode": Out(OPCODE_BITS),
                "raw": Out(self.layouts.raw),
                "command": Out(COMMAND),
                "mark": Out(8),
                "valid": Out(1),
                "ready": In(1),
                "clear": In(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        bits = widths(self.config)
        fields = {name: Signal(8 * bytes_of(bits[name]), name=name) for name in INCOMING}
        head = Signal(HEAD_BITS)
        left = Signal(len(INCOMING))  # fields to come, including the current one
        place = Signal(range(max(map(len, fields.values())) // 8))  # byte in the current field
        numbers = data.ArrayLayout(self.config.sequence_width, MAX_STREAMS)
        last = Signal(numbers)
        raw = MESSAGES[Opcode.RAW]
        stream_number = _member(raw, "stream", head)
        sequence = fields["sequence"][: self.config.sequence_width]
        timestamp = fields["timestamp"][: self.config.timestamp_width]

        byte, come = self.bytes.payload, self.bytes.valid & self.bytes.ready
        taken = Signal(HEAD_BITS)  # the whole head, when its second byte comes
        m.d.comb += taken.eq(Cat(head[8:], byte))
        # The current field is the lowest one in `left`; it has a register of its own.
        at_hand, ends, later = Signal(len(INCOMING)), Signal(), Signal(len(INCOMING))
        m.d.comb += later.eq(left & ~at_hand)
        m.d.comb += ends.eq(
            Cat(
                at_hand[i] & (place == len(field) // 8 - 1)
                for i, field in enumerate(fields.values())
            ).any()
        )
        with m.If(self.valid & self.ready):
            m.d.sync += self.valid.eq(0)
        with m.FSM():
            with m.State("HEAD"):
                m.d.comb += self.bytes.ready.eq(~self.valid)
                with m.If(come & (byte[:OPCODE_BITS] != 0)):
                    m.d.sync += [head[8:].eq(byte), place.eq(0)]
                    m.d.sync += [fields[name].eq(0) for name in ATTRIBUTES]
                    m.next = "MEMBERS"
            with m.State("MEMBERS"):
                m.d.comb += self.bytes.ready.eq(1)
                with m.If(come):
                    m.d.sync += head.eq(taken)
                    m.next = "HEAD"  # after an unknown opcode
                    with m.Switch(taken[:OPCODE_BITS]):
                        for opcode, message in MESSAGES.items():
                            with m.Case(opcode):
                                present = _present(message, INCOMING, taken)
                                m.d.sync += [left.eq(present), at_hand.eq(lowest(present))]
                                m.next = "FIELDS"
            with m.State("FIELDS"):
                m.d.comb += self.bytes.ready.eq(1)
                with m.If(come):
                    m.d.sync += place.eq(place + 1)
                    for i, field in enumerate(fields.values()):
                        with m.If(at_hand[i]):
                            m.d.sync += field.eq(Cat(field[8:], byte))
                    with m.If(ends):
                        m.d.sync += [place.eq(0), left.eq(later), at_hand.eq(lowest(later))]
                        with m.If(~later.any()):
                            m.next = "FILL"
            with m.State("FILL"):
                m.d.sync += [self.valid.eq(1), self.opcode.eq(head[:OPCODE_BITS])]
                m.next = "HEAD"
                with m.If(head[:OPCODE_BITS] == Opcode.RAW):
                    number = Signal(numbers.elem_shape)
                    m.d.comb += number.eq(
                        Mux(_member(raw, "sequence", head), sequence, last[stream_number] + 1)
                    )
                    m.d.sync += [sequence.eq(number), last[stream_number].eq(number)]
                    with m.If(~_member(raw, "timestamp", head)):
                        m.d.sync += timestamp.eq(timestamp + fields["step"])
        m.d.comb += [
            self.mark.eq(fields["step"]),
            self.command.eq(Cat(fields["word"][: bits["word"]], fields["data"])),
            self.raw.timestamp.eq(timestamp),
            self.raw.sequence.eq(sequence),
            *(self.raw[name].eq(_member(raw, name, head)) for name in raw.head),
            *(
                part.eq(fields[name])
                for part, name in zip(self.raw.attributes, ATTRIBUTES, strict=True)
            ),
        ]
        return ResetInserter(self.clear)(m)


def _present(message: Message, order: tuple[str, ...], head: Value) -> Value:
    """A bit for each field, in order: whether the message has it."""
    return Cat(
        C(1)
        if name in message.always
        else _member(message, name, head)
        if name in message.optional
        else C(0)
        for name in order
    )


def _bytes(bits: int) -> int:
    """A mask with a bit for each byte of so many bits."""
    return (1 << bytes_of(bits)) - 1


def _several(bits: Value) -> Value:
    """Returns whether more than one bit is set. Built as a tree, because the borrow of `bits & (bits - 1)` ripples
    through all of them."""
    some, several = list(bits), [C(0)] * len(bits)
    while len(some) > 1:
        pairs = list(zip(some[::2], some[1::2], strict=False))
        both = list(zip(several[::2], several[1::2], strict=False))
        rest = slice(len(some) // 2 * 2, None)
        several = [a & b | c | d for (a, b), (c, d) in zip(pairs, both, strict=True)] + several[
            rest
        ]
        some = [a | b for a, b in pairs] + some[rest]
    return several[0]


class Serializer(wiring.Component):
    """Converts messages to bytes. A time travels as its distance from the last one if that is short, the
    queries of a result as the number of a single query or as a bit map of several.

    latency     4 cycles to the first byte
    throughput  a byte per cycle; the next message is prepared while the last field of one is sent

    opcode, valid, ready   in, in, out: handshake of a message
    result, handed_over, response, mark   in: its content, depending on the opcode; valid with `valid`
    bytes       out: the stream
    clear       in: drop everything
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = Layouts(config)
        super().__init__(
            {
                "opcode": In(OPCODE_BITS),
                "result": In(self.layouts.result),
                "handed_over": In(self.layouts.handed_over),
                "response": In(RESPONSE),
                "mark": In(8),
                "valid": In(1),
                "ready": Out(1, init=1),
                "bytes": Out(stream.Signature(8)),
                "clear": In(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        bits = widths(self.config)
        streams = self.config.streams
        names = [name for name in OUTGOING if name not in SEQUENCES[streams:]]
        fields = {name: Signal(bits[name], name=name) for name in names}
        opcode = Signal(OPCODE_BITS)
        head = Signal(HEAD_BITS)  # without the bits of the times, which are set later
        last = Signal(bits["newest"])  # `newest` of the last result
        step, age = Signal(bits["newest"]), Signal(bits["newest"])
        several, query = Signal(), Signal(QUERY_BITS)
        left = Signal(len(names))
        result, queries = REPLIES[Reply.RESULT], fields["queries"]

        def member(reply: Reply, name: str, value: Value) -> Value:
            return value << REPLIES[reply].at(name)

        with m.If(self.valid & self.ready):
            m.d.sync += [
                self.ready.eq(0),
                opcode.eq(self.opcode),
                head.eq(self.opcode),
                fields["step"].eq(self.mark),
                fields["queries"].eq(self.result.queries),
                fields["newest"].eq(self.result.newest),
                fields["oldest"].eq(self.result.oldest),
                fields["data"].eq(self.response.data),
                *(
                    fields[name].eq(number)
                    for name, number in zip(SEQUENCES[:streams], self.result.sequences, strict=True)
                ),
            ]
            with m.Switch(self.opcode):
                with m.Case(Reply.RESPONSE):
                    verdict = member(Reply.RESPONSE, "verdict", self.response.verdict)
                    m.d.sync += head.eq(self.opcode | verdict)
                with m.Case(Reply.RESULT):
                    carries = member(Reply.RESULT, SEQUENCES[0], self.result.carries)
                    m.d.sync += head.eq(self.opcode | carries)
                with m.Case(Reply.HANDED_OVER):
                    left_stream = member(Reply.HANDED_OVER, "stream", self.handed_over.stream)
                    taker = member(Reply.HANDED_OVER, "taker", self.handed_over.taker)
                    m.d.sync += [
                        head.eq(self.opcode | left_stream | taker),
                        fields[SEQUENCES[0]].eq(self.handed_over.sequence),
                        fields[SEQUENCES[1]].eq(self.handed_over.taken_by),
                    ]

        # The field being sent, or the rest of it.
        going = Signal(8 * max(bytes_of(max(bits[name] for name in names)), HEAD_BITS // 8))
        more = Signal(len(going) // 8)  # a bit per byte left: the last needs no comparison
        next_field, later = Signal(len(names)), Signal(len(names))  # the lowest of `left`; the rest
        wanted = Signal()
        m.d.comb += [
            self.bytes.valid.eq(more[0]),
            self.bytes.payload.eq(going[:8]),
            wanted.eq(~more[0] | (~more[1] & self.bytes.ready)),
            later.eq(left & ~next_field),
        ]
        with m.If(self.bytes.valid & self.bytes.ready):
            m.d.sync += [going.eq(going >> 8), more.eq(more >> 1)]
        with m.FSM():
            with m.State("EMPTY"):
                with m.If(self.valid & self.ready):
                    m.next = "TIMES"
            with m.State("TIMES"):
                m.d.sync += [
                    step.eq(fields["newest"] - last),
                    age.eq(fields["newest"] - fields["oldest"]),
                    # A result of no query is a part of a group; it needs a bit map, too.
                    several.eq(_several(queries) | (queries == 0)),
                    query.eq(
                        Cat(
                            Cat(b for number, b in enumerate(queries) if number >> bit & 1).any()
                            for bit in range(QUERY_BITS)
                        )
                    ),
                ]
                m.next = "FOUND"
            with m.State("FOUND"):
                with m.If(opcode == Reply.RESULT):
                    far, old, very_old = Signal(), Signal(), Signal()
                    m.d.comb += [
                        far.eq(step[bits["step"] :].any()),
                        very_old.eq(age[bits["age"] :].any()),
                        old.eq((age != 0) & ~very_old),
                    ]
                    m.d.sync += [
                        last.eq(fields["newest"]),
                        fields["step"].eq(step),
                        fields["age"].eq(age),
                        head[result.at("query") :][:QUERY_BITS].eq(query),
                        head[result.at("newest")].eq(far),
                        head[result.at("age")].eq(old),
                        head[result.at("oldest")].eq(very_old),
                    ]
                    with m.If(several):
                        m.d.sync += [
                            opcode.eq(Reply.RESULTS),
                            head[: result.at("newest")].eq(Reply.RESULTS),
                        ]
                m.next = "HEAD"
            with m.State("HEAD"):
                with m.If(wanted):
                    m.d.sync += [going.eq(head), more.eq(_bytes(HEAD_BITS))]
                    with m.Switch(opcode):
                        for reply, message in REPLIES.items():
                            with m.Case(reply):
                                present = _present(message, tuple(names), head)
                                m.d.sync += [left.eq(present), next_field.eq(lowest(present))]
                    m.next = "FIELDS"
            with m.State("FIELDS"):
                with m.If(wanted):
                    for i, name in enumerate(names):
                        with m.If(next_field[i]):
                            m.d.sync += [going.eq(fields[name]), more.eq(_bytes(bits[name]))]
                    m.d.sync += [left.eq(later), next_field.eq(lowest(later))]
                    with m.If(~later.any()):
                        m.d.sync += self.ready.eq(1)
                        m.next = "EMPTY"
        return ResetInserter(self.clear)(m)
