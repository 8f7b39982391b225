"""What random cases reach of the processor: lines, toggles, and points that matter by themselves.

    python -m tests.hdl.coverage [--cases N] [--first SEED] [--report FILE]

The smallest configuration is built with Verilator's counters and driven with random queries,
arrivals, stalls and exchanges of the image, each case compared with the golden model. The report
has a row for each component: what is never reached in it stands below, by name. Why, stands in
`docs/reference/coverage.md`.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import dataclasses
import random
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np

from seustream.compiler.plan.guards import choose
from seustream.compiler.wjasip.image import decode, encode
from seustream.cosim import pairs
from seustream.cosim.golden import GoldenDevice
from seustream.cosim.pairs import Bools, Codes
from seustream.cosim.verilated.device import VerilatedDevice
from seustream.hdl import isa
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.hdl.control_words import LAST_WORD, Command, ControlOperation, Target, Verdict
from seustream.hdl.device import LoadRefused, Results, Tables
from seustream.hdl.isa import Condition
from tests.cosim.generate import random_arrivals, random_queries
from tests.cosim.queries import UNBOUNDED, Raw, batch, build, counts_as, handed_over, rows_of

GROUPS = [(0, 1), (0, 1, 2), (0, 1, 2), (0, 0), (0, 0, 2), (0, 1, 0)]
CONFIG = dataclasses.replace(
    CONFIGURATIONS["tiny"],
    streams=3, timestamp_width=16, sequence_width=8,
    factors=8, comparators=4, tags=64, queries=8, comparisons=32, selectors=2,
)  # fmt: skip
"""The tiny configuration, with counters that wrap around within a case and tables that are soon
loaded."""


# --- Verilator's counters -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Point:
    """A counter: of a line, or of one bit of a signal."""

    kind: str
    component: str
    name: str


_RECORD = re.compile(r"C '(.*)' (\d+)$")
_INSTANCE = re.compile(r"[\d$]+$")
_AGAIN = re.compile(r"__02[4e]|__05b")  # of a net: another name for it; a part of it


def read(data: Path) -> dict[Point, int]:
    """Reads the counters of a file; a component that is in several areas counts as one."""
    counts: dict[Point, int] = defaultdict(int)
    for line in data.read_text().splitlines():
        record = _RECORD.match(line)
        if record is None:
            continue
        fields = dict(pair.split("\x02", 1) for pair in record[1].split("\x01") if "\x02" in pair)
        # The component that a part of the hierarchy is an instance of: area1.scanner is a scanner.
        path = fields["h"].split(".")
        names = [_INSTANCE.sub("", part) for part in path[1:]]
        kind = "toggle" if "toggle" in fields["page"] else "line"
        what = fields["o"] if kind == "toggle" else f"line {fields['l']}"
        component = ".".join(names[1:]) or "top"
        if kind == "toggle" and _AGAIN.search(what):
            continue
        counts[Point(kind, component, what)] += int(record[2])
    return counts


# --- points that matter by themselves ---------------------------------------------


class Bins:
    """Named events, and how often each was met."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        names = [kind.MNEMONIC for kind in isa.INSTRUCTIONS]
        self.wanted = [f"executed {name}" for name in names]
        for condition in Condition:
            outcomes = {Condition.TRUE: [True], Condition.FALSE: [False]}
            for held in outcomes.get(condition, [True, False]):
                self.wanted.append(_compared(condition, held))
        self.wanted += [f"handed over: {why}" for why in ("displaced", "age", "rank")]
        self.wanted += [f"{what} comes round" for what in ("ring", "timestamp", "sequence number")]
        self.wanted += ["rewind", "stall", "exchange of images with a full window"]
        self.wanted += ["indexed probe", "scanned probe", "tick", "dropped at the door"]
        self.wanted += [f"verdict {verdict.name}" for verdict in Verdict]

    def meet(self, name: str, times: int = 1) -> None:
        assert name in self.wanted, name
        self.counts[name] += times

    @property
    def missed(self) -> list[str]:
        return [name for name in self.wanted if not self.counts[name]]


def _compared(condition: Condition, held: bool) -> str:
    return f"{condition.name} {'holds' if held else 'does not hold'}"


@contextlib.contextmanager
def watched(bins: Bins) -> Iterator[None]:
    """Records the factors that the golden model compares meanwhile."""
    holds = pairs.holds

    def telling(condition: Condition, *values: Codes) -> Bools:
        outcome = holds(condition, *values)
        for held in (True, False):
            times = int(np.count_nonzero(outcome == held))
            if times:
                bins.meet(_compared(Condition(condition), held), times)
        return outcome

    with mock.patch.object(pairs, "holds", telling):
        yield


# --- cases ----------------------------------------------------------------------


def _image(
    chance: random.Random,
    groups: tuple[int, ...],
    values: list[int],
    config: DeviceConfig,
    keep: bool,
) -> bytes:
    """Returns an image of `random_queries`, with constants from `values`, and longer programs."""
    while True:
        queries = random_queries(chance, groups)
        if keep or chance.random() < 0.3:
            queries[0].windows[chance.choice([*queries[0].windows])] = UNBOUNDED
        tables = build(queries, groups)
        areas = tuple(
            dataclasses.replace(
                area,
                guards=choose(
                    area, [1 / (i + 2) for i in range(len(area.factors))], config.indexes
                ),
                program=_more(chance, area.program),
            )
            for area in tables.areas
        )
        selections = tuple(
            tuple(
                dataclasses.replace(
                    selection,
                    comparisons=tuple(
                        dataclasses.replace(c, constant=values[c.constant])
                        for c in selection.comparisons
                    ),
                )
                for selection in of_stream
            )
            for of_stream in tables.selections
        )
        image = encode(dataclasses.replace(tables, areas=areas, selections=selections), config)
        try:
            decode(image, config)
        except LoadRefused:
            continue
        return image


def _more(chance: random.Random, program: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the same program, with instructions at its end that change nothing."""
    code = [isa.decode(word) for word in program[:-1]]
    at = len(code)
    first = at  # jumps to the former last instruction lead here
    code += [isa.OrRegisters(63, 63, 31), isa.Nop(), isa.Jmp(at + 4), isa.Nop()]
    if sum(isinstance(i, isa.Cmp) for i in code) + 2 <= CONFIG.factors:
        code += [isa.Cmp(0, 0, 0, condition, 7) for condition in (Condition.TRUE, Condition.FALSE)]
    code += [isa.Jmpli()] * chance.randrange(2) + [isa.Nop()]
    assert first < len(code)
    return tuple(instruction.encode() for instruction in code)


def _raws(
    chance: random.Random, groups: tuple[int, ...], values: list[int], n: int, seldom: bool
) -> list[Raw]:
    """Returns arrivals in which the clock leaps now and then, also further than it can count. With
    `seldom` the clock goes slowly and most arrivals are ticks, so that stored tuples grow old by
    rank."""
    raws, ahead, source = [], 0, None
    for raw in random_arrivals(chance, groups, n):
        if (groups[raw.stream], raw.sequence) != source and chance.random() < 0.02 * (not seldom):
            ahead += chance.choice([100, 20_000, 32_767, 32_768, 65_536, 70_000, 1 << 40])
        source = groups[raw.stream], raw.sequence
        raws.append(
            raw._replace(
                timestamp=raw.timestamp + ahead,
                admit=raw.admit and not (seldom and chance.random() < 0.93),
                attributes=tuple(values[value] for value in raw.attributes),
            )
        )
    return raws


def run_case(seed: int, device: VerilatedDevice, bins: Bins) -> str | None:
    """Runs a case on the device and on the golden model; returns what differs, or None."""
    chance = random.Random(seed)
    config = device.config
    groups = chance.choice(GROUPS)
    values = sorted(chance.sample(range(1 << config.attribute_width), 3))
    seldom = chance.random() < 0.2
    images = [_image(chance, groups, values, config, seldom) for _ in range(2)]
    n = 600 if seldom else chance.choice([20, 100, 300])
    raws = _raws(chance, groups, values, n, seldom)
    swap, size = chance.randrange(len(raws) + 1), chance.choice([1, 7, len(raws)])
    golden = GoldenDevice(config)
    device.hold(seed, *chance.choice([(0.0, 0.0), (0.5, 0.0), (0.0, 0.8), (0.6, 0.6)]))
    want, got = [], []
    for number, (image, part) in enumerate(((images[0], raws[:swap]), (images[1], raws[swap:]))):
        if number and max(device.status().occupancy, default=0) == config.capacity:
            bins.meet("exchange of images with a full window")
        for one, results in ((golden, want), (device, got)):
            one.load(image)
            if not number:
                one.reset()
            for start in range(0, len(part), size):
                results.append(one.push(batch(part[start : start + size])))
        tables = decode(image, config)
        _probes(tables, part, bins)
    for name, of in (("results", rows_of), ("handed over", handed_over)):
        a, b = (sorted(of(Results.concatenate(results))) for results in (want, got))
        if a != b:
            return f"seed {seed}: {name}: {len(a)} wanted, {len(b)} came"
    model, processor = golden.status(), device.status()
    if not counts_as(processor, model, guards=True):
        return f"seed {seed}: {model} {processor}"
    _count(device, raws, Results.concatenate(got), bins)
    return None


def _probes(tables: Tables, raws: list[Raw], bins: Bins) -> None:
    for raw in raws:
        for area in tables.routes[raw.stream].probes:
            guarded = raw.stream in tables.areas[area].guards
            bins.meet("indexed probe" if guarded else "scanned probe")


def _count(device: VerilatedDevice, raws: list[Raw], results: Results, bins: Bins) -> None:
    config, status, counters = device.config, device.status(), device.counters()
    for name, times in (
        ("stall", counters["stalls"]),
        ("rewind", counters["rewinds"]),
        ("tick", status.ticks),
        ("dropped at the door", status.dropped),
    ):
        bins.meet(name, times)
    executed = device.executed()["word"]
    for word, times in zip(*np.unique(executed, return_counts=True), strict=True):
        instruction = isa.decode(int(word))
        bins.meet(f"executed {instruction.MNEMONIC}", int(times))
        match instruction:
            # Queries have no constant comparisons, but programs may.
            case isa.Cmp(condition=(Condition.TRUE | Condition.FALSE) as condition):
                bins.meet(_compared(Condition(condition), condition == Condition.TRUE), int(times))
    at = {(raw.stream, raw.sequence): raw for raw in raws}
    for stream, sequence, taker, taken_by in handed_over(results):
        left, came = at[stream, sequence], at[taker, taken_by]
        if came.timestamp - left.timestamp > config.longest_range:
            bins.meet("handed over: age")
        elif taker == stream and came.admit and _full(left, came, config):
            bins.meet("handed over: displaced")
        else:
            bins.meet("handed over: rank")
    if raws:
        first, last = raws[0], raws[-1]
        width = config.timestamp_width
        bins.meet("timestamp comes round", int(last.timestamp >> width > first.timestamp >> width))
        most = max(raw.sequence for raw in raws)
        bins.meet("sequence number comes round", most >> config.sequence_width)
        bins.meet("ring comes round", int(most > 2 * config.depth and len(results) > 0))


def _full(left: Raw, came: Raw, config: DeviceConfig) -> bool:
    """Returns whether a tuple that left for one of its own stream was in its way: its rank was
    small."""
    return came.sequence - left.sequence <= config.longest_rows


def refusals(device: VerilatedDevice, bins: Bins) -> None:
    """Provokes every verdict once."""

    def ask(wanted: Verdict, *commands: Command) -> None:
        for command in commands:
            try:
                device._ask(command)
                verdict = Verdict.OK
            except LoadRefused as refused:
                verdict = Verdict[refused.reason.split(": ")[-1].upper().replace(" ", "_")]
        assert verdict is wanted, f"{commands[-1]}: {verdict.name}, want {wanted.name}"
        bins.meet(f"verdict {wanted.name}")

    def write(target: int, unit: int = 0, address: int = 0, data: int = 0) -> Command:
        return Command(ControlOperation.WRITE, target, unit, address, data)

    def code(address: int, instruction: isa.Instruction, last: bool = False) -> Command:
        return write(Target.INSTRUCTION, 0, address, instruction.encode() | LAST_WORD * last)

    ask(Verdict.NOT_LOADING, Command(ControlOperation.COMMIT))
    ask(Verdict.OK, Command(ControlOperation.BEGIN))
    ask(Verdict.LOADING, Command(ControlOperation.BEGIN))
    ask(Verdict.BAD_TARGET, write(Target.ROWS, unit=CONFIG.streams))
    ask(Verdict.BAD_ADDRESS, code(7, isa.Nop()))
    ask(Verdict.UNDEFINED_WORD, write(Target.INSTRUCTION, data=1))
    ask(Verdict.BAD_JUMP, code(0, isa.Nop()), code(1, isa.Jmp(1)))
    ask(Verdict.BAD_REGISTER, code(0, isa.AndRegisters(0, 0, 0)))
    ask(Verdict.BAD_REGISTER, code(0, isa.Cmp(0, 0, 0, 0, CONFIG.factors)))
    ask(
        Verdict.TOO_MANY_COMPARES,
        *(code(a, isa.Cmp(0, 0, 0, 0, 0)) for a in range(CONFIG.factors + 1)),
    )
    ask(Verdict.NO_LAST_NOP, code(0, isa.Jmpli(), last=True))
    ask(Verdict.INCOMPLETE, Command(ControlOperation.COMMIT))
    ask(Verdict.OK, Command(ControlOperation.ABORT))
    ask(Verdict.OK, Command(ControlOperation.PAUSE), Command(ControlOperation.RESUME))


# --- the report -------------------------------------------------------------------


def report(counts: dict[Point, int], bins: Bins, cases: int) -> Iterator[str]:
    points: dict[str, dict[str, list[tuple[Point, int]]]] = defaultdict(lambda: defaultdict(list))
    for point, count in counts.items():
        points[point.component][point.kind].append((point, count))
    yield f"{cases} random cases on configuration {CONFIG.name!r}, each equal to the golden model"
    yield ""
    yield f"{'component':<28}{'lines':>14}{'toggles':>20}"
    totals: Counter[str] = Counter()
    for component in sorted(points):
        row = f"{component:<28}"
        for kind, width in (("line", 14), ("toggle", 20)):
            found = points[component][kind]
            met = sum(count > 0 for _, count in found)
            totals[kind, "met"] += met
            totals[kind, "all"] += len(found)
            row += f"{_share(met, len(found)):>{width}}"
        yield row.rstrip()
    sums = [_share(totals[kind, "met"], totals[kind, "all"]) for kind in ("line", "toggle")]
    yield f"{'together':<28}{sums[0]:>14}{sums[1]:>20}"
    yield ""
    met = len(bins.wanted) - len(bins.missed)
    yield f"points that matter by themselves: {_share(met, len(bins.wanted))}"
    for name in bins.wanted:
        yield f"  {bins.counts[name]:>12,}  {name}"
    yield ""
    yield "signals of which some bit never went both ways, and how many bits of all"
    for component in sorted(points):
        signals: dict[str, list[int]] = defaultdict(list)
        for point, count in points[component]["toggle"]:
            signals[re.split(r"[\[:]", point.name)[0]].append(count)
        for name in sorted(signals):
            shown = name.replace("___05F", ".")
            never = sum(not count for count in signals[name])
            if never:
                yield f"  {component}.{shown}: {never} of {len(signals[name])}"


def _share(met: int, of: int) -> str:
    return f"{met:,}/{of:,} {100 * met / of:.1f} %" if of else "-"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--report", type=Path, default=Path("bench/results/coverage.txt"))
    options = parser.parse_args()
    bins = Bins()
    device = VerilatedDevice(CONFIG, trace=True, coverage=True, note=print)
    print("running", flush=True)
    refusals(device, bins)
    failed = 0
    with watched(bins):
        for seed in range(options.first, options.first + options.cases):
            differs = run_case(seed, device, bins)
            if differs is not None:
                print(differs)
                failed += 1
    processor = device._processor
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "coverage.dat"
        write = processor._functions.device_coverage
        write.restype, write.argtypes = None, [ctypes.c_void_p, ctypes.c_char_p]
        write(processor._device, str(data).encode())
        counts = read(data)
    lines = list(report(counts, bins, options.cases))
    options.report.parent.mkdir(parents=True, exist_ok=True)
    options.report.write_text("\n".join(lines) + "\n")
    print("\n".join(lines[: 10 + len({point.component for point in counts}) + len(bins.wanted)]))
    print(f"never met: {', '.join(bins.missed) or 'nothing'}")
    return 1 if failed or bins.missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
