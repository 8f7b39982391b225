"""Draws statements of X-SQL, and what DuckDB is asked in their place: see `statements`."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

from tests.engine.relational.generate import DEFINITIONS, r_stream, s_stream

BASE = {"R": {"a": "int", "b": "real", "c": "text"}, "S": {"k": "int", "v": "int"}}
JOINS = ("INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI")
AGGREGATES = {
    "int": ("sum({})", "count({})", "min({})", "avg({})", "count(DISTINCT {})"),
    "real": ("max({})", "sum({})", "avg({}) FILTER (WHERE {} > 0)", "quantile_cont({}, 0.25)"),
    "text": ("count({})", "max({})", "count(DISTINCT {})"),
}
KINDS = {"count": "int", "sum": "", "min": "", "max": "", "avg": "real", "quantile_cont": "real"}


@dataclass(frozen=True)
class Part:
    """A query as both sides write it; `ours` may be the name of a stream. `columns` has the kind of
    each column; the judge's rows also have their time, `ts`."""

    columns: dict[str, str]
    ours: str
    theirs: str


class StatementCase:
    """Draws one case. `text` is the query set, `judged` what DuckDB is asked."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.rows = {"R": r_stream(chance, chance.randint(0, 30)), "S": s_stream(chance, 20)}
        self.names, self.made = 0, list[str]()
        self.parts = Counter[str]()
        top = self._part(chance.choice((1, 2, 2, 3)))
        self.net, self.ordered = False, False
        if chance.random() < 0.25:
            top = self._changes()
        elif chance.random() < 0.15:
            top = self._first(top)
        self.text = f"{DEFINITIONS}{''.join(self.made)}REGISTER QUERY q AS {top.ours}"
        listed = ", ".join([*top.columns, *([] if self.net else ["ts"])])
        self.judged = f"SELECT {listed} FROM ({top.theirs})"

    # --- pieces of text -------------------------------------------------------

    def _name(self) -> str:
        self.names += 1
        return f"x{self.names}"

    def _input(self, depth: int) -> Part:
        """Returns a base stream, a query in FROM, or a derived stream."""
        if depth <= 0 or self.chance.random() < 0.3:
            name = self.chance.choice(sorted(BASE))
            return Part(BASE[name], name, f"SELECT * FROM {name}")
        part = self._part(depth - 1)
        if self.chance.random() < 0.3:
            name = f"d{len(self.made)}"
            self.made.append(f"CREATE STREAM {name} AS {part.ours};\n")
            return Part(part.columns, name, part.theirs)
        return part

    def _from(self, part: Part, alias: str) -> tuple[str, str]:
        ours = part.ours if " " not in part.ours else f"({part.ours})"
        return f"{ours} AS {alias}", f"({part.theirs}) AS {alias}"

    def _of(self, part: Part, *kinds: str) -> str | None:
        found = [name for name, kind in part.columns.items() if not kinds or kind in kinds]
        return self.chance.choice(found) if found else None

    def _condition(self, part: Part, alias: str) -> str:
        name = self._of(part) or "ts"
        value = {"int": "2", "real": "0.5", "text": "'x'"}[part.columns.get(name, "int")]
        forms = ("{} > {}", "{} IS NOT NULL", "NOT {} <= {}", "{} IS DISTINCT FROM {}")
        form = self.chance.choice((*forms, "{} IN ({}, NULL)"))
        return form.format(f"{alias}.{name}", value)

    def _items(self, seen: list[tuple[str, Part]]) -> tuple[dict[str, str], list[str]]:
        """Draws some of the columns in sight, and an expression now and then."""
        every = [
            (f"{alias}.{name}", kind) for alias, of in seen for name, kind in of.columns.items()
        ]
        some = self.chance.sample(every, self.chance.randint(1, min(4, len(every))))
        columns, items = dict[str, str](), list[str]()
        for text, kind in some:
            if kind == "int" and self.chance.random() < 0.3:
                text = self.chance.choice(
                    (
                        f"{text} + 1",
                        f"coalesce({text}, 7)",
                        f"CASE WHEN {text} > 1 THEN 1 ELSE 0 END",
                    )
                )
            name = f"c{len(columns)}_{self.names}"
            columns[name] = kind
            items.append(f"{text} AS {name}")
        return columns, items

    def _measures(self, part: Part, alias: str, over: str = "") -> tuple[dict[str, str], list[str]]:
        columns, items = dict[str, str](), list[str]()
        for number in range(self.chance.randint(1, 3)):
            name = self._of(part)
            if name is None:
                break
            kind = part.columns[name]
            form = self.chance.choice(AGGREGATES[kind])
            if over and "DISTINCT" in form:
                continue
            called = f"m{number}_{self.names}"
            columns[called] = KINDS[form.partition("(")[0]] or kind
            cell = f"{alias}.{name}"
            items.append(f"{form.format(cell, cell)}{over} AS {called}")
        columns[f"n_{self.names}"] = "int"
        items.append(f"count(*){over} AS n_{self.names}")
        return columns, items

    # --- parts ----------------------------------------------------------------

    def _part(self, depth: int) -> Part:
        ways = (self._select, self._join, self._join, self._exists, self._windows, self._windows)
        more = (self._frames, self._ranks, self._union, self._distinct, self._asof)
        way = self.chance.choice((*ways, *more))
        self.parts[way.__name__.strip("_")] += 1
        return way(depth)

    def _select(self, depth: int) -> Part:
        part, alias = self._input(depth), self._name()
        ours, theirs = self._from(part, alias)
        columns, items = self._items([(alias, part)])
        listed, where = ", ".join(items), self._condition(part, alias)
        return Part(
            columns,
            f"SELECT {listed} FROM {ours} WHERE {where}",
            f"SELECT {listed}, {alias}.ts FROM {theirs} WHERE {where}",
        )

    def _bounded(self, x: str, y: str) -> tuple[str, str]:
        """Returns windows, and what they mean for the times of two rows."""
        if self.chance.random() < 0.3:
            return " WINDOW UNBOUNDED", "TRUE"
        one, other = self.chance.choice((0, 3, 20)), self.chance.choice((0, 3, 20))
        return (
            f" WINDOW RANGE {one}, RANGE {other}",
            f"{x}.ts - {y}.ts <= {other} AND {y}.ts - {x}.ts <= {one}",
        )

    def _equal(self, left: Part, x: str, right: Part, y: str) -> str:
        for kind in self.chance.sample(("int", "text", "real"), 3):
            a, b = self._of(left, kind), self._of(right, kind)
            if a and b:
                return f"{x}.{a} = {y}.{b}"
        return f"{x}.ts = {y}.ts"

    def _join(self, depth: int) -> Part:
        left, right = self._input(depth), self._input(depth - 1)
        x, y = self._name(), self._name()
        kind = self.chance.choice(JOINS)
        (ours, theirs), (ours_right, theirs_right) = self._from(left, x), self._from(right, y)
        window, within = self._bounded(x, y)
        on = self._equal(left, x, right, y)
        if window != " WINDOW UNBOUNDED" and self.chance.random() < 0.3:
            # Bounds on times in place of windows.
            on += f" AND {y}.ts BETWEEN {x}.ts - 4 AND {x}.ts + 9"
            window, within = "", "TRUE"
        if self.chance.random() < 0.2:
            on += f" AND {self._condition(right, y)}"
        seen = [(x, left)] if kind in ("LEFT SEMI", "LEFT ANTI") else [(x, left), (y, right)]
        columns, items = self._items(seen)
        listed = ", ".join(items)
        where = (
            f" WHERE {self._condition(*reversed(seen[-1]))}" if self.chance.random() < 0.3 else ""
        )
        both = f"{on} AND {within}"
        if len(seen) == 1:
            word = "EXISTS" if kind == "LEFT SEMI" else "NOT EXISTS"
            also = f" AND {where.removeprefix(' WHERE ')}" if where else ""
            judged = f"{theirs} WHERE {word} (SELECT 1 FROM {theirs_right} WHERE {both}){also}"
            newest = f"{x}.ts"
        else:
            judged, newest = (
                f"{theirs} {kind} JOIN {theirs_right} ON {both}{where}",
                f"greatest({x}.ts, {y}.ts)",
            )
        return Part(
            columns,
            f"SELECT {listed} FROM {ours} {kind} JOIN {ours_right} ON {on}{where}{window}",
            f"SELECT {listed}, {newest} AS ts FROM {judged}",
        )

    def _exists(self, depth: int) -> Part:
        left, right = self._input(depth), self._input(depth - 1)
        x, y = self._name(), self._name()
        (ours, theirs), (ours_right, theirs_right) = self._from(left, x), self._from(right, y)
        window, within = self._bounded(x, y)
        columns, items = self._items([(x, left)])
        listed, on, not_ = (
            ", ".join(items),
            self._equal(left, x, right, y),
            self.chance.choice(("", "NOT ")),
        )
        asked = f"{not_}EXISTS (SELECT * FROM {ours_right} WHERE {on})"
        if not not_ and self.chance.random() < 0.5:
            mine, other = on.split(" = ")
            asked = f"{mine} IN (SELECT {other} FROM {ours_right})"
        more = f" AND {self._condition(left, x)}" if self.chance.random() < 0.4 else ""
        return Part(
            columns,
            f"SELECT {listed} FROM {ours} WHERE {asked}{more}{window}",
            f"SELECT {listed}, {x}.ts FROM {theirs} WHERE {not_}EXISTS (SELECT 1 FROM {theirs_right}"
            f" WHERE {on} AND {within}){more}",
        )

    def _windows(self, depth: int) -> Part:
        part, alias = self._input(depth), self._name()
        ours, theirs = self._from(part, alias)
        size, slide = self.chance.choice((2, 5, 9, 40)), self.chance.choice((2, 3, 7))
        begin, end = f"w * {slide}", f"w * {slide} + {size}"
        form = f"HOP(ts, {slide}, {size})"
        if self.chance.random() < 0.5:
            form, begin, end = f"TUMBLE(ts, {size})", f"w * {size}", f"(w + 1) * {size}"
        elif self.chance.random() < 0.3:
            form = f"CUMULATE(ts, {slide}, {3 * slide})"
            begin, end = f"floor(w / 3)::bigint * {3 * slide}", f"(w + 1) * {slide}"
        key, keys = self._of(part), dict[str, str]()
        if key and self.chance.random() < 0.7:
            keys[key] = part.columns[key]
        columns, items = self._measures(part, alias)
        every = keys | columns | {f"ws_{self.names}": "int", f"we_{self.names}": "int"}
        groups = [f"{alias}.{key}" for key in keys]
        having = self.chance.choice(("", "", " HAVING count(*) > 1"))
        listed = ", ".join([*groups, *items])
        return Part(
            every,
            f"SELECT {listed}, window_start AS ws_{self.names}, window_end AS we_{self.names} FROM {ours}"
            f" GROUP BY {', '.join([*groups, form])}{having}",
            f"SELECT {listed}, {begin} AS ws_{self.names}, {end} AS we_{self.names}, {end} - 1 AS ts FROM {theirs}"
            f" JOIN W ON {begin} <= {alias}.ts AND {alias}.ts < {end}"
            f" GROUP BY {', '.join([*groups, 'w'])}{having}",
        )

    def _frames(self, depth: int) -> Part:
        part, alias = self._input(depth), self._name()
        ours, theirs = self._from(part, alias)
        key = self._of(part, "int", "text")
        keys = f"PARTITION BY {alias}.{key} " if key and self.chance.random() < 0.7 else ""
        size = self.chance.choice(("0 PRECEDING", "9 PRECEDING", "UNBOUNDED PRECEDING"))
        frame = f"({keys}ORDER BY {alias}.ts RANGE BETWEEN {size} AND CURRENT ROW)"
        named = self.chance.random() < 0.3
        columns, items = self._measures(part, alias, " OVER w" if named else f" OVER {frame}")
        columns, items = {"own": "int"} | columns, [f"{alias}.ts AS own", *items]
        clause = f" WINDOW w AS {frame}" if named else ""
        if self.chance.random() < 0.3:
            clause += f" QUALIFY n_{self.names} > 1"
        listed = ", ".join(items)
        return Part(
            columns,
            f"SELECT {listed} FROM {ours}{clause}",
            f"SELECT {listed}, {alias}.ts FROM {theirs}{clause}",
        )

    def _ranks(self, depth: int) -> Part:
        part, alias = self._input(depth), self._name()
        ours, theirs = self._from(part, alias)
        columns, items = self._items([(alias, part)])
        key, by = self._of(part, "int", "text"), self._of(part) or "ts"
        keys = f"PARTITION BY {alias}.{key} " if key and self.chance.random() < 0.7 else ""
        # For ties in an order both sides give the same.
        rank = self.chance.choice(("rank", "dense_rank", "cume_dist", "percent_rank"))
        way = self.chance.choice(("", " DESC", " NULLS FIRST", " DESC NULLS FIRST"))
        over = f"{rank}() OVER ({keys}ORDER BY {alias}.{by}{way})"
        if self.chance.random() < 0.2:
            rank = self.chance.choice(("count(*)", f"max({alias}.{by})", f"min({alias}.{by})"))
            over = f"{rank} OVER ({keys.strip()})"
        listed = ", ".join(items)
        inner, other = self._name(), f"r_{self.names}"
        bound = "'x'" if rank.startswith("m") and part.columns.get(by) == "text" else 2
        most = f" WHERE {inner}.{other} <= {bound}" if self.chance.random() < 0.6 else ""
        kind = "int" if rank.endswith(("rank", "(*)")) and rank != "percent_rank" else "real"
        kind = part.columns.get(by, "int") if rank.startswith("m") else kind
        outer = ", ".join(f"{inner}.{name} AS {name}" for name in [*columns, other])
        return Part(
            columns | {other: kind},
            f"SELECT {outer} FROM (SELECT {listed}, {over} AS {other} FROM {ours}) AS {inner}{most}",
            f"SELECT {outer}, {inner}.ts FROM (SELECT {listed}, {over} AS {other}, {alias}.ts"
            f" FROM {theirs}) AS {inner}{most}",
        )

    def _union(self, depth: int) -> Part:
        parts = [self._input(depth), self._input(depth - 1)]
        ours, theirs = list[str](), list[str]()
        for part in parts:
            alias = self._name()
            mine, other = self._from(part, alias)
            number, text = self._of(part, "int"), self._of(part, "text")
            items = f"{f'{alias}.{number}' if number else 'CAST(NULL AS int)'} AS u,"
            items += f" {f'{alias}.{text}' if text else 'CAST(NULL AS varchar)'} AS t"
            ours.append(f"SELECT {items} FROM {mine}")
            theirs.append(f"SELECT {items}, {alias}.ts FROM {other}")
        columns = {"u": "int", "t": "text"}
        if self.chance.random() < 0.4:
            once = " UNION ALL ".join(theirs)
            return Part(
                columns,
                f"{' UNION '.join(ours)} WINDOW UNBOUNDED",
                f"SELECT u, t, min(ts) AS ts FROM ({once}) GROUP BY u, t",
            )
        return Part(columns, " UNION ALL ".join(ours), " UNION ALL ".join(theirs))

    def _distinct(self, depth: int) -> Part:
        part, alias = self._input(depth), self._name()
        ours, theirs = self._from(part, alias)
        columns, items = self._items([(alias, part)])
        listed, names = ", ".join(items), ", ".join(columns)
        return Part(
            columns,
            f"SELECT DISTINCT {listed} FROM {ours} WINDOW UNBOUNDED",
            f"SELECT {names}, min(ts) AS ts FROM (SELECT {listed}, {alias}.ts FROM {theirs})"
            f" GROUP BY {names}",
        )

    def _asof(self, depth: int) -> Part:
        """Draws an ASOF join. Its right side is a base stream, whose rows of one time have an
        order."""
        left, x, y = self._input(depth), self._name(), self._name()
        ours, theirs = self._from(left, x)
        columns, items = self._items([(x, left)])
        key = self._of(left, "int")
        on = f"{x}.ts >= {y}.ts" + (f" AND {x}.{key} = {y}.k" if key else "")
        if self.chance.random() < 0.3:
            on += f" AND {x}.ts - {y}.ts <= 20"
        outer = self.chance.choice(("", "LEFT "))
        form = f"{outer}ASOF" if self.chance.random() < 0.5 else f"ASOF {outer}".strip()
        latest = f"(SELECT arg_max([{y}.v], {y}.rn) FROM S AS {y} WHERE {on})"
        kept = "" if outer else " WHERE found IS NOT NULL"
        name = f"v_{self.names}"
        return Part(
            columns | {name: "int"},
            f"SELECT {', '.join(items)}, {y}.v AS {name} FROM {ours} {form} JOIN S AS {y} ON {on}",
            f"SELECT {', '.join(columns)}, found[1] AS {name}, ts FROM (SELECT {', '.join(items)},"
            f" {x}.ts, {latest} AS found FROM {theirs}){kept}",
        )

    # --- the outermost query --------------------------------------------------

    def _changes(self) -> Part:
        """Draws EMIT CHANGES over windows that nothing leaves: the changes sum up to the judge's
        result."""
        self.net = True
        self.parts["changes"] += 1
        way = self.chance.random()
        if way < 0.55:
            part = self._windows(1) if way < 0.3 else self._ranks(1)
            return Part(part.columns, f"{part.ours} EMIT CHANGES", part.theirs)
        if way < 0.75:
            left, right, x, y = self._input(1), self._input(0), self._name(), self._name()
            (ours, theirs), (mine, other) = self._from(left, x), self._from(right, y)
            columns, items = self._items([(x, left), (y, right)])
            on, kind = self._equal(left, x, right, y), self.chance.choice(JOINS[:4])
            text = f"SELECT {', '.join(items)} FROM {{}} {kind} JOIN {{}} ON {on}"
            changes = f"{text.format(ours, mine)} WINDOW UNBOUNDED EMIT CHANGES"
            return Part(columns, changes, text.format(theirs, other))
        part, alias = self._input(1), self._name()
        ours, theirs = self._from(part, alias)
        key = self._of(part)
        columns, items = self._measures(part, alias)
        keys = [f"{alias}.{key}"] if key else []
        having = self.chance.choice(("", " HAVING count(*) > 1"))
        listed = ", ".join([*keys, *items])
        by = f" GROUP BY {keys[0]}" if keys else " HAVING count(*) > 0" if not having else ""
        text = f"SELECT {listed} FROM {{}}{by if keys else ''}{having}"
        judged = text.format(theirs) + (by if not keys else "")
        every = ({key: part.columns[key]} if key else {}) | columns
        return Part(every, f"{text.format(ours)} WINDOW UNBOUNDED EMIT CHANGES", judged)

    def _first(self, part: Part) -> Part:
        """Draws ORDER BY all columns, so that equal rows do not differ, and LIMIT."""
        alias, self.ordered = self._name(), True
        ours, theirs = self._from(part, alias)
        order = ", ".join(
            f"{alias}.{name}{self.chance.choice(('', ' DESC'))}" for name in part.columns
        )
        limit = self.chance.choice(("LIMIT 5", "FETCH FIRST 5 ROWS ONLY", ""))
        names = ", ".join(f"{alias}.{name} AS {name}" for name in part.columns)
        return Part(
            part.columns,
            f"SELECT {names} FROM {ours} ORDER BY {order}, {alias}.ts {limit}",
            f"SELECT {names}, {alias}.ts FROM {theirs} ORDER BY {order}, {alias}.ts {limit and 'LIMIT 5'}",
        )
