"""Generates random cases: schemas, query sets, streams. One seed gives one case, always the same.

Every expression is written twice, as X-SQL and as DuckDB's SQL; where the two differ in how they convert
types, DuckDB is told explicitly what X-SQL defines.
"""

from __future__ import annotations

import datetime
import random
from dataclasses import dataclass, field

import pyarrow as pa

NUMBERS = ("smallint", "int", "bigint", "real", "double precision")
TEXTS = ("varchar(6)", "char(3)", "varchar(20)")
OTHERS = ("date", "time", "timestamp", "boolean")

ARROW = {
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "real": pa.float32(),
    "double precision": pa.float64(),
    "date": pa.date32(),
    "time": pa.time32("ms"),
    "timestamp": pa.timestamp("us"),
    "boolean": pa.bool_(),
} | dict.fromkeys(TEXTS, pa.string())


@dataclass
class Stream:
    name: str
    columns: list[tuple[str, str]]
    rows: pa.Table = field(default_factory=lambda: pa.table({}))  # in order
    arrivals: pa.Table = field(default_factory=lambda: pa.table({}))  # as they arrive


@dataclass
class Text:
    """An expression in both languages."""

    xsql: str
    duck: str


@dataclass
class Source:
    alias: str
    stream: Stream
    kind: str
    size: int


@dataclass
class Query:
    name: str
    sources: list[Source]
    items: list[tuple[str, Text]] | None
    where: Text | None
    window: str


@dataclass
class Case:
    seed: int
    streams: list[Stream]
    queries: list[Query]
    plan: str
    config: str
    pushes: list[int]
    max_terms: int
    slice_rows: int
    slack: int

    @property
    def text(self) -> str:
        lines = []
        for stream in self.streams:
            columns = ", ".join(f"{name} {kind}" for name, kind in stream.columns)
            lines.append(f"CREATE STREAM {stream.name} ({columns});")
        for query in self.queries:
            items = ", ".join(f"{t.xsql} AS {n}" for n, t in query.items) if query.items else "*"
            sources = ", ".join(f"{s.stream.name} AS {s.alias}" for s in query.sources)
            where = f" WHERE {query.where.xsql}" if query.where else ""
            lines.append(
                f"REGISTER QUERY {query.name} AS SELECT {items} FROM {sources}{where}"
                f" WINDOW {query.window};"
            )
        return "\n".join(lines)


def generate(seed: int) -> Case:
    return _Generator(seed).case()


class _Generator:
    def __init__(self, seed: int) -> None:
        self.seed, self.chance = seed, random.Random(seed)

    def case(self) -> Case:
        r = self.chance
        streams = [self.stream(i) for i in range(r.choice((2, 2, 3, 3, 3, 4)))]
        queries: list[Query] = []
        for number in range(r.choice((1, 1, 2, 3, 5))):
            if queries and r.random() < 0.5:
                queries.append(self.variation(number, r.choice(queries)))
            else:
                queries.append(self.query(number, streams))
        widest = max(len(query.sources) for query in queries)
        most = {1: 40, 2: 40, 3: 22, 4: 9}[widest]
        slack = r.choice((0, 0, 15))
        for stream in streams:
            rows = self.rows(stream, r.randint(0 if r.random() < 0.05 else 4, most))
            stream.arrivals = self.disorder(rows, slack)
            ts = stream.arrivals.column("ts").to_pylist()
            stream.rows = _reordered(stream.arrivals, ts)
        return Case(
            self.seed,
            streams,
            queries,
            r.choice(("cost", "thesis")),
            r.choice(("default", "default", "thesis", "tiny")),
            [r.randint(1, 20) for _ in range(200)] if r.random() < 0.5 else [],
            r.choice((1, 2, 4, 64, 64, 64)),
            r.choice((3, 9, 8192, 8192, 8192, 8192, 8192, 8192)),
            slack,
        )

    # --- streams --------------------------------------------------------------

    def stream(self, number: int) -> Stream:
        r = self.chance
        pool = r.choice(
            (("int",), NUMBERS, NUMBERS, (*NUMBERS, *TEXTS), (*NUMBERS, *TEXTS, *OTHERS))
        )
        names = "abcd"[: r.randint(1, 4)]
        return Stream(f"S{number}", [(name, r.choice(pool)) for name in names])

    def rows(self, stream: Stream, count: int) -> pa.Table:
        r = self.chance
        nulls = r.choice((0.0, 0.0, 0.1, 0.3))
        now, ts = r.choice((0, 5, -60, 1_700_000_000_000)), []
        for _ in range(count):
            step = r.random()
            now += 0 if step < 0.3 else r.randint(1, 4) if step < 0.9 else r.randint(20, 60)
            ts.append(now)
        columns = {"ts": pa.array(ts, pa.int64())}
        for name, kind in stream.columns:
            values = [None if r.random() < nulls else self.value(kind) for _ in range(count)]
            columns[name] = pa.array(values, ARROW[kind])
        return pa.table(columns)

    def disorder(self, rows: pa.Table, slack: int) -> pa.Table:
        """Returns the rows as delivered by a stream that falls back by no more than `slack`."""
        delayed = [ts + self.chance.randint(0, slack) for ts in rows.column("ts").to_pylist()]
        return _reordered(rows, delayed)

    def value(self, kind: str) -> object:
        r = self.chance
        if kind in ("smallint", "int", "bigint"):
            rare = {
                "smallint": (-32768, 32767, 300),
                "int": (-(2**31), 2**31 - 1, 70000),
                "bigint": (-(2**62), 2**53 + 1, 2**53),
            }[kind]
            return r.choice(rare) if r.random() < 0.05 else r.randint(-3, 6)
        if kind in ("real", "double precision"):
            return r.choice((0.0, -0.0, 0.5, 1.0, 1.5, 2.0, -2.25, 3.0, 1e10, 4.0))
        if kind in TEXTS:
            return r.choice(("", "a", "ab", "abc", "abd", "é", "B", "zz", "a%"))
        day = datetime.date(2006, 3, r.randint(1, 4))
        time = datetime.time(r.randint(0, 3), 0, 0, r.choice((0, 5000)))
        if kind == "date":
            return day
        if kind == "time":
            return time
        if kind == "timestamp":
            return datetime.datetime.combine(day, time)
        return r.random() < 0.5

    def literal(self, kind: str) -> str:
        value = self.value(kind)
        if kind in TEXTS:
            return "'" + str(value).replace("'", "''") + "'"
        if kind in ("date", "time", "timestamp"):
            return f"{kind.upper()} '{value}'"
        return str(value).upper() if kind == "boolean" else str(value)

    # --- queries --------------------------------------------------------------

    def query(self, number: int, streams: list[Stream]) -> Query:
        r = self.chance
        count = r.choice((1, 2, 2, 2, 2, 3, 3, 4))
        chosen = [r.choice(streams) for _ in range(count)]
        # Each copy of a stream takes a join area; keep the set within four.
        if r.random() < 0.7 or len(streams) + len(chosen) - len({s.name for s in chosen}) > 4:
            chosen = r.sample(streams, min(count, len(streams)))
        one = r.random() < 0.5
        window = self.window(count)
        windows = [window if one else self.window(count) for _ in chosen]
        sources = [
            Source(f"x{i}", stream, kind, size)
            for i, (stream, (_, kind, size)) in enumerate(zip(chosen, windows, strict=True))
        ]
        where = None if r.random() < 0.05 else self.condition(sources, r.choice((0, 1, 2, 2, 3)))
        items = None
        if r.random() < 0.4:
            items = [(f"c{i}", self.item(sources)) for i in range(r.randint(1, 4))]
        text = ", ".join(dict.fromkeys([windows[0][0]]) if one else [w[0] for w in windows])
        return Query(f"k{number}", sources, items, where, text)

    def variation(self, number: int, like: Query) -> Query:
        """Returns a query that has something in common with another, which plans can share."""
        r = self.chance
        where = like.where
        if where is not None and r.random() < 0.8:
            word = r.choice((" AND ", " OR "))
            more = self.condition(like.sources, r.choice((0, 1)))
            where = Text(f"({where.xsql}){word}{more.xsql}", f"({where.duck}){word}{more.duck}")
        sources, window = like.sources, like.window
        if r.random() < 0.3:
            window, kind, size = self.window(len(sources))
            sources = [Source(s.alias, s.stream, kind, size) for s in sources]
        return Query(f"k{number}", sources, None, where, window)

    def window(self, streams: int) -> tuple[str, str, int]:
        r = self.chance
        roll = r.random()
        if roll < 0.5:
            size = r.choice((0, 1, 3, 10, 40))
            return r.choice((f"RANGE {size}", f"RANGE {size} ms")), "range", size
        if roll < 0.8:
            size = r.choice((1, 2, 3, 7, 25))
            return r.choice((f"ROWS {size}", str(size))), "rows", size
        return ("NOW", "range", 0) if roll < 0.9 or streams > 2 else ("UNBOUNDED", "unbounded", 0)

    def item(self, sources: list[Source]) -> Text:
        source, name, kind = self.column(sources)
        column = f"{source.alias}.{name}"
        if kind in ("smallint", "int") and self.chance.random() < 0.3:
            return Text(f"{column} * 2 + 1", f"CAST({column} AS BIGINT) * 2 + 1")
        return Text(column, column)

    def column(self, sources: list[Source], like: str | None = None) -> tuple[Source, str, str]:
        """Returns a column, comparable with type `like` if there is one."""
        found = [
            (source, name, kind)
            for source in sources
            for name, kind in source.stream.columns
            if like is None or _comparable(kind, like)
        ]
        return self.chance.choice(found)

    # --- conditions -----------------------------------------------------------

    def condition(self, sources: list[Source], depth: int) -> Text:
        r = self.chance
        if depth == 0 or r.random() < 0.2:
            return self.leaf(sources)
        if r.random() < 0.2:
            inner = self.condition(sources, depth - 1)
            return Text(f"NOT ({inner.xsql})", f"NOT ({inner.duck})")
        word = r.choice((" AND ", " AND ", " OR "))
        parts = [self.condition(sources, depth - 1) for _ in range(r.randint(2, 3))]
        return Text(
            "(" + word.join(p.xsql for p in parts) + ")",
            "(" + word.join(p.duck for p in parts) + ")",
        )

    def leaf(self, sources: list[Source]) -> Text:
        r = self.chance
        roll = r.random()
        if roll < 0.5 and len(sources) > 1:
            return self.factor(sources)
        if roll < 0.56:
            a, b = (f"{r.choice(sources).alias}.{r.choice(('ts', 'TimeStamp'))}" for _ in range(2))
            operator = self.operator()
            text = f"{a} {operator} {b}"
            return Text(text, text.replace("TimeStamp", "ts"))
        source, name, kind = self.column(sources)
        column = f"{source.alias}.{name}"
        if roll < 0.62:
            text = f"{column} IS {r.choice(('', 'NOT '))}NULL"
            return Text(text, text)
        if roll < 0.68 and kind in TEXTS:
            text = f"{column} {r.choice(('', 'NOT '))}LIKE '{r.choice(('a%', '%b%', '_', 'ab_', '%'))}'"
            return Text(text, text)
        if roll < 0.74:
            values = ", ".join(self.literal(kind) for _ in range(r.randint(1, 3)))
            word = r.choice(("IN", "NOT IN"))
            return Text(f"{column} {word} ({values})", f"{_wide(column, kind)} {word} ({values})")
        if roll < 0.8 and kind != "boolean":
            low, high = self.literal(kind), self.literal(kind)
            word = r.choice(("BETWEEN", "NOT BETWEEN"))
            return Text(
                f"{column} {word} {low} AND {high}",
                f"{_wide(column, kind)} {word} {low} AND {high}",
            )
        if roll < 0.86 and kind in ("smallint", "int"):
            other, third, its = self.column(sources, "int")
            if its in ("smallint", "int"):
                right = f"{other.alias}.{third}"
                operator = self.operator()
                return Text(
                    f"{column} + 1 {operator} {right} * 2",
                    f"CAST({column} AS BIGINT) + 1 {operator} CAST({right} AS BIGINT) * 2",
                )
        if roll < 0.9 and kind == "boolean":
            return Text(column, column)
        constant = self.literal(kind)
        if kind in ("smallint", "int") and r.random() < 0.2:
            constant = r.choice(("1.5", "-0.25", "2.0", "5000000000"))
            column_text = f"CAST({column} AS DOUBLE)" if "." in constant else column
        else:
            column_text = _wide(column, kind)
        operator = self.operator()
        if r.random() < 0.2:
            return Text(f"{constant} {operator} {column}", f"{constant} {operator} {column_text}")
        return Text(f"{column} {operator} {constant}", f"{column_text} {operator} {constant}")

    def factor(self, sources: list[Source]) -> Text:
        a, name, kind = self.column(sources)
        others = [s for s in sources if s is not a]
        try:
            b, its, other = self.column(others, kind)
        except IndexError:
            return self.leaf(sources)
        left, right = f"{a.alias}.{name}", f"{b.alias}.{its}"
        operator = "=" if self.chance.random() < 0.6 else self.operator()
        real = ("real", "double precision")
        if kind in NUMBERS and kind != other and (kind in real or other in real):
            duck = f"CAST({left} AS DOUBLE) {operator} CAST({right} AS DOUBLE)"
        else:
            duck = f"{left} {operator} {right}"
        return Text(f"{left} {operator} {right}", duck)

    def operator(self) -> str:
        return self.chance.choice(("=", "<>", "<", "<=", ">", ">="))


def _reordered(rows: pa.Table, keys: list[int]) -> pa.Table:
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return rows.take(pa.array(order, pa.int64()))


def _comparable(a: str, b: str) -> bool:
    return a == b or any(a in kinds and b in kinds for kinds in (NUMBERS, TEXTS))


def _wide(column: str, kind: str) -> str:
    """Returns a column as it is compared with a constant: X-SQL then compares a real in double
    precision."""
    return f"CAST({column} AS DOUBLE)" if kind in ("real", "double precision") else column
