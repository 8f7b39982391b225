"""A driver's state taken and resumed between any two releases: results go on as if nothing had
happened, on any device."""

from __future__ import annotations

import random
from dataclasses import asdict

import pyarrow as pa
import pytest

from compiler.errors import CompileError
from engine.host.driver import HostDriver
from engine.host.state import resume, state_of
from tests.engine.host.running import DEVICES
from tests.system.differential import compile_case
from tests.system.generate import generate

Answers = dict[str, list[pa.Table]]


@pytest.mark.parametrize("seed", range(60))
def test_resumed_drivers_go_on(seed: int) -> None:
    print(f"seed {seed}")
    case = generate(seed)
    try:
        compilation = compile_case(case, case.plan)
    except CompileError:
        pytest.skip("does not fit a device")

    def driver(chance: random.Random | None) -> HostDriver:
        device = DEVICES["golden" if chance is None else chance.choice(sorted(DEVICES))]
        return HostDriver(compilation, device(compilation.options.config), slack=case.slack)

    def run(chance: random.Random | None) -> tuple[dict[str, pa.Table], dict[str, object]]:
        """Everything in pieces; with chance, by several drivers one after the other."""
        pieces = random.Random(seed)
        one, found = driver(chance), Answers()
        sent = dict.fromkeys((stream.name for stream in case.streams), 0)
        for _ in range(25):
            stream = pieces.choice(case.streams)
            size = pieces.randint(0, 8)
            one.push(stream.name, stream.arrivals.slice(sent[stream.name], size))
            sent[stream.name] += size
            for name, rows in one.advance():
                found.setdefault(name, []).append(rows)
            if chance is not None and chance.random() < 0.3:
                state, one = state_of(one), driver(chance)
                resume(one, state)
        for stream in case.streams:
            one.push(stream.name, stream.arrivals.slice(sent[stream.name]))
        for name, rows in one.finish():
            found.setdefault(name, []).append(rows)
        report = asdict(one.report)
        counted = {name: report[name] for name in ("taken", "late", "results", "in_software")}
        return {name: pa.concat_tables(parts) for name, parts in found.items()}, counted

    want, got = run(None), run(random.Random(seed + 1))
    assert got[0].keys() == want[0].keys()
    for name, rows in want[0].items():
        assert got[0][name].equals(rows), name
    assert got[1] == want[1]
