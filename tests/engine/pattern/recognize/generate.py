"""Random cases of MATCH_RECOGNIZE: each as SQL text and in the form of the reference."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.types import INT, VARCHAR
from tests.engine.pattern.recognize.reference import Case, Pattern, View, less, mean, text

STREAM = Stream("s", (Column("k", VARCHAR), Column("x", INT)))
SKIPS = {"past": "PAST LAST ROW", "next": "TO NEXT ROW", "first": "TO FIRST", "last": "TO LAST"}
GIVES = {
    "one": "ONE ROW PER MATCH",
    "all": "ALL ROWS PER MATCH",
    "omit": "ALL ROWS PER MATCH OMIT EMPTY MATCHES",
    "unmatched": "ALL ROWS PER MATCH WITH UNMATCHED ROWS",
}


def pattern(chance: random.Random, names: str, depth: int, hide: bool) -> Pattern:
    """Returns a random pattern of some variables."""
    kind = chance.random()
    if depth == 0 or kind < 0.25:
        return ("one", chance.choice(names))
    inner = [pattern(chance, names, depth - 1, hide) for _ in range(chance.randint(2, 3))]
    if kind < 0.5:
        return ("sequence", *inner)
    if kind < 0.6:
        return ("choice", *inner)
    if kind < 0.65:
        return ("permute", *inner)
    if kind < 0.7 and hide:
        return ("exclude", inner[0])
    if kind < 0.72:
        return ("choice", ("sequence",), inner[0])
    if kind < 0.76:  # iterations that prefer to be empty, of which not all are
        least = chance.choice([0, 1, 2])
        reluctant = ("repeat", ("one", chance.choice(names)), 0, chance.choice([None, 1, 2]), True)
        return ("repeat", ("sequence", reluctant, *inner[2:]), least, None, chance.random() < 0.3)
    least = chance.choice([0, 0, 1, 1, 2])
    most = chance.choice([None, None, least + 1, max(least, 1)])
    part = inner[0] if inner[0][0] in ("one", "sequence", "choice") else ("sequence", inner[0])
    if part[0] == "one" or part[0] == "sequence" or part[0] == "choice":
        return ("repeat", part, least, most, chance.random() < 0.3)
    return part


def conditions(
    chance: random.Random, v: str, w: str, u: str, alone: bool = False
) -> tuple[str, Callable[[View], Any]]:
    """Returns a condition of variable v, which may refer to w and to the SUBSET u of v and w, or
    `alone` to the row at hand and its neighbours."""
    k, n = chance.randint(0, 9), chance.randint(0, 2)
    some = v + w
    kinds: list[tuple[str, Callable[[View], Any]]] = [
        (f"{v}.x > {k}", lambda m: less(k, m.x(m.at(v)))),
        (f"x >= {k // 2}", lambda m: less(k // 2 - 1, m.x(m.at(None)))),
        (f"{v}.x < PREV({v}.x)", lambda m: less(m.x(m.at(v)), m.x(m.at(v, offset=-1)))),
        (
            f"{v}.x > PREV(x, {n}) OR PREV(x, {n}) IS NULL",
            lambda m: (
                m.x(m.at(None, offset=-n)) is None
                or bool(less(m.x(m.at(None, offset=-n)), m.x(m.at(v))))
            ),
        ),
        (f"NEXT({v}.x, {n}) > {k // 2}", lambda m: less(k // 2, m.x(m.at(v, offset=n)))),
        (f"{v}.x > LAST({w}.x)", lambda m: less(m.x(m.at(w)), m.x(m.at(v)))),
        (
            f"{v}.x <= FIRST({u}.x, {n}) + {k}",
            lambda m: below(m.x(m.at(v)), m.x(m.at(some, True, n)), k),
        ),
        (f"LAST({v}.x, 1) < {v}.x", lambda m: less(m.x(m.at(v, back=1)), m.x(m.at(v)))),
        (
            f"PREV(LAST({w}.x, {n}), 1) < {k}",
            lambda m: less(m.x(m.at(w, back=n, offset=-1)), k),
        ),
        (f"sum({u}.x) < {4 * k}", lambda m: less(total(m.values(some)), 4 * k)),
        (f"count({w}.*) < {n + 1}", lambda m: len(m.own(w)) < n + 1),
        (f"count(*) <= {k}", lambda m: len(m.own(None)) <= k),
        (f"avg(x) > {k // 2}", lambda m: less(k // 2, mean(m.values(None)))),
        (f"MATCH_NUMBER() < {k}", lambda m: m.number < k),
        (
            f"LAST(CLASSIFIER(), 1) = '{w}' OR {v}.x > {k}",
            lambda m: either(
                None if m.at(None, back=1) is None else m.label(m.at(None, back=1)) == w,
                less(k, m.x(m.at(v))),
            ),
        ),
        (
            f"{v}.x > {k} AND {v}.x > {w}.x",
            lambda m: both(less(k, m.x(m.at(v))), less(m.x(m.at(w)), m.x(m.at(v)))),
        ),
        (
            f"{w}.x IS NULL OR {v}.x <> {w}.x",
            lambda m: m.x(m.at(w)) is None or differs(m.x(m.at(v)), m.x(m.at(w))),
        ),
        (
            f"{v}.x > coalesce(LAST({w}.x, {n}), {k})",
            lambda m: less(given(m.x(m.at(w, back=n)), k), m.x(m.at(v))),
        ),
        (
            f"CASE WHEN FIRST({u}.x, {n}) > 4 THEN 2 ELSE {k} END < {v}.x",
            lambda m: less(2 if less(4, m.x(m.at(some, True, n))) else k, m.x(m.at(v))),
        ),
        (
            f"(LAST({v}.x, 1) IS NULL) = ({w}.x IS NULL)",
            lambda m: (m.x(m.at(v, back=1)) is None) == (m.x(m.at(w)) is None),
        ),
    ]
    return chance.choice(kinds[:_ALONE] if alone else kinds)


_ALONE = 5
"""The number of conditions at the beginning of the list that refer to no other row of the match."""


def given(a: Any, other: Any) -> Any:
    return other if a is None else a


def below(a: Any, b: Any, k: int) -> bool | None:
    return None if a is None or b is None else a <= b + k


def total(values: list[int]) -> int | None:
    return sum(values) if values else None


def both(a: bool | None, b: bool | None) -> bool:
    return a is True and b is True


def either(a: bool | None, b: bool | None) -> bool:
    return a is True or b is True


def differs(a: Any, b: Any) -> bool | None:
    return None if a is None or b is None else a != b


def measures(v: str, w: str) -> dict[str, tuple[str, Callable[[View], Any]]]:
    """Returns columns by name."""
    some = v + w
    return {
        "number": ("MATCH_NUMBER()", lambda m: m.number),
        "label": ("CLASSIFIER()", lambda m: m.label(m.at(None))),
        "of_u": ("CLASSIFIER(U)", lambda m: m.label(m.at(some))),
        "before": ("PREV(CLASSIFIER())", lambda m: m.label(m.at(None, offset=-1))),
        "bare": ("x", lambda m: m.x(m.at(None))),
        "first": (f"FIRST({v}.x, 1)", lambda m: m.x(m.at(v, True, 1))),
        "last": (f"FINAL LAST({w}.x)", lambda m: m.x(m.at(w, final=True))),
        "shift": (f"PREV(FIRST({v}.x), 2)", lambda m: m.x(m.at(v, True, offset=-2))),
        "ahead": ("NEXT(x)", lambda m: m.x(m.at(None, offset=1))),
        "time": (f"RUNNING LAST({v}.ts)", lambda m: m.x(m.at(v), "ts")),
        "many": ("count(*)", lambda m: len(m.own(None))),
        "sums": ("sum(U.x)", lambda m: total(m.values(some))),
        "most": (f"FINAL max({w}.x)", lambda m: max(m.values(w, True), default=None)),
        "sorts": (
            f"count(DISTINCT {v}.x) FILTER (WHERE {v}.x > 2)",
            lambda m: len({value for value in m.values(v) if value > 2}),
        ),
        "kinds": (f"FINAL count(DISTINCT {w}.x)", lambda m: len(set(m.values(w, True)))),
        "sorted": (
            f"RUNNING sum(DISTINCT {v}.x) FILTER (WHERE {v}.x < 7)",
            lambda m: total([*{value for value in m.values(v) if value < 7}]),
        ),
        "list": (
            "array_agg(CLASSIFIER())",
            lambda m: [m.label(place) for place in m.own(None)] or None,
        ),
    }


def case(seed: int, alone: bool = False) -> tuple[str, Case, pa.Table]:
    """Returns a query as text and for the reference, and rows in the order of their times. If its
    conditions are all `alone`, the search gives up what has failed before."""
    chance = random.Random(seed)
    names = "ABCD"[: chance.randint(1, 4)]
    give = chance.choice(list(GIVES))
    shape = pattern(chance, names, chance.randint(1, 3), give != "unmatched")
    if chance.random() < 0.08:
        shape = ("sequence", ("anchor", "^"), shape)
    if chance.random() < 0.08:
        shape = ("sequence", shape, ("anchor", "$"))
    used = sorted({c for c in text(shape).replace("PERMUTE", "") if c in names})
    v, w = chance.choice(used), chance.choice(used)
    define, written = {}, []
    for name in used:
        if chance.random() < 0.75:
            mine, other = name, chance.choice(used)
            sql, define[name] = conditions(chance, mine, other, "U", alone)
            if "U." in sql:
                other = w if mine == v else v
                sql, define[name] = f"{mine}.x > 2", (lambda m, own=mine: less(2, m.x(m.at(own))))
            written.append(f"{name} AS {sql}")
    if chance.random() < 0.4:
        sql, found = conditions(chance, v, w, "U", alone)
        define[v] = found
        written = [one for one in written if not one.startswith(f"{v} AS")] + [f"{v} AS {sql}"]
    kind = chance.choice(["past", "past", "next", "first", "last"])
    among = chance.choice([v, v + w])
    skip = SKIPS[kind]
    if kind in ("first", "last"):
        skip += " " + (v if among == v else "U")
    every = measures(v, w)
    some = {name: every[name] for name in chance.sample(sorted(every), chance.randint(1, 6))}
    within = chance.choice([None, chance.randint(1, 15)])
    sql = (
        "SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES "
        + ", ".join(f"{of} AS {name}" for name, (of, _) in some.items())
        + f" {GIVES[give]} AFTER MATCH SKIP {skip} PATTERN ({text(shape)})"
        + (f" WITHIN INTERVAL '{within}' MS" if within is not None else "")
        + f" SUBSET U = ({v}, {w})"
        + (" DEFINE " + ", ".join(written) if written else "")
        + ")"
    )
    reference = Case(
        shape, define, {n: of for n, (_, of) in some.items()}, give, (kind, among), within
    )
    count, top = chance.randint(0, 24), chance.choice([3, 9])
    times, now = [], 0
    for _ in range(count):
        now += chance.choice([0, 1, 1, 2, 5])
        times.append(now)
    rows = {
        "ts": pa.array(times, pa.int64()),
        "k": pa.array([chance.choice(["a", "a", "b", None]) for _ in times], pa.string()),
        "x": pa.array(
            [None if chance.random() < 0.08 else chance.randint(0, top) for _ in times], pa.int32()
        ),
    }
    return sql, reference, pa.table(rows)
