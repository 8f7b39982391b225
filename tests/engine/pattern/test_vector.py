"""The fast path on the benchmark's stream: its check values, all counts, and pieces that limit the
rows in memory. The number in a test's name is that of the acceptance statement."""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path

import pytest

from examples.stocks.generate import SYMBOLS, Ticks, ticks
from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.types import DOUBLE, INT, VARCHAR
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.statements import compile_pattern
from seustream.engine.pattern.batch import EventBatch, needed, of_table
from seustream.engine.pattern.event import BEGIN_OF_TIME, END_OF_STREAM
from seustream.engine.pattern.meaning import Meaning
from seustream.engine.pattern.operator import PatternOperator
from seustream.engine.pattern.vector import LIMIT, ColumnSearch

STREAM = Stream("stocks", (Column("type", VARCHAR), Column("price", DOUBLE), Column("volume", INT)))
EVENTS = 1_000_000


@functools.cache
def stream() -> Ticks:
    return ticks(EVENTS)


@functools.cache
def batch() -> EventBatch:
    return of_table(stream().table(), STREAM, "type", ["price"], 0)


AB = "a.price > (1+10%)*b.price"
CD = "c.price < (1-10%)*d.price"
Q1 = ("A;B;C;D", f"a.price > 60 AND {AB} AND {CD}")
Q2 = ("B;C;D;E", "b.price > 60 AND b.price > (1+10%)*c.price AND d.price < (1-10%)*e.price")
Q3 = ("E;G;H;F", "e.price > 60 AND e.price > (1+10%)*g.price AND h.price > (1+10%)*f.price")
L3 = ("A;B;C", f"a.price > 60 AND {AB}")
L5 = ("A;B;C;D;E", Q1[1])
L6 = ("A;B;C;D;E;F", f"{Q1[1]} AND e.price > (1+10%)*f.price")
# query, minutes, matches, probes from the left, then in the order of the paper and by cost
COUNTS = [
    (Q1, 2, 47_183, 500_934, (270_236, "BCDA"), (235_596, "DCBA")),
    (Q2, 2, 1_614, 10_446, (10_446, "BCDE"), (10_446, "BCDE")),
    (Q3, 2, 449_151, 1_951_086, (733_638, "FHGE"), (733_638, "FHGE")),
    (L3, 2, 210_706, 280_324, (280_324, "BAC"), (280_324, "BAC")),
    (L5, 2, 144_222, 645_156, (645_156, "BACDE"), (379_818, "DCBAE")),
    (L6, 2, 50_739, 695_895, (1_056_928, "FEDCBA"), (343_221, "DCBEFA")),
    (Q1, 1, 5_707, 113_278, (82_191, "BCDA"), (82_191, "BCDA")),
    (Q1, 3, 159_978, 1_341_125, (599_449, "BCDA"), (455_605, "DCBA")),
    (Q1, 4, 381_974, 2_802_275, (1_103_869, "BCDA"), (793_197, "DCBA")),
    (Q1, 5, 759_591, 5_047_869, (1_831_382, "BCDA"), (1_295_256, "DCBA")),
]


def query(sequence: str, where: str, minutes: int = 2) -> ir.PatternQuery:
    text = f"PATTERN {sequence} WHERE {where} WITHIN {minutes} min RETURN *"
    return compile_pattern(text, STREAM)


def test_49_check_values_of_the_generator() -> None:
    of = stream()
    rows = [(of.ts[i], SYMBOLS[of.symbol[i]], of.cents[i], of.volume[i]) for i in (0, 1, 2, -1)]
    assert rows == [
        (1418, "I", 9072, 62),
        (2070, "Q", 12945, 631),
        (2963, "C", 6058, 826),
        (999420439, "I", 13057, 19),
    ]
    digest = hashlib.sha256()
    for column in (of.ts, of.symbol, of.cents, of.volume):
        digest.update(column.astype("<i8").tobytes())
    wanted = "975e87d7491120591663f984cc0ec66f72352b9f2599173d326d00d8cebbdbc9"
    assert digest.hexdigest() == wanted


@pytest.mark.parametrize(
    ("of", "minutes", "matches", "left", "paper", "cost"),
    COUNTS,
    ids=[f"{of[0]} {minutes} min" for of, minutes, *_ in COUNTS],
)
def test_50_matches_and_probes(
    of: tuple[str, str],
    minutes: int,
    matches: int,
    left: int,
    paper: tuple[int, str],
    cost: tuple[int, str],
) -> None:
    q = query(*of, minutes)
    names = of[0].split(";")
    straight = tuple(range(len(names)))
    for order, want in ((straight, (left, "".join(names))), ("paper", paper), ("cost", cost)):
        search = ColumnSearch(Meaning(q), order, tighten=False)
        found = search.advance(batch(), BEGIN_OF_TIME, END_OF_STREAM)
        assert found is not None
        assert len(found) == matches
        chosen = "".join(names[place] for place in search.order)
        assert (sum(search.levels), chosen) == want


def test_50_all_experiments_have_been_measured_so() -> None:
    """In the last run of the benchmark on all events, the automaton tests as many as are probed
    from the left, and every matcher finds the same matches."""
    path = Path(__file__).resolve().parents[3] / "bench" / "results" / "patterns.json"
    rows = [tuple(row) for row in json.loads(path.read_text("utf-8"))["rows"]]
    experiments = {
        "one": ((Q1, "Q1", 2), (Q2, "Q2", 2), (Q3, "Q3", 2)),
        "two": ((L3, "L3", 2), (Q1, "L4", 2), (L5, "L5", 2), (L6, "L6", 2)),
        "three": tuple((Q1, "Q1", minutes) for minutes in (1, 2, 3, 4, 5)),
    }
    counts = {(of, minutes): rest for of, minutes, *rest in COUNTS}
    for part, cases in experiments.items():
        for of, name, minutes in cases:
            mine = [row[2:] for row in rows if row[:2] == (part, f"{name} {minutes} min")]
            matches, left = counts[of, minutes][:2]
            assert [row[3] for row in mine] == [matches] * 4
            tests = {row[0]: row[4] for row in mine}
            assert tests["NFA^b (for SASE)"] == tests["pending lists (for Siddhi)"] == left
            assert tests["OptiSeq as printed"] < 1.05 * counts[of, minutes][2][0]  # by epochs


def test_52_rows_in_memory_are_limited() -> None:
    """Counts only rows; `bench/patterns` measures the time."""
    q = query(*Q1)
    search = ColumnSearch(Meaning(q))
    search.advance(batch(), BEGIN_OF_TIME, END_OF_STREAM)
    assert search.peak_rows <= LIMIT
    for limit in (1_000, 20_000):
        small = ColumnSearch(Meaning(q), limit=limit)
        found = small.advance(batch(), BEGIN_OF_TIME, END_OF_STREAM)
        assert found is not None
        assert len(found) == 47_183
        assert small.peak_rows <= limit


def test_epochs_do_not_matter_at_length() -> None:
    q = query(*Q1)
    operator = PatternOperator(q)
    table = stream().table()
    count = 0
    for begin in range(0, EVENTS, 100_000):
        part = table.slice(begin, 100_000)
        operator.push_table(part)
        count += operator.advance_table(part["ts"][-1].as_py())[0].num_rows
        # The operator keeps one window: about 120 events, of which some fit an element.
        assert operator.held < 200
    assert count == 47_183
    assert set(needed(q)) == {"price", "type", "volume"}
