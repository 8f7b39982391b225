"""FlinkCEP as another judge: `python -m tests.engine.pattern.flink_check --cases N`.

The common subset: single events and groups under ANY SUBSETS, single events under NEXT and
STRICT, absences between events by constants and of another type than the event that ends the gap, no
two events at one time; and MATCH_RECOGNIZE in
SQL, where no row fits both a group and what follows it. Flink gives out a match of SQL when no run
from an earlier row is left, and the end of a stream ends none; so a last row, without a value, does.
Flink's own groups under NEXT leave at any time, so they are not compared. Needs Java 17,
`javac` and Maven, which fetches Flink from Maven Central.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.types import INT, VARCHAR
from seustream.compiler.pattern.statements import compile_pattern
from seustream.engine.pattern.event import END_OF_STREAM, Event
from seustream.engine.pattern.matchers import operator_of
from seustream.engine.pattern.operator import PatternOperator
from seustream.engine.pattern.recognize.operator import RowOperator

HERE = Path(__file__).parent / "flink"
STREAM = Stream("t", (Column("type", VARCHAR), Column("id", INT), Column("x", INT)))


@dataclass
class Asked:
    """The same question twice: as `lines` for Flink, as `text` for our engine."""

    number: int
    text: str
    lines: list[str]


@dataclass
class Case(Asked):
    events: list[Event]
    found: set[str] = field(default_factory=set)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=150)
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    cases = [
        recognize_case(n, chance) if n % 3 == 2 else pattern_case(n, chance)
        for n in range(arguments.cases)
    ]
    theirs = ask_flink(cases)
    matches = failures = 0
    for case in cases:
        ours, other = run(case), {*theirs[case.number]}
        matches += len(ours)
        if ours != other:
            failures += 1
            events = " ".join(f"{e.type}#{e.seq}@{e.ts}={e.attrs['x']}" for e in case.events)
            print(f"case {case.number} of seed {arguments.seed}: {case.text}\n  {events}")
            print(f"  ours only {sorted(ours - other)}")
            print(f"  Flink only {sorted(other - ours)}")
    print(f"{len(cases)} cases, {matches} matches, {failures} differ")
    return 1 if failures or not matches else 0


# --- cases --------------------------------------------------------------------


def events_of(chance: random.Random) -> list[Event]:
    ts, found = 0, []
    for seq in range(chance.randint(6, 14)):
        ts += chance.choice((1, 1, 2, 3))
        kind, x = chance.choice("AABBC"), chance.randint(0, 4)
        found.append(Event(ts, seq, kind, {"type": kind, "id": seq, "x": x}))
    return found


def pattern_case(number: int, chance: random.Random) -> Case:
    strategy = chance.choice(("ANY SUBSETS", "ANY SUBSETS", "NEXT", "STRICT"))
    roles = ["one"]
    for _ in range(chance.choice((1, 2, 2))):
        if strategy == "ANY SUBSETS" and chance.random() < 0.3:
            roles.append("none")
        roles.append("many" if strategy == "ANY SUBSETS" and chance.random() < 0.3 else "one")
    kinds = [chance.choice("ABC") for _ in roles]
    for i, role in enumerate(roles):
        if role == "none":
            # The event that ends a gap is outside it, but in Flink it forbids if it fits.
            follower = next(
                kind for kind, r in zip(kinds[i:], roles[i:], strict=True) if r != "none"
            )
            kinds[i] = chance.choice([kind for kind in "ABC" if kind != follower])
    window = chance.choice((3, 5, 8, 20))
    conditions, where = [], []
    singles = [i for i, role in enumerate(roles) if role == "one"]
    for _ in range(chance.choice((0, 1, 2))):
        operator, plus = chance.choice("<>="), chance.randint(0, 2)
        one = chance.choice([i for i, role in enumerate(roles) if role != "many"])
        earlier = [i for i in singles if i < one]
        other = chance.choice(earlier) if earlier and roles[one] == "one" else -1
        conditions.append(f"C {one} {operator} {other} {plus}")
        right = f"v{other}.x + {plus}" if other >= 0 else str(plus)
        where.append(f"v{one}.x {operator} {right}")
    forms = {"one": "{} v{}", "many": "{}+ v{}", "none": "!{} v{}"}
    parts = zip(roles, kinds, strict=True)
    sequence = "; ".join(forms[role].format(kind, i) for i, (role, kind) in enumerate(parts))
    text = f"PATTERN {sequence}" + (f" WHERE {' AND '.join(where)}" if where else "")
    text += f" WITHIN {window} ms USING {strategy} RETURN *"
    events = events_of(chance)
    lines = [f"CASE {number} {window} {strategy.split()[0]}"]
    lines += [f"E {kind} {role}" for role, kind in zip(roles, kinds, strict=True)]
    lines += [*conditions, *_rows(events), "END"]
    return Case(number, text, lines, events)


def recognize_case(number: int, chance: random.Random) -> Case:
    size = chance.choice((2, 3, 3, 4))
    names = "PQRS"[:size]
    loops = [i in (1, 3) and i < size - 1 and chance.random() < 0.7 for i in range(size)]
    quantifiers = [chance.choice(("+", "{2}", "{1,2}", "{2,}")) if loop else "" for loop in loops]
    pattern = " ".join(n + q for n, q in zip(names, quantifiers, strict=True))
    defines: list[str] = []
    conditions: list[tuple[str, str]] = []
    for i, name in enumerate(names):
        if i and loops[i - 1]:
            # No row may fit both a group and what follows it: Flink adds the row to the group and,
            # unlike SQL, never backtracks.
            operator, right = conditions[-1]
            condition = ({"<": ">=", ">": "<="}[operator], right)
        elif loops[i] and chance.random() < 0.5:
            condition = (">", f"{names[i - 1]}.x")
        else:
            condition = (chance.choice("<>"), str(chance.randint(0, 3)))
        conditions.append(condition)
        defines.append(f"{name} AS {name}.x {condition[0]} {condition[1]}")
    measures = [
        f"FIRST({n}.id) AS f{n}, LAST({n}.id) AS l{n}" if loop else f"{n}.id AS f{n}"
        for n, loop in zip(names, loops, strict=True)
    ]
    skip = chance.choice(("PAST LAST ROW", "TO NEXT ROW"))
    text = (
        f"SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES {', '.join(measures)}"
        f" ONE ROW PER MATCH AFTER MATCH SKIP {skip} PATTERN ({pattern})"
        f" DEFINE {', '.join(defines)})"
    )
    events = events_of(chance)
    last = events[-1]
    nothing = {"type": "A", "id": last.seq + 1, "x": None}
    events.append(Event(last.ts + 1, last.seq + 1, "A", nothing))
    lines = [f"SQL {number}", text, *_rows(events), "END"]
    return Case(number, text, lines, events)


def _rows(events: list[Event]) -> list[str]:
    values = [(event, event.attrs["x"]) for event in events]
    return [f"V {event.ts} {event.type} {'-' if x is None else x}" for event, x in values]


# --- both sides ---------------------------------------------------------------


def run(case: Case) -> set[str]:
    operator = operator_of(compile_pattern(case.text, STREAM, bounded=True))
    rows = [{"ts": event.ts, **event.attrs} for event in case.events]
    types = {"ts": pa.int64(), "type": pa.string(), "id": pa.int32(), "x": pa.int32()}
    if isinstance(operator, RowOperator):
        operator.push_table(pa.Table.from_pylist(rows, pa.schema(types)))
        found, _ = operator.advance_table(END_OF_STREAM)
        return {"R " + " ".join(str(v) for v in row.values()) for row in found.to_pylist()}
    assert isinstance(operator, PatternOperator)
    for event in case.events:
        operator.push(event)
    return {
        "M " + ";".join("".join(f"{event.seq}," for event in group) for group in match.groups)
        for match in operator.advance(END_OF_STREAM)
    }


def ask_flink(cases: Sequence[Asked]) -> dict[int, list[str]]:
    """Returns the lines that Flink prints for each case."""
    for program in ("java", "javac", "mvn"):
        if shutil.which(program) is None:
            sys.exit(f"{program} is not there; Flink needs Java 17 and Maven")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        shutil.copy(HERE / "pom.xml", folder)
        jars, classes = folder / "jars", folder / "classes"
        classes.mkdir()
        fetch = ["mvn", "-q", "-B", "-f", str(folder / "pom.xml"), "dependency:copy-dependencies"]
        _run([*fetch, f"-DoutputDirectory={jars}"])
        path = f"{jars}/*"
        _run(["javac", "-nowarn", "-cp", path, "-d", str(classes), str(HERE / "Main.java")])
        asked = folder / "cases.txt"
        asked.write_text("\n".join(line for case in cases for line in case.lines) + "\n")
        opened = [f"--add-opens=java.base/{p}=ALL-UNNAMED" for p in ("java.lang", "java.util")]
        call = ["java", "-XX:+UseSerialGC", *opened, "-cp", f"{classes}:{path}", "Main", str(asked)]
        text = _run(call)
    found: dict[int, list[str]] = {}
    number = -1
    for line in text.splitlines():
        if line.startswith("CASE "):
            number = int(line.split()[1])
            found[number] = []
        elif line.startswith(("M ", "R ")):
            found[number].append(line)
    if "DONE" not in text or len(found) != len(cases):
        raise RuntimeError(f"Flink ended early:\n{text[-2000:]}")
    return found


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{done.stdout[-2000:]}\n{done.stderr[:3000]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
