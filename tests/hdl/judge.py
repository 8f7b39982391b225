"""Judges whether a device does the same as the golden model, on one random case with everything in
it: guards, selections, swaps of the image between two tuples, leaps of the clock, full windows,
held ports."""

from __future__ import annotations

import dataclasses
import random

from seustream.compiler.plan.guards import choose
from seustream.compiler.wjasip.image import encode
from seustream.cosim.golden import GoldenDevice
from seustream.cosim.verilated.device import VerilatedDevice
from seustream.hdl import isa
from seustream.hdl.config import DeviceConfig
from seustream.hdl.device import Combination, LoadRefused, Results, Status, Tables
from tests.cosim.generate import random_arrivals, random_queries
from tests.cosim.queries import UNBOUNDED, Raw, batch, build, handed_over, rows_of, with_area

SMALL = DeviceConfig(
    "small",
    streams=3,
    attribute_width=8,
    timestamp_width=16,
    sequence_width=8,
    depth=8,
    lanes=2,
    probe_fifo_depth=2,
    output_fifo_depth=2,
    factors=8,
    tags=64,
    queries=4,
    comparisons=32,
    selectors=2,
    indexes=1,
)
"""Narrow and shallow, so that everything that can wrap around or fill up soon does; quick to
build."""

GROUPS = [(0, 1), (0, 1, 2), (0, 1, 2), (0, 0), (0, 0, 2), (0, 1, 0)]


def random_image(chance: random.Random, groups: tuple[int, ...], config: DeviceConfig) -> bytes:
    """Returns an image that the configuration accepts."""
    while True:
        queries = random_queries(chance, groups)
        if chance.random() < 0.3:
            queries[0].windows.update({chance.choice([*queries[0].windows]): UNBOUNDED})
        tables = build(queries, groups)
        if chance.random() < 0.5:
            tables = _impossible(chance, tables)
        image = encode(_guarded(tables, config), config)
        try:
            GoldenDevice(config).load(image)
        except LoadRefused:
            continue
        return image


def _guarded(tables: Tables, config: DeviceConfig) -> Tables:
    areas = tuple(
        dataclasses.replace(
            area,
            guards=choose(area, [1 / (i + 2) for i in range(len(area.factors))], config.indexes),
        )
        for area in tables.areas
    )
    return dataclasses.replace(tables, areas=areas)


def _impossible(chance: random.Random, tables: Tables) -> Tables:
    """Adds a combination that can never hold: its factor is of a stream that the probe lacks, or it
    asks a joined tuple for a selection bit, which only raw tuples have."""
    places = [
        (number, row.pre_tag, factor, row.post_tag)
        for number, area in enumerate(tables.areas)
        for row in area.combinations
        for factor, of in enumerate(area.factors)
        if row.pre_tag < tables.streams and of.probe_stream != row.pre_tag
    ]
    places += [
        (number, row.pre_tag, None, row.post_tag)
        for number, area in enumerate(tables.areas)
        for row in area.combinations
        if row.pre_tag >= tables.streams
    ] * 2
    if not places:
        return tables
    number, tag, factor, post = chance.choice(places)
    area = tables.areas[number]
    if factor is None:
        row = Combination(tag, (), (), (0,), post)
        register = isa.PROBE_SELECTION_REGISTERS[0]
    else:
        row, register = Combination(tag, (factor,), (), (), post), factor
    at = len(area.program) - 1
    code = isa.Jmpct(tag, at + 2), isa.Emit(register, post)
    return with_area(
        tables,
        number,
        program=(*area.program[:at], *(i.encode() for i in code), area.program[at]),
        combinations=(*area.combinations, row),
    )


def random_raws(chance: random.Random, groups: tuple[int, ...], n: int) -> list[Raw]:
    """Returns arrivals in which the clock leaps now and then, also further than it can count."""
    raws, ahead, source = [], 0, None
    quiet = chance.random() < 0.3  # hardly any tuple comes in, so that stored ones grow old
    for raw in random_arrivals(chance, groups, 2 * n if quiet else n):
        # Copies of a tuple arrive at the same time.
        if (groups[raw.stream], raw.sequence) != source and chance.random() < 0.02:
            ahead += chance.choice([100, 20_000, 32_767, 32_768, 65_536, 70_000, 1 << 40])
        source = groups[raw.stream], raw.sequence
        admit = raw.admit and not (quiet and raw.sequence % 50 > 3)
        raws.append(raw._replace(timestamp=raw.timestamp + ahead, admit=admit))
    return raws


def disagreement(seed: int, device: VerilatedDevice) -> str | None:
    """Returns what the device does differently from the golden model; None if nothing."""
    chance = random.Random(seed)
    config = device.config
    groups = chance.choice([g for g in GROUPS if len(g) <= config.streams])
    images = [random_image(chance, groups, config) for _ in range(2)]
    raws = random_raws(chance, groups, chance.choice([20, 100, 300]))
    swap, size = chance.randrange(len(raws) + 1), chance.choice([1, 7, len(raws)])
    golden = GoldenDevice(config)
    device.hold(seed, *chance.choice([(0.0, 0.0), (0.5, 0.0), (0.0, 0.8), (0.6, 0.6)]))
    want, got = [], []
    for image, part in ((images[0], raws[:swap]), (images[1], raws[swap:])):
        for one, results in ((golden, want), (device, got)):
            one.load(image)
            if part is raws[:swap] or not results:
                one.reset()
            for start in range(0, len(part), size):
                results.append(one.push(batch(part[start : start + size])))
            results.append(one.flush())
    for name, of in (("results", rows_of), ("handed over", handed_over)):
        a, b = (sorted(of(Results.concatenate(results))) for results in (want, got))
        if a != b:
            missing, extra = [x for x in a if x not in b], [x for x in b if x not in a]
            return f"seed {seed}: {name}: {len(a)} wanted, {len(b)} came; {missing[:2]} {extra[:2]}"
    statuses = [_without_pairs(one.status()) for one in (golden, device)]
    return None if statuses[0] == statuses[1] else f"seed {seed}: {statuses[0]} {statuses[1]}"


def _without_pairs(status: Status) -> Status:
    # A probe with an index is compared in fewer pairs.
    return dataclasses.replace(status, pairs=0)
