"""Breaks the processor on purpose, one line at a time, and sees that the judge notices.

    python -m tests.hdl.mutants [--only NAME ...] [--cases N]

Every fault is made in a copy of the sources, in which a small device is built and put before
`tests.hdl.judge`, or a component test. A fault that goes unnoticed survives, and that is a failure.
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


FAULTS = [
    Fault("tail not held for older contexts", "window.py",
          "kept_from.eq(Mux(self.busy, tails[self.oldest], self._tail))",
          "kept_from.eq(self._tail)"),
    Fault("a full window overwrites", "window.py",
          "full.eq(self._stored_now == self.config.capacity)",
          "full.eq(self._stored_now == self.config.capacity + 1)"),
    Fault("age off by one", "window.py",
          "too_old.eq(ages[i] > self.ticks)", "too_old.eq(ages[i] >= self.ticks)"),
    Fault("rank off by one", "window.py", "(ranks[i] >= self.rows)", "(ranks[i] > self.rows)"),
    Fault("uncountable age stays", "window.py",
          "(ages[i][-1] | ranks[i][-1])", "(ranks[i][-1])"),
    Fault("uncountable rank stays", "window.py",
          "(ages[i][-1] | ranks[i][-1])", "(ages[i][-1])"),
    Fault("view taken of all slots", "window.py",
          "counts[self.snapshot_context].eq(self._stored_now)",
          "counts[self.snapshot_context].eq(self._stored_now + 1)"),
    Fault("selection bits not rewritten", "window.py",
          "write.en.eq(self.store | self.rewrite)", "write.en.eq(self.store)"),
    Fault("other banks in what is fetched", "window.py",
          "other.eq(fetching & (bank_of != bank))", "other.eq(fetching & (bank_of < bank))"),
    Fault("chains lose their older part", "index.py",
          "older_write.data.eq(newest_was)", "older_write.data.eq(inserted.slot)"),
    Fault("index walk stops early", "walk.py",
          "ends.eq(offset >= judge.before)", "ends.eq(offset + 1 >= judge.before)"),
    Fault("chooses before it knows what was taken back", "loader.py",
          "& ~self.flush & ~flushed_before):", "& ~self.flush):", "test_loader.py"),
    Fault("last row left out", "walk.py",
          "self.resume_slot - probe.tail, probe.count - 1)",
          "self.resume_slot - probe.tail, probe.count - 2)"),
    Fault("rows before the tail", "scan.py", "(~at_oldest | (b >= low))", "(~at_oldest | (b >= 0))"),
    Fault("pair of interest dropped", "scan.py",
          "Cat(reversed(coming.mask), coming.last)",
          "Cat(reversed(coming.mask & ~(coming.mask << 1)), coming.last)"),
    Fault("resumed from the newest again", "walk.py",
          "Mux(self.resume, self", "Mux(0, self"),
    Fault("a tuple between walk and scan left out", "walk.py",
          "probe.before, probe.final)", "probe.before - 1, probe.final)"),
    Fault("a tuple of the walk scanned again", "walk.py",
          "probe.before, probe.final)", "probe.before + 1, probe.final)"),
    Fault("the last candidate but one lost", "walk.py",
          "write.en.eq(probe.pending)", "write.en.eq(0)"),
    Fault("judged by the chain of another probe", "walk.py",
          "asker, judge = self._probes[2], self._probes[3]",
          "asker, judge = self._probes[2], self._probes[2]"),
    Fault("a probe that enters takes the place of another", "walk.py",
          "self._at(place) == self._to_enter[:-1]", "self._at(place) == self._to_enter[:-1] - 1"),
    Fault("a row that needs too little", "decider.py",
          "decided.holds.eq(~(row.needs & ~here.has).any())",
          "decided.holds.eq(~(row.needs & ~here.has)[:16].any())"),
    Fault("a JOIN of several rows twice", "decider.py", "before = joined & ~decided.first", "before = 0"),
    Fault("a JOIN for the one before", "decider.py", "before = joined & ~decided.first", "before = joined"),
    Fault("a row repeated when resumed", "execution.py", "(step < probes.resumed_pc)", "(step < 0)"),
    Fault("a row lost when resumed", "execution.py",
          "(step < probes.resumed_pc)", "(step <= probes.resumed_pc)"),
    Fault("only the first row", "execution.py", "with m.If(step + 1 == probe.rows):", "with m.If(step == 0):"),
    Fault("what waits outlives the probe", "emitter.py",
          "Cat(have, have_next, stuck).eq(0)", "Cat(have, stuck).eq(0)"),
    Fault("the next probe too early", "emitter.py",
          "(~self.emit | self.granted) & ~self.commit & ~self.rewind",
          "(~self.emit | self.granted) & ~self.rewind"),
    Fault("a conjunction too many", "control_words.py",
          "sum(1 << factor for factor in term) for", "sum(1 << factor for factor in term) | 1 for"),
    Fault("one conjunction for all", "scan.py",
          "for number in range(TERMS)", "for number in range(1)"),
    Fault("probes hashed with another seed", "loader.py",
          "hashed(key, self.seed, layouts.slot_bits)", "hashed(key, ~self.seed, layouts.slot_bits)"),
    Fault("comparisons of the probe before", "scan.py",
          "Cat(info.turn, info.buffer)", "Cat(info.turn, (info.buffer - 1)[:2])"),
    Fault("outcomes of another turn", "scan.py",
          "with m.If(now[number] & valid):", "with m.If(valid):"),
    Fault("two factors of an attribute at once", "program_store.py",
          "turn.eq(stored.place >> among)", "turn.eq(0)"),
    Fault("plan of the probe before", "scan.py",
          "read.addr.eq(info.buffer)", "read.addr.eq((info.buffer - 1)[:2])"),
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
          "bits.eq(Mux(_joined(self.fetched.reference), 0, self.fetched.bits))",
          "bits.eq(self.fetched.bits)"),
    Fault("probe queue loses one on rewind", "probe_fifo.py",
          "[taken[level].eq(kept[level]) for level in range(levels)]",
          "[taken[level].eq(kept[level] + self.waiting[level]) for level in range(levels)]"),
    Fault("JMPCT takes any tag", "execution.py",
          "(view[isa.Jmpct].tag != probe.reference.tag)", "0"),
    Fault("OR for AND", "execution.py",
          'next_does.conjunction.eq(is_[isa.AndRegisters])', 'next_does.conjunction.eq(0)'),
    Fault("JOIN repeated when resumed", "execution.py", "(chosen.does.at < probes.resumed_pc)", "(chosen.does.at < 0)"),
    Fault("JOIN lost when resumed", "execution.py",
          "(chosen.does.at < probes.resumed_pc)", "(chosen.does.at <= probes.resumed_pc)"),
    Fault("scratch left from the pair before", "execution.py",
          "window_bits.eq(self.hit_bits),", "window_bits.eq(window_bits | self.hit_bits),"),
    Fault("joined tuple forgets what it carries", "execution.py",
          "joined.carries.eq(probe.reference.carries | 1 << self.number)",
          "joined.carries.eq(1 << self.number)"),
    Fault("router sees room where there is none", "router.py",
          "(destination.areas[area] & ~room)", "(destination.areas[area] & ~room & 0)"),
    Fault("in flight counted too few", "sequencer.py",
          "count.eq(count + more - less)", "count.eq(count + (more != 0) - less)"),
    Fault("counter not moved by copies", "sequencer.py",
          "with m.If(self.groups[s] == group):", "with m.If(coming.raw.stream == s):"),
    Fault("stored with the selection bits of the next", "sequencer.py",
          "self.bits.eq(self.raw.bits)", "self.bits.eq(tuple_.bits)"),
    Fault("any selection admits", "selection.py", "~(mask & ~before).any()", "1"),
    Fault("ANY taken for EVERY", "selection.py",
          "Mux(entry.every, started & outcome, started | outcome)", "started & outcome"),
    Fault("window of a query off by one", "output.py",
          "work.ages[s] <= window.size", "work.ages[s] < window.size"),
    Fault("rows window off by one", "output.py",
          "work.ranks[s] < window.size", "work.ranks[s] <= window.size"),
    Fault("oldest of the first two only", "output.py",
          "Mux(pair[0] > pair[-1], pair[0], pair[-1])", "Mux(pair[0] > pair[-1], pair[-1], pair[0])"),
    Fault("raw tuple fetched from its window", "fetch.py",
          "own.eq((read.data.stream == number) & ~as_stored)", "own.eq((read.data.stream == number) & 0)"),
    Fault("replay skips the last tuple", "replay.py",
          "end = Array(self.ends[s] for s in range(n))[number]",
          "end = (Array(self.ends[s] for s in range(n))[number] - 1)"),
    Fault("handed over in the wrong name", "top.py",
          "handed.taken_by.eq(sequencer.taken_by)", "handed.taken_by.eq(area.leaving.payload)"),
]  # fmt: skip

_NOTICED = 3
_ENDLESS = -signal.SIGVTALRM
"""A fault may well make results without end."""
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
            command = ["-c", JUDGE, str(cases)]
        else:
            command = [
                "-m",
                "pytest",
                "-q",
                "-x",
                "-p",
                "no:cacheprovider",
                f"tests/hdl/{fault.by}",
            ]
        done = subprocess.run(
            [sys.executable, *command],
            env={**os.environ, "PYTHONPATH": str(source), "SEUSTREAM_CACHE": cache},
            cwd=source,
            capture_output=True,
            text=True,
            check=False,
        )
    if fault.by is not None and done.returncode == 1 and "AssertionError" in done.stdout:
        return f"by {fault.by}"
    if done.returncode == _NOTICED:
        return done.stdout.strip()
    if done.returncode == _ENDLESS:
        return f"results without end: a case takes over {_LONGEST} s"
    if done.returncode:
        raise RuntimeError(f"{fault.name}: not noticed, but not a processor either\n{done.stderr}")
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", help="names of faults (default: all)")
    parser.add_argument("--cases", type=int, default=400)
    arguments = parser.parse_args()
    chosen = [f for f in FAULTS if not arguments.only or f.name in arguments.only]
    survivors = []
    for number, fault in enumerate(chosen, 1):
        said = verdict(fault, arguments.cases)
        print(
            f"{number}/{len(chosen)} {fault.file}: {fault.name}: {said or 'SURVIVED'}"[:160],
            flush=True,
        )
        if said is None:
            survivors.append(fault.name)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} faults noticed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
