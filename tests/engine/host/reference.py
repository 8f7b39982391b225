"""The definition of a windowed join, in plain loops over rows as dictionaries.

Random streams and queries, each written as X-SQL and as Python. Shares nothing with the engine but
the definition: a result exists if, at the arrival of its latest component, every component is in
its own stream's window.
"""

from __future__ import annotations

import datetime
import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

Row = dict[str, object]
Truth = bool | None

ARROW = {
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "real": pa.float32(),
    "double precision": pa.float64(),
    "varchar(8)": pa.string(),
    "date": pa.date32(),
    "time": pa.time32("ms"),
    "timestamp": pa.timestamp("us"),
    "boolean": pa.bool_(),
}
NUMBERS = ("smallint", "int", "bigint", "real", "double precision")
_REALS = ("real", "double precision")


@dataclass
class Stream:
    """Rows in the order of their arrival; `ts` never falls."""

    name: str
    columns: dict[str, str]
    rows: list[Row] = field(default_factory=list)

    @property
    def create(self) -> str:
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        return f"CREATE STREAM {self.name} ({columns});"

    @property
    def table(self) -> pa.Table:
        kinds = {"ts": pa.int64()} | {name: ARROW[kind] for name, kind in self.columns.items()}
        return pa.table(
            {name: pa.array([row[name] for row in self.rows], kind) for name, kind in kinds.items()}
        )


@dataclass(frozen=True)
class Source:
    alias: str
    stream: Stream
    window: str

    def sees(self, age: int, rank: int) -> bool:
        """Returns whether the window holds a tuple of this age that is the rank-th last of its
        stream (from 1)."""
        kind, _, size = self.window.partition(" ")
        if kind == "RANGE":
            return age <= int(size)
        return rank <= int(size) if kind == "ROWS" else True


@dataclass(frozen=True)
class Condition:
    text: str
    value: Callable[[Sequence[Row]], Truth]


@dataclass(frozen=True)
class Query:
    sources: tuple[Source, ...]
    where: Condition | None

    @property
    def text(self) -> str:
        sources = ", ".join(f"{s.stream.name} AS {s.alias}" for s in self.sources)
        where = f" WHERE {self.where.text}" if self.where else ""
        windows = ", ".join(s.window for s in self.sources)
        return f"SELECT * FROM {sources}{where} WINDOW {windows};"


@dataclass(frozen=True)
class Result:
    """The places of its components in their streams, and the arrival at which it came into
    being."""

    places: tuple[int, ...]
    arrival: int


def arrivals(streams: Sequence[Stream]) -> list[tuple[int, int]]:
    """Returns the total order, as (stream, place in it): by timestamp, then stream, then
    arrival."""
    return sorted(
        ((index, place) for index, s in enumerate(streams) for place in range(len(s.rows))),
        key=lambda at: (streams[at[0]].rows[at[1]]["ts"], at),
    )


def join(streams: Sequence[Stream], query: Query) -> list[Result]:
    """Tries every combination."""
    order = {at: number for number, at in enumerate(arrivals(streams))}
    number_of = [next(i for i, s in enumerate(streams) if s is x.stream) for x in query.sources]
    results = []
    for places in itertools.product(*(range(len(s.stream.rows)) for s in query.sources)):
        rows = [s.stream.rows[place] for s, place in zip(query.sources, places, strict=True)]
        if query.where is not None and query.where.value(rows) is not True:
            continue
        arrival = max(order[at] for at in zip(number_of, places, strict=True))
        now = max(int(str(row["ts"])) for row in rows)
        fits = True
        for source, number, place, row in zip(query.sources, number_of, places, rows, strict=True):
            came = sum(order[number, other] <= arrival for other in range(len(source.stream.rows)))
            fits = fits and source.sees(now - int(str(row["ts"])), came - place)
        if fits:
            results.append(Result(places, arrival))
    return results


# --- conditions -----------------------------------------------------------------


def compare(operator: str, a: object, b: object, real: bool = False) -> Truth:
    """Compares as SQL does: NULL makes the result NULL, texts compare by their bytes, and any
    number beside a real is converted to one."""
    if a is None or b is None:
        return None
    if isinstance(a, str) and isinstance(b, str):
        a, b = a.encode(), b.encode()
    if real:
        a, b = float(str(a)), float(str(b))
    less, equal = a < b, a == b  # type: ignore[operator]
    return {
        "=": equal,
        "<>": not equal,
        "<": less,
        "<=": less or equal,
        ">": not less and not equal,
        ">=": not less,
    }[operator]


def kleene_and(truths: Sequence[Truth]) -> Truth:
    return False if False in truths else None if None in truths else True


def kleene_or(truths: Sequence[Truth]) -> Truth:
    return True if True in truths else None if None in truths else False


def kleene_not(truth: Truth) -> Truth:
    return None if truth is None else not truth


# --- random ones ----------------------------------------------------------------


def value(chance: random.Random, kind: str) -> object:
    """Returns a value that often equals others; now and then one at the limit of its type."""
    if kind in ("smallint", "int", "bigint"):
        edge = {
            "smallint": (-32768, 32767, 200),
            "int": (-(2**31), 2**31 - 1, 70_000),
            "bigint": (-(2**63), 2**63 - 1, 2**53 + 1, 2**53),
        }[kind]
        return chance.choice(edge) if chance.random() < 0.08 else chance.randint(-2, 3)
    if kind in _REALS:
        return chance.choice((0.0, -0.0, 1.0, 1.5, -2.0, 3.0, float("inf"), 2.0**53))
    if kind.startswith("varchar"):
        return chance.choice(("", "a", "ab", "abcd", "abcde", "é", "ß", "日本", "B", "a%"))
    day = datetime.date(1969, 12, 31) + datetime.timedelta(days=chance.randint(0, 3))
    clock = datetime.time(chance.randint(0, 2), 0, 0, chance.choice((0, 7000)))
    if kind == "date":
        return day
    if kind == "time":
        return clock
    return datetime.datetime.combine(day, clock) if kind == "timestamp" else chance.random() < 0.5


def random_streams(chance: random.Random, most: int, count: int | None = None) -> list[Stream]:
    streams = []
    nulls = chance.choice((0.0, 0.1, 0.3))
    for number in range(count or chance.randint(1, 3)):
        pool = chance.choice((("int",), NUMBERS, tuple(ARROW)))
        columns = {name: chance.choice(pool) for name in "abcd"[: chance.randint(1, 4)]}
        stream = Stream(f"S{number}", columns)
        ts = chance.choice((0, -5, 1_700_000_000_000))
        for _ in range(chance.randint(most // 2, most)):
            ts += chance.choice((0, 0, 1, 2, 15))
            row: Row = {"ts": ts}
            for name, kind in columns.items():
                row[name] = None if chance.random() < nulls else value(chance, kind)
            stream.rows.append(row)
        streams.append(stream)
    return streams


def random_query(chance: random.Random, streams: list[Stream], count: int) -> Query:
    windows = ("RANGE 0", "RANGE 3", "RANGE 20", "ROWS 1", "ROWS 4", "UNBOUNDED")
    sources = tuple(
        Source(f"x{i}", chance.choice(streams), chance.choice(windows)) for i in range(count)
    )
    where = None if chance.random() < 0.05 else _condition(chance, sources, chance.randint(0, 2))
    return Query(sources, where)


def _condition(chance: random.Random, sources: tuple[Source, ...], depth: int) -> Condition:
    if depth == 0:
        return _leaf(chance, sources)
    if chance.random() < 0.2:
        inner = _condition(chance, sources, depth - 1)
        return Condition(f"NOT ({inner.text})", lambda rows: kleene_not(inner.value(rows)))
    word, combine = chance.choice((("AND", kleene_and), ("AND", kleene_and), ("OR", kleene_or)))
    parts = [_condition(chance, sources, depth - 1) for _ in range(chance.randint(2, 3))]
    return Condition(
        "(" + f" {word} ".join(part.text for part in parts) + ")",
        lambda rows: combine([part.value(rows) for part in parts]),
    )


def _leaf(chance: random.Random, sources: tuple[Source, ...]) -> Condition:
    columns = [
        (place, source.alias, name, kind)
        for place, source in enumerate(sources)
        for name, kind in source.stream.columns.items()
    ]
    at, alias, name, kind = chance.choice(columns)
    roll = chance.random()
    if roll < 0.1:
        negated = chance.random() < 0.5
        text = f"{alias}.{name} IS {'NOT ' if negated else ''}NULL"
        return Condition(text, lambda rows: (rows[at][name] is None) != negated)
    operator = "=" if chance.random() < 0.5 else chance.choice(("<>", "<", "<=", ">", ">="))
    if roll < 0.25 and kind in ("smallint", "int"):
        bound = chance.randint(-2, 3)
        return Condition(
            f"{alias}.{name} + 1 {operator} {bound}",
            lambda rows: compare(operator, _plus_one(rows[at][name]), bound),
        )
    others = [
        column
        for column in columns
        if column[0] != at and (column[3] == kind or (kind in NUMBERS and column[3] in NUMBERS))
    ]
    if not others or chance.random() < 0.2:
        bound = chance.choice((0, 1, 2))
        if kind in NUMBERS:
            return Condition(
                f"{alias}.{name} {operator} {bound}",
                lambda rows: compare(operator, rows[at][name], bound),
            )
        return Condition(f"{alias}.{name} = {alias}.{name}", lambda rows: _known(rows[at][name]))
    by, other, its, kind_too = chance.choice(others)
    # Two columns of the same real type are compared in that type; their doubles compare alike.
    real = kind in _REALS or kind_too in _REALS
    return Condition(
        f"{alias}.{name} {operator} {other}.{its}",
        lambda rows: compare(operator, rows[at][name], rows[by][its], real),
    )


def _plus_one(number: object) -> object:
    return None if number is None else int(str(number)) + 1


def _known(found: object) -> Truth:
    return None if found is None else True


# --- small ones ----------------------------------------------------------------


def stream(name: str, rows: list[tuple[object, ...]], *kinds: str) -> Stream:
    """Makes a stream of rows, each a timestamp and values of columns a, b …"""
    columns = dict(zip("abcd", kinds or ("int",), strict=False))
    return Stream(name, columns, [dict(zip(("ts", *columns), row, strict=True)) for row in rows])


def equal(left: Stream, right: Stream, window: str = "UNBOUNDED") -> Query:
    where = Condition("x.a = y.a", lambda rows: compare("=", rows[0]["a"], rows[1]["a"]))
    return Query((Source("x", left, window), Source("y", right, window)), where)


def either(left: Stream, right: Stream) -> Query:
    """Compares two pairs of columns with OR, so that a NULL in one pair does not decide the
    condition."""

    def value(rows: Sequence[Row]) -> Truth:
        return kleene_or([compare("=", rows[0][c], rows[1][c]) for c in "ab"])

    sources = (Source("x", left, "UNBOUNDED"), Source("y", right, "UNBOUNDED"))
    return Query(sources, Condition("x.a = y.a OR x.b = y.b", value))
