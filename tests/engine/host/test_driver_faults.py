"""Which faults count in a join: those in pairs that no other condition leaves out, because it is
false or NULL. Neither the device, nor the steps, nor other rows have a part in it. Three-valued
logic on every pair is the judge."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable

import pyarrow as pa
import pytest

from seustream.compiler.pipeline import Options, compile_text
from seustream.engine.graph import GraphRun
from tests.engine.host.running import DEVICES

_FAULT = "fault"
Row = dict[str, int | None]


def _ratio(a: int | None, b: int | None) -> object:
    if a is None or b is None:
        return None
    return a / b > 0 if b else _FAULT


def _compared(a: int | None, b: int | None, holds: Callable[[int, int], bool]) -> object:
    return None if a is None or b is None else holds(a, b)


CONDITIONS: dict[str, Callable[[Row, Row], object]] = {
    "R.a / R.j > 0": lambda r, s: _ratio(r["a"], r["j"]),
    "S.a / S.j > 0": lambda r, s: _ratio(s["a"], s["j"]),
    "R.a / S.j > 0": lambda r, s: _ratio(r["a"], s["j"]),
    "R.k = S.k": lambda r, s: _compared(r["k"], s["k"], lambda a, b: a == b),
    "R.a > 0": lambda r, s: _compared(r["a"], 0, lambda a, b: a > b),
    "(R.k <> S.k OR R.k > S.k + 0)": lambda r, s: _compared(r["k"], s["k"], lambda a, b: a != b),
    "(R.a = S.a OR S.j = 1)": lambda r, s: (
        True if s["j"] == 1 else _compared(r["a"], s["a"], lambda a, b: a == b)
    ),
}
_SCHEMA = pa.schema([("ts", pa.int64()), *((name, pa.int32()) for name in "kaj")])


@pytest.mark.parametrize("device", [None, *DEVICES])
@pytest.mark.parametrize("seed", range(12))
def test_faults_in_random_pairs(seed: int, device: str | None) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    of_faults, others = list(CONDITIONS)[:3], list(CONDITIONS)[3:]
    conditions = chance.sample(of_faults, 2) + chance.sample(others, chance.randrange(3))
    chance.shuffle(conditions)
    text = "".join(f"CREATE STREAM {name} (k int, a int, j int);" for name in "RS")
    text += f"SELECT R.k FROM R, S WHERE {' AND '.join(conditions)} WINDOW RANGE 9;"

    def row(ts: int) -> Row:
        return {"ts": ts} | {name: chance.choice([None, 0, 1, 1, 2]) for name in "kaj"}

    rows = {name: [row(ts) for ts in range(first, 60, 2)] for name, first in (("R", 0), ("S", 1))}
    c = compile_text(text, options=Options(devices=0 if device is None else 1))
    run = GraphRun(c, None if device is None else DEVICES[device](c.options.config))
    step = chance.choice([1, 3, 30])
    for at in range(0, 30, step):
        for name in "RS":
            run.push(name, pa.Table.from_pylist(rows[name][at : at + step], _SCHEMA))
        list(run.advance())
    list(run.finish())

    wanted: Counter[str] = Counter()
    for r in rows["R"]:
        for s in rows["S"]:
            if abs((r["ts"] or 0) - (s["ts"] or 0)) <= 9:
                values = {e: CONDITIONS[e](r, s) for e in conditions}
                if set(values.values()) <= {True, _FAULT}:
                    wanted.update(e for e, value in values.items() if value is _FAULT)
    assert wanted
    found: Counter[str] = Counter()
    for places in run.report.faults.values():
        for place, (count, _) in places.items():
            found[re.sub(r".* in (.*) at .*", r"\1 > 0", place)] += count
    assert found == wanted
