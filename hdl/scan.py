"""Scanner: compares a probe with the window tuples that it may join, and finds the pairs worth executing."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, fifo, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.arbiter import lowest
from seustream.hdl.buffer import StreamBuffer
from seustream.hdl.config import MAX_ATTRIBUTES, DeviceConfig
from seustream.hdl.control_words import TERMS
from seustream.hdl.factors import BUFFER_BITS, FACTOR, FactorArray, kept_at, put_layout
from seustream.hdl.layouts import TAG_BITS, Layouts
from seustream.hdl.loader import staged_layout
from seustream.hdl.ports import IndexLookup, Meter
from seustream.hdl.walk import ChainWalker

_ROWS_WAITING = 16
_ROWS_IN_FLIGHT = 12


def pair_layout(config: DeviceConfig) -> data.StructLayout:
    """Layout of an item for the execution unit: a pair of a probe (`some`), the `end` of the probe, or a pair
    followed by the end. `held` has the outcome of every factor; without lanes, the window tuple's attributes
    take its place."""
    layouts = Layouts(config)
    return data.StructLayout(
        {
            "some": 1,
            "end": 1,
            "slot": layouts.slot_bits,
            "held": config.factors if config.lanes else 0,
            "attributes": data.ArrayLayout(
                config.attribute_width, 0 if config.lanes else MAX_ATTRIBUTES
            ),
        }
    )


class Scanner(wiring.Component):
    """Reads the window row by row, `lanes` tuples per cycle, through the factor array. For an indexed probe it
    reads only the row of each candidate instead (`ChainWalker`). Scan and walk both go from the newest tuple to
    the oldest, so that a probe left during one can be resumed by the other. Only tuples in the view of the
    probe's context count. Rows with a pair of interest wait in a small FIFO, which pairs leave one by one.

    latency     11 cycles from a row's address to its first pair
    throughput  `lanes` pairs per cycle while none is of interest, or a candidate per cycle;
                1 pair of interest per cycle

    staged       in: stream of probes (`staged_layout`)
    begin        out: pulse: the staged probe is taken, and work on it begins
    may_begin    in: a probe may be taken in the next cycle
    resume       in: the staged probe was begun before
    resume_slot  in: slot at which to resume it, valid with `resume`
    factors      in: the area's factors (`FACTOR`), held while probes are here
    last_turn    in: last turn of a row, held as `factors`. A row has as many turns as there are factors for the same
                 comparator; the plan of a probe says which turns it needs
    put          in: a comparison for a probe that is staged later (`put_layout`, with a bit `valid`)
    tag          out: route tag of a probe
    worth        in: which of its pairs are of interest (`Layouts.worth`), a cycle later
    wait         in: no row can be read in the next cycle
    row          out, to the window buffer: number of a row
    tuples       in: attributes of the tuples of that row, 3 cycles later
    lookups      out, per index (`IndexLookup`)
    pairs        out: stream of pairs of interest, with the end of each probe (`pair_layout`)
    ended        out: pulse: the last row of a probe is read
    tally        out: number of pairs compared for it, valid with `ended`
    freed        out: pulse: the comparisons of the oldest probe are no longer needed
    meter        out (`Meter`): blocked while it has a row, but the window or the execution unit stalls it
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = layouts = Layouts(config)
        self.banks = max(1, config.lanes)
        self.bank_bits = self.banks.bit_length() - 1
        self.row_bits = layouts.slot_bits - self.bank_bits
        slot = layouts.slot_bits
        super().__init__(
            {
                "staged": In(stream.Signature(staged_layout(config))),
                "begin": Out(1),
                "may_begin": In(1),
                "resume": In(1),
                "resume_slot": In(slot),
                "factors": In(data.ArrayLayout(FACTOR, config.factors)),
                "last_turn": In(range(config.turns)),
                "put": In(put_layout(config)),
                "tag": Out(TAG_BITS),
                "worth": In(layouts.worth),
                "wait": In(1),
                "row": Out(self.row_bits),
                "tuples": In(data.ArrayLayout(layouts.attributes, self.banks)),
                "lookups": Out(IndexLookup(config)).array(config.indexes),
                "pairs": Out(stream.Signature(pair_layout(config))),
                "tally": Out(layouts.pointer_bits),
                "ended": Out(1),
                "freed": Out(1),
                "meter": Out(Meter()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        issue = data.StructLayout(
            {
                "mask": self.banks,
                "row": self.row_bits,
                "last": 1,
                "buffer": BUFFER_BITS,  # where the probe's comparisons are kept
                "turn": range(self.config.turns),  # the turn of its row
                "whole": 1,  # it is the last turn of its row
            }
        )
        self._issued = Signal(issue)
        self._valid = Signal()
        self._may_issue = Signal()
        m.submodules.walker = walker = ChainWalker(self.config)
        wiring.connect(m, wiring.flipped(self.staged), walker.staged)
        for lookup, its in zip(self.lookups, walker.lookups, strict=True):
            wiring.connect(m, its, wiring.flipped(lookup))
        m.d.comb += [
            self.begin.eq(walker.begin),
            walker.may_begin.eq(self.may_begin),
            walker.resume.eq(self.resume),
            walker.resume_slot.eq(self.resume_slot),
        ]
        # A scan continues after the walker has finished with its probe.
        scanning = self._rows(m, walker.items)
        m.d.comb += self.meter.working.eq((walker.working | scanning) & ~self.meter.blocked)
        self._compare(m, issue)
        return m

    # --- which rows ---------------------------------------------------------------

    def _rows(self, m: Module, items: stream.Interface) -> Signal:
        """Issues one row for a candidate; for a scan, all rows from the newest tuple wanted to the oldest.
        Returns a signal that is high while there are rows to issue."""
        bank_bits, pointer = self.bank_bits, self.layouts.pointer_bits
        item, have = Signal(items.payload.shape()), Signal()
        # Holds the next item, so that one scan follows another without a gap.
        m.submodules.after = after = StreamBuffer(items.payload.shape())
        item_after, have_after, moves = after.going.payload, after.going.valid, Signal()
        wiring.connect(m, items, after.coming)
        # The turn of this cycle, and whether it is the last of its row.
        turn, whole = Signal(range(self.config.turns)), Signal()
        m.d.comb += whole.eq(1)
        if self.config.lanes and self.config.turns > 1:
            m.submodules.turns = kept = memory.Memory(
                shape=self.layouts.turns, depth=1 << BUFFER_BITS, init=[]
            )
            write, read = kept.write_port(), kept.read_port(domain="comb")
            turns, probe = Signal(self.layouts.turns), self.staged.payload
            m.d.comb += [
                write.en.eq(self.staged.valid),  # no other has its buffer
                write.addr.eq(probe.buffer),
                write.data.eq(probe.plan.turns),
                read.addr.eq(item_after.buffer),
                whole.eq((turn == turns.last) | ~item.some),
            ]
            with m.If(moves):
                m.d.sync += [turns.eq(read.data), turn.eq(read.data.first)]
            with m.Elif(self._valid):
                m.d.sync += turn.eq(Mux(whole, turns.first, turn + 1))

        # Steps count rows from that of the tail; one more bit, because the newest tuple may be in that row again.
        step = Signal(self.row_bits + 1)
        at_newest, at_oldest = Signal(), Signal()
        low, high = (Signal(max(1, bank_bits), name=n) for n in ("low", "high"))
        end, done = Signal(pointer), Signal()
        carry = (item_after.slot[:bank_bits] + item_after.tail[:bank_bits])[bank_bits]
        m.d.comb += [
            end.eq(item_after.slot + item_after.tail[:bank_bits]),
            moves.eq(~have | done),
            after.going.ready.eq(moves),
        ]
        with m.If(moves):
            m.d.sync += [
                item.eq(item_after),
                have.eq(have_after),
                step.eq(end[bank_bits:]),
                at_oldest.eq(~(item_after.slot[bank_bits:].any() | carry)),
                at_newest.eq(1),
                high.eq(end[:bank_bits]),
                low.eq(item_after.tail[:bank_bits]),
            ]
        with m.Elif(self._valid & whole):
            m.d.sync += [step.eq(step - 1), at_oldest.eq(step == 1), at_newest.eq(0)]
        rows = Cat(
            (~at_oldest | (b >= low)) & (~at_newest | (b <= high)) for b in range(self.banks)
        )
        one = (1 << item.slot[:bank_bits])[: self.banks]
        m.d.comb += [
            self._valid.eq(have & self._may_issue),
            self._issued.buffer.eq(item.buffer),
            self._issued.turn.eq(turn),
            self._issued.whole.eq(whole),
            self._issued.row.eq(
                Mux(item.scan, item.tail[bank_bits:] + step, item.slot[bank_bits:])
            ),
            self._issued.mask.eq(Mux(item.scan, rows, Mux(item.some, one, 0))),
            self._issued.last.eq(item.last & (~item.scan | at_oldest)),
            done.eq(self._valid & whole & (~item.scan | at_oldest)),
            self.ended.eq(done & item.last),
            self.tally.eq(item.tally),
            self.meter.blocked.eq(have & ~self._may_issue),
        ]
        return have

    # --- which pairs --------------------------------------------------------------

    def _compare(self, m: Module, issue: data.StructLayout) -> None:
        config, banks = self.config, self.banks
        lanes = config.lanes
        probe = self.staged.payload
        m.d.comb += self.row.eq(self._issued.row)

        # Pipeline stages: row, address, memory, tuples, pick, compare, decide; then which pairs are of
        # interest, and whether any is. Without lanes nothing is compared.
        depth = 6 if lanes else 3
        infos = [Signal(issue, name=f"info{i}", reset_less=True) for i in range(depth + 1)]
        valids = [Signal(name=f"valid{i}") for i in range(depth + 1)]
        m.d.comb += [infos[0].eq(self._issued), valids[0].eq(self._valid)]
        for i in range(depth):
            m.d.sync += infos[i + 1].eq(infos[i])
            m.d.sync += valids[i + 1].eq(valids[i])
        info, valid = infos[depth], valids[depth]

        found = Signal(
            data.StructLayout(
                {
                    "last": 1,
                    "row": self.row_bits,
                    "mask": banks,
                    "held": data.ArrayLayout(config.factors if lanes else 0, banks),
                    "attributes": data.ArrayLayout(0 if lanes else self.layouts.attributes.size, 1),
                }
            ),
            reset_less=True,
        )
        seen, pushed = (Signal.like(found, name=name) for name in ("seen", "pushed"))
        whole, push = [Signal(name=f"whole{stage}") for stage in range(2)], Signal()
        if lanes:
            m.submodules.array = array = FactorArray(config)
            self._comparisons(m, array, infos[2])
            # The route tag, kept from when the probe is staged, selects which of its pairs are of interest.
            m.submodules.tags = tags = memory.Memory(
                shape=TAG_BITS, depth=1 << BUFFER_BITS, init=[]
            )
            write, read = tags.write_port(), tags.read_port(domain="comb")
            worth = Signal(self.layouts.worth, reset_less=True)
            m.d.comb += [
                write.en.eq(self.staged.valid),  # no other has its buffer
                write.addr.eq(probe.buffer),
                write.data.eq(probe.reference.tag),
                read.addr.eq(infos[depth - 2].buffer),
            ]
            m.d.sync += [
                self.tag.eq(read.data),
                worth.eq(self.worth),
                self.freed.eq(valid & info.whole & info.last),
            ]
            m.d.comb += array.tuples.eq(self.tuples)
            self._gather(m, array, infos[depth - 1], valid, seen.held)
            mask = Cat(
                seen.mask[lane] & _of_interest(seen.held[lane], worth) for lane in range(lanes)
            )
        else:
            mask = seen.mask
            m.d.sync += seen.attributes[0].eq(self.tuples[0])
        m.d.sync += [
            seen.last.eq(info.last),
            seen.row.eq(info.row),
            seen.mask.eq(info.mask),
            found.eq(seen),
            found.mask.eq(mask),
            pushed.eq(found),
            Cat(whole).eq(Cat(valid & info.whole, whole[0])),
            push.eq(whole[1] & (found.last | found.mask.any())),
        ]

        rows = fifo.SyncFIFOBuffered(width=len(found.as_value()), depth=_ROWS_WAITING)
        m.submodules.rows = rows
        m.d.comb += [rows.w_data.eq(pushed), rows.w_en.eq(push)]
        m.d.sync += self._may_issue.eq((rows.level <= _ROWS_WAITING - _ROWS_IN_FLIGHT) & ~self.wait)

        # Two-entry buffer behind the FIFO: `r_en` comes from a register.
        row, row_after, coming = (
            Signal(found.shape(), name=n) for n in ("row", "row_after", "coming")
        )
        some, some_after, load = Signal(), Signal(), Signal()
        m.d.comb += [
            coming.eq(Mux(some_after, row_after, rows.r_data)),
            rows.r_en.eq(~some_after),
        ]
        with m.If(~some_after):
            m.d.sync += row_after.eq(rows.r_data)
        with m.If(load):
            m.d.sync += [some.eq(some_after | rows.r_rdy), some_after.eq(0), row.eq(coming)]
        with m.Elif(rows.r_rdy):
            m.d.sync += some_after.eq(1)

        # One pair per cycle, the newest first. The end of the probe comes with the last pair of the last row, or
        # alone if that row has none. The next pair, and whether it is the last of its row, are found a cycle ahead.
        left, one, only = Signal(banks + 1), Signal(banks + 1), Signal()
        waiting, rest = Signal(banks + 1), Signal(banks + 1)
        m.d.comb += [
            waiting.eq(Cat(reversed(coming.mask), ~coming.mask.any())),
            rest.eq(left & ~one),
            load.eq(~some | (only & self.pairs.ready)),
        ]
        with m.If(load):
            m.d.sync += [
                left.eq(waiting),
                one.eq(lowest(waiting)),
                only.eq(lowest(waiting) == waiting),
            ]
        with m.Elif(self.pairs.ready):
            m.d.sync += [left.eq(rest), one.eq(lowest(rest)), only.eq(lowest(rest) == rest)]
        pair = self.pairs.payload
        lane = Signal(range(max(2, banks)))
        for number in range(banks):
            with m.If(one[number]):
                m.d.comb += lane.eq(banks - 1 - number)
                if lanes:
                    m.d.comb += pair.held.eq(row.held[banks - 1 - number])
        if not lanes:
            m.d.comb += pair.attributes.eq(row.attributes[0])
        m.d.comb += [
            pair.some.eq(~one[banks]),
            pair.end.eq(only & row.last),
            pair.slot.eq(Cat(lane[: self.bank_bits], row.row)),
            self.pairs.valid.eq(some),
        ]

    def _comparisons(self, m: Module, array: FactorArray, info: data.View) -> None:
        """Gives each comparator its comparison for the tuples that are read in this cycle."""
        put, config = self.put, self.config
        last_turn = Signal.like(self.last_turn, name="last_turn_put")
        m.d.sync += last_turn.eq(self.last_turn)
        written = kept_at(config, put.turn, put.buffer, last_turn)
        wanted = kept_at(config, info.turn, info.buffer, last_turn)
        for number, comparison in enumerate(array.comparisons):
            m.submodules[f"comparisons{number}"] = kept = memory.Memory(
                shape=comparison.shape(), depth=1 << len(wanted), init=[]
            )
            write, read = kept.write_port(), kept.read_port(domain="comb")
            now = Signal(comparison.shape(), name=f"comparison_{number}", reset_less=True)
            m.d.sync += now.eq(read.data)
            m.d.comb += [
                write.addr.eq(written),
                write.data.eq(put.comparison),
                write.en.eq(put.valid & (put.comparator == number)),
                read.addr.eq(wanted),
                comparison.eq(now),
            ]

    def _gather(
        self, m: Module, array: FactorArray, info: data.View, valid: Signal, held: data.View
    ) -> None:
        """Collects, per lane, the outcomes of all factors; they are complete after the last turn of a row, and each
        stays until its turn in the next row. `info` belongs to the turn whose outcomes come in the next cycle."""
        now = Signal(self.config.factors, reset_less=True)  # factors whose turn it is
        m.d.sync += now.eq(Cat(info.turn == factor.turn for factor in self.factors))
        for lane in range(self.config.lanes):
            outcomes = array.held[lane]
            for number, factor in enumerate(self.factors):
                outcome = outcomes.bit_select(factor.comparator[: ceil_log2(len(outcomes))], 1)
                with m.If(now[number] & valid):
                    m.d.sync += held[lane][number].eq(outcome)


def _of_interest(held: Value, worth: data.View) -> Value:
    """Asserted if a pair in which these factors hold may join."""
    whole = Cat((~worth.terms[number] | held).all() for number in range(TERMS))
    return whole.any() & (worth.interest.always | (held & worth.interest.factors).any())
