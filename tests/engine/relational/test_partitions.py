"""Windows of the last rows of each partition."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.types import INT
from seustream.compiler.logical.windows import PartitionWindow
from seustream.compiler.pipeline import Options, compile_text
from seustream.engine.graph import GraphRun
from seustream.engine.host.stores import Stores
from seustream.engine.relational.partitions import Partitions
from seustream.engine.stream.merge import Slice
from seustream.engine.stream.schema import stream_schema
from seustream.hdl.device import WindowKind
from tests.engine.relational.once import DEFINITIONS, Row, order, run, stream


@pytest.mark.parametrize("seed", range(40))
def test_groups_of_a_join(seed: int) -> None:
    """A member leaves when one of its rows is pushed out."""
    chance = random.Random(1000 + seed)
    rows = {"R": stream(chance, "b"), "S": stream(chance, "d")}
    n = chance.randint(1, 2)
    text = (
        f"{DEFINITIONS}REGISTER QUERY q AS SELECT x.a, count(*) AS n FROM R x, S y WHERE x.a = y.a"
        f" GROUP BY x.a WINDOW PARTITION BY a ROWS {n}"
    )
    want = []
    last: dict[str, dict[Any, list[Row]]] = {"R": {}, "S": {}}
    for row in order(rows):
        kept = last[row["of"]].setdefault(row["a"], [])
        kept.append(row)
        del kept[:-n]
        pairs = [(x, y) for x in last["R"].get(row["a"], []) for y in last["S"].get(row["a"], [])]
        if row["a"] is not None and pairs:
            oldest = min(min(x["ts"], y["ts"]) for x, y in pairs)
            want.append((row["a"], len(pairs), oldest, row["ts"]))
    assert run(text, rows, seed) == want


@pytest.mark.parametrize("seed", range(60))
def test_groups_that_are_not_the_partitions(seed: int) -> None:
    """A member that is pushed out leaves in its turn, whenever the one before it leaves."""
    print(f"seed {seed}")
    chance = random.Random(2000 + seed)
    rows = stream(chance, "b")
    n = chance.choice([1, 1, 2])
    text = f"{DEFINITIONS}REGISTER QUERY q AS SELECT a, count(*) AS n FROM R GROUP BY a WINDOW PARTITION BY b ROWS {n}"
    want = []
    last: dict[Any, list[Row]] = {}
    for row in order({"R": rows}):
        kept = last.setdefault(row["b"], [])
        kept.append(row)
        del kept[:-n]
        times = [x["ts"] for kept in last.values() for x in kept if x["a"] == row["a"]]
        want.append((row["a"], len(times), min(times), row["ts"]))
    assert run(text, {"R": rows}, seed) == want


@pytest.mark.parametrize("keys", [("a",), ("a", "B")])
@pytest.mark.parametrize("seed", range(4))
def test_a_row_is_pushed_out_by_the_nth_later_one_of_its_partition(
    seed: int, keys: tuple[str, ...]
) -> None:
    """By definition over the whole stream, also for rows that are added together, and across a
    restart."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    size = chance.randint(1, 3)
    of = Stream("R", (Column("a", INT), Column("b", INT)))
    window = PartitionWindow(WindowKind.UNBOUNDED, size, keys)
    stores = Stores([of], {"R": 1}, {})
    partitions = Partitions(window, "R", stores)
    rows: list[tuple[int, int | None, int | None]] = []
    pushed: dict[int, int] = {}
    for _ in range(15):
        part = [
            (len(rows) + n, chance.choice([None, 0, 1]), chance.choice([None, 5]))
            for n in range(chance.randrange(5))
        ]
        rows += part
        cells = [list(cell) for cell in zip(*part, strict=True)] or [[], [], []]
        table = pa.table(cells, schema=stream_schema(of))
        places = stores.add(Slice((table,)))
        out, by = partitions.add(places["R"])
        pushed.update(zip(out.tolist(), by.tolist(), strict=True))
        if chance.random() < 0.3:
            tables = partitions.tables("p")
            partitions = Partitions(window, "R", stores)
            partitions.restore(tables, "p")
    want = {}
    for place, row in enumerate(rows):
        same = [
            later for later in range(place + 1, len(rows)) if rows[later][1 : 1 + len(keys)] == row[1 : 1 + len(keys)]
        ]  # fmt: skip
        if len(same) >= size:
            want[place] = same[size - 1]
    assert pushed == want
    never = np.iinfo(np.int64).max
    assert partitions.gone.tolist() == [want.get(place, never) for place in range(len(rows))]
    assert partitions.time.tolist() == [want.get(place, never) for place in range(len(rows))]


@pytest.mark.parametrize("form", ["JOIN", "LEFT JOIN", "FULL JOIN", "EMIT CHANGES"])
def test_rows_that_were_pushed_out_are_forgotten(form: str) -> None:
    kind, changes = ("JOIN", form) if form == "EMIT CHANGES" else (form, "")
    text = f"{DEFINITIONS}REGISTER QUERY q AS SELECT b, d FROM R {kind} S ON R.a = S.a WINDOW PARTITION BY a ROWS 2 {changes}"
    run = GraphRun(compile_text(text, options=Options(devices=0)))
    for step in range(40):
        times = np.arange(10 * step, 10 * step + 10)
        for of in ("R", "S"):
            columns = [pa.array(times), *(pa.array(times % 3, pa.int32()) for _ in "ab")]
            names = ["ts", "a", "b" if of == "R" else "d"]
            run.push(of, pa.table(columns, names=names))
        for _ in run.advance():
            pass
    frames = [one.frame for one in run.operators.values() if hasattr(one, "frame")]
    partitions = [one for frame in frames for one in frame.partitions.values()]
    assert partitions
    assert all(one.readers for one in partitions)
    assert all(len(reader) < 60 for one in partitions for reader in one.readers)
