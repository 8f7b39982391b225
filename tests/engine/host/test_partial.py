"""Groups formed by a device equal those formed by the engine: on random queries and streams, in any
pieces, saved and restored now and then, also by a run without a device."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.engine.graph import GraphRun
from seustream.engine.host.partial import members
from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.device import Groups
from tests.cosim.devices import DEVICES, held

STREAMS = """
CREATE STREAM R (k int, p decimal(5, 2), day date, flag boolean, wide bigint);
CREATE STREAM S (k int, v smallint, p decimal(5, 1), day date, flag boolean);
"""
TIMES = {"R": 0, "S": 1}


def rows_of(chance: random.Random, stream: str, count: int) -> pa.Table:
    """Returns rows with an occasional NULL."""

    def some(value: object) -> object:
        return None if chance.random() < 0.04 else value

    ts = sorted(chance.randrange(12_000) for _ in range(count))
    keys = chance.choice((1, 3, 12, 60))
    columns = {
        "ts": pa.array(ts, pa.int64()),
        "k": pa.array([some(chance.randrange(-keys, keys)) for _ in ts], pa.int32()),
        "p": pa.array([some(chance.randrange(-99, 99)) for _ in ts], pa.int32())
        .cast(pa.decimal128(10))
        .cast(pa.decimal128(5, 2 if stream == "R" else 1)),
        "day": pa.array([some(chance.randrange(-9, 9)) for _ in ts], pa.int32()).cast(pa.date32()),
        "flag": pa.array([some(chance.random() < 0.4) for _ in ts], pa.bool_()),
    }
    if stream == "R":
        columns["wide"] = pa.array([some(2**40) for _ in ts], pa.int64())
    else:
        columns["v"] = pa.array([some(chance.randrange(-32768, 32768)) for _ in ts], pa.int16())
    names = (
        ["ts", "k", "p", "day", "flag", "wide"]
        if stream == "R"
        else ["ts", "k", "v", "p", "day", "flag"]
    )
    return pa.table({name: columns[name] for name in names})


def query(chance: random.Random, name: str) -> str:
    """Returns a query that a device can group, or one close to it."""
    joins = chance.random() < 0.6
    key = chance.choice(
        ("S.k", "S.day", "S.flag", "S.p") + (("R.k", "R.p", "R.day") if joins else ())
    )
    value = chance.choice(("S.v", "S.p", "S.k", key) + (("R.p", "R.wide") if joins else ()))
    wanted = ["count(*)", f"count({value})", f"min({value})", f"max({value})"]
    if not value.endswith(("day", "flag")):
        wanted += [f"sum({value})", f"avg({value})"]
    elif value.endswith("flag"):
        wanted = wanted[:2]
    chosen = chance.sample(wanted, chance.randint(1, len(wanted)))
    by = chance.random() < 0.8
    items = [*([key] if by else []), *(f"{one} AS a{n}" for n, one in enumerate(chosen))]
    slide = chance.choice((100, 700, 2500))
    size = slide * chance.choice((1, 2, 3)) + chance.choice((0, 0, 50))
    time = "ts_newest" if joins else "ts"
    every = chance.choice(
        (
            f"TUMBLE({time}, INTERVAL {size} millisecond)",
            f"HOP({time}, INTERVAL {slide} millisecond, INTERVAL {size} millisecond)",
        )
    )
    if joins:
        where = chance.choice(("R.k = S.k", "R.k < S.k AND R.day = S.day", "R.p = S.p"))
        source = f"R, S WHERE {where}"
    else:
        source = f"S WHERE {chance.choice(('S.v > 100', 'S.k <> 0', 'S.v > 9 OR S.k = 1'))}"
    having = f" HAVING {chosen[0]} > 1" if chance.random() < 0.2 and "day" not in chosen[0] else ""
    windows = " WINDOW RANGE 400" if joins else ""
    groups = f"{key}, {every}" if by else every
    return f"REGISTER QUERY {name} AS SELECT {', '.join(items)} FROM {source} GROUP BY {groups}{having}{windows};"


def in_pieces(
    compilations: list[Compilation], rows: dict[str, pa.Table], seed: int, model: str
) -> list[list[tuple[object, ...]]]:
    """Returns the groups at each step; each run may be of another compilation and goes on from the
    state before."""
    pieces, chance = random.Random(seed), random.Random(seed + 1)

    def made() -> GraphRun:
        c = chance.choice(compilations)
        devices = [held(DEVICES[model](one.options.config), seed) for one in c.devices]
        return GraphRun(c, devices, slice_rows=64)

    run, steps = made(), []
    done = dict.fromkeys(rows, 0)
    until = 0
    while any(done[name] < table.num_rows for name, table in rows.items()):
        until += pieces.choice((1, 40, 300, 2000))
        for name, table in rows.items():
            end = int(np.searchsorted(np.asarray(table["ts"]), until))
            run.push(name, table.slice(done[name], end - done[name]))
            done[name] = end
            run.promise(name, until)
        steps.append(list(run.advance()))
        if len(compilations) > 1 and chance.random() < 0.3:
            state, run = run.state(), made()
            run.resume(state)
    steps.append(list(run.finish()))
    return [
        [(name, *map(repr, row.values())) for name, table in step for row in table.to_pylist()]
        for step in steps
    ]


def compiled(text: str, devices: int, config: str = "default") -> Compilation:
    return compile_text(STREAMS + text, options=Options(CONFIGURATIONS[config], devices=devices))


def check(seed: int, found: Counter[str], model: str | None = None, config: str = "default") -> int:
    """Returns the number of groups, on which all runs must agree."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    text = "\n".join(query(chance, f"q{number}") for number in range(chance.randint(1, 3)))
    rows = {name: rows_of(chance, name, chance.choice((30, 200))) for name in ("R", "S")}
    model = model or chance.choice(("golden", "golden", "iss"))
    with_device, whole = compiled(text, 1, config), compiled(text, 0)
    want = in_pieces([whole], rows, seed, model)
    assert in_pieces([with_device], rows, seed, model) == want, text
    mixed = in_pieces([with_device, whole, with_device], rows, seed, model)
    assert mixed == want, text
    found["rows"] += sum(map(len, want))
    for one in with_device.partials.groups:
        found["grouped"] += 1
        found["with a key"] += one.key is not None
        found["with a value"] += one.value is not None
    found["not grouped"] += len(with_device.partials.left)
    return sum(map(len, want))


@pytest.mark.parametrize("part", range(2))
def test_groups_of_a_device_are_those_of_the_engine(part: int) -> None:
    found = Counter[str]()
    for seed in range(30 * part, 30 * part + 30):
        check(seed, found)
    print(sorted(found.items()))
    assert found["rows"] > 500
    assert all(found[what] > 10 for what in ("grouped", "with a key", "with a value"))
    assert found["not grouped"]


@pytest.mark.parametrize("config", ["tiny", "default"])
def test_groups_of_the_processor(config: str) -> None:
    """Some groups find no room, and some tuples find none in a window."""
    found = Counter[str]()
    for seed in range(1000, 1004):
        check(seed, found, "verilated", config)
    assert found["grouped"]


def test_members_agree_in_all_that_is_asked_of_them() -> None:
    seed = 5
    print(f"seed {seed}")
    chance = np.random.default_rng(seed)
    for _ in range(500):
        of = [
            chance.integers(0, chance.choice([1, 2, 5, 2**32]), chance.integers(1, 9))
            for _ in range(chance.integers(1, 5))
        ]
        none = np.zeros(len(of), np.int64)
        groups = Groups(
            none,
            none,
            np.array([len(one) for one in of]),
            np.array([one.sum() for one in of]),
            np.array([one.min() for one in of]),
            np.array([one.max() for one in of]),
            none,
            none,
        )
        place, value = members(groups)
        for number, one in enumerate(of):
            mine = value[place == number]
            assert (len(mine), mine.sum()) == (len(one), one.sum())
            assert (mine.min(), mine.max()) == (one.min(), one.max())
