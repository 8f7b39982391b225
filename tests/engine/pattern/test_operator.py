"""The operator: time, order of arrival, memory, state. The number in a test's name is that of the
acceptance statement."""

from __future__ import annotations

import gc
import json
import random
import tracemalloc
from itertools import pairwise

import pyarrow as pa
import pytest

from seustream.engine.pattern.errors import EngineRefused, PatternBudgetExceeded
from seustream.engine.pattern.event import END_OF_STREAM, Event
from seustream.engine.pattern.operator import PatternOperator
from seustream.engine.pattern.optiseq import OptiSeq
from tests.engine.pattern.generate import Generator, query_of
from tests.engine.pattern.oracle import Oracle
from tests.engine.pattern.queries import engines_for, event, ids
from tests.engine.pattern.running import operate


def everywhere(text: str, events: list[Event], want: set[object]) -> None:
    query = query_of(text)
    for engine in engines_for(query):
        assert ids(operate(query, events, engine)) == want, engine


# --- 25 to 30: what a match is ------------------------------------------------


def test_25_equal_times_are_not_in_sequence() -> None:
    everywhere("PATTERN A; B WITHIN 5 ms RETURN *", [event(1, "A"), event(1, "B")], set())


def test_25_tied_events_share_a_group() -> None:
    events = [event(0, "A"), event(1, "B"), event(1, "B"), event(2, "C")]
    everywhere("PATTERN A; B+; C WITHIN 5 ms RETURN *", events, {((0,), (1, 2), (3,))})


@pytest.mark.parametrize("strategy", ["", "USING ANY SUBSETS", "USING NEXT", "USING STRICT"])
def test_26_the_window_is_inclusive(strategy: str) -> None:
    query = query_of(f"PATTERN A; B WITHIN 10 ms {strategy} RETURN *")
    for engine in engines_for(query):
        for cuts in ((), (4, 5, 9, 10, 11, 12)):
            for last, count in ((10, 1), (11, 0)):
                found = operate(query, [event(0, "A"), event(last, "B")], engine, cuts)
                assert len(found) == count, (engine, cuts, last)


@pytest.mark.parametrize(
    ("stream", "order"),
    [
        ("ABBCC", (0, 1, 2)),  # the first list is the shortest
        ("AABBC", (2, 1, 0)),  # the last list is the shortest
        ("ABC", (0, 1, 2)),  # all equal: leftmost first, then forward
        ("AABCC", (1, 2, 0)),  # both sides have equal means: forward
        ("AABCCC", (1, 0, 2)),
        ("AAABCC", (1, 2, 0)),
    ],
)
def test_27_direction_of_the_paper(stream: str, order: tuple[int, ...]) -> None:
    query = query_of("PATTERN A; B; C WITHIN 50 ms RETURN *")
    operator = PatternOperator(query, "optiseq", order="paper")
    for at, kind in enumerate(stream):
        operator.push(event(at, kind))
    found = operator.advance(len(stream))
    (matcher,) = operator._matchers.values()
    assert isinstance(matcher, OptiSeq)
    assert matcher.order == order
    assert ids(found) == set(Oracle(query).matches(events_in_order(stream)))


def events_in_order(stream: str) -> list[Event]:
    return [Event(at, at, kind, {}) for at, kind in enumerate(stream)]


def test_28_one_element_alone() -> None:
    events = [event(1, "A"), event(2, "B"), event(3, "A")]
    everywhere("PATTERN A WITHIN 5 ms RETURN *", events, {((0,),), ((2,),)})


def test_29_one_type_twice_with_different_constants() -> None:
    text = "PATTERN A low; A high WHERE low.x < 2 AND high.x > 3 WITHIN 5 ms RETURN *"
    events = [event(1, "A", x=1), event(2, "A", x=4), event(3, "A", x=1), event(4, "A", x=5)]
    everywhere(text, events, {((0,), (1,)), ((0,), (3,)), ((2,), (3,))})


def test_30_equal_rows_are_two_events() -> None:
    events = [event(1, "A", x=1), event(1, "A", x=1), event(2, "B", x=1)]
    everywhere("PATTERN A; B WITHIN 5 ms RETURN *", events, {((0,), (2,)), ((1,), (2,))})


# --- 34 to 36: when matches come out ------------------------------------------


@pytest.mark.parametrize("text", ["PATTERN A; B; !N WITHIN 5 ms", "PATTERN A; B+ WITHIN 5 ms"])
def test_34_not_before_their_time(text: str) -> None:
    query = query_of(f"{text} RETURN *")
    for engine in engines_for(query):
        operator = PatternOperator(query, engine)
        operator.push(event(1, "A"))
        operator.push(event(3, "B"))
        assert operator.advance(5) == []
        (match,) = operator.advance(6)
        assert match.D == 6
        assert operator.advance(7) == []
        again = PatternOperator(query, engine)
        again.push(event(1, "A"))
        again.push(event(3, "B"))
        assert len(again.advance(END_OF_STREAM)) == 1


def test_34_without_a_window_at_the_end() -> None:
    query = query_of("PATTERN A; B; !N RETURN *", bounded=True)
    for engine in engines_for(query):
        operator = PatternOperator(query, engine)
        operator.push(event(1, "A"))
        operator.push(event(3, "B"))
        assert operator.advance(1000) == []
        (match,) = operator.advance(END_OF_STREAM)
        assert match.D == 3


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize(
    "skip", ["", "AFTER MATCH SKIP TO NEXT EVENT ", "AFTER MATCH SKIP PAST LAST EVENT "]
)
def test_35_36_times_order_and_repetition(seed: int, skip: str) -> None:
    generator = Generator(random.Random(seed))
    text = generator.query().text.replace("RETURN", f"{skip}RETURN")
    query = query_of(text, bounded=True)
    events = generator.events(16)
    runs = []
    for _ in range(2):
        operator = PatternOperator(query)
        for one in events:
            operator.push(one)
        out: list[tuple[int, object]] = []
        forwarded = operator.output_watermark
        for cut in (*range(0, 30, 3), END_OF_STREAM):
            found = operator.advance(cut)
            assert all(forwarded < match.D for match in found)
            assert [m.order for m in found] == sorted(m.order for m in found)
            forwarded = operator.output_watermark
            out += [(match.D, match.ids) for match in found]
        runs.append(out)
    assert runs[0] == runs[1]


def test_35_without_a_window_nothing_is_promised_before_the_end() -> None:
    """A match that waits for the end has the time of its last event, however long ago that was."""
    for text, held in (("PATTERN A; !B", True), ("PATTERN A; B+", True), ("PATTERN A; B", False)):
        operator = PatternOperator(query_of(f"{text} RETURN *", bounded=True))
        operator.push(event(1, "A"))
        operator.advance(100)
        assert (operator.output_watermark < 1) == held
        operator.advance(END_OF_STREAM)
        assert operator.output_watermark == END_OF_STREAM


# --- 37, 38: memory -----------------------------------------------------------


STEADY = [
    "PATTERN A; B; C WITHIN 20 ms RETURN *",
    "PATTERN A; !N; B+; C WITHIN 20 ms RETURN *",
    "PATTERN A; B+; C WITHIN 6 ms USING ANY SUBSETS RETURN *",
    "PATTERN A; B+ k; C WHERE k[i].x >= k[i-1].x WITHIN 20 ms USING NEXT RETURN *",
    "PATTERN !N; A; B; !N m WITHIN 20 ms RETURN *",
    "PATTERN A; B WITHIN 20 ms USING STRICT RETURN *",
]


@pytest.mark.parametrize("text", STEADY)
def test_37_38_memory_is_bounded_by_the_window(text: str) -> None:
    query = query_of(text)
    horizon = query.horizon
    assert horizon is not None
    chance = random.Random(37)
    for engine in engines_for(query):
        operator = PatternOperator(query, engine)
        held = []
        for now in range(10 * (query.window or 0)):
            operator.push(event(now, chance.choice("ABCN"), x=chance.randint(0, 3)))
            operator.advance(now)
            assert operator.largest <= horizon, engine  # one event a tick
            held.append(operator.held)
        # Bounded: the second half needs at most twice as much as the first.
        half = len(held) // 2
        assert max(held[half:]) <= 2 * max(held[:half]), engine
        operator.advance(now + 2 * (query.window or 0))
        assert operator.held == 0, engine


def bytes_held(text: str, engine: str, windows: int) -> int:
    """Returns the most memory an operator holds, measured at the end of every fifth window of an
    endless stream, as Python and numpy allocate it."""
    query = query_of(text)
    window = query.window or 0
    operator = PatternOperator(query, engine)
    chance = random.Random(9)
    most = 0
    gc.collect()
    gc.freeze()  # what the other tests hold is not looked through each time
    tracemalloc.start()
    try:
        for now in range(1, windows * window + 1):
            operator.push(event(now, chance.choice("ABCN"), x=chance.randint(0, 3)))
            if now % (window // 4) == 0:
                operator.advance(now)
            if now % (5 * window) == 0:
                gc.collect()
                most = max(most, tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
        gc.unfreeze()
    return most


ENDLESS = [
    ("PATTERN A; B; !N; C WHERE b.x > a.x WITHIN 40 ms RETURN a.x", "columns"),
    ("PATTERN A; B; !N; C WHERE b.x > a.x WITHIN 40 ms RETURN a.x", "optiseq"),
    ("PATTERN A; B; !N; C WHERE b.x > a.x WITHIN 40 ms RETURN a.x", "nfa"),
    ("PATTERN A; B+; C WITHIN 12 ms USING ANY SUBSETS RETURN count(b)", "compact"),
    ("PATTERN A; B+ k; C WHERE k[i].x >= k[i-1].x WITHIN 40 ms USING NEXT RETURN count(k)", "nfa"),
    ("PATTERN !N; A; B+; C; !N n2 WITHIN 40 ms RETURN count(b)", "auto"),
]


@pytest.mark.parametrize(("text", "engine"), ENDLESS)
def test_37_memory_of_a_hundred_windows_is_that_of_ten(text: str, engine: str) -> None:
    """Measures bytes as well as counts, to reveal data kept on the side. An event alone takes about
    300 bytes, so one forgotten in ten would exceed what numpy keeps for its next arrays."""
    ten, hundred = (bytes_held(text, engine, windows) for windows in (10, 100))
    assert ten > 0
    assert hundred < ten + 90_000, (engine, ten, hundred)


# --- 42: budgets --------------------------------------------------------------


def test_42_a_budget_overrun_raises() -> None:
    """What comes in parts has no budget: subsets of the kernel, and searches."""
    text = "PATTERN A; B+; C WITHIN 100 ms USING ANY SUBSETS RETURN *"
    events = [event(0, "A"), *(event(t, "B") for t in range(1, 11)), event(20, "C")]
    for engine in engines_for(query_of(text)):
        operator = PatternOperator(query_of(text), engine, max_matches=100, part=900)
        for one in events:
            operator.push(one)
        if engine in ("nfa", "compact"):
            with pytest.raises(PatternBudgetExceeded, match="more than 100 matches at once"):
                operator.advance(END_OF_STREAM)
        else:
            assert len(operator.advance(END_OF_STREAM)) == 2**10 - 1
    operator = PatternOperator(query_of(text), "nfa", max_runs=50)
    for one in events:
        operator.push(one)
    with pytest.raises(PatternBudgetExceeded):
        operator.advance(END_OF_STREAM)


# --- 43: the horizon ----------------------------------------------------------


def test_43_a_leading_group_needs_two_windows() -> None:
    """k at 1 belongs to the group, which reaches back to last.ts − W; D is first.ts + W."""
    query = query_of("PATTERN A+; B; C; !N WITHIN 10 ms RETURN *")
    assert query.horizon == 20
    events = [event(t, k) for t, k in ((1, "A"), (2, "A"), (9, "B"), (11, "C"))]
    for engine in engines_for(query):
        found = operate(query, events, engine, tuple(range(12)))
        assert ids(found) == {((0, 1), (2,), (3,), ())}
    # The match is known one window later, so the absence before it reaches back two windows.
    late = query_of("PATTERN !N; A; B; !M m WITHIN 10 ms RETURN *".replace("!M", "!C"))
    stream = [event(0, "N"), event(9, "A"), event(10, "B")]
    for engine in engines_for(late):
        assert operate(late, stream, engine, tuple(range(25))) == []


# --- 48: state ----------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_48_a_restored_operator_goes_on_alike(seed: int) -> None:
    chance = random.Random(seed)
    generator = Generator(chance)
    text = generator.query(keys=seed % 3 == 0).text
    if seed % 4 == 0:
        text = text.replace("RETURN", "AFTER MATCH SKIP PAST LAST EVENT RETURN")
    query = query_of(text, bounded=True)
    events = generator.events(20, keys=True)
    cut = chance.randint(0, 20)

    def rest(operator: PatternOperator) -> list[tuple[int, object]]:
        found = [m for now in (cut + 2, cut + 5, END_OF_STREAM) for m in operator.advance(now)]
        return [(match.D, match.ids) for match in found]

    operator = PatternOperator(query)
    for one in events:
        operator.push(one)
    operator.advance(cut)
    state = json.loads(json.dumps(operator.snapshot()))
    restored = PatternOperator(query)
    restored.restore(state)
    assert restored.stats == operator.stats
    assert restored.engine == operator.engine
    assert rest(restored) == rest(operator), text


# --- tables -------------------------------------------------------------------


def test_tables_and_events_come_to_the_same() -> None:
    for seed in range(40):
        generator = Generator(random.Random(seed))
        query = generator.query(keys=seed % 2 == 0)
        events = generator.events(16, keys=True)
        table = pa.table(
            {
                "ts": pa.array([e.ts for e in events], pa.int64()),
                "type": pa.array([e.type for e in events], pa.string()),
                "x": pa.array([e.attrs["x"] for e in events], pa.int32()),
                "y": pa.array([e.attrs.get("y") for e in events], pa.float64()),
                "k": pa.array([e.attrs["k"] for e in events], pa.string()),
            }
        )
        by_table = PatternOperator(query)
        by_table.push_table(table)
        one_by_one = PatternOperator(query)
        for one in events:
            one_by_one.push(one)
        for cut in (5, END_OF_STREAM):
            found, times = by_table.advance_table(cut)
            again, times_again = one_by_one.advance_table(cut)
            assert found.to_pylist() == again.to_pylist(), query.text
            assert times.tolist() == times_again.tolist()


def test_watermarks_only_rise() -> None:
    operator = PatternOperator(query_of("PATTERN A WITHIN 1 ms RETURN *"))
    operator.advance(5)
    with pytest.raises(ValueError, match="goes back"):
        operator.advance(4)


def test_what_is_not_known_is_refused() -> None:
    query = query_of("PATTERN A WITHIN 1 ms RETURN *")
    for arguments in (
        {"engine": "warp"},
        {"late": "never"},
        {"order": "random"},
        {"order": (0, 2)},
    ):
        with pytest.raises(EngineRefused):
            PatternOperator(query, **arguments).advance(1)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["PATTERN A; B?; C", "PATTERN A; (B b | C c); A"])
def test_a_pattern_of_several_ways_is_refused(text: str) -> None:
    """One operator would give the matches of one way."""
    with pytest.raises(EngineRefused, match="of one way"):
        PatternOperator(query_of(f"{text} WITHIN 1 ms RETURN *"))


def test_times_are_consecutive_pairs() -> None:
    """Emission is by D, also over several epochs."""
    query = query_of("PATTERN A; B+ WITHIN 4 ms RETURN *")
    events = [event(t, k) for t, k in enumerate("ABABAB")]
    found = operate(query, events, cuts=(2, 4, 6, 8))
    assert all(a.D <= b.D for a, b in pairwise(found))


@pytest.mark.parametrize("how", ["; !N WITHIN 90 ms", " WITHIN 90 ms USING NEXT"])
def test_runs_that_are_no_more_than_events_are_not_counted(how: str) -> None:
    """Columns, which could run the pattern too, know no runs; a state of theirs must fit."""
    query = query_of(f"PATTERN A; B{how} RETURN *")
    events = [Event(ts, ts, "B" if ts in (40, 41) else "A", {}) for ts in range(60)]
    found = []
    for engine in ("auto", "columns"):
        operator = PatternOperator(query, engine, max_runs=20)
        for each in events:
            operator.push(each)
        operator.advance(50)
        again = PatternOperator(query, max_runs=20)
        again.restore(operator.snapshot())
        assert again.engine == "compiled"
        found.append([match.ids for match in again.advance(END_OF_STREAM)])
    assert found[0] == found[1]
