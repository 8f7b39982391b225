"""Random statements of X-SQL over random streams, nested in each other, with DuckDB as judge.

    python -m tests.system.statements [--cases N] [--first SEED] [--seconds S] [--jobs N] [--record]

A case is drawn from its seed: selections, joins of all kinds, subqueries, groups of windows, frames, ranks, unions,
DISTINCT and ASOF joins, each over base streams or over each other, as parts of one query or as derived streams; at
the top also EMIT CHANGES and ORDER BY. It runs in random pieces, saved and restored on the way, on the
engine alone, the golden model or the instruction-level model. Every part has its rows' time in the judge's query
too, which knows nothing of watermarks or state.
"""

from __future__ import annotations

import functools
import random
from collections import Counter

import duckdb
import pyarrow as pa

from seustream.compiler.pipeline import Compilation, compile_text
from seustream.cosim.golden import GoldenDevice
from seustream.cosim.iss import IssDevice
from seustream.engine.graph import GraphRun
from tests.campaigns import run_cases
from tests.engine.relational.generate import rows_of, same
from tests.system.statement_cases import StatementCase


def _run(compilation: Compilation, device: int) -> GraphRun:
    makes = {1: GoldenDevice, 2: IssDevice}
    made = makes[device](compilation.options.config) if device in makes else None
    return GraphRun(compilation, made)


def answered(case: StatementCase) -> pa.Table | None:
    """Returns the results; the streams are pushed in random pieces, and the run is saved and
    restored on the way."""
    chance, compilation = case.chance, compile_text(case.text)
    device = chance.randrange(12)  # none, most of the time
    run, sent, found = _run(compilation, device), dict.fromkeys(case.rows, 0), list[pa.Table]()
    read = [name for name in sorted(case.rows) if name in {s.name for s in run.streams}]
    while any(sent[name] < case.rows[name].num_rows for name in read):
        name, size = chance.choice(read), chance.choice((1, 5, 20, 40))
        run.push(name, case.rows[name].slice(sent[name], size))
        sent[name] += size
        found += [table for _, table in run.advance()]
        if chance.random() < 0.3:
            state, run = run.state(), _run(compilation, device)
            run.resume(state)
    found += [table for _, table in run.finish()]
    return pa.concat_tables(found) if found else None


class Judge:
    """DuckDB, opened once for all cases."""

    def __init__(self) -> None:
        self.base = duckdb.connect()
        self.base.execute("SET threads = 1")
        self.base.execute("CREATE TABLE W AS SELECT unnest(range(-300, 600)) AS w")

    def rows(self, case: StatementCase) -> list[tuple[object, ...]]:
        for name, table in case.rows.items():
            numbered = table.append_column("rn", pa.array(range(table.num_rows), pa.int64()))
            self.base.register(name, numbered)
        return self.base.execute(case.judged).fetchall()


def check(case: StatementCase, judge: Judge) -> int:
    """Runs a case; returns how many rows it has."""
    found = rows_of(answered(case))
    if case.net:
        total = Counter[tuple[object, ...]]()
        for op, *row in found:
            total[tuple(row[:-2])] += 1 if op == "+" else -1
        assert min(total.values(), default=0) >= 0, "more rows go than come"
        mine = list(total.elements())
    else:
        mine = [(*row[:-2], row[-1]) for row in found]
    want = judge.rows(case)
    if case.ordered:
        for row, its in zip(mine, want, strict=True):
            same([row[:-1]], [its[:-1]])
    same(mine, want)
    return len(want)


def one(seed: int) -> Counter[str]:
    """Runs the case of a seed; returns what it was made of."""
    case = StatementCase(random.Random(seed))
    try:
        rows = check(case, _judge())
    except Exception as error:  # whatever goes wrong is a difference
        error.add_note(f"{case.text}\n{case.judged}")
        raise
    return case.parts + Counter(rows=rows)


@functools.cache
def _judge() -> Judge:
    """Returns the judge, one per process."""
    return Judge()


if __name__ == "__main__":
    raise SystemExit(run_cases("statements", 50_000, one, about=__doc__))
