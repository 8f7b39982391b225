"""The automaton: its edges and versions after every event, and queries it refuses."""

from __future__ import annotations

import pytest

from seustream.engine.pattern.buffer import SharedBuffer
from seustream.engine.pattern.errors import EngineRefused
from seustream.engine.pattern.event import BEGIN_OF_TIME, Event
from seustream.engine.pattern.meaning import Meaning
from seustream.engine.pattern.nfa import Nfa
from seustream.engine.pattern.versions import Numbering, show
from tests.engine.pattern.oracle import Oracle
from tests.engine.pattern.stock import query

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
    """A buffer that frees nothing, so that a test can inspect everything ever put into it."""

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


@pytest.mark.parametrize("sequence", ["A; B+; C", "A; B; C; D"])
def test_16_per_state_is_refused_under_any(sequence: str) -> None:
    """Holds without groups too: for a b c d over a1 b1 b2 c1 d1 both runs would read back both
    ways."""
    q = query(f"PATTERN {sequence} WITHIN 10 ms USING ANY SUBSETS RETURN *")
    with pytest.raises(EngineRefused, match="ambiguous"):
        Nfa(Meaning(q), Numbering.PER_STATE)


def test_16_largest_groups_are_not_for_the_automaton() -> None:
    with pytest.raises(EngineRefused, match="P016"):
        Nfa(Meaning(query("PATTERN A; B+; C WITHIN 10 ms RETURN *")))
