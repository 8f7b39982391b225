"""Random query sets over streams that live at several sites: the files `seustream run --site` writes are
those of one process, byte by byte, and what DuckDB computes from the definition.

    python -m tests.system.across [CASES] [--first SEED]

A case is drawn from its seed: 2 to 4 streams, some here, the others at up to three sites (services of
this process, on loopback), joins of two or three of them, a stream with itself among them, and groups
over joins; queries that are no joins across sites, so that streams are fetched whole.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from seustream.cli import main as seustream
from seustream.compiler.errors import CompileError
from seustream.compiler.pipeline import compile_text
from seustream.cosim.sites.service import SiteService
from seustream.sites import site_sources

COLUMNS = {"k": "int", "b": "int", "s": "varchar(4)", "d": "date", "f": "boolean", "n": "bigint"}
ARROW = {
    "k": pa.int32(),
    "b": pa.int32(),
    "s": pa.string(),
    "d": pa.date32(),
    "f": pa.bool_(),
    "n": pa.int64(),
}
EQUAL = (("k", "k"), ("k", "n"), ("n", "k"), ("s", "s"), ("d", "d"), ("k", "k"), ("f", "f"))


@dataclass
class Query:
    """A query. `sources` are streams and window sizes, None for no end; `items` is the SELECT list,
    with the names of its columns; `group` and `having` are as written."""

    name: str
    sources: list[tuple[str, int | None]]
    items: list[tuple[str, str]]
    where: list[str]
    group: list[str] = field(default_factory=list)
    having: str | None = None
    rows: int | None = None

    @property
    def aliases(self) -> list[str]:
        return [f"x{i}" for i in range(len(self.sources))]

    @property
    def text(self) -> str:
        items = ", ".join(f"{e} AS {name}" for e, name in self.items)
        sources = ", ".join(
            f"{s} {a}" for (s, _), a in zip(self.sources, self.aliases, strict=True)
        )
        where = f" WHERE {' AND '.join(self.where)}" if self.where else ""
        group = f" GROUP BY {', '.join(self.group)}" if self.group else ""
        having = f" HAVING {self.having}" if self.having else ""
        windows = ", ".join("UNBOUNDED" if w is None else f"RANGE {w}" for _, w in self.sources)
        if self.rows is not None:
            windows = f"ROWS {self.rows}"
        return (
            f"REGISTER QUERY {self.name} AS SELECT {items} FROM {sources}"
            f"{where}{group}{having} WINDOW {windows};"
        )


@dataclass
class Case:
    seed: int
    streams: dict[str, pa.Table]
    queries: list[Query]
    at: dict[str, int]

    @property
    def text(self) -> str:
        return self.of(self.queries)

    def of(self, queries: list[Query]) -> str:
        """Returns the text of some of its queries."""
        columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
        lines = [f"CREATE STREAM {name} ({columns});" for name in self.streams]
        return "\n".join([*lines, *(query.text for query in queries)]) + "\n"


def case(seed: int) -> Case:
    chance = random.Random(seed)
    while True:
        made = _case(seed, chance)
        with contextlib.suppress(CompileError):  # what remains here may be more than a device has
            compile_text(made.text)
            return made


def _case(seed: int, chance: random.Random) -> Case:
    names = ["R", "S", "T", "U"][: chance.randint(2, 4)]
    streams = {name: _rows(chance) for name in names}
    queries: list[Query] = []
    wanted = chance.randint(1, 4)
    while len(queries) < wanted:
        query = _query(chance, f"q{len(queries)}", names)
        with contextlib.suppress(CompileError):  # more than a device has, even by itself
            compile_text(Case(seed, streams, [query], {}).text)
            queries.append(query)
    used = {stream for query in queries for stream, _ in query.sources}
    sites = chance.randint(1, 3)
    at = {name: chance.randint(0, sites) for name in names if name in used}
    if not any(at.values()):
        at[min(at)] = 1
    return Case(seed, {name: streams[name] for name in at}, queries, at)


def _rows(chance: random.Random) -> pa.Table:
    count, t, keys = chance.randint(0, 40), 0, chance.randint(2, 7)
    rows = []
    for _ in range(count):
        t += chance.choice([0, 0, 1, 1, 2, 5])
        row: list[object] = [t]
        for name in COLUMNS:
            value = chance.randrange(keys if name != "b" else 12)
            made = {"s": f"v{value}", "f": bool(value % 2)}.get(name, value)
            row.append(None if chance.random() < 0.1 else made)
        rows.append(row)
    columns = list(zip(*rows, strict=True)) or [()] * (len(COLUMNS) + 1)
    arrays = [pa.array(columns[0], pa.int64())]
    arrays += [
        pa.array(values, ARROW[name]) for name, values in zip(COLUMNS, columns[1:], strict=True)
    ]
    return pa.table(arrays, names=["ts", *COLUMNS])


def _query(chance: random.Random, name: str, names: list[str]) -> Query:
    count = chance.choice([2, 2, 2, 3])
    window = [0, 2, 6, 6, 15, 40, None]
    sources = [(chance.choice(names), chance.choice(window)) for _ in range(count)]
    where = []
    for i in range(1, count):
        other, (left, right) = chance.randrange(i), chance.choice(EQUAL)
        where.append(f"x{other}.{left} = x{i}.{right}")
    for _ in range(chance.choice([0, 1, 1, 2])):
        i, j = (chance.randrange(count) for _ in range(2))
        where.append(
            chance.choice(
                [
                    f"x{i}.b < x{j}.b + 3",
                    f"(x{i}.b <> x{j}.k OR x{j}.b IS NULL)",
                    f"x{i}.b > 3",
                    f"x{i}.s LIKE 'v%'",
                    f"x{i}.ts <= x{j}.ts",
                    f"mod(x{i}.b, 3) <> 1",
                    f"NOT (x{i}.f AND x{j}.n > 2)",
                ]
            )
        )
    i, j = (chance.randrange(count) for _ in range(2))
    if chance.random() < 0.35:
        group = chance.choice([[f"x{i}.k"], [f"x{i}.s", f"x{j}.f"], []])
        items = [(key, f"g{at}") for at, key in enumerate(group)]
        items += [("count(*)", "n_all"), (f"sum(x{j}.b)", "total"), (f"max(x{i}.s)", "most")]
        items += [(f"min(x{j}.d)", "first_d"), (f"avg(x{i}.n)", "mean")]
        having = chance.choice([None, "count(*) > 2", f"max(x{j}.b) < 9"])
        return Query(name, sources, items, where, group, having)
    items = [(f"x{i}.{c}", f"c{at}") for at, c in enumerate(chance.sample(list(COLUMNS), 3))]
    items += [(f"x{j}.b + x{i}.n * 2", "made"), (f"x{j}.ts", "at")]
    made = Query(name, sources, items, where)
    if chance.random() < 0.15:
        made.rows = 3
    return made


# --- runs --------------------------------------------------------------------------------


def check(of: Case, folder: Path) -> int:
    """Raises an error if the results differ; returns how many there were."""
    text, one_text = folder / "q.xsql", folder / "one.xsql"
    text.write_text(of.text)
    files = {name: folder / f"{name}.parquet" for name in of.streams}
    for name, path in files.items():
        pq.write_table(of.streams[name], path)
    options = ["--quiet", "--format", "parquet"]
    inputs = {name: f"{name}={path}" for name, path in files.items()}
    here = [word for given in inputs.values() for word in ("--input", given)]
    one, many = folder / "one", folder / "many"
    for query in of.queries:
        # One at a time, because together they may need more than a device has; joins across sites
        # need none.
        one_text.write_text(of.of([query]))
        assert seustream(["run", str(one_text), *options, *here, "-o", str(one)]) == 0, of.seed
    with contextlib.ExitStack() as stack:
        # Small blocks, so that these few rows make several of each stream.
        chance = random.Random(of.seed)
        few = chance.choice([1, 3, 8, 1024])
        stack.enter_context(mock.patch("seustream.cosim.sites.process.BLOCK_ROWS", few))
        described = [f'strategy = "{chance.choice(["planned", "auto"])}"']
        for site in range(1, 4):
            mine = [name for name in of.streams if of.at[name] == site]
            if mine:
                sources = site_sources([f"{name}={files[name]}" for name in mine])
                service = stack.enter_context(SiteService("grpc://127.0.0.1:0", sources))
                described += [
                    f"[site.s{site}]",
                    f'address = "grpc://127.0.0.1:{service.port}"',
                    f"streams = {mine}",
                    f"[cost.s{site}]",
                    f"here = {chance.choice([1, 1, 5, 20])}",
                ]
        (folder / "sites.toml").write_text("\n".join(described))
        given = ["--sites", str(folder / "sites.toml")]
        for name in of.streams:
            given += [] if of.at[name] else ["--input", inputs[name]]
        assert seustream(["run", str(text), *options, *given, "-o", str(many)]) == 0, of.seed
    results = 0
    for query in of.queries:
        expected, there = (pq.read_table(at / f"{query.name}.parquet") for at in (one, many))
        assert there.equals(expected), f"seed {of.seed}, {query.name}: other than in one process"
        if query.rows is None:
            assert _multiset(there) == by_definition(of, query), f"seed {of.seed}, {query.name}"
        results += there.num_rows
    return results


def _multiset(rows: pa.Table) -> Counter[tuple[object, ...]]:
    return Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def by_definition(of: Case, query: Query) -> Counter[tuple[object, ...]]:
    """Returns the results that DuckDB computes from all rows at once."""
    order = sorted(
        (ts, place, seq)
        for place, rows in enumerate(of.streams.values())
        for seq, ts in enumerate(rows.column("ts").to_pylist())
    )
    at = {(place, seq): number for number, (_, place, seq) in enumerate(order)}
    aliases = query.aliases
    with duckdb.connect(config={"threads": 1}) as connection:
        for place, (name, rows) in enumerate(of.streams.items()):
            mine = [at[place, seq] for seq in range(rows.num_rows)]
            connection.register(name, rows.append_column("ord", pa.array(mine, pa.int64())))
        # A tuple arrives once, in however many roles.
        ords = [f"{a}.ord" for a in aliases]
        times = [f"{a}.ts" for a in aliases]
        newest, oldest = f"greatest({', '.join(times)})", f"least({', '.join(times)})"
        inside = [
            f"{newest} - {a}.ts <= {w}"
            for a, (_, w) in zip(aliases, query.sources, strict=True)
            if w is not None
        ]
        sources = ", ".join(f"{s} AS {a}" for (s, _), a in zip(query.sources, aliases, strict=True))
        where = " AND ".join([*query.where, *inside]) or "true"
        if not query.having and not query.group and "count(*)" not in query.items[0][0]:
            items = ", ".join(e for e, _ in query.items)
            sql = f"SELECT {items}, {oldest}, {newest} FROM {sources} WHERE {where}"
            return Counter(connection.sql(sql).fetchall())
        columns = [f"{a}.{c} AS {a}_{c}" for a in aliases for c in ("ts", *COLUMNS)]
        keys = [key.replace(".", "_") for key in query.group]
        lives = [
            f"p.newest - m.{a}_ts <= {w}"
            for a, (_, w) in zip(aliases, query.sources, strict=True)
            if w is not None
        ]
        same = [f"m.{key} IS NOT DISTINCT FROM p.{key}" for key in keys]
        flat = [e.replace("x", "m.x", 1) if e in query.group else e for e, _ in query.items]
        for a in aliases:
            flat = [e.replace(f"{a}.", f"{a}_") for e in flat]
        flat = [e.replace("(x", "(m.x") for e in flat]
        having = (query.having or "true").replace("(x", "(m.x")
        for a in aliases:
            having = having.replace(f"{a}.", f"{a}_")
        by = ", ".join(["p.latest", "p.newest", *(f"m.{key}" for key in keys)])
        distinct = ", ".join(["latest", "newest", *keys])
        sql = f"""
            WITH members AS (
                SELECT {", ".join(columns)}, greatest({", ".join(ords)}) AS latest,
                    {newest} AS newest, {oldest} AS oldest
                FROM {sources} WHERE {where}
            ), points AS (SELECT DISTINCT {distinct} FROM members)
            SELECT {", ".join(flat)}, min(m.oldest), p.newest FROM points p, members m
            WHERE {" AND ".join(["m.latest <= p.latest", *lives, *same])}
            GROUP BY {by} HAVING {having}
        """
        return Counter(connection.sql(sql).fetchall())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=int, nargs="?", default=100)
    parser.add_argument("--first", type=int, default=1)
    arguments = parser.parse_args()
    results = 0
    for seed in range(arguments.first, arguments.first + arguments.cases):
        with tempfile.TemporaryDirectory() as folder:
            try:
                results += check(case(seed), Path(folder))
            except BaseException:
                print(f"seed {seed}:\n{case(seed).text}", flush=True)
                raise
    last = arguments.first + arguments.cases - 1
    print(
        f"seeds {arguments.first} to {last}: {results:,} results, as in one process and in DuckDB"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
