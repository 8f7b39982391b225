"""The worked examples of the specification, cell by cell, with every matcher that can. The number
of a test is that of the acceptance statement."""

from __future__ import annotations

import pytest

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.types import DOUBLE, INT, VARCHAR
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.statements import compile_pattern
from seustream.engine.pattern.buffer import SharedBuffer
from seustream.engine.pattern.errors import EngineRefused
from seustream.engine.pattern.event import BEGIN_OF_TIME, Event, Match
from seustream.engine.pattern.meaning import Meaning
from seustream.engine.pattern.nfa import Nfa, Numbering
from seustream.engine.pattern.optiseq import OptiSeq
from seustream.engine.pattern.versions import compatible, show
from tests.engine.pattern.oracle import Oracle
from tests.engine.pattern.running import by_every_matcher, events_of, named, operate

STOCK = Stream("stock", (Column("type", VARCHAR), Column("price", DOUBLE), Column("volume", INT)))


def query(text: str, bounded: bool = False) -> ir.PatternQuery:
    return compile_pattern(text, STOCK, bounded=bounded)


def agree(text: str, stream: str, want: set[str]) -> list[Match]:
    """Every matcher, the oracle and the operator find exactly these; gives the operator's."""
    q, events = query(text), events_of(stream)
    assert named(stream, Oracle(q).matches(events)) == want
    for name, matches in by_every_matcher(q, events).items():
        assert named(stream, [m.ids for m in matches]) == want, name
        assert len(matches) == len(want), name
    found = operate(q, events)
    assert named(stream, [m.ids for m in found]) == want
    return found


# --- 10: NULL -----------------------------------------------------------------


@pytest.mark.parametrize(
    "condition",
    [
        "a.price > 1",
        "NOT a.price > 1",
        "a.price <> 1",
        "a.price IN (1, 2)",
        "a.price + 1 > b.price",
    ],
)
@pytest.mark.parametrize("price", [None, float("nan"), "missing"])
def test_10_null_never_satisfies(condition: str, price: object) -> None:
    q = query(f"PATTERN A; B WHERE {condition} WITHIN 10 ms RETURN *")
    attrs = {} if price == "missing" else {"price": price}
    events = [Event(1, 0, "A", attrs), Event(2, 1, "B", {"price": 1.0})]
    for engine in ("auto", "optiseq", "nfa"):
        assert operate(q, events, engine) == []


@pytest.mark.parametrize("price", [None, float("nan"), "missing"])
def test_10_null_never_forbids(price: object) -> None:
    attrs = {} if price == "missing" else {"price": price}
    events = [Event(1, 0, "A", {"price": 5.0}), Event(2, 1, "N", attrs), Event(3, 2, "B", {})]
    for condition in ("n.price > 1", "n.price > a.price", "NOT n.price > 1"):
        q = query(f"PATTERN A; !N; B WHERE {condition} WITHIN 10 ms RETURN *")
        for engine in ("auto", "optiseq", "nfa"):
            assert len(operate(q, events, engine)) == 1


def test_10_null_type_matches_any_only() -> None:
    events = [Event(1, 0, None, {}), Event(2, 1, "B", {})]
    assert len(operate(query("PATTERN ANY x; B WITHIN 9 ms RETURN *"), events)) == 1
    assert operate(query("PATTERN A; B WITHIN 9 ms RETURN *"), events) == []


# --- 11: example M ------------------------------------------------------------

M = "a1@1 b1@2 b2@3 n1@4 c1@5 b3@6 c2@7"
FOUR = ("ANY GROUP", "ANY SUBSETS", "NEXT", "STRICT")
CELLS: dict[str, tuple[set[str] | int, ...]] = {
    "A;B+;C": ({"a1 b1 b2 c1", "a1 b1 b2 b3 c2"}, 10, {"a1 b1 b2 c1"}, 0),
    "A;B{2};C": ({"a1 b1 b2 c1", "a1 b1 b2 b3 c2"}, 5, {"a1 b1 b2 c1"}, 0),
    "A;B{3};C": ({"a1 b1 b2 b3 c2"}, 1, {"a1 b1 b2 b3 c2"}, 0),
    "A;B{2,2};C": ({"a1 b1 b2 c1"}, 4, {"a1 b1 b2 c1"}, 0),
    "A;B;C": (5, 5, {"a1 b1 c1"}, 0),
}


@pytest.mark.parametrize("sequence", CELLS)
@pytest.mark.parametrize("column", range(4))
def test_11_example_m(sequence: str, column: int) -> None:
    text = f"PATTERN {sequence} WITHIN 10 ms USING {FOUR[column]} RETURN *"
    want = CELLS[sequence][column]
    found = named(M, Oracle(query(text)).matches(events_of(M)))
    assert found == want if isinstance(want, set) else len(found) == want
    agree(text, M, found)


def test_11_three_for_c1_seven_for_c2() -> None:
    text = "PATTERN A;B+;C WITHIN 10 ms USING ANY SUBSETS RETURN *"
    found = named(M, Oracle(query(text)).matches(events_of(M)))
    assert [sum(match.endswith(c) for match in found) for c in ("c1", "c2")] == [3, 7]


def test_11_strict_without_n1() -> None:
    agree(
        "PATTERN A;B+;C WITHIN 10 ms USING STRICT RETURN *",
        M.replace(" n1@4", ""),
        {"a1 b1 b2 c1"},
    )


def test_11_groups_at_an_end() -> None:
    (match,) = agree("PATTERN A;B+ WITHIN 5 ms RETURN *", M, {"a1 b1 b2 b3"})
    assert match.D == 6
    agree("PATTERN B+;C WITHIN 3 ms RETURN *", M, {"b1 b2 c1", "b3 c2"})


# --- 12: example N ------------------------------------------------------------

N = "n0@0 a1@2 c1@4 n1@4 c2@5 a2@12 c3@13 n2@22"


@pytest.mark.parametrize(
    ("sequence", "window", "want"),
    [
        ("A;!N;C", 5, {"a1 c1", "a2 c3"}),
        ("!N;A;C", 5, {"a2 c3"}),
        ("A;C;!N", 5, {"a1 c1", "a1 c2", "a2 c3"}),
        ("A;!N;C", 10, {"a1 c1", "a2 c3"}),
        ("!N;A;C", 10, set()),
        ("A;C;!N", 10, {"a1 c1", "a1 c2"}),
    ],
)
def test_12_example_n(sequence: str, window: int, want: set[str]) -> None:
    found = agree(f"PATTERN {sequence} WITHIN {window} ms RETURN *", N, want)
    if sequence == "A;C;!N" and window == 5:
        assert next((m.ids, m.D) for m in found) == (((1,), (2,), ()), 7)
        assert found[-1].D == 17


# --- 13: example S ------------------------------------------------------------

S = (
    "a1@1=1200 a2@2=1050 c1@3=310 a3@4=1500 b1@5=800 f1@6=75 c2@7=300 d1@9=600 a4@10=1100"
    " a5@11=900 d2@12=520 b2@13=700 a6@14=1300 c3@15=280 f2@16=90"
)
S_TEXT = (
    "PATTERN A;B;C;D WHERE a.price > 1000 AND a.price > (1+38%)*b.price"
    " AND c.price < (1-40%)*d.price WITHIN 10 ms RETURN *"
)
S_MATCHES = {"a1 b1 c2 d1", "a3 b1 c2 d1", "a3 b1 c2 d2"}


def test_13_example_s() -> None:
    found = agree(S_TEXT, S, S_MATCHES)
    assert [match.D for match in found] == [9, 9, 12]


def test_13_plan_and_levels() -> None:
    matcher = OptiSeq(Meaning(query(S_TEXT)), "paper", tighten=False)
    events = events_of(S)
    found = matcher.advance(events, BEGIN_OF_TIME, 20)
    assert len(found) == 3
    assert matcher.order == (1, 2, 3, 0)
    assert matcher.levels == [3, 2, 5]


def test_13_tightening_spares_a_candidate() -> None:
    matcher = OptiSeq(Meaning(query(S_TEXT)), "paper", tighten=True)
    matcher.advance(events_of(S), BEGIN_OF_TIME, 20)
    # Of b1 c3 is not touched; b2's range does hold it.
    assert matcher.levels == [2, 2, 5]


# --- 14: example K ------------------------------------------------------------

K_TEXT = (
    "PATTERN Stock+ a; Stock b WHERE a[1].volume >= 1000"
    " AND a[i].price > avg(a[..i-1].price) AND b.volume < 80% * last(a).volume"
    " WITHIN 1 h USING NEXT RETURN *"
)
K_ROWS = [(50, 1200), (60, 980), (66, 1050), (70, 990), (67, 940), (72, 700), (69, 930), (68, 710)]
K_EVENTS = [
    Event(60_000 * n, n, "Stock", {"price": float(p), "volume": v})
    for n, (p, v) in enumerate(K_ROWS, start=1)
]
K_MATCHES = {
    ((1, 2, 3, 4, 5), (6,)),
    ((3, 4), (6,)),
    ((1, 2, 3, 4, 5, 6, 7), (8,)),
}

PER_STATE = {
    "a[1]e1": ["−@1"],
    "a[1]e3": ["−@2"],
    "a[i]e2": ["a[1]e1@1.0"],
    "a[i]e3": ["a[i]e2@1.0"],
    "a[i]e4": ["a[i]e3@1.0", "a[1]e3@2.0"],
    "a[i]e5": ["a[i]e4@1.0"],
    "a[i]e6": ["a[i]e5@1.1", "a[i]e4@2.1"],
    "a[i]e7": ["a[i]e6@1.1"],
    "a[i]e8": ["a[i]e7@1.2"],
    "be6": ["a[i]e5@1.0.0", "a[i]e4@2.0.0"],
    "be8": ["a[i]e7@1.1.0"],
}
PER_TAKE = {
    "a[1]e1": ["−@1"],
    "a[1]e3": ["−@2"],
    "a[i]e2": ["a[1]e1@1.0"],
    "a[i]e3": ["a[i]e2@1.0.0"],
    "a[i]e4": ["a[i]e3@1.0.0.0", "a[1]e3@2.0"],
    "a[i]e5": ["a[i]e4@1.0.0.0.0"],
    "a[i]e6": ["a[i]e5@1.0.0.0.0.0", "a[i]e4@2.0.0"],
    "a[i]e7": ["a[i]e6@1.0.0.0.0.0.0"],
    "a[i]e8": ["a[i]e7@1.0.0.0.0.0.0.0"],
    "be6": ["a[i]e5@1.0.0.0.0.1", "a[i]e4@2.0.1"],
    "be8": ["a[i]e7@1.0.0.0.0.0.0.1"],
}


class Keeping(SharedBuffer):
    """A buffer that frees nothing, so that everything ever put can be looked at."""

    def release(self, entry: object) -> None:
        pass


def edges_of(buffer: SharedBuffer) -> dict[str, list[str]]:
    def name(entry: object) -> str:
        return f"{entry.state}e{entry.event.seq}"  # type: ignore[attr-defined]

    return {
        name(entry): [
            f"{'−' if edge.target is None else name(edge.target)}@{show(edge.version)}"
            for edge in entry.edges
        ]
        for entry in buffer.entries()
    }


@pytest.mark.parametrize(
    ("numbering", "table"), [(Numbering.PER_STATE, PER_STATE), (Numbering.PER_TAKE, PER_TAKE)]
)
def test_14_version_tables(numbering: Numbering, table: dict[str, list[str]]) -> None:
    nfa = Nfa(Meaning(query(K_TEXT)), numbering)
    nfa.buffer = Keeping()
    found = nfa.advance(K_EVENTS, BEGIN_OF_TIME, K_EVENTS[-1].ts)
    assert {match.ids for match in found} == K_MATCHES
    found_edges = {name: sorted(edges) for name, edges in edges_of(nfa.buffer).items()}
    assert found_edges == {name: sorted(edges) for name, edges in table.items()}
    assert sum(map(len, table.values())) == 14


@pytest.mark.parametrize("numbering", Numbering)
def test_14_in_operation(numbering: Numbering) -> None:
    nfa = Nfa(Meaning(query(K_TEXT)), numbering)
    found = nfa.advance(K_EVENTS, BEGIN_OF_TIME, K_EVENTS[-1].ts)
    assert (
        {match.ids for match in found} == K_MATCHES == set(Oracle(query(K_TEXT)).matches(K_EVENTS))
    )
    nfa.check()
    refs = {f"{e.state}e{e.event.seq}": e.refs for e in nfa.buffer.entries()}
    assert len(refs) == 9
    assert sum(map(len, edges_of(nfa.buffer).values())) == 11
    assert {name: count for name, count in refs.items() if count != 1} == {"a[i]e4": 2, "a[i]e6": 2}


def test_14_without_versions_there_are_four_ways() -> None:
    nfa = Nfa(Meaning(query(K_TEXT)), Numbering.PER_STATE)
    nfa.buffer = Keeping()
    nfa.advance(K_EVENTS, BEGIN_OF_TIME, K_EVENTS[-1].ts)
    (b6,) = [e for e in nfa.buffer.entries() if e.state == "b" and e.event.seq == 6]

    def ways(entry: object) -> list[list[int]]:
        found = []
        for target, _ in entry.edges:  # type: ignore[attr-defined]
            before = [[]] if target is None else ways(target)
            found += [[*way, entry.event.seq] for way in before]  # type: ignore[attr-defined]
        return found

    assert sorted(ways(b6)) == [[1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 6], [3, 4, 5, 6], [3, 4, 6]]
    walked = [
        [event.seq for _, event in path]
        for version in ((1, 0, 0), (2, 0, 0))
        for path in nfa.buffer.extract(b6, version)
    ]
    assert walked == [[1, 2, 3, 4, 5, 6], [3, 4, 6]]


# --- 15, 16: versions ---------------------------------------------------------


@pytest.mark.parametrize(
    ("v", "w", "expected"),
    [
        ((2, 0, 0), (1, 0), False),
        ((1, 1, 0), (1, 1), True),
        ((1, 1), (1, 0), True),
        ((1, 0), (1, 1), False),
        ((1, 0), (1, 0), True),
        ((1,), (1, 0), False),
    ],
)
def test_15_compatible(v: tuple[int, ...], w: tuple[int, ...], expected: bool) -> None:
    assert compatible(v, w) is expected


@pytest.mark.parametrize("sequence", ["A; B+; C", "A; B; C; D"])
def test_16_per_state_is_refused_under_any(sequence: str) -> None:
    """Without groups too: of a b c d over a1 b1 b2 c1 d1 both runs would read back both ways."""
    q = query(f"PATTERN {sequence} WITHIN 10 ms USING ANY SUBSETS RETURN *")
    with pytest.raises(EngineRefused, match="ambiguous"):
        Nfa(Meaning(q), Numbering.PER_STATE)


def test_16_largest_groups_are_not_for_the_automaton() -> None:
    with pytest.raises(EngineRefused, match="P016"):
        Nfa(Meaning(query("PATTERN A; B+; C WITHIN 10 ms RETURN *")))


# --- 44 to 46 -----------------------------------------------------------------


def test_44_an_absence_compared_with_a_later_element() -> None:
    text = "PATTERN A;!B;C WHERE b.price > c.price WITHIN 10 ms RETURN *"
    agree(text, "a1@1=1 b1@2=5 c1@3=4 c2@4=5", {"a1 c2"})


def test_45_an_absence_limits_its_gap_only() -> None:
    text = "PATTERN A;B;!N;C;D WITHIN 20 ms RETURN *"
    agree(text, "n0@0 a1@1 n1@2 b1@3 c1@4 n2@5 d1@6", {"a1 b1 c1 d1"})
    agree(text, "a1@1 b1@3 n1@4 c1@5 d1@6", set())
    agree(text, "a1@1 b1@3 n1@3 c1@5 n2@5 d1@6", {"a1 b1 c1 d1"})


def test_46_skip_past_last_event() -> None:
    q = query(S_TEXT.replace("RETURN", "AFTER MATCH SKIP PAST LAST EVENT RETURN"))
    assert named(S, [m.ids for m in operate(q, events_of(S))]) == {"a1 b1 c2 d1"}
    q = query(S_TEXT.replace("RETURN", "AFTER MATCH SKIP TO NEXT EVENT RETURN"))
    found = named(S, [m.ids for m in operate(q, events_of(S))])
    assert found == {"a1 b1 c2 d1", "a3 b1 c2 d1"}
