"""Rows that are held, by place and by key, and their sessions, beside the definition: a session is the rows of a key without a
gap, and is over once the time has passed its last row by the gap."""

from __future__ import annotations

import random
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from seustream.engine.relational.held import KeyedRows, SessionRows

SCHEMA = pa.schema([("ts", pa.int64()), ("oldest", pa.int64()), ("c0", pa.string())])
Row = tuple[int, int, str | None]
"""The number of its query, its time, and its key."""


def sessions_of(rows: list[Row], gap: int) -> list[list[Row]]:
    found = list[list[Row]]()
    for key in {(whose, key) for whose, _, key in rows}:
        mine = [row for row in rows if (row[0], row[2]) == key]
        for row in mine:
            if row is mine[0] or row[1] - found[-1][-1][1] >= gap:
                found.append([])
            found[-1].append(row)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_sessions_beside_their_definition(seed: int) -> None:
    """Queries are at times of their own; what is over may be put back, as after a fault."""
    chance = random.Random(seed)
    queries, gap = chance.choice([1, 1, 3]), chance.randint(1, 6)
    kept = SessionRows(SCHEMA, queries > 1, gap, ["c0"])
    now, all_ = [0] * queries, list[Row]()
    given = set[int]()  # by place in `all_`
    numbers = np.empty(0, np.int64)  # of the rows that are held, by place
    with patch("seustream.engine.relational.slots.FEW", 3):
        for _ in range(40):
            new = list[Row]()
            for whose in chance.sample(range(queries), chance.randint(1, queries)):
                times = sorted(
                    now[whose] + chance.randint(0, 4) for _ in range(chance.randint(0, 5))
                )
                new += [(whose, time, chance.choice(["a", "b", "", None])) for time in times]
                now[whose] = max([now[whose], *times])
            numbers = np.concatenate((numbers, len(all_) + np.arange(len(new))))
            all_ += new
            if new:
                of, times, keys = (np.array(each) for each in zip(*new, strict=True))
                table = pa.table([times, times, pa.array(keys, pa.string())], schema=SCHEMA)
                whose_ = of.astype(np.int64) if queries > 1 else None
                kept.add(table, whose_)
            some = sorted(chance.sample(range(queries), chance.randint(1, queries)))
            until = min(now[whose] for whose in some) - 1
            wanted = {
                number
                for number, (whose, time, key) in enumerate(all_)
                if whose in some and number not in given
                for session in sessions_of(all_, gap)
                if (whose, time, key) in session and session[-1][1] + gap - 1 <= until
            }
            asked = None if len(some) == queries else some
            quiet = kept.sessions.quiet
            over = kept.sessions.over(until, asked)
            places = kept.of(over)
            assert sorted(kept.sessions.latest(over).tolist()) == sorted(
                session[-1][1]
                for session in sessions_of(all_, gap)
                if wanted & {number for number, row in enumerate(all_) if row in session}
            )
            assert (np.diff(places) > 0).all()
            assert set(numbers[places].tolist()) == wanted
            if wanted:
                assert quiet is not None
                assert quiet <= until
            if chance.random() < 0.3:
                kept.sessions.put_back()
                continue
            given |= wanted
            kept.leave(places)
            here = kept.places(asked)
            assert numbers[here].tolist() == [
                number
                for number, (whose, _, _) in enumerate(all_)
                if number not in given and (asked is None or whose in asked)
            ]
            assert kept.table(here).column("c0").to_pylist() == [
                all_[number][2] for number in numbers[here].tolist()
            ]
            if kept.is_sparse:
                numbers = numbers[kept.places(None)]
                kept.compact()
    assert given or gap > 3


@pytest.mark.parametrize("seed", range(20))
def test_keyed_rows_beside_a_list(seed: int) -> None:
    chance = random.Random(seed)
    kept, rows, place_of = KeyedRows(SCHEMA, [pa.string()]), dict[int, str | None](), list[int]()
    count = 0
    with patch("seustream.engine.relational.slots.FEW", 3):
        for _ in range(40):
            keys = [chance.choice(["a", "b", "c", None]) for _ in range(chance.randint(0, 5))]
            numbers = range(count, count + len(keys))
            column = pa.array(keys, pa.string())
            table = pa.table([[*numbers], [*numbers], column], schema=SCHEMA)
            kept.add_to(kept.numbers([column], len(keys)), table)
            place_of += numbers
            rows |= dict(zip(numbers, keys, strict=True))
            count += len(keys)
            asked = chance.sample(["a", "b", "c", "new", None], chance.randint(1, 3))
            found = kept.of(kept.numbers([pa.array(asked, pa.string())], len(asked)))
            assert [place_of[place] for place in found.tolist()] == [
                number for number, key in rows.items() if key in asked
            ]
            assert kept.first_time == min(rows, default=None)
            gone = [place for place in kept.places(None).tolist() if chance.random() < 0.2]
            kept.leave(np.array(gone, np.int64))
            for place in gone:
                del rows[place_of[place]]
            if kept.is_sparse:
                place_of = [place_of[place] for place in kept.compact().tolist()]
    assert count > len(rows)
