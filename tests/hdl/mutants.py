"""Breaks the processor on purpose, one line at a time, and sees that the judge notices.

    python -m tests.hdl.mutants [--only NAME ...] [--cases N] [--record]

Every fault is made in a copy of the sources, in which a small device is built and put before
`tests.hdl.judge`, or a component test. A fault that goes unnoticed survives, and that is a failure, unless
it says why it does no harm.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from seustream.hdl.boards.identity import processor_version
from tests import campaigns

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("seustream", "tests")


@dataclass(frozen=True, slots=True)
class Fault:
    """In `file`, `line` (as it stands in the source, once) becomes `instead`."""

    name: str
    file: str
    line: str
    instead: str
    by: str | None = None  # the component test that notices what no compiled program shows
    harmless: str | None = None  # why none can notice; such a fault is not tried, but with --only


_GROUPING, _GROUPS = "test_grouping_and_member.py", "../cosim/test_device_groups.py"
FAULTS = [
    Fault("tail not held for older contexts", "window.py",
          "kept_from.eq(Mux(busy[-1], oldest.data.tail, tail))", "kept_from.eq(tail)"),
    Fault("a full window overwrites", "window.py",
          "stored == self.config.capacity + more", "stored == self.config.capacity + more + 1"),
    Fault("one more displaced than is to be stored", "window.py",
          "& (leave == 0)", "& (leave != 3)"),
    Fault("age off by one", "window.py",
          "self.reading.component.timestamp + self.ticks + 1", "self.reading.component.timestamp + self.ticks"),
    Fault("rank off by one", "window.py",
          "self.reading.component.sequence + self.rows", "self.reading.component.sequence + self.rows + 1"),
    Fault("uncountable age stays", "window.py",
          "found_half[i].eq(age[-1] | rank[-1])", "found_half[i].eq(rank[-1])"),
    Fault("uncountable rank stays", "window.py",
          "found_half[i].eq(age[-1] | rank[-1])", "found_half[i].eq(age[-1])", "test_window.py"),
    Fault("view taken of all slots", "window.py",
          "noted.count.eq(Mux(more, ranks, self._stored_now))",
          "noted.count.eq(Mux(more, ranks, self._stored_now + 1))"),
    Fault("selection bits not rewritten", "window.py",
          "write.en.eq(self.arrivals.store | self.rewriting.rewrite)", "write.en.eq(self.arrivals.store)"),
    Fault("other banks in what is fetched", "window.py",
          "other.eq(fetching & (bank_of != bank))", "other.eq(fetching & (bank_of < bank))"),
    Fault("chains lose their older part", "index.py",
          "Mux(stays, before.slot, links.slot)", "links.slot"),
    Fault("a chain ends at the first slot of a lap", "index.py",
          "(before.slot < links.slot) ^ (before.lap != links.lap)", "before.slot < links.slot"),
    Fault("index walk stops early", "walk.py",
          "ends.eq(offset >= judge.before)", "ends.eq(offset + 1 >= judge.before)"),
    Fault("chooses before it knows what was taken back", "loader.py",
          "self.available.any() & ~self.flush", "self.available.any()", "test_loader.py"),
    Fault("last row left out", "walk.py",
          "self.resume_slot - staged.tail, staged.count - 1)",
          "self.resume_slot - staged.tail, staged.count - 2)"),
    Fault("rows before the tail", "scan.py", "(~at_oldest | (b >= low))", "(~at_oldest | (b >= 0))"),
    Fault("pair of interest dropped", "scan.py",
          "Cat(reversed(coming.mask), ~coming.mask.any())",
          "Cat(reversed(coming.mask & ~(coming.mask << 1)), ~coming.mask.any())"),
    Fault("an end before the last pair", "scan.py", "pair.end.eq(only & row.last)", "pair.end.eq(row.last)"),
    Fault("resumed from the newest again", "walk.py",
          "Mux(self.resume, self", "Mux(0, self"),
    Fault("a tuple between walk and scan left out", "walk.py",
          "probe.before, probe.final)", "probe.before - 1, probe.final)"),
    Fault("a tuple of the walk scanned again", "walk.py",
          "probe.before, probe.final)", "probe.before + 1, probe.final)"),
    Fault("the last candidate but one lost", "walk.py",
          "write.en.eq(probe.pending)", "write.en.eq(0)"),
    Fault("judged by the chain of another probe", "walk.py",
          "asker, judge = self._probes[2:4]",
          "asker, judge = self._probes[2], self._probes[2]"),
    Fault("a probe that enters takes the place of another", "walk.py",
          "have & numbered & (~self._probes[-1].asks | self._through)", "have & numbered"),
    Fault("more are walked than there are numbers", "walk.py",
          "have & numbered & (~self._probes[-1].asks", "have & (~self._probes[-1].asks",
          "test_scan_and_walk.py"),
    Fault("more wait to be walked than there is room for", "walk.py",
          "begun < BEGUN - 1, begun < BEGUN)", "begun < BEGUN, begun < 2 * BEGUN)",
          "test_scan_and_walk.py"),
    Fault("a row that needs too little", "decider.py",
          "holds.eq(~(row.needs & ~stages[-1].has).any())",
          "holds.eq(~(row.needs & ~stages[-1].has)[:16].any())"),
    Fault("a JOIN of several rows twice", "decider.py", "before = joined & ~starts", "before = 0"),
    Fault("a JOIN for the one before", "decider.py", "before = joined & ~starts", "before = joined"),
    Fault("a row repeated when resumed", "execution.py", "(step < probes.left_pc)", "(step < 0)"),
    Fault("a row lost when resumed", "execution.py",
          "(step < probes.left_pc)", "(step <= probes.left_pc)"),
    Fault("only the first row", "execution.py", "with m.If(after_it == probe.rows):", "with m.If(step == 0):"),
    Fault("what waits outlives the probe", "emitter.py",
          "Cat(here, have_following, have, came, stuck, end, first).eq(0)",
          "Cat(here, have_following, have, stuck, end, first).eq(0)"),
    Fault("the next probe too late", "probe_queue.py", "have.eq(have_after)", "have.eq(have_after & ~leaves)"),
    Fault("what follows goes where the former went", "emitter.py",
          "self.follows_to[0].eq(following.to)", "self.follows_to[0].eq(self.destination)"),
    Fault("the second that follows goes where the first goes", "emitter.py",
          "self.follows_to[1].eq(item.to)", "self.follows_to[1].eq(following.to)"),
    Fault("an end lost with what it goes with", "emitter.py",
          "following.join.end | with_it", "following.join.end"),
    Fault("a conjunction too many", "control_words.py",
          "sum(1 << factor for factor in term) for", "sum(1 << factor for factor in term) | 1 for"),
    Fault("one conjunction for all", "scan.py",
          "for number in range(TERMS)", "for number in range(1)"),
    Fault("probes hashed with another seed", "loader.py",
          "hashed(key, self.seed, layouts.bucket_bits)",
          "hashed(key, ~self.seed, layouts.bucket_bits)"),
    Fault("comparisons of the probe before", "scan.py",
          "info.turn, info.buffer, last_turn", "info.turn, (info.buffer - 1)[:BUFFER_BITS], last_turn"),
    Fault("comparisons of two probes in one place", "factors.py",
          "turn[bit], buffer[probes]", "turn[bit], buffer[0]", "test_scan_and_walk.py"),
    Fault("comparisons put where others are needed", "factors.py",
          "count[BUFFER_BITS - 1 - bit]", "count[BUFFER_BITS]", "test_loader.py"),
    Fault("outcomes of another turn", "scan.py",
          "with m.If(now[number] & valid):", "with m.If(valid):"),
    Fault("two factors of an attribute at once", "program_store.py",
          "turn.eq(stored.place >> among)", "turn.eq(0)"),
    Fault("route tag of the probe before", "scan.py",
          "read.addr.eq(infos[depth - 2].buffer)", "read.addr.eq((infos[depth - 2].buffer - 1)[:2])"),
    Fault("operand of two instructions ago not passed on", "execution.py",
          "just.writes & (just.r == choice.number)", "0", "test_execution_and_decider_and_emitter.py"),
    Fault("operand of an instruction that is not run", "execution.py",
          "ready & does.writes & (does.r == choice.number)",
          "does.writes & (does.r == choice.number)", "test_execution_and_decider_and_emitter.py"),
    Fault("equality compares the wrong way", "factors.py",
          "Condition.LE: below | equal", "Condition.LE: below"),
    Fault("stream not carried counts", "factors.py",
          "& (now.carried | always)", "& (1 | always)"),
    Fault("lowest level first", "loader.py",
          "for number in range(layouts.levels):", "for number in reversed(range(layouts.levels)):"),
    Fault("joined probes keep selection bits", "loader.py",
          "Mux(_joined(self.fetch.data.reference), 0, self.fetch.data.bits)", "self.fetch.data.bits"),
    Fault("a raw tuple taken again has no selection bits", "loader.py",
          "Mux(_joined(self.fetch.data.reference), 0, self.fetch.data.bits)", "0"),
    Fault("what a raw tuple brought is given again", "probe_fifo.py",
          "self.brings.eq(of_raw & is_fresh)", "self.brings.eq(of_raw)"),
    Fault("probe queue loses one on rewind", "probe_fifo.py",
          "[taken[level].eq(kept[level]) for level in range(levels)]",
          "[taken[level].eq(kept[level] + self.waiting[level]) for level in range(levels)]"),
    Fault("JMPCT takes any tag", "execution.py",
          "(view[isa.Jmpct].tag != probe.reference.tag)", "0"),
    Fault("OR for AND", "execution.py",
          'next_does.conjunction.eq(is_[isa.AndRegisters])', 'next_does.conjunction.eq(0)'),
    Fault("JOIN repeated when resumed", "execution.py", "(chosen.does.at < probes.left_pc)", "(chosen.does.at < 0)"),
    Fault("JOIN lost when resumed", "execution.py",
          "(chosen.does.at < probes.left_pc)", "(chosen.does.at <= probes.left_pc)"),
    Fault("scratch left from the pair before", "execution.py",
          "window_bits.eq(self.hit_bits),", "window_bits.eq(self._window_bits | self.hit_bits),"),
    Fault("joined tuple forgets what it carries", "execution.py",
          "joined.carries.eq(probe.reference.carries | 1 << self.number)",
          "joined.carries.eq(1 << self.number)"),
    Fault("router sees room where there is none", "router.py",
          "m.d.comb += room[area].eq(levels[level])", "m.d.comb += room[area].eq(1)"),
    Fault("in flight counted too few", "contexts.py",
          "change.eq(more + Mux(begins, self.places, 0) - less)",
          "change.eq((more != 0) + Mux(begins, self.places, 0) - less)", "test_sequencer_and_contexts.py"),
    Fault("counter not moved by copies", "sequencer.py",
          "coming.moved.eq(moved)", "coming.moved.eq(1 << of)"),
    Fault("stored with the selection bits of the next", "sequencer.py",
          "window.bits.eq(self.raw.bits)", "window.bits.eq(tuple_.bits)"),
    Fault("any selection admits", "selectors.py",
          "admits.eq(kind.admits & (misses ^ kind.every))", "admits.eq(kind.admits)"),
    Fault("ANY taken for EVERY", "selectors.py", "(holds ^ entry.every)", "holds"),
    Fault("all bits of a mask of which one is enough", "selectors.py",
          "(masks[2] & (bits ^ kind.every.replicate(SELECTIONS))).any()", "(masks[2] & ~bits).any()"),
    Fault("entries of the tables before in a row that is not full", "selectors.py",
          "m.d.sync += gathered[number].eq(0)", "pass", "test_selection_and_selectors.py"),
    Fault("comparisons of another group of bits", "selectors.py", "(entry.group == bit // self.count)", "1"),
    Fault("let in by a row of the tuple before", "selectors.py", "(admitted & ~firsts[-1])", "admitted"),
    Fault("limit of a window off by one", "query_search.py",
          "under_high[s].eq(free | (value < high))", "under_high[s].eq(free | (value <= high))"),
    Fault("rank of a component for its age", "query_search.py",
          "Mux(by_rank, key.ranks[s], key.ages[s])", "key.ranks[s]"),
    Fault("queries that an earlier list of limits left out", "query_search.py",
          "queries.data, before.data)", "queries.data, queries.data)"),
    Fault("queries counted but for the first eight", "output.py",
          "range(0, len(counted), _COUNTED)", "range(_COUNTED, len(counted), _COUNTED)"),
    Fault("oldest of the first two only", "output.py",
          "Mux(pair[0] > pair[-1], pair[0], pair[-1])", "Mux(pair[0] > pair[-1], pair[-1], pair[0])"),
    Fault("raw tuple fetched from its window", "fetch.py",
          "own.eq((its == number) & ~as_stored)", "own.eq((its == number) & 0)"),
    Fault("replay skips the last tuple", "replay.py",
          "end = Array(ends[s] for s in range(n))[number]",
          "end = (Array(ends[s] for s in range(n))[number] - 1)"),
    Fault("handed over in the wrong name", "hand_over.py",
          "handed.taken_by.eq(self.taken_by)", "handed.taken_by.eq(leaving.payload)"),
    Fault("a live tuple leaves with a dead one", "window.py",
          "Mux(dead[0], Mux(dead[1], 2, 1), 0)", "Mux(dead[0], Mux((there & ~first_place).any(), 2, 1), 0)"),
    Fault("judged by the retention of before", "window.py",
          "with m.If(self.clear | self.forget):", "with m.If(self.clear):"),
    Fault("judged as if none had left", "window.py",
          "(goes == by) & inside", "(by == 0) & inside"),
    Fault("more at hand than there is room for", "window.py",
          "asks.eq(~self.reading.fetching & (asked != self._head) & ~ahead[-1])",
          "asks.eq(~self.reading.fetching & (asked != self._head))", "test_window.py"),
    Fault("another's stamp for the oldest", "window.py",
          "asks.eq(~self.reading.fetching & (asked", "asks.eq((asked"),
    Fault("judged by the one after it", "window.py",
          "(fresh & judging) | self.clear | self.forget", "self.clear | self.forget", "test_window.py"),
    Fault("who stays by the check before", "window.py",
          "by_checked[1] & ~judging", "by_checked[1] & judging", "test_window.py"),
    Fault("one who leaves is judged once more", "window.py",
          "self.forget, 0, kept)", "self.forget, 0, there)", "test_window.py"),
    Fault("none is stored while some leave", "window.py",
          "unchanged = Signal(_PLACES), (gone_now == 0) &", "unchanged = Signal(_PLACES),", "test_window.py",
          harmless="few_were counts from the first tuple before some have left, so it tells only of places behind"
          " the last tuple that they stay; those are empty, and only the first one that is not dead is asked"),
    Fault("the next one in the place of another", "window.py",
          "next_place & ~there", "next_place", "test_window.py"),
    Fault("room for one more than there is", "window.py",
          "held != most",
          "held != depth"),
    Fault("one is displaced though no slot is free", "window.py",
          "settles.eq(self._room)]", "settles.eq(1)]"),
    Fault("few are stored, by the lowest bits", "window.py",
          "(gone_now == 0) & ~stored[3:].any()", "(gone_now == 0)", "test_window.py"),
    Fault("one flows to an offer that waits", "sequencer.py",
          "(~its[n] | Mux(gives & leads[n], free_after, free))", "1", "test_sequencer_and_contexts.py"),
    Fault("turns of the probe before", "scan.py",
          "read.addr.eq(item_after.buffer)", "read.addr.eq((item_after.buffer - 1)[:BUFFER_BITS])"),
    Fault("never told what is of interest", "scan.py",
          "worth.eq(self.worth)", "worth.eq(worth)"),
    Fault("the last comparison left out", "loader.py",
          "number + 2 >= self.used", "number + 3 >= self.used"),
    Fault("an escape begun is a frame ended", "boards/deframer.py",
          "cut_off.eq(escaped)", "cut_off.eq(0)", "boards/test_framer_and_deframer.py"),
    Fault("settled because it rests before it hears", "sequencer.py",
          "(rests & ~checked.replicate(n))", "rests"),
    Fault("settled before all windows are", "sequencer.py",
          "each.eq(each_settled.all())", "each.eq(each_settled.any())"),
    Fault("an epoch ends while of it is given", "contexts.py",
          "late = moved | (gave & of_oldest)", "late = moved", "test_sequencer_and_contexts.py"),
    Fault("a context of an epoch that is left out", "contexts.py",
          "with m.If(Mux(gives, crosses, skips)):", "with m.If(gives & crosses):",
          "test_sequencer_and_contexts.py"),
    Fault("attributes of the raw tuple before", "sequencer.py", "read.addr.eq(got)", "read.addr.eq(got - 1)"),
    Fault("no room behind the door for what is on its way", "selection.py",
          "raws.level <= _WAITING - 2", "raws.level <= _WAITING", "test_selection_and_selectors.py"),
    Fault("idle while one comes out of the door", "selection.py",
          "~busy & ~results.r_rdy &", "~busy &", "test_selection_and_selectors.py"),
    Fault("joined tuples fetched from no window", "fetch.py",
          "first.carries & ~(1 << first.stream), (1 << n)", "0, (1 << n)"),
    Fault("the output's stamps not read", "fetch.py",
          "fetching.eq(reduce(or_, reads))", "fetching.eq(coming)"),
    Fault("a request that waits is lost", "fetch.py",
          "first.eq(Mux(full, second, request.payload))", "first.eq(request.payload)"),
    Fault("asked for while it is exchanged", "index.py",
          "self.lookup.ready.eq(~self.insert)", "self.lookup.ready.eq(1)"),
    Fault("linked to the slot after", "index.py",
          "older_write.addr.eq(links.slot)", "older_write.addr.eq(olds.slot)"),
    Fault("lower limit of two off by one", "query_search.py",
          "under_low[s].eq(free | (value < low))", "under_low[s].eq(free | (value <= low))"),
    Fault("a stream that is not carried is too old", "query_search.py",
          "free.eq(~key.carries[s] | ~(by_rank | by_age))", "free.eq(~(by_rank | by_age))"),
    Fault("the first list of limits is the last", "query_search.py",
          "| (by_set & read.data.goes)", "", ),
    Fault("what comes round makes way for what is new", "query_search.py",
          "with m.If(back):", "with m.If(back & ~new):"),
    Fault("a raw tuple for all queries over its stream", "output.py",
          "kept.eq(read.data | is_joined.replicate(len(kept)))", "kept.eq(-1)"),
    Fault("filters of another stream", "output.py",
          "Cat(bits, self.fetch.data.stream, bus.half)", "Cat(bits, ~self.fetch.data.stream, bus.half)"),
    Fault("filters for the first four selections alone", "output.py",
          "self.fetch.data.bits[number * FILTERED :]", "self.fetch.data.bits[0:]",
          "test_output_and_query_search.py"),
    Fault("a joined tuple passes filters", "output.py",
          "is_joined.eq(reference.carries != 1 << self.fetch.data.stream)", "is_joined.eq(0)"),
    Fault("queries of the tuple after", "query_search.py",
          "self.queries, came, before)", "self.queries, self.came, end[:-1])"),
    Fault("a record again", "output.py", "here.eq(leaves),", "here.eq(leaves | here),"),
    Fault("a record of the place after", "output.py",
          "search.read.eq(head),", "search.read.eq(head + 1),"),
    Fault("age of a component that is not there", "output.py",
          "Mux(reference.carries[s], age, 0)", "age"),
    Fault("two served at once", "arbiter.py",
          "Cat(bits[i] & ~bits[:i].any() for", "Cat(bits[i] & ~bits[: i - 1].any() for"),
    Fault("an event lost in the cycle of its turn", "meters.py",
          "register.eq(Mux(mine, 0, register) + self.events[number])",
          "register.eq(Mux(mine, 0, register + self.events[number]))", "test_meters.py"),
    Fault("left at the slot before", "probe_queue.py", "slots[level].eq(self.left.slot),", "slots[level].eq(self.left.slot + 1),"),
    Fault("taken up again though it is done", "probe_queue.py",
          "resumes[self.committed_level].eq(0)", "resumes[self.committed_level].eq(1)"),
    Fault("probes that were taken back stay", "probe_queue.py",
          "m.d.sync += Cat(have, have_after, got).eq(0)", "m.d.sync += Cat(have, got).eq(0)"),
    Fault("what goes to the output goes nowhere else", "router.py",
          " push.eq(destination.areas),", " push.eq(destination.areas & ~destination.output.replicate(n)),"),
    Fault("one place counted for all", "router.py", "sum(Cat(destination.areas, destination.output))", "1"),
    Fault("taken twice", "router.py",
          "Mux(gone, later[0], first)", "first", "test_router.py"),
    Fault("tuples that are stored keep their old bits", "control.py",
          "self.replay.eq(command.operation == ControlOperation.COMMIT)", "self.replay.eq(0)"),
    Fault("counters that a reset leaves", "control.py", "with m.If(self.forget):", "with m.If(0):"),
    Fault("bits of the tuple before", "selectors.py",
          "(found_before[bit] & ~first)", "found_before[bit]"),
    Fault("selections of the tables before", "selectors.py",
          "at = Cat(self.row, bus.half, self.stream)", "at = Cat(self.row, ~bus.half, self.stream)"),
    Fault("a selection that ends too late", "selection.py", "of.last.eq(left == 1)", "of.last.eq(left == 0)"),
    Fault("bits written to the slot after", "replay.py", "window.slot.eq(at),", "window.slot.eq(at + 1),"),
    Fault("only the first window again", "replay.py", "with m.Elif(number == n - 1):", "with m.Elif(number == 0):"),
    Fault("rows given up before their time", "area.py",
          "m.d.sync += rows.eq(self._data)", "m.d.sync += rows.eq(self._data >> 1)"),
    Fault("pairs of another probe counted", "area.py", "read.addr.eq(first),", "read.addr.eq(first + 1),"),
    Fault("routes of the tables before", "raw_routes.py", "with m.If(bus.half == h):", "with m.If(bus.half != h):"),
    Fault("handed over before there is room", "hand_over.py",
          "leaving.ready.eq(chosen[number] & free)", "leaving.ready.eq(chosen[number])"),
    Fault("handed over twice", "hand_over.py",
          "turns.requests.eq(waits & ~chosen)", "turns.requests.eq(waits)"),
    Fault("an age of just the window is too old", "window_tests.py",
          "window.size + (window.kind is WindowKind.RANGE)", "window.size"),
    Fault("limits on one view only", "window_tests.py",
          "next((test for of_list, test in later if of_list & left), 0)", "0"),
    Fault("what is yet to be stored is not counted", "window.py",
          "self._due.eq(falls_due)", "self._due.eq(0)"),
    Fault("taken before the windows know of it", "sequencer.py",
          "heard.eq(heard_once & ~takes_wide)", "heard.eq(have & ~takes_wide)"),
    Fault("the key of another probe", "loader.py",
          "read.addr.eq(answering),", "read.addr.eq(asked),"),
    Fault("put for the probe after", "loader.py",
          "self.put.buffer.eq(on_the_way[1])", "self.put.buffer.eq(on_the_way[0])"),
    Fault("the plan of another probe", "loader.py",
          "moved.eq(Cat(move, moved))", "moved.eq(Cat(0, move))"),
    Fault("an end sent as a joined tuple", "emitter.py",
          "self.emit.eq(following.join.some)", "self.emit.eq(1)"),
    Fault("the context of the probe after", "probe_queue.py",
          "self.context.eq(self.sending.reference.context)",
          "self.context.eq(self.entering.reference.context)"),
    Fault("a strange candidate looked at", "walk.py",
          "probe.pending & ~foreign", "probe.pending", "test_scan_and_walk.py"),
    Fault("a flow without a last check", "sequencer.py",
          "owes.eq(flows_on)", "owes.eq(0)", "test_sequencer_and_contexts.py"),
    Fault("a filler flows", "sequencer.py",
          "near & ~loaded.raw.filler", "near", "test_sequencer_and_contexts.py"),
    Fault("flows from afar", "sequencer.py",
          "& (number == now[of])", "", "test_sequencer_and_contexts.py"),
    Fault("picked once more", "loader.py",
          "(self._fresh, self._picked, self._picks)", "(self._fresh, 0, self._picks)",
          "test_loader.py"),
    Fault("a raw tuple lost that waits for one that waits", "loader.py",
          "held & (more | ~passes)", "held & ~passes", "test_loader.py"),
    Fault("taken without a place", "loader.py", "self.take.eq(some & room)", "self.take.eq(some)", "test_loader.py"),
    Fault("available though it is taken", "probe_fifo.py",
          "Mux(takes, more, ends[level] != taken[level])", "ends[level] != taken[level]"),
    Fault("the level of the next probe taken for granted", "emitter.py",
          "same.eq(level == level_before)", "same.eq(1)"),
    Fault("an offer over one that waits", "sequencer.py",
          "(~leads[n] | free)", "1"),
    Fault("a group found by its key alone", "grouping.py",
          " & (owner.query == its.query)", "", _GROUPING),
    Fault("a full count comes round", "grouping.py", " & (fresh | ~so_far.full)", "", _GROUPING),
    Fault("the result before does not count yet", "grouping.py",
          "Mux(summed_1, sums[0], old)", "old", _GROUPING),
    Fault("the result but one does not count yet", "grouping.py",
          "Mux(summed_2, sums[0], older)", "older", _GROUPING),
    Fault("the result but two does not count yet", "grouping.py",
          "for number in (4, 3):", "for number in (4,):", _GROUPING),
    Fault("what is written as it is read does not count yet", "grouping.py",
          "for number in (4, 3):", "for number in (3,):", _GROUPING),
    Fault("the result before does not own the place yet", "grouping.py",
          "Mux(owned_1, owners[0], old_owner)", "old_owner", _GROUPING),
    Fault("the result but one does not own the place yet", "grouping.py",
          "for number in (4, 3, 2):", "for number in (4, 3):", _GROUPING),
    Fault("the oldest owner there is counts", "grouping.py",
          "for number in (4, 3, 2):", "for number in (2, 3, 4):", _GROUPING),
    Fault("the greatest is the latest", "grouping.py",
          "(value > so_far.greatest)", "1", _GROUPING),
    Fault("times that never come round", "grouping.py",
          "(one - other)[len(one) - 1]", "one < other", _GROUPING),
    Fault("delivered and in a group", "grouping.py",
          "head.data.result.queries & ~own", "head.data.result.queries", _GROUPING),
    Fault("a group stays that has left", "grouping.py",
          "self._write.addr.eq(place)", "self._write.addr.eq(place + 1)", _GROUPING),
    Fault("a reset leaves groups", "grouping.py",
          "self._write.addr.eq(at)", "self._write.addr.eq(0)", _GROUPING),
    Fault("plans of the other half", "member.py",
          "Cat(self.tag, bus.half)", "Cat(self.tag, ~bus.half)", _GROUPING),
    Fault("grouped by the plan of a tag before", "member.py",
          "part.grouped & bus.data.any()", "part.grouped", _GROUPING),
    Fault("drained, but all was forgotten", "grouping.py",
          "self.drained.eq(~forgets)", "self.drained.eq(1)", _GROUPING),
    Fault("idle with results in it", "grouping.py",
          "self.idle.eq((self._used == 0) & ", "self.idle.eq(", _GROUPING),
    Fault("the plan of the tuple before", "member.py",
          "plan.addr.eq(begin)", "plan.addr.eq(begin - 1)", _GROUPING),
    Fault("whole for the last tag alone", "member.py",
          "some[half] & (bus.address[:TAG_BITS] != 0)", "0", _GROUPING),
    Fault("groups of attributes that were not read", "output.py",
          "self.whole.eq(members.whole)", "self.whole.eq(0)", _GROUPS),
    Fault("idle in a drain", "top.py", "grouping.idle & ~drain.draining", "grouping.idle", _GROUPS),
]  # fmt: skip

_NOTICED = 3
_ENDLESS = -signal.SIGVTALRM
"""A fault may well make results without end."""
_SEEDS = 16
"""Random runs of a component test, of which one must notice the fault."""
_LONGEST = 60
"""Seconds of processor time a case may take; without a fault it takes far less."""
JUDGE = f"""
import signal, sys
from seustream.cosim.processor import device as processor
from seustream.cosim.verilated.device import VerilatedDevice
from seustream.cosim.verilated.library import Stuck
from seustream.hdl.device import LoadRefused
from tests.hdl.judge import SMALL, disagreement
processor.PATIENCE = 200_000  # a fault may well make it stand still
device = VerilatedDevice(SMALL)
for seed in range(int(sys.argv[1])):
    signal.setitimer(signal.ITIMER_VIRTUAL, {_LONGEST})
    device.by_rows = seed % 2 == 0  # else all pairs run their programs
    try:
        said = disagreement(seed, device)
    except (Stuck, LoadRefused) as error:
        said = f"seed {{seed}}: {{error}}"
    if said:
        print(said)
        sys.exit({_NOTICED})
"""


def broken(fault: Fault, folder: Path) -> Path:
    """A copy of the sources with the fault in."""
    for room in ROOMS:
        shutil.copytree(ROOT / room, folder / room, ignore=shutil.ignore_patterns("__pycache__"))
    file = folder / "seustream" / "hdl" / fault.file
    text = file.read_text()
    if text.count(fault.line) != 1:
        raise ValueError(f"{fault.name}: {fault.file} has its line {text.count(fault.line)} times")
    file.write_text(text.replace(fault.line, fault.instead))
    return folder


def verdict(fault: Fault, cases: int) -> str | None:
    """How the fault was noticed, None if it was not."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        source = broken(fault, Path(folder) / "source")
        cache = str(Path(folder) / "cache")
        if fault.by is None:
            return _judged(fault, source, cache, cases)
        test = ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"tests/hdl/{fault.by}"]
        for seed in range(1, _SEEDS + 1):
            done = _run(test, source, cache, BENCH_SEED=str(seed))
            if done.returncode == 1 and "AssertionError" in done.stdout:
                return f"by {fault.by}, seed {seed}"
            if done.returncode:
                raise _no_processor(fault, done)
    return None


def _judged(fault: Fault, source: Path, cache: str, cases: int) -> str | None:
    done = _run(["-c", JUDGE, str(cases)], source, cache)
    if done.returncode == _NOTICED:
        return done.stdout.strip()
    if done.returncode == _ENDLESS:
        return f"results without end: a case takes over {_LONGEST} s"
    if done.returncode:
        raise _no_processor(fault, done)
    return None


def _run(
    command: list[str], source: Path, cache: str, **more: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": str(source), "SEUSTREAM_CACHE": cache, **more},
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )


def _no_processor(fault: Fault, done: subprocess.CompletedProcess[str]) -> RuntimeError:
    what = f"{fault.name}: not noticed, but not a processor either"
    return RuntimeError(f"{what}\n{done.stdout}\n{done.stderr}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", help="names of faults (default: all)")
    parser.add_argument("--cases", type=int, default=400)
    campaigns.add_options(parser)
    options = parser.parse_args()
    if options.only and options.record:
        parser.error("--record counts the faults in their order: leave out --only")
    chosen = [f for f in FAULTS if not options.only or f.name in options.only]
    work, missed = campaigns.Work("mutants", options, of=f"{processor_version():08x}"), 0
    for number in work.cases(len(chosen)):
        fault = chosen[number]
        if fault.harmless is not None and not options.only:
            print(f"{number + 1}/{len(chosen)} {fault.file}: {fault.name}: {fault.harmless}")
            work.found["harmless"] += 1
            continue
        try:
            said = verdict(fault, options.cases)
        except RuntimeError as error:  # the fault is of an older processor
            print(error)
            said, noticed = "IS NOT A PROCESSOR", False
        else:
            noticed = said is not None
        print(
            f"{number + 1}/{len(chosen)} {fault.file}: {fault.name}: {said or 'SURVIVED'}"[:160],
            flush=True,
        )
        missed += not noticed
        if missed and options.record:
            break  # a record has only what was noticed
        work.found["noticed"] += noticed
    work.close(len(FAULTS))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
