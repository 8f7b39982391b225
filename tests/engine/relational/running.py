"""Runs query sets on the golden model, with input cut at random, saved and restored on the way."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping

import pyarrow as pa

from seustream.compiler.pipeline import Compilation, compile_text
from seustream.cosim.golden import GoldenDevice
from seustream.engine.graph import GraphRun, drive
from seustream.engine.stream.operator import Answer


def _run(compilation: Compilation) -> GraphRun:
    return GraphRun(compilation, GoldenDevice(compilation.options.config))


def at_once(text: str, rows: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Returns the results of every query over complete streams, in the order of their arrival."""
    compilation = compile_text(text)
    return _collected(compilation, drive(_run(compilation), rows))


def in_pieces(text: str, rows: Mapping[str, pa.Table], seed: int) -> dict[str, pa.Table]:
    """Returns the same, with the streams pushed in random pieces, and a new run that resumes the
    state of the one before at random moments."""
    chance, compilation = random.Random(seed), compile_text(text)
    most = chance.choice((2, 5, 30))
    run, sent, found = _run(compilation), dict.fromkeys(rows, 0), []
    while any(sent[name] < table.num_rows for name, table in rows.items()):
        name, size = chance.choice(sorted(rows)), chance.randint(0, most)
        run.push(name, rows[name].slice(sent[name], size))
        sent[name] += size
        found += list(run.advance())
        if chance.random() < 0.2:
            state, run = run.state(), _run(compilation)
            run.resume(state)
    found += list(run.finish())
    return _collected(compilation, found)


def _collected(compilation: Compilation, answers: Iterable[Answer]) -> dict[str, pa.Table]:
    parts: dict[str, list[pa.Table]] = {name: [] for name in compilation.program.names}
    for name, table in answers:
        parts[name].append(table)
    return {name: pa.concat_tables(tables) for name, tables in parts.items() if tables}
