"""Optional elements and choices compared with the definition: the matches of all ways through the
sequence, each judged by brute force; groups that may be empty are judged as they are defined."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.errors import CompileError
from seustream.compiler.language.types import INT, VARCHAR
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.statements import compile_pattern
from seustream.engine.pattern import output
from seustream.engine.pattern.event import END_OF_STREAM, Event
from seustream.engine.pattern.matchers import operator_of
from tests.engine.pattern.oracle import Oracle

STREAM = Stream("s", (Column("type", VARCHAR), Column("x", INT), Column("n", INT)))
SCHEMA = {"ts": pa.int64(), "type": pa.string(), "x": pa.int32(), "n": pa.int32()}
Rows = Counter[tuple[object, ...]]


@dataclass(frozen=True)
class One:
    """An element; `form` is the suffix of its type."""

    name: str
    type: str
    form: str = ""
    negated: bool = False

    @property
    def text(self) -> str:
        return f"{'!' * self.negated}{self.type}{self.form} {self.name}"

    @property
    def group(self) -> bool:
        return self.form not in ("", "?")


@dataclass(frozen=True)
class Some:
    ways: tuple[tuple[One | Some, ...], ...]
    optional: bool

    @property
    def text(self) -> str:
        return f"({' | '.join(map(written, self.ways))}){'?' * self.optional}"


Sequence = tuple[One | Some, ...]
Way = tuple[One, ...]


def written(sequence: Sequence) -> str:
    return "; ".join(part.text for part in sequence)


@dataclass
class Case:
    """A random pattern and a random stream."""

    seed: int
    sequence: Sequence = ()
    every: list[One] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.how = self.chance.choice(("ANY GROUP", "ANY SUBSETS", "NEXT", "STRICT"))
        self.skip = self.chance.choice(("", "", " TO NEXT EVENT", " PAST LAST EVENT"))
        self.window = self.chance.randint(2, 9)
        self.sequence = self._sequence(self.chance.randint(1, 3), 0)
        self.conditions = [self._condition() for _ in range(self.chance.choice((0, 1, 1, 2, 3)))]
        positive = [one for one in self.every if not one.negated]
        self.returned = [one.name for one in positive]
        self.events, ts = [], 0
        for n in range(self.chance.randint(3, 9)):
            ts += self.chance.choice((0, 1, 1, 2))
            kind, x = self.chance.choice("ABC"), self.chance.choice((0, 1, 2, None))
            self.events.append(Event(ts, n, kind, {"type": kind, "x": x, "n": n}))

    def _sequence(self, size: int, depth: int) -> Sequence:
        return tuple(self._part(depth) for _ in range(size))

    def _part(self, depth: int) -> One | Some:
        chance = self.chance
        if depth < 2 and chance.random() < 0.25:
            ways = [self._sequence(chance.choice((1, 1, 2)), depth + 1) for _ in range(2)]
            some = Some(tuple(ways), chance.random() < 0.3)
            if not all(len(w) == 1 and isinstance(w[0], One) and not w[0].name for w in ways):
                return some
        form = chance.choices(("", "?", "+", "*", "{0,2}"), (6, 4, 1, 2, 1))[0]
        negated = chance.random() < 0.1
        one = One(f"v{len(self.every)}", chance.choice("ABC"), "" if negated else form, negated)
        self.every.append(one)
        return one

    def _condition(self) -> tuple[str, tuple[One, ...], str, int]:
        chance = self.chance
        singles = [one for one in self.every if not one.group and not one.negated]
        kind = chance.choice(("constant", "pair", "or", "null", "coalesce", "count"))
        a = chance.choice(self.every)
        if kind == "count" and not a.group:
            kind = "constant"
        if kind != "count" and kind != "constant" and len(singles) < 2:
            kind = "constant"
        if kind in ("or", "null", "coalesce"):
            a = chance.choice(singles)
        b = chance.choice(singles) if kind in ("pair", "or", "coalesce") else a
        compare = chance.choice(("<", "<=", "=", "<>", ">="))
        return kind, (a, b), compare, chance.randint(0, 2)

    @property
    def text(self) -> str:
        return self._text(written(self.sequence), [self._full(c) for c in self.conditions])

    def _text(self, sequence: str, conditions: list[str]) -> str:
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        names = self.returned or ["v0"]
        return (
            f"PATTERN {sequence} FROM s{where} WITHIN {self.window} ms USING {self.how}"
            f"{f' AFTER MATCH SKIP{self.skip}' if self.skip else ''}"
            f" RETURN {', '.join(f'{name}.n AS {name}' for name in names)}"
        )

    def _full(self, condition: tuple[str, tuple[One, ...], str, int]) -> str:
        found = applied(condition, {one.name for one in self.every})
        assert isinstance(found, str)
        return found

    def wanted(self) -> Rows:
        """Returns by definition a row of event numbers by variable, and the time of each. Two
        matches of the same events are one, however they arise."""
        found: dict[tuple[tuple[int, ...], ...], int] = {}
        natively = self.how.startswith("ANY")
        for way in dict.fromkeys(ways(self.sequence, natively)):
            names = {one.name for one in way}
            own = [applied(condition, names) for condition in self.conditions]
            if False in own or all(one.negated for one in way):
                continue
            plain = [dataclasses.replace(one, form=one.form.replace("?", "")) for one in way]
            forms = {"*": "+", "{0,2}": "{1,2}"}
            plain = [dataclasses.replace(one, form=forms.get(one.form, one.form)) for one in plain]
            sequence = "; ".join(one.text for one in plain)
            said = [condition for condition in own if isinstance(condition, str)]
            text = f"PATTERN {sequence} FROM s"
            text += f" WHERE {' AND '.join(said)}" * bool(said)
            text += f" WITHIN {self.window} ms USING {self.how} RETURN *"
            query = compile_pattern(text, STREAM)
            assert isinstance(query, ir.PatternQuery)
            if natively:
                elements = tuple(
                    dataclasses.replace(element, least=0) if one.form in forms else element
                    for element, one in zip(query.elements, way, strict=True)
                )
                query = dataclasses.replace(query, elements=elements)
            for ids, time in Oracle(query).matches(self.events).items():
                by_name = {one.name: group for one, group in zip(way, ids, strict=True)}
                match = tuple(by_name.get(one.name, ()) for one in self.every)
                found[match] = min(time, found.get(match, time))
        return Rows((time, *self._row(match)) for match, time in self._counted(found))

    def _row(self, match: tuple[tuple[int, ...], ...]) -> Iterator[str]:
        for one, group in zip(self.every, match, strict=True):
            if one.name in self.returned:
                yield str(None if not group else list(group) if one.group else group[0])

    def _counted(
        self, found: dict[tuple[tuple[int, ...], ...], int]
    ) -> list[tuple[tuple[tuple[int, ...], ...], int]]:
        """Returns the matches that AFTER MATCH leaves; events are numbered in their order."""
        if not self.skip:
            return list(found.items())
        counted, behind = [], -1
        for start in range(len(self.events)):
            mine = [(time, m) for m, time in found.items() if min(sum(m, ())) == start]
            if mine and start > behind:
                # At equal times, the match with an event wins over the one without.
                time, match = min(mine, key=lambda m: (m[0], [(not ids, ids) for ids in m[1]]))
                counted.append((match, time))
                behind = max(sum(match, ())) if self.skip == " PAST LAST EVENT" else start
        return counted

    def found(self, query: ir.MatchQuery) -> Rows:
        """Returns the rows of the engine; the input comes in pieces, with a snapshot now and
        then."""
        operator = operator_of(query)
        found, sent = Rows(), 0
        cuts = sorted(self.chance.randint(0, 12) for _ in range(self.chance.randint(0, 3)))
        for cut in [*cuts, END_OF_STREAM]:
            some = [e for e in self.events[sent:] if e.ts <= cut]
            sent += len(some)
            columns = {name: [e.attrs[name] for e in some] for name in ("type", "x", "n")}
            columns["ts"] = [e.ts for e in some]
            operator.push_table(pa.table(columns, schema=pa.schema(SCHEMA)))
            rows, times = operator.advance_table(cut)
            assert list(times) == sorted(times)
            for row, time in zip(rows.to_pylist(), times, strict=True):
                found[(int(time), *(str(row[name]) for name in self.returned))] += 1
            if self.chance.random() < 0.3:
                state, operator = operator.snapshot(), operator_of(query)
                operator.restore(state)
        return found


def ways(sequence: Sequence, natively: bool) -> list[Way]:
    """Expands the sequence recursively as written; with `natively` a group that may be empty stays
    one way."""
    found: list[Way] = [()]
    for part in sequence:
        if isinstance(part, Some):
            here = [way for one in part.ways for way in ways(one, natively)]
            here += [()] * part.optional
        elif part.form == "?" or (not natively and part.form in ("*", "{0,2}")):
            here = [(part,), ()]
        else:
            here = [(part,)]
        found = [(*before, *after) for before, after in itertools.product(found, here)]
    return found


def applied(condition: tuple[str, tuple[One, ...], str, int], there: set[str]) -> str | bool | None:
    """Returns the condition for a match with these elements: None if it does not apply or always
    holds, False if it never holds."""
    kind, (a, b), compare, constant = condition
    here = [one for one in dict.fromkeys((a, b)) if one.name in there]
    if kind == "constant":
        return f"{a.name}.x {compare} {constant}" if here else None
    if kind == "pair":
        return f"{a.name}.x {compare} {b.name}.x" if a.name in there and b.name in there else None
    if kind == "or":
        sides = [f"{a.name}.x {compare} {constant}"] if a.name in there else []
        sides += [f"{b.name}.x = 1"] if b.name in there else []
        return f"({' OR '.join(sides)})" if sides else None
    if kind == "null":
        negated = constant == 0
        if not here:
            return False if negated else None
        return f"{a.name}.x IS {'NOT ' * negated}NULL"
    if kind == "coalesce":
        inside = [f"{one.name}.x" for one in (a, b) if one.name in there]
        return f"coalesce({', '.join(inside)}, NULL) {compare} {constant}" if inside else None
    if a.name in there:
        return f"count({a.name}) {compare} {constant}"
    holds = {"<": constant > 0, "<=": True, "=": constant == 0, "<>": constant != 0}
    return None if holds.get(compare, constant == 0) else False


def check(seed: int) -> int | None:
    """Runs a case; returns None if no such pattern may be written."""
    case = Case(seed)
    try:
        query = compile_pattern(case.text, STREAM)
    except CompileError as error:
        if {problem.kind for problem in error.problems} <= {"P007", "P012", "P013", "P016"}:
            return None
        raise
    want, found = case.wanted(), case.found(query)
    rows = [(e.ts, e.attrs) for e in case.events]
    assert found == want, f"seed {seed}\n{case.text}\n{rows}\n+{found - want}\n-{want - found}"
    return want.total()


def test_every_way_is_matched() -> None:
    """`nox -s patterns` runs many more."""
    counts = [check(seed) for seed in (*range(80), 1_011_156)]  # the last has matches without rows
    assert sum(count is not None for count in counts) > 60
    assert sum(count or 0 for count in counts) > 150


def test_parts_are_the_whole_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    several = 0
    for seed in range(60):
        case = Case(seed)
        try:
            query = compile_pattern(case.text, STREAM)
        except CompileError:
            continue
        columns = {name: [e.attrs[name] for e in case.events] for name in ("type", "x", "n")}
        columns["ts"] = [e.ts for e in case.events]
        rows = pa.table(columns, schema=pa.schema(SCHEMA))
        found = []
        for part in (output.PART, 2):
            monkeypatch.setattr(output, "PART", part)
            operator = operator_of(query)
            operator.push_table(rows)
            tables = [table for table, _ in operator.parts(END_OF_STREAM)]
            several += part == 2 and len(tables) > 1
            found.append([row for table in tables for row in table.to_pylist()])
        monkeypatch.undo()
        assert found[0] == found[1], f"seed {seed}\n{case.text}"
    assert several > 5


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ("count(b)", [0, 0, 2]),
        ("approx_count_distinct(b.x)", [0, 0, 1]),
        ("approx_count_distinct(DISTINCT b.x) + 1", [1, 1, 2]),
        ("sum(b.x)", [None, None, 14]),
        ("array_agg(b.n)", [None, None, [1, 2]]),
    ],
)
@pytest.mark.parametrize("how", ["ANY", "NEXT"])  # NEXT skips the Cs, too
def test_an_aggregate_over_a_missing_group_is_that_over_no_rows(
    how: str, value: str, want: list[object]
) -> None:
    """The aggregate may be the only item of RETURN."""
    text = f"PATTERN A a; C* b; A d FROM s WITHIN 9 ms USING {how} RETURN {value} AS r"
    operator = operator_of(compile_pattern(text, STREAM))
    rows = {
        "ts": [1, 2, 3, 4, 20, 21, 40, 41],
        "type": [*"ACCAAAAA"],
        "x": [7] * 8,
        "n": [*range(8)],
    }
    operator.push_table(pa.table(rows, schema=pa.schema(SCHEMA)))
    found, _ = operator.advance_table(END_OF_STREAM)
    every = want + want[:1] * (how == "NEXT")
    assert sorted(found["r"].to_pylist(), key=str) == sorted(every, key=str)


def test_columns_of_missing_elements_are_null() -> None:
    """Covers whole events, lists and counts; rows of all ways come in order of time."""
    text = "PATTERN A a; (B b | C+ c); A d FROM s WITHIN 9 ms USING NEXT RETURN b, c, count(c) AS k"
    operator = operator_of(compile_pattern(text, STREAM))
    rows = {"ts": [1, 2, 3, 4, 5], "type": [*"ACBAC"], "x": [0] * 5, "n": [*range(5)]}
    operator.push_table(pa.table(rows, schema=pa.schema(SCHEMA)))
    found, times = operator.advance_table(END_OF_STREAM)
    assert list(times) == [4, 4]
    assert found.column_names == [
        *(f"{v}_{x}" for v in "bc" for x in ("ts", "type", "x", "n")),
        "k",
    ]
    values = found.select(["b_n", "c_n", "k"]).to_pylist()
    assert values == [{"b_n": 2, "c_n": None, "k": 0}, {"b_n": None, "c_n": [1], "k": 1}]
