"""EMIT CHANGES compared with its definition: evaluates the query over the windows' tuples anew at
every arrival and departure; the differences are the changelog."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from seustream.compiler.pipeline import Options, compile_text
from seustream.cosim.golden import GoldenDevice
from seustream.cosim.iss import IssDevice
from seustream.engine.graph import GraphRun
from seustream.engine.relational import compared, grouped, slots, spans, told
from seustream.engine.relational.compared import Comparisons
from seustream.engine.stream.snapshot import Snapshot, unpack
from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.device import Device
from tests.engine.relational.generate import DEFINITIONS, r_stream, rows_of, s_stream
from tests.engine.relational.running import at_once, in_pieces

Row = dict[str, Any]
Moment = tuple[int, int]
"""Time and number: arrivals are numbered from 1, departures come before them."""

KINDS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")

CONDITIONS: dict[str, Callable[[Row, Row], bool]] = {
    "R.a = S.k": lambda m, r: m["a"] is not None and m["a"] == r["k"],
    "S.v > R.a": lambda m, r: m["a"] is not None and r["v"] > m["a"],
    "R.ts >= S.ts - 3": lambda m, r: m["ts"] >= r["ts"] - 3,
}

Holds = Callable[[list[Row], Row, int], bool]


def window(chance: random.Random, key: str) -> tuple[str, Holds]:
    """Returns a window, and whether it still holds a row, given the later rows and the time."""
    size = chance.choice([0, 3, 20])
    return chance.choice(
        [
            (f"RANGE {size}", lambda _, row, now: now <= row["ts"] + size),
            (f"ROWS {size + 1}", lambda later, row, now: len(later) <= size),
            ("UNBOUNDED", lambda later, row, now: True),
            (
                f"PARTITION BY {key} ROWS {size // 3 + 1}",
                lambda later, row, now: sum(o[key] == row[key] for o in later) <= size // 3,
            ),
            ("SINCE EVERY 16 ms", lambda _, row, now: row["ts"] // 16 == now // 16),
        ]
    )


def contents(rows: list[Row], holds: Holds, now: Moment) -> list[Row]:
    """Returns the rows that a window holds at a moment."""
    came = [row for row in rows if (row["ts"], row["at"]) <= now]
    return [row for place, row in enumerate(came) if holds(came[place + 1 :], row, now[0])]


def joined(
    kind: str, left: list[Row], right: list[Row], fits: Callable[[Row, Row], bool]
) -> list[Any]:
    nothing = {"k": None, "v": None, "a": None, "b": None, "c": None}
    pairs = [(m, r) for m in left for r in right if fits(m, r)]
    alone = [m for m in left if not any(fits(m, r) for r in right)]
    other = [r for r in right if not any(fits(m, r) for m in left)]
    if kind == "LEFT SEMI JOIN":
        return [(m, nothing) for m in left if m not in alone]
    if kind == "LEFT ANTI JOIN":
        return [(m, nothing) for m in alone]
    found = pairs
    found = found + [(m, nothing) for m in alone] * (kind in ("LEFT JOIN", "FULL JOIN"))
    return found + [(nothing, r) for r in other] * (kind in ("RIGHT JOIN", "FULL JOIN"))


def check(seed: int) -> None:
    chance = random.Random(seed)
    tables = {
        "R": r_stream(chance, chance.randint(1, 18)),
        "S": s_stream(chance, chance.randint(1, 12)),
    }
    data = {name: table.to_pylist() for name, table in tables.items()}
    order = sorted(
        ((row["ts"], name != "R", row) for name in "RS" for row in data[name]), key=lambda o: o[:2]
    )
    for number, (_, _, row) in enumerate(order, start=1):
        row["at"] = number
    kind, grouped = chance.choice(KINDS), chance.random() < 0.5
    single = chance.random() < 0.3
    (mine, leaves), (theirs, going) = window(chance, "a"), window(chance, "k")
    some = chance.choice(
        [["R.a = S.k"], ["R.a = S.k"], [*CONDITIONS], [], ["S.v > R.a"], ["R.ts >= S.ts - 3"]]
    )
    on = " AND ".join(some) or "1 = 1"

    def fits(m: Row, r: Row) -> bool:
        return all(CONDITIONS[one](m, r) for one in some)

    right = "" if single else f" {kind} S ON {on}"
    half = single or kind in KINDS[4:]
    where = chance.choice(["", " WHERE R.a > 1"])
    if grouped:
        value = "R.b" if half else "S.v"
        having = chance.choice(["", " HAVING count(*) > 1"])
        select = f"SELECT R.a AS a, count(*) AS n, max({value}) AS m FROM R{right}{where} GROUP BY R.a{having}"
    else:
        select = f"SELECT R.a AS a, R.c AS c{'' if half else ', S.v AS v'} FROM R{right}{where}"
    text = f"{DEFINITIONS}REGISTER QUERY q AS {select} WINDOW {mine}{'' if single else ', ' + theirs} EMIT CHANGES"
    print(f"seed {seed}\n{text}")

    def relation(now: Moment) -> Counter[tuple[Any, ...]]:
        ls = contents(data["R"], leaves, now)
        rs = [] if single else contents(data["S"], going, now)
        pairs = [(m, {}) for m in ls] if single else joined(kind, ls, rs, fits)
        if where:
            pairs = [(m, r) for m, r in pairs if m["a"] is not None and m["a"] > 1]
        if not grouped:
            return Counter((m["a"], m["c"], *(() if half else (r["v"],))) for m, r in pairs)
        groups: dict[Any, list[Any]] = {}
        for m, r in pairs:
            groups.setdefault(m["a"], []).append(m["b"] if half else r["v"])
        return Counter(
            (key, len(values), max((v for v in values if v is not None), default=None))
            for key, values in groups.items()
            if not having or len(values) > 1
        )

    times = {row["ts"] for rows in data.values() for row in rows}
    ends = {end for t in times for end in (t + 1, t + 4, t + 21, (t // 16 + 1) * 16)}
    moments = sorted({(t, 0) for t in ends} | {(row["ts"], row["at"]) for _, _, row in order})
    want, before = [], Counter[tuple[Any, ...]]()
    for now in moments:
        after = relation(now)
        for sign, rows in (("-", before - after), ("+", after - before)):
            want += [
                (now[0], sign, *row) for row, n in sorted(rows.items(), key=repr) for _ in range(n)
            ]
        before = after
    found = rows_of(at_once(text, tables).get("q"))
    assert [row[-1] for row in found] == sorted(row[-1] for row in found)
    # Within a moment, and among departures of one time, the order is free.
    assert sorted(map(repr, want)) == sorted(repr((row[-1], *row[:-2])) for row in found)
    held: Counter[tuple[Any, ...]] = Counter()
    for row in found:  # applying the changelog never goes below zero
        held[row[1:-2]] += 1 if row[0] == "+" else -1
        assert grouped or held[row[1:-2]] >= 0
    pieces = rows_of(in_pieces(text, tables, seed).get("q"))
    assert sorted(map(repr, pieces)) == sorted(map(repr, found))


@pytest.mark.parametrize("seed", range(24))
def test_changes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are looked up, places and codes given anew, and pairs made in parts, also in cases of few rows."""
    if seed % 3:
        monkeypatch.setattr(spans, "_PAIRS_AT_ONCE", 2)
        monkeypatch.setattr(compared, "_MANY", 0)
        monkeypatch.setattr(slots, "FEW", 1)
        monkeypatch.setattr(told, "_FEW", 1)
    if seed % 3 == 2:
        crowded = property(lambda of: of.codes.count() > 2)
        monkeypatch.setattr(Comparisons, "is_crowded", crowded)
    check(seed)


@pytest.mark.parametrize("on", ["R.a = S.k", "R.a >= S.k"])
@pytest.mark.parametrize(
    "windows", ["RANGE 5, RANGE 3", "ROWS 3, ROWS 9", "PARTITION BY c ROWS 2, ROWS 4"]
)
def test_only_pairs_that_exist_together_are_made(
    on: str, windows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All rows come at once, and all meet the condition: each pair that is looked at is a result."""
    chance, most, ones = random.Random(1), 200, pa.array([1] * 200, pa.int32())
    r, s = r_stream(chance, most), s_stream(chance, most)
    rows = {
        "R": r.set_column(1, "a", ones).set_column(2, "b", pa.array(range(most), pa.float64())),
        "S": s.set_column(1, "k", ones).set_column(2, "v", pa.array(range(most), pa.int64())),
    }
    made, meet = list[int](), spans.JoinSpans._meet

    def counted(join: spans.JoinSpans, left: Any, right: Any) -> Any:
        made.append(len(left))
        return meet(join, left, right)

    monkeypatch.setattr(spans.JoinSpans, "_meet", counted)
    form = f"REGISTER QUERY q AS SELECT R.b{{}} FROM R {{}} S ON {on} WINDOW {windows} EMIT CHANGES"
    found = rows_of(at_once(DEFINITIONS + form.format(", S.v", "JOIN"), rows)["q"])
    came = sum(op == "+" for op, *_ in found)
    assert (
        0 < 3 * came < most * most
    )  # pairs are looked at once more for each side that may be alone
    for kind in KINDS:
        made.clear()
        at_once(DEFINITIONS + form.format("", kind), rows)
        assert came <= sum(made) <= 3 * came, kind


@pytest.mark.parametrize("kind", ["JOIN", "FULL JOIN"])
def test_a_row_that_both_sides_have_meets_itself_once(kind: str) -> None:
    columns = {"ts": [1, 2], "a": pa.array([1, 1], pa.int32()), "b": [1.0, 2.0], "c": ["", ""]}
    text = f"""{DEFINITIONS}REGISTER QUERY q AS SELECT R.b FROM R {kind} R AS T ON R.a = T.a
    WINDOW RANGE 5, RANGE 5 EMIT CHANGES"""
    found = [(op, b, ts) for op, b, *_, ts in rows_of(at_once(text, {"R": pa.table(columns)})["q"])]
    assert found[:4] == [("+", 1.0, 1), ("+", 1.0, 2), ("+", 2.0, 2), ("+", 2.0, 2)]
    assert found[4:] == [("-", 1.0, 7), ("-", 1.0, 7), ("-", 2.0, 7), ("-", 2.0, 8)]


def test_the_changes_of_an_unbounded_window_sum_up_to_the_batch_result() -> None:
    """Applies them as a reader that keeps a table does."""
    chance = random.Random(3)
    tables = {"R": r_stream(chance, 2_000), "S": s_stream(chance, 50)}
    text = f"""{DEFINITIONS}REGISTER QUERY q AS SELECT a, count(*) AS n, sum(b) AS s FROM R GROUP BY a
    WINDOW UNBOUNDED EMIT CHANGES"""
    table: dict[Any, Any] = {}
    for op, a, n, s, *_ in rows_of(at_once(text, tables)["q"]):
        if op == "-":
            assert table.pop(a) == (n, s)
        else:
            table[a] = (n, s)
    of = {}
    for a in set(tables["R"].column("a").to_pylist()):
        mine = [row["b"] for row in tables["R"].to_pylist() if row["a"] == a]
        of[a] = (len(mine), sum(b for b in mine if b is not None))
    assert table == of


def test_a_derived_stream_of_changes_is_read_like_others() -> None:
    rows = {
        "R": pa.table(
            {"ts": [0, 5], "a": pa.array([1, 1], pa.int32()), "b": [1.0, 2.0], "c": ["", ""]}
        )
    }
    text = f"""{DEFINITIONS}CREATE STREAM counts AS SELECT a, count(*) AS n FROM R GROUP BY a
    WINDOW RANGE 10 EMIT CHANGES; REGISTER QUERY q AS SELECT n, ts FROM counts WHERE op = '-'"""
    assert [row[:2] for row in rows_of(at_once(text, rows)["q"])] == [(1, 5), (2, 11), (1, 16)]


KEYS = (
    "R.a",
    "R.c",
    "R.b",
    "R.c, R.a",
    "R.a > 2",
    "CAST(R.b AS decimal(9,2))",
    "CAST(R.a AS real), R.c",
)
VALUES = (
    "count(*)", "sum(R.b)", "first(R.b)", "last(R.c)", "min_by(R.c, R.b)", "array_agg(R.b)",
    "string_agg(R.c, '-')", "min(R.a)", "count(DISTINCT R.c)", "array_agg(S.v)", "max_by(S.v, R.a)",
    "first(S.v)",
)  # fmt: skip
"""With those that depend on the order of the rows."""
OTHERS = (
    "SELECT R.b, S.v FROM R, S WHERE R.a = S.k WINDOW RANGE 30",
    "SELECT count(*) AS n FROM R GROUP BY R.a WINDOW ROWS 40",
    "SELECT R.a, S.v FROM R LEFT JOIN S ON R.a = S.k WINDOW RANGE 9",
    "SELECT R.a, count(*) AS n FROM R GROUP BY R.a, TUMBLE(ts, 7)",
    "SELECT R.a FROM R WHERE R.b > 1 WINDOW NOW",
)
FORMS = (
    "SELECT a, b FROM R QUALIFY row_number() OVER (PARTITION BY c ORDER BY b) <= 2 EMIT CHANGES",
    "SELECT a, b, rank() OVER (PARTITION BY c ORDER BY a) AS n FROM R QUALIFY n <= 2 EMIT CHANGES",
    "SELECT c, b FROM R ORDER BY b LIMIT 3 EMIT CHANGES",
    "SELECT a, count(*) AS n FROM R GROUP BY a, TUMBLE(ts, 9) EMIT CHANGES",
    "SELECT c, first(b) AS n FROM R GROUP BY c, HOP(ts, 3, 9) EMIT CHANGES",
    "SELECT c, array_agg(b) AS n FROM R GROUP BY c, SESSION(ts, 3) EMIT CHANGES",
    "SELECT R.c, S.v, T.v AS w FROM R LEFT JOIN S ON R.a = S.k FULL JOIN S AS T ON T.v = S.v"
    " WINDOW RANGE 8, ROWS 9, RANGE 5 EMIT CHANGES",
    "SELECT R.c, array_agg(T.v) AS w FROM R LEFT JOIN S ON R.a = S.k LEFT JOIN S AS T ON T.v = S.v"
    " GROUP BY R.c WINDOW RANGE 8, ROWS 9, RANGE 5 EMIT CHANGES",
)
"""Of other operators, and of three sources."""


def query_of_changes(chance: random.Random) -> str:
    """Returns a query whose changes at one moment are many."""
    if chance.random() < 0.25:
        return chance.choice(FORMS)
    kind, alone = chance.choice(KINDS), chance.random() < 0.3
    mine, theirs = window(chance, "a")[0], window(chance, "k")[0]
    source = "R" if alone else f"R {kind} S ON R.a = S.k"
    windows = mine if alone else f"{mine}, {theirs}"
    if chance.random() < 0.3:
        value = "" if alone or kind in KINDS[4:] else ", S.v AS v"
        return f"SELECT R.a AS a, R.c AS c{value} FROM {source} WINDOW {windows} EMIT CHANGES"
    known = [one for one in VALUES if not ((alone or kind in KINDS[4:]) and "S." in one)]
    some = ", ".join(f"{v} AS v{n}" for n, v in enumerate(chance.sample(known, 3)))
    keys = chance.choice(KEYS)
    named = ", ".join(f"{key} AS k{n}" for n, key in enumerate(keys.split(", ")) if "(" not in keys)
    having = chance.choice(["", " HAVING count(*) > 1"])
    select = f"{named}, {some}" if named else some
    return f"SELECT {select} FROM {source} GROUP BY {keys}{having} WINDOW {windows} EMIT CHANGES"


def check_order(seed: int, device: type[GoldenDevice] | type[IssDevice] | None) -> int:
    """Checks that the changes of a run that is saved, resumed, and given other queries at random
    are those of a run that goes on, in the same order. Returns how often queries changed in
    place."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    tables = {"R": r_stream(chance, 120, 1), "S": s_stream(chance, 90)}
    queries = [query_of_changes(chance) for _ in range(4)]
    text = DEFINITIONS + "".join(f"REGISTER QUERY q{n} AS {q};\n" for n, q in enumerate(queries))
    text += f"REGISTER QUERY keeper AS {OTHERS[0]};\n"
    print(text)
    options = Options(CONFIGURATIONS["tiny"], devices=0 if device is None else 1)
    begun = compile_text(text, options=options)

    def run_of(c: Any) -> GraphRun:
        own: Device | None = None if device is None else device(CONFIGURATIONS["tiny"])
        return GraphRun(c, own, living=True)

    c, runs = begun, [run_of(begun), run_of(begun)]
    found: list[dict[str, list[Row]]] = [{}, {}]

    def take(place: int, answers: Any) -> None:
        for name, rows in answers:
            if not name.startswith("x"):
                found[place].setdefault(name, []).extend(rows.to_pylist())

    sent, others, in_place = dict.fromkeys(tables, 0), 0, 0
    while any(sent[name] < table.num_rows for name, table in tables.items()):
        name, size = chance.choice(sorted(tables)), chance.randint(0, 25)
        for place, run in enumerate(runs):
            run.push(name, tables[name].slice(sent[name], size))
            take(place, run.advance())
        sent[name] += size
        match chance.choice(["on", "save", "register", "drop"]):
            case "save":
                state, runs[1] = runs[1].state(), run_of(c)
                runs[1].resume(state)
            case "register" | "drop" as what:
                said = f"REGISTER QUERY x{others} AS {chance.choice(OTHERS)};"
                if what == "drop" and others:
                    said = f"DROP QUERY x{others - 1};{said}"
                others, c = others + 1, compile_text(said, after=c)
                if runs[1].change(c):
                    in_place += 1
                    continue
                state, runs[1] = runs[1].state(), run_of(c)
                runs[1].resume(state)
    for place, run in enumerate(runs):
        take(place, run.finish())
    assert found[0] == found[1]
    whole = at_once(text, tables)
    for number, query in enumerate(queries):
        if "ORDER BY" not in query:  # the order among ranks depends on what comes together
            want = whole[f"q{number}"].to_pylist() if f"q{number}" in whole else []
            assert found[0].get(f"q{number}", []) == want
    return in_place


@pytest.mark.parametrize("device", [None, GoldenDevice, IssDevice])
@pytest.mark.parametrize("seed", range(8))
def test_the_order_of_changes_is_that_of_a_run_that_goes_on(
    seed: int,
    device: type[GoldenDevice] | type[IssDevice] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grouped, "_FEW", 8)  # so that groups are often rebuilt
    in_place = check_order(seed, device)
    assert in_place > 0 or device is not None


def test_a_state_of_an_earlier_release_is_continued_in_its_order() -> None:
    """Without the order of the members, they are in the order in which they come again."""
    chance = random.Random(2)
    tables = {"R": r_stream(chance, 60), "S": s_stream(chance, 60)}
    text = f"""{DEFINITIONS}REGISTER QUERY q AS SELECT R.a, count(*) AS n, sum(S.v) AS s
    FROM R LEFT JOIN S ON R.a = S.k GROUP BY R.a WINDOW RANGE 20 EMIT CHANGES"""
    c = compile_text(text, options=Options(devices=0))
    before, after = GraphRun(c), GraphRun(c)
    found = []
    for name, table in tables.items():
        before.push(name, table.slice(0, 40))
    for _, rows in before.advance():
        found += rows_of(rows)
    state = before.state()
    (own,) = [name for name in state.operators if name.endswith("q")]
    saved = unpack(state.operators[own], "changes")
    earlier = {name: table for name, table in saved.tables.items() if name != "order"}
    assert len(earlier) < len(saved.tables)
    state.operators[own] = Snapshot("changes", saved.plain, earlier).pack()
    after.resume(state)
    for name, table in tables.items():
        after.push(name, table.slice(40))
    for _, rows in after.finish():
        found += rows_of(rows)
    assert found == rows_of(at_once(text, tables)["q"])
