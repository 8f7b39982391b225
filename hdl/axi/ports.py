"""Data ports: convert AXI4-Stream records to and from the streams of the processor."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.axi.records import BEAT, RecordKind, input_record, output_record
from seustream.hdl.config import MAX_ATTRIBUTES, DeviceConfig
from seustream.hdl.layouts import Layouts

_CALM = 8
"""Consecutive cycles for which the processor must be idle."""
_KEPT = (1 << BEAT) - 1


class RecordPorts(wiring.Component):
    """s_axis beats -> tuples and marks;  results, tuples handed over and marks -> m_axis beats

    A malformed record (`tlast` before its last beat, a byte that is not kept, an unknown kind) is
    dropped; the next one begins after it. A mark goes out when the processor has been idle for a
    while and nothing waits before it.

    latency     1 cycle from a record's last beat, 1 to an output record's first
    throughput  a beat per cycle, and a cycle between two records

    s_axis   data, keep, last, valid: in, ready: out; as in AXI4-Stream
    m_axis   the same in the other direction
    raw, results, handed_over, idle   out, in, in, in: of the processor
    malformed   out: pulse: a record was dropped
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = layouts = Layouts(config)
        axis = {"data": 8 * BEAT, "keep": BEAT, "last": 1, "valid": 1}
        super().__init__(
            {
                **{f"s_axis_t{name}": In(width) for name, width in axis.items()},
                "s_axis_tready": Out(1),
                **{f"m_axis_t{name}": Out(width) for name, width in axis.items()},
                "m_axis_tready": In(1),
                "raw": Out(stream.Signature(layouts.raw)),
                "results": In(stream.Signature(layouts.result)),
                "handed_over": In(stream.Signature(layouts.handed_over)),
                "idle": In(1),
                "malformed": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        mark, marked, quiet = Signal(8), Signal(), Signal()
        self._take(m, mark, marked, quiet)
        self._give(m, mark, marked, quiet)
        return m

    def _take(self, m: Module, mark: Signal, marked: Signal, quiet: Signal) -> None:
        """Collects beats until a record is complete; its register drives the payload of `raw`."""
        record = input_record(self.config)
        word, whole = Signal(8 * record.bytes), Signal()
        left = Signal(range(record.beats), init=record.beats - 1)
        broken = Signal()  # the current record is to be dropped
        kind = word[record["kind"].bit :][:8]
        is_tuple, is_mark = Signal(), Signal()
        m.d.comb += [
            self.s_axis_tready.eq(~whole),
            is_tuple.eq(whole & ~broken & (kind == RecordKind.TUPLE)),
            is_mark.eq(whole & ~broken & (kind == RecordKind.MARK)),
            self.raw.valid.eq(is_tuple),
            self.malformed.eq(whole & ~is_tuple & ~is_mark),
        ]
        with m.If(self.s_axis_tvalid & self.s_axis_tready):
            early = self.s_axis_tlast & (left != 0)
            m.d.sync += [
                word.eq(Cat(word[8 * BEAT :], self.s_axis_tdata)),
                broken.eq(broken | (self.s_axis_tkeep != _KEPT) | early),
                left.eq(left - 1),
            ]
            with m.If(self.s_axis_tlast | (left == 0)):
                m.d.sync += [whole.eq(1), left.eq(record.beats - 1)]
        done = (is_tuple & self.raw.ready) | (is_mark & quiet & ~marked) | self.malformed
        with m.If(done):
            m.d.sync += [whole.eq(0), broken.eq(0)]
        with m.If(is_mark & quiet & ~marked):
            m.d.sync += [marked.eq(1), mark.eq(word[record["mark"].bit :][:8])]

        def of(name: str, width: int, number: int = 0) -> Value:
            member = record[name]
            return word[member.bit + 8 * member.bytes * number :][:width]

        raw, flags = self.raw.payload, of("flags", 2)
        m.d.comb += [
            raw.stream.eq(of("stream", len(raw.stream))),
            raw.admit.eq(flags[0]),
            raw.filler.eq(flags[1]),
            raw.timestamp.eq(of("timestamp", self.layouts.timestamp)),
            raw.sequence.eq(of("sequence", self.layouts.sequence)),
        ]
        for number in range(MAX_ATTRIBUTES):
            width = self.config.attribute_width
            m.d.comb += raw.attributes[number].eq(of("attributes", width, number))

    def _give(self, m: Module, mark: Signal, marked: Signal, quiet: Signal) -> None:
        """Sends one record at a time from a register: results first, a mark when there is nothing else."""
        record = output_record(self.config)
        word, last = Signal(8 * record.bytes), Signal()
        left = Signal(range(record.beats + 1))
        free = Signal()
        m.d.comb += [
            free.eq(left == 0),
            self.m_axis_tvalid.eq(~free),
            self.m_axis_tdata.eq(word[: 8 * BEAT]),
            self.m_axis_tkeep.eq(_KEPT),
            self.m_axis_tlast.eq(last & (left == 1)),
            self.results.ready.eq(free),
            self.handed_over.ready.eq(free & ~self.results.valid),
        ]
        with m.If(self.m_axis_tvalid & self.m_axis_tready):
            m.d.sync += [word.eq(word >> 8 * BEAT), left.eq(left - 1)]

        def load(**values: Value | int) -> list[object]:
            """Starts a record; members not given are 0."""
            parts, at = [], 0
            for member in record.members:
                given = values.get(member.name, 0)
                fields = given if isinstance(given, list) else [given]
                for number, value in enumerate(fields):
                    bit = member.bit + 8 * member.bytes * number
                    sized = Signal(8 * member.bytes, name=f"{member.name}_{number}")
                    m.d.comb += sized.eq(value)
                    parts += [Signal(bit - at, name="gap"), sized]
                    at = bit + 8 * member.bytes
            return [word.eq(Cat(parts)), left.eq(record.beats)]

        result, handed = self.results.payload, self.handed_over.payload
        loads = {
            RecordKind.RESULT: load(
                kind=RecordKind.RESULT,
                carries=result.carries,
                queries=result.queries,
                newest=result.newest,
                oldest=result.oldest,
                sequences=[result.sequences[stream] for stream in range(self.config.streams)],
            ),
            RecordKind.HANDED_OVER: load(
                kind=RecordKind.HANDED_OVER,
                stream=handed.stream,
                taker=handed.taker,
                sequences=[handed.sequence, handed.taken_by],
            ),
            RecordKind.MARK: load(kind=RecordKind.MARK, mark=mark),
        }
        with m.If(free):
            m.d.sync += last.eq(0)
            with m.If(self.results.valid):
                m.d.sync += loads[RecordKind.RESULT]
            with m.Elif(self.handed_over.valid):
                m.d.sync += loads[RecordKind.HANDED_OVER]
            with m.Elif(marked):
                m.d.sync += [*loads[RecordKind.MARK], last.eq(1), marked.eq(0)]

        calm = Signal(range(_CALM + 1))  # cycles without anything in flight
        waiting = self.results.valid | self.handed_over.valid | self.raw.valid
        with m.If(~self.idle | waiting | ~free):
            m.d.sync += calm.eq(0)
        with m.Elif(calm != _CALM):
            m.d.sync += calm.eq(calm + 1)
        m.d.comb += quiet.eq(calm == _CALM)
