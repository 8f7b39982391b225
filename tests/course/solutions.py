"""Solutions of the lab course in `docs/course/`: at least one function for each sheet."""

from __future__ import annotations

import itertools
import random
import re
import warnings
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

import seustream as ss
from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.compiler.wjasip.assembler import assemble
from seustream.compiler.wjasip.image import encode
from seustream.cosim.golden import GoldenDevice
from seustream.cosim.iss import IssDevice
from seustream.engine.graph import GraphRun
from seustream.engine.intake import accepted
from seustream.hdl.device import Batch
from seustream.studio.compiled import Settings, compilation
from seustream.studio.data import rows
from seustream.studio.machine import story
from seustream.studio.server import gallery

Row = tuple[int, int, int]
"""Time, key, value."""


# --- sheet 1 ------------------------------------------------------------------


def pairs(r: list[Row], s: list[Row], t: int) -> Counter[tuple[int, int]]:
    """Joins two streams over `WINDOW RANGE t`, by definition."""
    found: Counter[tuple[int, int]] = Counter()
    for ts_r, key_r, value_r in r:
        for ts_s, key_s, value_s in s:
            if key_r == key_s and abs(ts_r - ts_s) <= t:
                found[value_r, value_s] += 1
    return found


def pairs_of_seustream(r: list[Row], s: list[Row], t: int) -> Counter[tuple[int, int]]:
    columns = [
        dict(zip(("ts", "k", "v"), map(list, zip(*rows, strict=True)), strict=True))
        for rows in (r, s)
    ]
    text = f"SELECT r.v, s.v AS w FROM r, s WHERE r.k = s.k WINDOW RANGE {t}"
    return Counter((v, w) for v, w, *_ in ss.run(text, r=columns[0], s=columns[1])["q0"].rows())


# --- sheet 2 ------------------------------------------------------------------


def placed(condition: str) -> str:
    """Returns the part of the machine that decides a join condition: device, both, or host."""
    c = compile_text(
        f"""
        CREATE STREAM R (a int, name varchar(20), x double precision);
        CREATE STREAM S (d int, name varchar(20));
        REGISTER QUERY q AS SELECT R.a FROM R, S WHERE R.a = S.d AND {condition} WINDOW RANGE 10;
        """
    )
    from seustream.compiler.explain import explain

    (_, _, text) = explain(c, "split", "text").partition("  device ")
    device, _, host = text.partition("\n  host ")
    inside = condition in " ".join(device.split("\n  columns")[0].split())
    checked = condition in " ".join(host.split("\n  columns")[0].split())
    return "both" if inside and checked else "device" if inside else "host"


# --- sheet 3 ------------------------------------------------------------------

QUERY = """
    CREATE STREAM a (k int, v int);
    CREATE STREAM b (k int, v int);
    SELECT * FROM a, b WHERE a.k = b.k AND a.v > 0 AND b.v > 0 WINDOW RANGE 1 second;
"""
GREATER = """
    CMP 0,a0,=,0
    CMP 1,a1,>,1
    JMPLI
    JMPCT 0,6
    AND 0,1,16
    JOIN 16,2
    NOP
"""
EITHER = """
    CMP 0,a0,=,0
    CMP 1,a1,=,1
    JMPLI
    JMPCT 0,6
    OR 0,1,16
    JOIN 16,2
    NOP
"""


def joined(program: str, rows: list[tuple[int, int, int]]) -> int:
    """Counts the results of some rows, each `(stream, k, v)`, with this program in the area of
    b."""
    compiled: Compilation = compile_text(QUERY)
    areas = list(compiled.tables.areas)
    # Without the guard, since `EITHER` does not require its equality.
    areas[1] = replace(areas[1], program=assemble(program, compiled.slot_names), guards={})
    device = IssDevice(compiled.options.config)
    device.load(encode(replace(compiled.tables, areas=tuple(areas)), compiled.options.config))
    counts = [itertools.count(), itertools.count()]
    half = 1 << 31
    results = device.push(
        Batch(
            stream=np.array([stream for stream, _, _ in rows], np.uint8),
            timestamp=np.arange(len(rows)),
            sequence=np.array([next(counts[stream]) for stream, _, _ in rows]),
            admit=np.ones(len(rows), np.bool_),
            attributes=np.array([[k + half, v + half, 0, 0] for _, k, v in rows], np.uint32),
        )
    )
    return results.delivered


# --- sheet 4 ------------------------------------------------------------------


def circulated(text: str, plan: str, streams: dict[str, Any]) -> tuple[int, int]:
    """Returns the number of tuples that circulate in the device under a plan, and of results."""
    compiled = compile_text(text, options=Options(plan=plan))
    device = GoldenDevice(compiled.options.config)
    run = GraphRun(compiled, device)
    for stream in run.streams:
        run.push(stream.name, accepted(stream, streams[stream.name]))
    results = sum(rows.num_rows for _, rows in run.finish())
    return device.status().circulated, results


# --- sheet 5 ------------------------------------------------------------------

Event = tuple[int, str, int]
"""Time, type, x."""


def matches(events: list[Event], within: int) -> Counter[tuple[int, int, int]]:
    """Matches `A a; !N; B b; C c` with x rising, by definition: the times of each match."""
    found: Counter[tuple[int, int, int]] = Counter()
    by_type = {kind: [event for event in events if event[1] == kind] for kind in "ABCN"}
    for (ta, _, xa), (tb, _, xb) in itertools.product(by_type["A"], by_type["B"]):
        if not (ta < tb and xa < xb) or any(ta < tn < tb for tn, *_ in by_type["N"]):
            continue
        for tc, _, xc in by_type["C"]:
            if tb < tc <= ta + within and xb < xc:
                found[ta, tb, tc] += 1
    return found


def matches_of_seustream(events: list[Event], within: int) -> Counter[tuple[int, int, int]]:
    columns = dict(zip(("ts", "type", "x"), map(list, zip(*events, strict=True)), strict=True))
    text = f"""PATTERN A a; !N; B b; C c FROM events WHERE a.x < b.x AND b.x < c.x
        WITHIN {within} ms RETURN a.ts AS ta, b.ts AS tb, c.ts AS tc"""
    return Counter(row[:3] for row in ss.run(text, events=columns)["q0"].rows())


# --- sheet 6 ------------------------------------------------------------------


def arrivals(count: int, delay: int, seed: int) -> list[int]:
    """Returns times in the order of their arrival, each up to `delay` late."""
    chance = random.Random(seed)
    due = [(ts + chance.randint(0, delay), ts) for ts in range(count)]
    return [ts for _, ts in sorted(due)]


def late(times: list[int], slack: int) -> int:
    """Counts rows with a time more than `slack` behind the greatest one before them."""
    highest, lost = -slack, 0
    for ts in times:
        lost += ts < highest - slack
        highest = max(highest, ts)
    return lost


def kept_of_seustream(times: list[int], slack: int) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ss.DataWarning)
        rows = {"ts": times, "a": times}
        return len(ss.run("SELECT a FROM R WINDOW NOW", R=rows, slack=slack)["q0"])


# --- sheet 7 ------------------------------------------------------------------

CHEAPER = """
    CREATE STREAM R (a int, b int); CREATE STREAM S (d int, e int);
    REGISTER QUERY near AS SELECT R.b, S.e FROM R, S WHERE R.a = S.d AND R.b > S.e WINDOW RANGE 200;
"""
MENDED = """
    CREATE STREAM Cars (plate int, segment int, speed int); CREATE STREAM Alerts (segment int, kind int, severity int);
    REGISTER QUERY danger AS SELECT c.plate, a.kind FROM Cars c, Alerts a
        WHERE c.segment = a.segment AND (a.severity > 8 OR a.kind = 3) WINDOW RANGE 50;
"""


def run_of(text: str, count: int, backend: str = "iss", config: str = "default") -> dict[str, Any]:
    """Runs the rows of seed 1 as the studio does, and returns what it shows."""
    c = compilation(text, Settings(config))
    return story(c, rows(c.program.base, 1, count), backend)


def busiest(text: str, count: int) -> tuple[str, str]:
    """Returns the join area that executes most instructions, and the query with most results."""
    run = run_of(text, count)
    areas, queries = Counter[str](), Counter[str]()
    for part, times in run["counters"].items():
        kind, _, of = part.partition(":")
        if kind == "instruction":
            areas[run["slots"][int(of.partition(":")[0])]["name"]] += times
        elif kind == "query":
            queries[of] += times
    return areas.most_common(1)[0][0], queries.most_common(1)[0][0]


def found(text: str, count: int) -> tuple[int, list[Any]]:
    """Returns the number of results that the device finds, and the rows that remain."""
    run = run_of(text, count, "golden")
    return sum(len(step["results"]) for step in run["steps"]), sorted(
        run["results"]["near"]["rows"]
    )


def first_wrong(text: str, right: str, count: int) -> int | None:
    """Returns the first step, counted from 1, with a result that the right text does not give."""
    steps = [run_of(one, count, "golden")["steps"] for one in (text, right)]
    for number, (one, other) in enumerate(zip(*steps, strict=True), start=1):
        if any(result not in other["results"] for result in one["results"]):
            return number
    return None


def busy(name: str, config: str, count: int) -> Counter[str]:
    """Returns the busy cycles of a gallery text on the RTL, over all steps, by kind of unit."""
    texts = {one["name"]: one["text"] for one in gallery()}
    text = re.sub(r"RANGE \d+", "RANGE 40", texts[name])
    found = Counter[str]()
    for step in run_of(text, count, "verilated", config)["steps"]:
        for unit, (working, _, _) in step["units"].items():
            found[unit.partition(" ")[0]] += working
    return found
