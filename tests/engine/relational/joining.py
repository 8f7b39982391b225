"""Random trees of joins as X-SQL, and DuckDB as judge over the whole streams.

    python -m tests.engine.relational.joining [--cases N] [--first SEED] [--seconds S] [--jobs N] [--record]

The judge sees each tuple with its place in the order of all streams and, under ROWS n, the place of the
n-th later one of its stream; *within* is a condition on these. It knows nothing of watermarks or state.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from unittest.mock import patch

import duckdb
import pyarrow as pa

from seustream.engine.relational import compared, joins, matching, slots
from tests.campaigns import run_cases
from tests.engine.relational.running import at_once, in_pieces

STREAMS = {"R": ("a", "b"), "S": ("c", "d"), "T": ("e", "f")}
KINDS = ("INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI")
_NEVER = 1 << 62

Side = int | tuple[str, "Side", "Side", str]  # a source, or (kind, left, right, condition)


@dataclass
class JoinCase:
    """A SELECT over a random tree; `text` is the whole query set. Conditions are text over the
    aliases x0, x1, ..., the same in both languages."""

    chance: random.Random
    streams: list[str] = field(default_factory=list)
    windows: list[tuple[str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        chance = self.chance
        self.where = "TRUE"
        self.exists: list[tuple[bool, int, str, bool]] = []
        self.tree = self._tree(chance.randint(2, 3))
        if chance.random() < 0.35:
            seen = visible(self.tree)
            new = self._source()
            inside = chance.random() < 0.3
            condition = f"{self._column(chance.choice(seen))} = {self._column(new)}"
            if inside:
                self.exists.append((False, new, condition, True))
            else:
                more = [self._link(seen, [new]), *self._more([*seen, new])]
                self.exists.append((chance.random() < 0.5, new, " AND ".join(more), False))
        if chance.random() < 0.4:
            column = self._column(chance.choice(visible(self.tree)))
            self.where = chance.choice((f"{column} > 1", f"{column} IS NULL", f"{column} <> 2"))
        self.rows = {name: self._rows(columns) for name, columns in STREAMS.items()}

    def _source(self) -> int:
        self.streams.append(self.chance.choice(sorted(STREAMS)))
        kind = self.chance.choice(("RANGE", "RANGE", "ROWS", "UNBOUNDED"))
        self.windows.append(
            (kind, self.chance.choice((0, 1, 3, 8, 20) if kind == "RANGE" else (1, 2, 5)))
        )
        return len(self.streams) - 1

    def _column(self, source: int) -> str:
        return f"x{source}.{self.chance.choice(STREAMS[self.streams[source]])}"

    def _link(self, mine: list[int], theirs: list[int]) -> str:
        """Returns a comparison of both sides, or alternatives."""

        def one(operators: str) -> str:
            left, right = self._column(self.chance.choice(mine)), self.chance.choice(theirs)
            return f"{left} {self.chance.choice(operators)} {self._column(right)}"

        kind = self.chance.random()
        if kind < 0.6:
            return one("=")
        if kind < 0.65:
            left, right = one("=").split(" = ")
            forms = f"abs({left} - {right}) <= 1", f"{left} - {right} = 1", f"{left} + {right} < 3"
            return self.chance.choice((*forms, f"NOT {left} <> {right}"))
        if kind < 0.75:
            left, right = one("=").split(" = ")
            if kind < 0.7:
                return f"{left} IS NOT DISTINCT FROM {right}"
            return f"({left} = {right} OR {left} IS NULL AND {right} IS NULL)"
        ways = [one("==<>"), f"{one('=<>')} AND {one('=<>')}", one("==<>")]
        if self.chance.random() < 0.4:  # one has a condition that no index knows
            left, right = one("=").split(" = ")
            more = f"{self.chance.choice((left, right))} < 3", f"mod({left} + {right}, 3) = 1"
            ways[0] = f"{ways[0]} AND {self.chance.choice(more)}"
        return f"({' OR '.join(ways[: self.chance.randint(2, 3)])})"

    def _more(self, seen: list[int]) -> list[str]:
        found = []
        if self.chance.random() < 0.3:
            one, other = self.chance.choice(seen), self.chance.choice(seen)
            operator = self.chance.choice(("<", "<=", "<>"))
            found.append(f"{self._column(one)} {operator} {self._column(other)}")
        if self.chance.random() < 0.2:
            found.append(f"{self._column(self.chance.choice(seen))} < 3")
        return found

    def _tree(self, sources: int) -> Side:
        if sources == 1:
            return self._source()
        of_left = self.chance.randint(1, sources - 1) if self.chance.random() < 0.4 else sources - 1
        left = self._tree(of_left)
        right = self._tree(sources - of_left)
        mine, theirs = visible(left), visible(right)
        terms = self._more([*mine, *theirs])
        if self.chance.random() < 0.8 or not terms:
            terms.insert(0, self._link(mine, theirs))
        return (self.chance.choice(KINDS), left, right, " AND ".join(terms))

    def _rows(self, columns: tuple[str, ...]) -> pa.Table:
        count = self.chance.randint(0, 40)
        values = [None, 0, 1, 2, 3, 4]
        times = sorted(self.chance.randint(0, self.chance.choice((10, 60))) for _ in range(count))
        cells = {
            name: pa.array([self.chance.choice(values) for _ in range(count)], pa.int32())
            for name in columns
        }
        return pa.table({"ts": pa.array(times, pa.int64()), **cells})

    # --- as X-SQL -------------------------------------------------------------

    @property
    def select(self) -> str:
        terms = [] if self.where == "TRUE" else [self.where]
        for negated, source, condition, inside in self.exists:
            if inside:
                left, right = condition.split(" = ")
                terms.append(f"{left} IN (SELECT {right} FROM {self.streams[source]} x{source})")
            else:
                stream = self.streams[source]
                inner = f"EXISTS (SELECT * FROM {stream} x{source} WHERE {condition})"
                terms.append("NOT " * negated + inner)
        items = ", ".join(
            f"x{s}.{c} AS x{s}{c}" for s in visible(self.tree) for c in STREAMS[self.streams[s]]
        )
        where = f" WHERE {' AND '.join(terms)}" if terms else ""
        windows = ", ".join(
            kind if kind == "UNBOUNDED" else f"{kind} {size}" for kind, size in self.windows
        )
        return f"SELECT {items} FROM {self._from(self.tree, False)}{where} WINDOW {windows}"

    def _from(self, side: Side, nested: bool) -> str:
        if isinstance(side, int):
            return f"{self.streams[side]} x{side}"
        kind, left, right, condition = side
        word = {"SEMI": "LEFT SEMI", "ANTI": "LEFT ANTI"}.get(kind, kind)
        text = f"{self._from(left, False)} {word} JOIN {self._from(right, True)} ON {condition}"
        return f"({text})" if nested else text

    @property
    def text(self) -> str:
        made = "".join(
            f"CREATE STREAM {name} ({', '.join(f'{c} int' for c in columns)});\n"
            for name, columns in STREAMS.items()
        )
        names = [f"x{s}{c}" for s in visible(self.tree) for c in STREAMS[self.streams[s]]]
        return (
            f"{made}REGISTER QUERY q AS {self.select};\nCREATE STREAM j AS {self.select};\n"
            f"REGISTER QUERY over AS SELECT ts AS at, {', '.join(names)} FROM j;\n"
        )

    # --- as DuckDB's SQL ------------------------------------------------------

    def judged(self) -> Counter[tuple[object, ...]]:
        """Returns DuckDB's results with their two times."""
        base = duckdb.connect()
        for number, (name, rows) in enumerate(self.rows.items()):
            table = rows.append_column("stream", pa.array([number] * rows.num_rows, pa.int64()))
            base.register(f"{name}_", table)
            base.execute(
                f"CREATE TABLE {name}0 AS SELECT *, row_number() OVER () AS n FROM {name}_"
            )
        every = " UNION ALL ".join(f"SELECT ts, stream, n FROM {name}0" for name in self.rows)
        order = "row_number() OVER (ORDER BY ts, stream, n)"
        base.execute(f"CREATE TABLE clock AS SELECT *, {order} AS place FROM ({every})")
        for name in self.rows:
            base.execute(
                f"CREATE TABLE {name} AS SELECT * FROM {name}0 JOIN clock USING (ts, stream, n)"
            )
        tree: Side = self.tree
        for negated, source, condition, _ in self.exists:
            tree = ("ANTI" if negated else "SEMI", tree, source, condition)
        seen = visible(self.tree)
        columns = [f"x{s}.{c}" for s in seen for c in STREAMS[self.streams[s]]]
        times = ", ".join(f"x{s}.ts" for s in seen)
        least, most = f"least({times})", f"greatest({times})"
        sql = (
            f"SELECT {', '.join(map(_flat, columns))}, {_flat(least)}, {_flat(most)}"
            f" FROM {self._sql(tree)} WHERE {_flat(self.where)}"
        )
        return Counter(base.execute(sql).fetchall())

    def _sql(self, side: Side) -> str:
        if isinstance(side, int):
            kind, size = self.windows[side]
            gone = (
                f"lead(place, {size}, {_NEVER}) OVER (ORDER BY place)" if kind == "ROWS" else _NEVER
            )
            last = f"ts + {size}" if kind == "RANGE" else _NEVER
            columns = ", ".join(f"{c} AS x{side}_{c}" for c in STREAMS[self.streams[side]])
            return (
                f"(SELECT {columns}, ts AS x{side}_ts, place AS x{side}_place, {gone} AS x{side}_gone,"
                f" {last} AS x{side}_last FROM {self.streams[side]})"
            )
        kind, left, right, condition = side
        both = [*visible(left), *visible(right)]
        place = f"greatest({', '.join(f'x{s}.place' for s in both)})"
        time = f"greatest({', '.join(f'x{s}.ts' for s in both)})"
        within = [
            f"(x{s}.ts IS NULL OR ({place} < x{s}.gone AND {time} <= x{s}.last))" for s in both
        ]
        on = _flat(" AND ".join([f"({condition})", *within]))
        first, second = self._sql(left), self._sql(right)
        if kind in ("SEMI", "ANTI"):
            word = "NOT EXISTS" if kind == "ANTI" else "EXISTS"
            return f"(SELECT * FROM {first} l WHERE {word} (SELECT 1 FROM {second} r WHERE {on}))"
        return f"(SELECT * FROM {first} l {kind} JOIN {second} r ON {on})"


def visible(side: Side) -> list[int]:
    if isinstance(side, int):
        return [side]
    kind, left, right, _ = side
    return [*visible(left), *([] if kind in ("SEMI", "ANTI") else visible(right))]


def _flat(text: str) -> str:
    return text.replace(".", "_")


def check(chance: random.Random) -> int:
    """Checks one case, at once and in pieces; returns its number of results."""
    case = JoinCase(chance)
    want = case.judged()
    # Large sides, and stores to look through, in cases of few rows.
    few, many, first, gone = (chance.choice(of) for of in ((0, 32), (0, 1_024), (1, 16), (0, 256)))
    with (
        patch.object(slots, "FEW", gone),
        patch.object(joins, "_FEW", few),
        patch.object(joins, "_ROWS_AT_FIRST", chance.choice((1, 7, 4_096))),
        patch.object(joins, "_PAIRS_AT_ONCE", chance.choice((0, 10, 1 << 19))),
        patch.object(compared, "_MANY", many),
        patch.object(matching, "_FEW", first),
    ):
        found = at_once(case.text, case.rows)
        pieces = in_pieces(case.text, case.rows, chance.randrange(1 << 30))
    named = Counter({(row[-1], *row[:-2]): 0 for row in want})
    for row, count in want.items():
        named[row[-1], *row[:-2]] += count
    for run in (found, pieces):
        assert _multiset(run, "q") == want, case.text
        over = Counter({row[:-2]: n for row, n in _multiset(run, "over").items()})
        assert over == named, f"as a stream: {case.text}"
    return want.total()


def _multiset(found: dict[str, pa.Table], query: str) -> Counter[tuple[object, ...]]:
    table = found.get(query)
    return Counter() if table is None else Counter(tuple(row.values()) for row in table.to_pylist())


def one(seed: int) -> Counter[str]:
    """Runs a case; returns the number of results."""
    try:
        return Counter(results=check(random.Random(seed)), judged=1)
    except duckdb.InternalException:  # DuckDB's own fault: it cannot plan some nested EXISTS
        return Counter(unjudged=1)


if __name__ == "__main__":
    raise SystemExit(run_cases("joins", 2_000, one, about=__doc__))
