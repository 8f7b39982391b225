"""Runs query sets on a device through the host driver, with the streams pushed in slices or at
once."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa

from seustream.compiler.errors import CompileError
from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.cosim.golden import GoldenDevice
from seustream.cosim.iss import IssDevice
from seustream.engine.graph import GraphRun
from seustream.engine.host.driver import HostDriver
from seustream.engine.stream.answers import result_schema
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.hdl.device import Batch, Device, Results
from tests.engine.host.reference import Query, Result, Row, Stream, arrivals, join


class PipelinedDevice(GoldenDevice):
    """Holds back all its results until it is flushed, as rule 4 of the contract permits."""

    def __init__(self, config: DeviceConfig) -> None:
        super().__init__(config)
        self.owed: list[Results] = []

    def push(self, batch: Batch) -> Results:
        self.owed.append(super().push(batch))
        return Results()

    def flush(self) -> Results:
        owed, self.owed = self.owed, []
        return Results.concatenate(owed)


DEVICES: dict[str, Callable[[DeviceConfig], Device]] = {
    "golden": GoldenDevice,
    "iss": IssDevice,
    "pipelined": PipelinedDevice,
}
Answers = dict[str, pa.Table]


def compiled(
    streams: Sequence[Stream], *queries: str, config: str = "default", plan: str = "cost"
) -> Compilation:
    """Compiles the queries under the names q0, q1 …"""
    text = "\n".join(stream.create for stream in streams) + "\n"
    for number, query in enumerate(queries):
        text += f"REGISTER QUERY q{number} AS {query}\n"
    return compile_text(text, options=Options(CONFIGURATIONS[config], plan, fit="strict"))


def fits(streams: Sequence[Stream], query: str, config: str, plan: str) -> bool:
    """Returns whether a device holds the query; any other problem is raised."""
    try:
        compiled(streams, query, config=config, plan=plan)
    except CompileError as error:
        if any(problem.kind != "limit" for problem in error.problems):
            raise
        return False
    return True


def driver_of(compilation: Compilation, device: str = "golden", **options: object) -> GraphRun:
    made = DEVICES[device](compilation.options.config)
    return GraphRun(compilation, made, **options)  # type: ignore[arg-type]


def join_of(driver: GraphRun) -> HostDriver:
    """Returns the operator that answers queries over base streams."""
    join = driver.operators["device join"]
    assert isinstance(join, HostDriver)
    return join


def collected(driver: GraphRun, answers: Iterable[tuple[str, pa.Table]]) -> Answers:
    """Concatenates all answers of each query."""
    parts: dict[str, list[pa.Table]] = {}
    for name, rows in answers:
        assert rows.num_rows, "an answer without rows"
        parts.setdefault(name, []).append(rows)
    return {
        query.name: pa.concat_tables(parts.get(query.name, [result_schema(query).empty_table()]))
        for query in driver.compilation.program.queries
    }


def run(
    driver: GraphRun, streams: Sequence[Stream], chance: random.Random | None = None
) -> Answers:
    """Pushes everything at once, or in slices of random length with results taken in between."""
    answers: list[tuple[str, pa.Table]] = []
    sent = [0] * len(streams)
    while chance is not None and any(n < len(s.rows) for n, s in zip(sent, streams, strict=True)):
        number = chance.randrange(len(streams))
        size = chance.randint(0, 9)
        driver.push(streams[number].name, streams[number].table.slice(sent[number], size))
        sent[number] += size
        if chance.random() < 0.7:
            answers += driver.advance()
    for number, stream in enumerate(streams):
        driver.push(stream.name, stream.table.slice(sent[number]))
    answers += driver.finish()
    return collected(driver, answers)


def wanted(
    streams: Sequence[Stream], query: Query, results: list[Result]
) -> list[tuple[object, ...]]:
    """Returns the rows of `SELECT *` in the order that the driver guarantees: by arrival of the
    newest component, then by the components; the copies of a stream's tuple arrive directly after
    each other."""
    order = {at: number for number, at in enumerate(arrivals(streams))}
    index = [next(i for i, s in enumerate(streams) if s is x.stream) for x in query.sources]
    copy = [index[:place].count(number) for place, number in enumerate(index)]

    def came(result: Result) -> list[tuple[int, int]]:
        return [(order[i, place], c) for i, place, c in _zip(index, result.places, copy)]

    rows = []
    for result in sorted(results, key=lambda result: (max(came(result)), came(result))):
        parts = [
            s.stream.rows[place] for s, place in zip(query.sources, result.places, strict=True)
        ]
        rows.append(row_of(parts))
    return rows


def _zip(*columns: Sequence[int]) -> Iterable[tuple[int, ...]]:
    return zip(*columns, strict=True)


def row_of(parts: Sequence[Row]) -> tuple[object, ...]:
    """Returns components as one row: their columns, then the oldest and newest timestamp."""
    times = [int(str(part["ts"])) for part in parts]
    values = [value for part in parts for name, value in part.items() if name != "ts"]
    return (*values, min(times), max(times))


def rows_of(table: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def same_as_in_loops(
    streams: list[Stream],
    query: Query,
    config: str = "default",
    device: str = "golden",
    plan: str = "cost",
    chance: random.Random | None = None,
) -> GraphRun:
    """Runs a query and compares its rows and their order with the loops. Returns the driver for its
    report."""
    driver = driver_of(compiled(streams, query.text, config=config, plan=plan), device)
    found = rows_of(run(driver, streams, chance)["q0"])
    assert found == wanted(streams, query, join(streams, query)), query.text
    assert driver.report.results == {"q0": len(found)}
    return driver
