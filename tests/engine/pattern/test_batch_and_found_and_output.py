"""Events and matches in columns equal those one by one, from either source and in any pieces."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.language.types import DOUBLE, INT, VARCHAR
from seustream.engine.pattern.batch import EventBatch, concat, needed, of_events, of_table, values
from seustream.engine.pattern.event import Event, Match
from seustream.engine.pattern.found import Found, GroupMembers, joined, pieces, runs
from seustream.engine.pattern.meaning import Meaning
from seustream.engine.pattern.output import Returned, schema
from tests.engine.pattern.stock import STOCK, query

COLUMNS = {"price": DOUBLE, "volume": INT, "type": VARCHAR}


def events(seed: int, count: int = 40) -> list[Event]:
    chance = random.Random(seed)
    return [
        Event(n // 2, n, kind := chance.choice(["A", "B", None]),
              {"price": chance.choice([None, 1.5, float(n)]), "volume": chance.choice([None, n]), "type": kind})
        for n in range(count)
    ]  # fmt: skip


def shown(found: Sequence[Event]) -> list[tuple[object, ...]]:
    return [(e.ts, e.seq, e.type, {n: e.attrs.get(n) for n in COLUMNS}) for e in found]


def tables(given: list[Event], pieces: int) -> EventBatch:
    """Returns the same rows as Arrow tables, in pieces."""
    parts, step = [], -(-len(given) // pieces)
    for at in range(0, len(given), step):
        some = given[at : at + step]
        table = pa.table(
            {
                "ts": pa.array([e.ts for e in some], pa.int64()),
                "Type": [e.type for e in some],
                "price": pa.array([e.attrs["price"] for e in some], pa.float64()),
                "volume": pa.array([e.attrs["volume"] for e in some], pa.int32()),
            }
        ).rename_columns(["ts", "type", "price", "volume"])
        parts.append(of_table(table, STOCK, "type", COLUMNS, at))
    return concat(*parts)


@pytest.mark.parametrize("pieces", [1, 3])
def test_rows_are_the_same_from_events_and_from_tables(pieces: int) -> None:
    given = events(1)
    for batch in (of_events(given, COLUMNS), tables(given, pieces)):
        assert len(batch) == len(given)
        assert shown(batch.rows()) == shown(given)
        assert shown([batch.event(n) for n in range(len(given))]) == shown(given)
        chosen = np.array([5, 0, 5, 17])
        assert shown(batch.take(chosen).rows()) == shown([given[n] for n in chosen])
        assert shown(batch.take(slice(3, 9)).rows()) == shown(given[3:9])


def test_pieces_with_other_types_have_one_table_of_names() -> None:
    one = of_events([Event(1, 0, "B"), Event(2, 1, None)], {})
    other = of_events([Event(3, 2, "A"), Event(4, 3, "B")], {})
    whole = concat(one, of_events([], {}), other)
    assert [event.type for event in whole.rows()] == ["B", None, "A", "B"]
    assert concat(one.take(slice(0, 0))).rows() == []


def test_pieces_keep_the_names_of_the_last_where_these_are_enough() -> None:
    old, new = (
        of_events([Event(1, 0, "B")], {}),
        of_events([Event(2, 1, "A"), Event(3, 2, "B")], {}),
    )
    whole = concat(old, new)
    assert whole.names is new.names
    assert concat(whole, new).names is new.names
    assert [event.type for event in whole.rows()] == ["B", "A", "B"]


def test_what_is_not_a_number_is_null() -> None:
    batch = of_events([Event(1, 0, "A", {"price": float("nan")})], COLUMNS)
    assert batch.columns["price"].to_pylist() == [None]
    table = pa.table({"ts": [1], "type": ["A"], "price": [float("nan")], "volume": [None]})
    assert of_table(table, STOCK, "type", ["price"], 0).columns["price"].to_pylist() == [None]
    assert values(pa.array([1, None, 3])) == [1, None, 3]
    assert values(pa.array([True, False])) == [True, False]


def test_a_query_needs_what_it_reads() -> None:
    plain = query("PATTERN A; B PARTITION BY volume WHERE a.price > 1 WITHIN 1 s RETURN b.ts")
    assert set(needed(plain)) == {"price", "volume"}
    assert set(needed(query("PATTERN A WITHIN 1 s RETURN A"))) == set(COLUMNS)


# --- matches ----------------------------------------------------------------------

QUERY = query(
    "PATTERN A a; B+ k; !C; A d WITHIN 1 h USING ANY SUBSETS"
    " RETURN a.price, k.price AS many, last(k).volume, count(k) AS n, k.ts AS times, d"
)


def found(seed: int, count: int = 12) -> tuple[Found, list[Match]]:
    """Returns some arbitrary matches, in columns and one by one."""
    chance, given = random.Random(seed), events(seed)
    log = of_events(given, needed(QUERY))
    sizes = [chance.randint(1, 4) for _ in range(count)]
    rows = [[chance.randrange(40) for _ in range(size)] for size in sizes]
    first, last, when = ([chance.randrange(40) for _ in range(count)] for _ in range(3))
    members = GroupMembers(np.array(sizes), np.array([row for group in rows for row in group]))
    columns = Found(log, np.array(when), {0: np.array(first), 3: np.array(last)}, {1: members})
    matches = [
        Match(((given[a],), tuple(given[r] for r in group), (), (given[z],)), d)
        for a, group, z, d in zip(first, rows, last, when, strict=True)
    ]
    return columns, matches


def ids(matches: Sequence[Match]) -> list[object]:
    return [(match.D, match.ids) for match in matches]


@pytest.mark.parametrize("seed", range(4))
def test_matches_in_columns_are_matches(seed: int) -> None:
    columns, matches = found(seed)
    assert ids(columns.matches(QUERY)) == ids(matches)
    keep = np.array([match.D % 2 == 0 for match in matches])
    assert ids(columns.keep(keep).matches(QUERY)) == ids([m for m in matches if m.D % 2 == 0])
    order = np.random.default_rng(seed).permutation(len(matches))
    assert ids(columns.reorder(order).matches(QUERY)) == ids([matches[n] for n in order])
    want = sorted(matches, key=lambda match: match.order)
    assert ids(columns.sorted(QUERY).matches(QUERY)) == ids(want)
    firsts: dict[object, Match] = {}
    for match in want:
        firsts.setdefault(match.first.order, match)
    assert 1 < len(firsts) < len(want)
    assert ids(columns.sorted(QUERY).firsts(QUERY).matches(QUERY)) == ids([*firsts.values()])
    halves = [columns.keep(keep), columns.keep(~keep)]
    assert sorted(ids(joined(halves).matches(QUERY)), key=repr) == sorted(ids(matches), key=repr)


@pytest.mark.parametrize("seed", range(4))
def test_rows_of_matches_are_the_same_in_columns_and_one_by_one(seed: int) -> None:
    columns, matches = found(seed)
    rows = Returned(Meaning(QUERY)).of_found(columns)
    assert rows.equals(Returned(Meaning(QUERY)).of_matches(matches))
    one, match = rows.to_pylist()[0], matches[0]
    group = match.groups[1]
    assert one["price"] == match.groups[0][0].attrs["price"]
    assert one["many"] == [event.attrs["price"] for event in group]
    assert (one["n"], one["times"]) == (len(group), [event.ts for event in group])
    assert one["d_ts"] == match.groups[3][0].ts


def test_no_matches_have_columns_too() -> None:
    returned = Returned(Meaning(QUERY))
    for none in (returned.of_found(None), returned.of_matches([])):
        assert (none.num_rows, none.schema) == (0, schema(QUERY))


def test_runs_are_the_numbers_from_each_start_on() -> None:
    starts, counts = np.array([5, 0, 9, 2]), np.array([2, 0, 1, 3])
    want = [
        n for start, count in zip(starts, counts, strict=True) for n in range(start, start + count)
    ]
    assert runs(starts, counts).tolist() == want


@pytest.mark.parametrize("seed", range(5))
def test_pieces_are_as_long_as_the_limit_lets_them_be(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    counts = np.array([chance.choice([0, 1, 2, 50]) for _ in range(60)])
    limit = chance.choice([1, 3, 60])
    found = pieces(counts, limit)
    assert [n for piece in found for n in range(60)[piece]] == list(range(60))
    for piece, following in zip(found, [*found[1:], None], strict=True):
        total = int(counts[piece].sum())
        assert total <= limit or piece.stop - piece.start == 1
        if following is not None:
            assert total + counts[following.start] > limit, "one more would have been too many"
    assert pieces(np.empty(0, np.int64), 5) == []
