"""The stream of the worked examples, and the matches that every matcher finds in it."""

from __future__ import annotations

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.types import DOUBLE, INT, VARCHAR
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.statements import compile_pattern
from seustream.engine.pattern.event import Match
from tests.engine.pattern.oracle import Oracle
from tests.engine.pattern.running import by_every_matcher, events_of, named, operate

STOCK = Stream("stock", (Column("type", VARCHAR), Column("price", DOUBLE), Column("volume", INT)))


def query(text: str, bounded: bool = False) -> ir.PatternQuery:
    return compile_pattern(text, STOCK, bounded=bounded)


S = (
    "a1@1=1200 a2@2=1050 c1@3=310 a3@4=1500 b1@5=800 f1@6=75 c2@7=300 d1@9=600 a4@10=1100"
    " a5@11=900 d2@12=520 b2@13=700 a6@14=1300 c3@15=280 f2@16=90"
)
S_TEXT = (
    "PATTERN A;B;C;D WHERE a.price > 1000 AND a.price > (1+38%)*b.price"
    " AND c.price < (1-40%)*d.price WITHIN 10 ms RETURN *"
)


def agree(text: str, stream: str, want: set[str]) -> list[Match]:
    """Asserts that every matcher, the oracle and the operator find exactly these; returns the
    operator's."""
    q, events = query(text), events_of(stream)
    assert named(stream, Oracle(q).matches(events)) == want
    for name, matches in by_every_matcher(q, events).items():
        assert named(stream, [m.ids for m in matches]) == want, name
        assert len(matches) == len(want), name
    found = operate(q, events)
    assert named(stream, [m.ids for m in found]) == want
    return found
