"""Patterns whose candidates a join finds give the same matches as without: on random queries and
streams, saved and restored now and then, also by a run that looks at all events."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

from seustream.compiler.language import expressions as x
from seustream.compiler.pattern import ir
from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.compiler.plan import candidates
from seustream.cosim.golden import GoldenDevice
from seustream.engine.graph import GraphRun
from seustream.hdl.config import CONFIGURATIONS
from tests.cosim.devices import held, verilated
from tests.engine.host.running import DEVICES as MODELS
from tests.engine.pattern.generate import Generator

DEVICES = {**MODELS, "verilated": verilated}
CREATE = "CREATE STREAM s (type varchar, x int, y double precision, k varchar);"


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Uses candidates even if they will be many."""
    monkeypatch.setattr(candidates, "MOST", float("inf"))


def rows_of(generator: Generator, keys: bool) -> pa.Table:
    events = generator.events(40, keys)
    return pa.table(
        {
            "ts": pa.array([event.ts for event in events], pa.int64()),
            "type": pa.array([event.type for event in events], pa.string()),
            "x": pa.array([event.attrs["x"] for event in events], pa.int32()),
            "y": pa.array([event.attrs.get("y") for event in events], pa.float64()),
            "k": pa.array([event.attrs.get("k") for event in events], pa.string()),
        }
    )


def in_pieces(
    compilations: list[Compilation], rows: pa.Table, seed: int, model: str
) -> list[list[tuple[object, ...]]]:
    """Returns the matches at each step; each run may be of another compilation and goes on from the
    state before."""
    pieces, chance = random.Random(seed), random.Random(seed + 1)

    def made() -> GraphRun:
        c = chance.choice(compilations)
        devices = [held(DEVICES[model](one.options.config), seed) for one in c.devices]
        return GraphRun(c, devices, slice_rows=7)

    run, done, steps = made(), 0, []
    while done < rows.num_rows:
        size = pieces.randint(0, 6)
        run.push("s", rows.slice(done, size))
        done += size
        if done < rows.num_rows and pieces.random() < 0.5:
            run.promise("s", rows["ts"][done].as_py())
        steps.append(list(run.advance()))
        if len(compilations) > 1 and chance.random() < 0.3:
            state, run = run.state(), made()
            run.resume(state)
    steps.append(list(run.finish()))
    return [
        [tuple(map(repr, row.values())) for _, table in step for row in table.to_pylist()]
        for step in steps
    ]


def compiled(text: str, devices: int, config: str = "default") -> Compilation:
    options = Options(CONFIGURATIONS[config], devices=devices)
    return compile_text(f"{CREATE} REGISTER QUERY p AS {text};", options=options)


def check(
    seed: int, found: Counter[str], model: str | None = None, config: str = "default"
) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    generator, keyed = Generator(chance), chance.random() < 0.4
    while True:
        query = generator.query(kleene=chance.random() < 0.6, keys=keyed)
        text = query.text
        if query.window is None:
            continue
        skip = chance.choice(("", "", "SKIP TO NEXT EVENT", "SKIP PAST LAST EVENT"))
        if skip:
            text = text.replace(" RETURN", f" AFTER MATCH {skip} RETURN")
        with_device = compiled(text, 1, config)
        (pattern,) = with_device.program.patterns
        if with_device.devices:
            break
        assert pattern.candidates is None
        assert pattern.whole
    assert isinstance(pattern, ir.PatternQuery)
    rows, drawn = rows_of(generator, keyed), chance.choice(sorted(MODELS))
    model = model or drawn
    whole = compiled(text, 0)
    want = in_pieces([whole], rows, seed, model)
    got = in_pieces([with_device], rows, seed, model)
    assert got == want, text
    mixed = in_pieces([with_device, whole, with_device], rows, seed, model)
    assert mixed == want, text
    matches = sum(map(len, want))
    found["matches"] += matches
    for what, is_so in {
        "a group": pattern.kleene,
        "an absence": any(element.negated for element in pattern.elements),
        "an absence before all": pattern.elements[0].negated,
        "a group before all": pattern.elements[0].kleene,
        "strictly": pattern.strategy is ir.Strategy.STRICT,
        "the next": pattern.strategy is ir.Strategy.NEXT,
        "keys": keyed,
        "skips to the next": pattern.skip is ir.Skip.NEXT,
        "skips past the last": pattern.skip is ir.Skip.PAST_LAST,
        "three events": len(pattern.anchors) == 3,
    }.items():
        found[what] += is_so and matches > 0


@pytest.mark.parametrize("part", range(2))
def test_candidates_change_nothing(part: int) -> None:
    found = Counter[str]()
    for seed in range(80 * part, 80 * part + 80):
        check(seed, found)
    print(sorted(found.items()))
    assert found["matches"] > 100
    wanted = ("an absence", "an absence before all", "strictly", "the next", "keys")
    skips = ("skips to the next", "skips past the last")
    assert all(found[what] for what in (*wanted, *skips, "three events"))


@pytest.mark.parametrize(
    ("sequence", "using", "events"),
    [
        ("A a; B+ b; C c", "", 2),
        ("B+ b; A a; C c", "", 2),
        ("A a; B{1,2} b; !D; C c", "USING ANY SUBSETS", 2),
        ("A a; B+ b; C c", "USING NEXT", 2),
        ("A a; !B; C c; D d; A e; B f", "", 4),
    ],
)
def test_groups_and_many_events(sequence: str, using: str, events: int) -> None:
    """More single events than the device has streams, and groups before, between and behind an
    absence."""
    text = f"PATTERN {sequence} WHERE a.x <= c.x WITHIN {25 if events == 4 else 12} ms {using} RETURN a.x, c.x AS y"
    text += ", count(b) AS n" if "B+ b" in sequence else ""
    with_device, whole = compiled(text, 1), compiled(text, 0)
    (query,) = (one.division.query for one in with_device.device_queries)
    assert len(query.sources) == events
    matches = 0
    for seed in range(12):
        print(f"seed {seed}")
        rows = rows_of(Generator(random.Random(seed)), False)
        want = in_pieces([whole], rows, seed, "golden")
        assert in_pieces([with_device], rows, seed, "golden") == want
        assert in_pieces([with_device, whole], rows, seed, "golden") == want
        matches += sum(map(len, want))
    assert matches


def test_the_processor_finds_candidates() -> None:
    matches = 0
    for seed in range(2_000, 2_025):
        print(f"seed {seed}")
        generator = Generator(random.Random(seed))
        text = generator.query(keys=True).text
        if "WITHIN" not in text:  # which only the oracle runs
            continue
        with_device, rows = compiled(text, 1), rows_of(generator, keys=True)
        want = in_pieces([compiled(text, 0)], rows, seed, "verilated")
        assert in_pieces([with_device], rows, seed, "verilated") == want, text
        matches += sum(map(len, want)) * bool(with_device.devices)
    assert matches


def test_conditions_that_compute() -> None:
    """A key with a division has faults; they are counted once, as the pattern's."""
    text = (
        "PATTERN A a; B b; C c WHERE a.x * 2 <= c.x + b.x AND 4 / c.x > a.x AND b.y > 110% * a.y"
        " WITHIN 25 ms RETURN a.x, c.x AS z"
    )
    with_device, whole = compiled(text, 1), compiled(text, 0)
    (one,) = with_device.device_queries
    assert "4 / c.x > a.x" in x.show(one.division.query.where)
    matches = faults = 0
    for seed in range(20):
        rows = rows_of(Generator(random.Random(seed)), False)
        want = in_pieces([whole], rows, seed, "golden")
        assert in_pieces([with_device], rows, seed, "golden") == want
        matches += sum(map(len, want))
        runs = [
            GraphRun(c, [GoldenDevice(d.options.config) for d in c.devices])
            for c in (whole, with_device)
        ]
        found = []
        for run in runs:
            run.push("s", rows)
            list(run.finish())
            found.append(
                sum(count for lines in run.report.faults.values() for count, _ in lines.values())
            )
        assert found[1] <= found[0]
        faults += found[1]
    assert matches
    assert faults
