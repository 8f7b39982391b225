"""Judges results: DuckDB computes windowed joins from the raw rows, by the definition.

A result exists when, at the arrival of its latest component, each component is in its own
stream's window. `ord` is a tuple's place in the total order; `clock` gives for each place how many
tuples of each stream have arrived.
"""

from __future__ import annotations

from collections import Counter

import duckdb
import pyarrow as pa

from tests.system.generate import Case, Query, Source

_connection: duckdb.DuckDBPyConnection | None = None


def connection() -> duckdb.DuckDBPyConnection:
    """Returns the one connection of the process: opening one takes longer than most cases."""
    global _connection
    if _connection is None:
        _connection = duckdb.connect(config={"threads": 1})
    return _connection


def load(case: Case) -> None:
    """Loads the case's streams as tables, each row with its place in its stream and in the
    order."""
    order = sorted(
        (ts, index, seq)
        for index, stream in enumerate(case.streams)
        for seq, ts in enumerate(stream.rows.column("ts").to_pylist())
    )
    places = {(index, seq): place for place, (_, index, seq) in enumerate(order)}
    for index, stream in enumerate(case.streams):
        count = stream.rows.num_rows
        rows = stream.rows.append_column("seq", pa.array(range(count), pa.int64()))
        mine = pa.array([places[index, seq] for seq in range(count)], pa.int64())
        _table(stream.name, rows.append_column("ord", mine))
    clock: dict[str, list[int]] = {"ord": list(range(len(order)))}
    for index, stream in enumerate(case.streams):
        arrived, counts = 0, []
        for _, of, _ in order:
            arrived += of == index
            counts.append(arrived)
        clock[stream.name] = counts
    _table("clock", pa.table({name: pa.array(v, pa.int64()) for name, v in clock.items()}))


def _table(name: str, rows: pa.Table) -> None:
    connection().register("incoming", rows)
    connection().execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM incoming")
    connection().unregister("incoming")


def sql(query: Query) -> str:
    """Returns the query over the tables that `load` makes, in DuckDB's SQL."""
    aliases = [source.alias for source in query.sources]
    newest = f"greatest({', '.join(f'{a}.ts' for a in aliases)})"
    oldest = f"least({', '.join(f'{a}.ts' for a in aliases)})"
    latest = f"greatest({', '.join(f'{a}.ord' for a in aliases)})"
    if query.items is None:
        named = [(s.alias, name) for s in query.sources for name, _ in s.stream.columns]
        every = [name.lower() for _, name in named]
        items = [
            f"{alias}.{name} AS {name if every.count(name.lower()) == 1 else f'{alias}_{name}'}"
            for alias, name in named
        ]
    else:
        items = [f"{text.duck} AS {name}" for name, text in query.items]
    sources = ", ".join(f"{s.stream.name} AS {s.alias}" for s in query.sources)
    conditions = [f"k.ord = {latest}", *(_window(s, newest) for s in query.sources)]
    if query.where is not None:
        conditions.append(f"({query.where.duck})")
    return (
        f"SELECT {', '.join(items)}, {oldest} AS ts_oldest, {newest} AS ts_newest"
        f" FROM {sources}, clock AS k WHERE {' AND '.join(conditions)}"
    )


def _window(source: Source, newest: str) -> str:
    if source.kind == "range":
        return f"{newest} - {source.alias}.ts <= {source.size}"
    if source.kind == "rows":
        return f"k.{source.stream.name} - {source.alias}.seq <= {source.size}"
    return "TRUE"


def expected(query: Query, schema: pa.Schema) -> Counter[tuple[object, ...]]:
    return multiset(connection().sql(sql(query)).to_arrow_table(), schema)


def multiset(rows: pa.Table, schema: pa.Schema) -> Counter[tuple[object, ...]]:
    columns = [column.to_pylist() for column in rows.cast(schema).columns]
    return Counter(zip(*columns, strict=True))
