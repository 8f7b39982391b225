"""The engine's join, compared with DuckDB and with loops that try every combination.

Finds: a wrong window, a combination that is lost or found twice, a comparison that is not SQL's,
and a row of the host that counts for the device or vice versa.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.logical import program as logical
from seustream.compiler.pipeline import compile_text
from seustream.engine.host import join as module
from seustream.engine.host.join import Side, WindowJoin
from seustream.engine.host.rows import RowStore, leaves
from seustream.engine.stream.evaluate import Leaves, survivors
from seustream.engine.stream.merge import timestamps
from seustream.engine.stream.schema import stream_schema
from tests.engine.host.reference import (
    Query,
    Result,
    Source,
    Stream,
    arrivals,
    join,
    random_query,
    random_streams,
    value,
)
from tests.engine.stream.conditions import COLUMNS, Some, made_rows

Ours = Callable[[int, int, int], int]
"""Maps (source, place, own arrival) to the arrival from which the row belongs to the host."""


def bound(streams: list[Stream], query: Query | str) -> logical.Query:
    text = "\n".join(stream.create for stream in streams)
    text += query if isinstance(query, str) else query.text
    return compile_text(text, stop_after="predicate").program.queries[0]


class Replay:
    """Feeds the rows of some streams to a software join in slices, as a driver does."""

    def __init__(self, streams: list[Stream], query: logical.Query, ours: Ours) -> None:
        self.streams, self.query, self.ours = streams, query, ours
        self.faults = Faults()
        self.order = arrivals(streams)
        names = [source.stream.name for source in query.sources]
        copies = {name: names.count(name) for name in names}
        self.stores = {
            s.stream.name: RowStore(stream_schema(s.stream), copies[s.stream.name])
            for s in query.sources
        }
        self.sides = [
            Side(
                self.stores[source.stream.name],
                names[:place].count(source.stream.name),
                source.window,
                source.alias,
            )
            for place, source in enumerate(query.sources)
        ]

    def run(self, at_once: int) -> list[tuple[int, ...]]:
        found: list[tuple[int, ...]] = []
        join = WindowJoin(x.conjuncts(self.query.where), self.sides, device=self.ours is not always)
        for start in range(0, len(self.order), at_once):
            stop = min(start + at_once, len(self.order))
            new = self._append(start, stop)
            self._leave(stop)
            arrived = [new[source.stream.name] for source in self.query.sources]
            for part in join.results(arrived, self.faults):
                found += map(tuple, part.tolist())
        return found

    def _append(self, start: int, stop: int) -> dict[str, np.ndarray]:
        new = {}
        for index, stream in enumerate(self.streams):
            store = self.stores.get(stream.name)
            if store is None:
                continue
            mine = [
                (n, at[1]) for n, at in enumerate(self.order[start:stop], start) if at[0] == index
            ]
            before = len(store)
            if mine:
                rows = stream.table.take([place for _, place in mine]).cast(store.table.schema)
                store.append(
                    rows,
                    timestamps(rows),
                    [
                        np.array([position(n, copy) for n, _ in mine])
                        for copy in range(len(store.position))
                    ],
                )
            new[stream.name] = np.arange(before, len(store))
        return new

    def _leave(self, stop: int) -> None:
        """Marks in the stores the rows that belong to the host by now."""
        for number, side in enumerate(self.sides):
            for place in range(len(side.store)):
                own = int(side.position[place]) // 4
                left = self.ours(number, place, own)
                if left < stop:
                    side.left[place] = position(left, side.copy)


def position(arrival: int, copy: int) -> int:
    """The copies of a row arrive directly after each other."""
    return 4 * arrival + copy


def always(source: int, place: int, own: int) -> int:
    return own


NEVER = 1 << 40


def ours_among(
    results: list[Result], streams: list[Stream], query: Query, ours: Ours
) -> set[tuple[int, ...]]:
    """Returns the results with a component that belongs to the host when the last one arrives."""
    own = {at: number for number, at in enumerate(arrivals(streams))}
    index = [next(i for i, s in enumerate(streams) if s is x.stream) for x in query.sources]
    copies = [index[:source].count(number) for source, number in enumerate(index)]
    found = set()
    for result in results:
        came = [own[at] for at in zip(index, result.places, strict=True)]
        last = max(map(position, came, copies))
        left = [ours(source, place, came[source]) for source, place in enumerate(result.places)]
        if any(position(*at) <= last for at in zip(left, copies, strict=True)):
            found.add(result.places)
    return found


@pytest.mark.parametrize("seed", range(90))
def test_all_rows_in_software(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    count = (2, 2, 2, 3, 3, 4)[seed % 6]
    streams = random_streams(chance, {2: 24, 3: 12, 4: 6}[count])
    query = random_query(chance, streams, count)
    want = [result.places for result in join(streams, query)]
    found = Replay(streams, bound(streams, query), always).run(chance.choice((1, 3, 100)))
    assert sorted(found) == sorted(want), query.text


@pytest.mark.parametrize("seed", range(90))
def test_some_rows_in_software(seed: int) -> None:
    """Host and device share the results: none is lost, none is found twice. Rows belong to the host
    from the start, from some later arrival on, or never."""
    print(f"seed {seed}")
    chance = random.Random(1000 + seed)
    count = (2, 2, 3, 3, 4)[seed % 5]
    streams = random_streams(chance, {2: 24, 3: 12, 4: 6}[count])
    query = random_query(chance, streams, count)
    share = chance.choice((0.05, 0.3, 0.8))
    table: dict[tuple[int, int], int] = {}

    def ours(source: int, place: int, own: int) -> int:
        if (source, place) not in table:
            roll = random.Random(f"{seed} {source} {place}").random()
            table[source, place] = (
                own if roll < share / 2 else own + 1 + int(roll * 20) if roll < share else NEVER
            )
        return table[source, place]

    results = join(streams, query)
    want = ours_among(results, streams, query, ours)
    found = Replay(streams, bound(streams, query), ours).run(chance.choice((1, 2, 5, 100)))
    assert len(found) == len(set(found))
    assert set(found) == want, query.text


def test_the_random_cases_have_results() -> None:
    """The cases above would prove nothing if most of their joins were empty."""
    total = 0
    for seed in range(90):
        chance = random.Random(seed)
        count = (2, 2, 2, 3, 3, 4)[seed % 6]
        streams = random_streams(chance, {2: 24, 3: 12, 4: 6}[count])
        total += bool(join(streams, random_query(chance, streams, count)))
    assert total > 45


@pytest.mark.parametrize("seed", range(6))
def test_however_many_pairs_at_once(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    print(f"seed {seed}")
    chance = random.Random(2000 + seed)
    streams = random_streams(chance, 12)
    query = random_query(chance, streams, 3)
    want = sorted(result.places for result in join(streams, query))
    monkeypatch.setattr(module, "_MOST_PAIRS", 3)
    assert sorted(Replay(streams, bound(streams, query), always).run(100)) == want


# --- single cases ---------------------------------------------------------------


def two(kind: str, left: list[object], right: list[object]) -> list[Stream]:
    def rows(values: list[object]) -> list[dict[str, object]]:
        return [{"ts": ts, "a": value} for ts, value in enumerate(values)]

    return [Stream("R", {"a": kind}, rows(left)), Stream("S", {"a": kind}, rows(right))]


def pairs(streams: list[Stream], where: str, ours: Ours = always) -> set[tuple[int, ...]]:
    query = bound(streams, f"SELECT * FROM R, S WHERE {where} WINDOW UNBOUNDED;")
    return set(Replay(streams, query, ours).run(100))


def test_both_zeros_are_equal() -> None:
    for kind in ("real", "double precision"):
        streams = two(kind, [0.0, -0.0, 1.0], [-0.0, 0.0])
        assert pairs(streams, "R.a = S.a") == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_integers_meet_reals_as_doubles() -> None:
    """2^53 + 1 has no double of its own."""
    streams = two("bigint", [2**53, 2**53 + 1, 2**53 + 2], [])
    streams[1] = Stream("S", {"a": "double precision"}, [{"ts": 0, "a": 2.0**53}])
    assert pairs(streams, "R.a = S.a") == {(0, 0), (1, 0)}


def test_null_equals_nothing_not_even_null() -> None:
    streams = two("int", [None, 1], [None, 1])
    assert pairs(streams, "R.a = S.a") == {(1, 1)}
    assert pairs(streams, "NOT (R.a = S.a)") == set()
    assert pairs(streams, "R.a IS NULL AND S.a IS NULL") == {(0, 0)}


@pytest.mark.parametrize("kind", ["date", "time", "timestamp", "boolean", "varchar(8)"])
def test_equality_on_every_kind(kind: str) -> None:
    chance = random.Random(kind)
    left = [value(chance, kind) for _ in range(8)]
    right = [value(chance, kind) for _ in range(8)]
    streams = two(kind, left, right)
    want = {(i, j) for i, a in enumerate(left) for j, b in enumerate(right) if a == b}
    assert want
    assert pairs(streams, "R.a = S.a") == want


def test_nothing_of_the_hosts_no_work() -> None:
    streams = two("int", [1], [1])
    assert pairs(streams, "R.a = S.a", lambda source, place, own: NEVER) == set()


def test_a_row_that_left_is_the_hosts_from_its_takers_arrival_on() -> None:
    """R(0) leaves when S(1) has come: S(0) met it in the device, S(1) must meet it here."""
    streams = two("int", [7], [7, 7, 7])
    order = arrivals(streams)
    assert order == [(0, 0), (1, 0), (1, 1), (1, 2)]
    left = {(0, 0): 2}
    assert pairs(streams, "R.a = S.a", lambda *at: left.get(at[:2], NEVER)) == {(0, 1), (0, 2)}


def test_a_range_may_reach_before_the_first_timestamp() -> None:
    first = -(2**63)
    streams = two("int", [1], [1])
    streams[0].rows[0]["ts"], streams[1].rows[0]["ts"] = first, first + 3
    query = Query(
        tuple(Source(s.name, s, f"RANGE {2**40}") for s in streams),
        None,
    )
    found = Replay(streams, bound(streams, query), always).run(1)
    assert found == [(0, 0)] == [result.places for result in join(streams, query)]


# --- conditions without a value -------------------------------------------------

TEXTS = [
    Stream(
        "R",
        {"k": "int", "t": "varchar(8)"},
        [{"ts": 0, "k": 1, "t": "5"}, {"ts": 1, "k": 2, "t": "five"}],
    ),
    Stream("S", {"k": "int"}, [{"ts": 2, "k": 1}, {"ts": 3, "k": 5}]),
]


@pytest.mark.parametrize(
    ("where", "want"),
    [
        ("R.k = S.k AND CAST(R.t AS int) = 5", {(0, 0)}),
        ("CAST(R.t AS int) = 5 AND R.k = S.k", {(0, 0)}),
        ("CAST(R.t AS int) = S.k AND R.k = 1", {(0, 1)}),
        ("CAST(R.t AS int) + S.k > 0 AND R.k < 2", {(0, 0), (0, 1)}),
    ],
)
def test_what_another_condition_excludes_needs_no_value(
    where: str, want: set[tuple[int, ...]]
) -> None:
    """'five' is no number, but no row that joins contains it."""
    assert pairs(TEXTS, where) == want


@pytest.mark.parametrize(
    ("where", "want", "count"),
    [
        ("CAST(R.t AS int) > 0", {(0, 0), (0, 1)}, 2),
        ("CAST(R.t AS int) = S.k", {(0, 1)}, 2),
        ("CAST(R.t AS int) > 0 AND S.k < 3", {(0, 0)}, 1),
        ("CAST(R.t AS int) > 0 AND R.k = 1", {(0, 0), (0, 1)}, 0),
    ],
)
def test_a_fault_counts_in_each_combination_that_no_other_condition_excludes(
    where: str, want: set[tuple[int, ...]], count: int
) -> None:
    query = bound(TEXTS, f"SELECT * FROM R, S WHERE {where} WINDOW UNBOUNDED;")
    replay = Replay(TEXTS, query, always)
    assert set(replay.run(1)) == want
    assert replay.faults.total == count
    assert [str(place) for place in replay.faults.count] == (
        ["no int in CAST(R.t AS int)"] if count else []
    )
    if count:
        assert list(replay.faults.named.values()) == ["R at ts 1, S at ts 2"]


@pytest.mark.parametrize("odd", [0.0, 0.02])
@pytest.mark.parametrize("seed", range(8))
def test_conditions_of_any_form(seed: int, odd: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the evaluator has them for all pairs: some have a formula, some a fault in a few pairs."""
    print(f"seed {seed}")
    chance = random.Random(9000 + seed)
    streams = []
    for name, count in (("R", 25), ("S", 40)):
        columns = {one: cells.to_pylist() for one, cells in made_rows(chance, count, odd).items()}
        ts = sorted(chance.randrange(1000) for _ in range(count))
        rows = [
            {"ts": ts[row], **{one: cells[row] for one, cells in columns.items()}}
            for row in range(count)
        ]
        streams.append(Stream(name, COLUMNS, rows))
    monkeypatch.setattr(module, "_MOST_PAIRS", chance.choice((64, 1 << 20)))
    faults = 0
    for _ in range(12):
        some = Some(chance)
        where = " AND ".join(some.condition(1) for _ in range(chance.choice((1, 1, 2))))
        query = bound(streams, f"SELECT * FROM R, S WHERE {where} WINDOW UNBOUNDED;")
        replay = Replay(streams, query, always)
        want, counted = holding(streams, query.where)
        assert set(replay.run(chance.choice((1, 7, 100)))) == want, where
        assert replay.faults.total == counted, where
        faults += counted
    assert faults or not odd


def holding(streams: list[Stream], where: x.Expression) -> tuple[set[tuple[int, ...]], int]:
    """Returns the pairs of rows for which all parts of a condition hold, and their faults."""
    r, s = (stream.table for stream in streams)
    ours, theirs = np.divmod(np.arange(len(r) * len(s)), len(s))

    def columns(_: x.Expression, rows: np.ndarray) -> Leaves:
        return leaves(
            {(0, name): r.column(name).combine_chunks().take(ours[rows]) for name in COLUMNS}
            | {(1, name): s.column(name).combine_chunks().take(theirs[rows]) for name in COLUMNS}
        )

    faults = Faults()
    left = survivors(x.conjuncts(where), columns, len(ours), faults)
    return set(zip(ours[left].tolist(), theirs[left].tolist(), strict=True)), faults.total


# --- order, and every way to find partners ----------------------------------------


def in_order(streams: list[Stream], query: Query) -> list[tuple[int, ...]]:
    """Returns all results by the arrival of the newest component, then by the components in FROM
    order."""
    own = {at: number for number, at in enumerate(arrivals(streams))}
    index = [next(i for i, s in enumerate(streams) if s is x.stream) for x in query.sources]
    copies = [index[:source].count(number) for source, number in enumerate(index)]

    def key(places: tuple[int, ...]) -> tuple[int, list[int]]:
        at = [position(own[i, p], c) for i, p, c in zip(index, places, copies, strict=True)]
        return max(at), at

    return sorted((result.places for result in join(streams, query)), key=key)


@pytest.mark.parametrize("most", [4, 1 << 20])
@pytest.mark.parametrize("large", [0, 8192])
@pytest.mark.parametrize("seed", range(20))
def test_results_come_in_order_however_they_are_found(
    seed: int, large: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    print(f"seed {seed}")
    chance = random.Random(3000 + seed)
    streams = random_streams(chance, 12)
    query = random_query(chance, streams, chance.choice((2, 3)))
    monkeypatch.setattr(module, "_LARGE", large)
    monkeypatch.setattr(module, "_MOST_PAIRS", most)
    found = Replay(streams, bound(streams, query), always).run(chance.choice((1, 4, 100)))
    assert found == in_order(streams, query), query.text
