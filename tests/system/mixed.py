"""Random query sets that mix the three languages, each reading the results of the others: the same
multiset of results from files, in pieces with snapshots and restores, behind a bridge, and fed by Spark.

    python -m tests.system.mixed [--cases N] [--first SEED] [--spark]

A case is drawn from its seed: up to seven statements over the streams `R` and `S`, each a join, a selection,
groups, a pattern or an APAS query over base streams and the streams defined before it.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from seustream.cli import main as seustream
from seustream.compiler.errors import CompileError
from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.protocol import PLAIN
from seustream.cosim.golden import GoldenDevice
from seustream.engine.assembly import streams_read
from seustream.engine.graph import GraphRun, drive
from seustream.libraries import load_libraries
from tests.cosim.bridge.serving import (
    TINY,
    Rows,
    bridge,
    cut,
    feed_epoch,
    multiset,
    results,
    streams,
)
from tests.engine.temporal import windows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LIBRARY = Path(windows.__file__)
DECLARED = "CREATE STREAM R (a int, b int);\nCREATE STREAM S (d int, name varchar(9));\n"


@dataclass(frozen=True)
class Relation:
    """A stream that statements can read: its columns of small keys, of any integers, and of
    text."""

    name: str
    keys: tuple[str, ...]
    numbers: tuple[str, ...]
    texts: tuple[str, ...] = ()
    base: bool = False
    patterns: int = 0
    """Number of patterns below it, one over another. Pairs of pairs of pairs would be too many to
    compare."""


@dataclass
class MixedCase:
    """A query set, and the rows of its base streams."""

    seed: int
    text: str
    rows: dict[str, pa.Table]
    counts: Counter[str] = field(default_factory=Counter)
    """How often each kind of statement occurs in it; after a run, its results, too."""

    @property
    def compilation(self) -> Compilation:
        return set_compiled(self.text)

    @property
    def read(self) -> dict[str, pa.Table]:
        """Returns the rows of the streams that queries read."""
        return {name: self.rows[name] for name in sorted(streams_read(self.compilation.program))}


def case(seed: int, rows: int = 80, prefix: str = "") -> MixedCase:
    """Returns the case of a seed, which has all three languages; the names in it begin with
    `prefix`."""
    chance = random.Random(seed)
    while True:
        made = _Statements(chance, prefix)
        text = made.text()
        kinds = made.counts.keys()
        if "pattern" in kinds and "apas" in kinds and kinds & {"selection", "join", "groups"}:
            return MixedCase(seed, text, streams(rows, seed), made.counts)


def set_compiled(text: str) -> Compilation:
    """Compiles a query set, with the windows of a library."""
    return compile_text(text, "q.xsql", Options(config=TINY, libraries=load_libraries([LIBRARY])))


class _Statements:
    """Draws statements, each over the streams that exist by then."""

    def __init__(self, chance: random.Random, prefix: str = "") -> None:
        self.chance, self.prefix = chance, prefix
        self.relations = [
            Relation("R", ("a",), ("a", "b"), base=True),
            Relation("S", ("d",), ("d",), ("name",), base=True),
        ]
        self.counts: Counter[str] = Counter()

    def text(self) -> str:
        """Returns three to seven statements, at least one of which registers a query; a statement
        that the device has no room for is drawn again."""
        r = self.chance
        makers = [self.selection, self.groups]
        makers += 2 * [self.join, self.pattern, self.apas]
        text, wanted, number, asked = DECLARED, r.randint(3, 7), 0, False
        while wanted > 0 or not asked:
            number += 1
            maker, defines = r.choice(makers), wanted > 1 and r.random() < 0.6
            name = f"{self.prefix}x{number}"
            body, relation = maker(name)
            head = f"CREATE STREAM {name} AS" if defines else f"REGISTER QUERY {name} AS"
            longer = f"{text}{head} {body};\n"
            with contextlib.suppress(CompileError):
                set_compiled(longer)
                text, asked = longer, asked or not defines
                wanted -= 1
                self.counts[maker.__name__] += 1
                if defines:
                    self.relations.append(relation)
        return text

    # --- what a statement reads -----------------------------------------------

    def relation(self) -> Relation:
        """Returns a stream; the one defined last is the likeliest, so that chains grow long."""
        r = self.chance
        return self.relations[-1] if r.random() < 0.4 else r.choice(self.relations)

    def window(self) -> str:
        r = self.chance
        size = r.choice((0, 3, 8, 20))
        return r.choice((f"RANGE {size}", f"RANGE {size}", f"ROWS {size + 1}", "NOW"))

    # --- statements: the body, and the stream it would define -------------------

    def selection(self, name: str) -> tuple[str, Relation]:
        one = self.relation()
        key, number = self.chance.choice(one.keys), self.chance.choice(one.numbers)
        texts = "".join(f", {one.name}.{text}" for text in one.texts)
        where = self.chance.choice(
            (
                f" WHERE mod({one.name}.{key}, 3) <> 1",
                f" WHERE {one.name}.{number} BETWEEN 1 AND 700",
                f" WHERE coalesce({one.name}.{key}, 0) < 6",
                "",
            )
        )
        body = (
            f"SELECT {one.name}.{key} AS k, {one.name}.{number} + {one.name}.{key} AS n{texts}"
            f" FROM {one.name}{where} WINDOW NOW"
        )
        return body, Relation(name, ("k",), ("n",), one.texts, patterns=one.patterns)

    def join(self, name: str) -> tuple[str, Relation]:
        r = self.chance
        one, other = self.relation(), self.relation()
        keys, number = (r.choice(one.keys), r.choice(other.keys)), r.choice(other.numbers)
        texts = "".join(f", l.{text}" for text in one.texts)
        more = r.choice(("", "", f" AND l.{keys[0]} + 1 > mod(r.{number}, 7)", " AND l.ts <= r.ts"))
        body = (
            f"SELECT l.{keys[0]} AS k, r.{number} AS n{texts} FROM {one.name} AS l, {other.name} AS r"
            f" WHERE l.{keys[0]} = r.{keys[1]}{more} WINDOW {self.window()}, {self.window()}"
        )
        deepest = max(one.patterns, other.patterns)
        return body, Relation(name, ("k",), ("n",), one.texts, patterns=deepest)

    def groups(self, name: str) -> tuple[str, Relation]:
        r = self.chance
        one = self.relation()
        key, number = r.choice(one.keys), r.choice(one.numbers)
        having = r.choice(("", "", " HAVING count(*) > 2"))
        body = (
            f"SELECT {one.name}.{key} AS k, count(*) AS n, max({one.name}.{number}) AS most FROM"
            f" {one.name} GROUP BY {one.name}.{key}{having} WINDOW {r.choice(('RANGE', 'ROWS'))} 9"
        )
        return body, Relation(name, ("k",), ("n", "most"), patterns=one.patterns)

    def pattern(self, name: str) -> tuple[str, Relation]:
        r = self.chance
        one = self.relation()
        while one.patterns > 1:
            one = self.relation()
        key, number = r.choice(one.keys), r.choice(one.numbers)
        types = one.texts and r.random() < 0.7
        x, y, z = ("n1", "n2", "n3") if types else ("ANY",) * 3
        by = f" TYPE BY {one.texts[0]}" if types else ""
        partition = f" PARTITION BY {key}" if r.random() < 0.4 else ""
        negated = f"; !{z} z" if types and r.random() < 0.4 else ""
        how = r.choice(("", "", " USING NEXT", " USING STRICT"))
        within = r.choice((4, 12, 30))
        condition = r.choice(
            (f"y.{number} > x.{number}", f"x.{key} <= y.{key}", f"y.{number} <> x.{number} + 1")
        )
        body = (
            f"PATTERN {x} x; {y} y{negated} FROM {one.name}{by}{partition} WHERE {condition}"
            f" WITHIN {within} ms{how} RETURN x.{key} AS k, y.{number} AS n"
        )
        return body, Relation(name, ("k",), ("n",), patterns=one.patterns + 1)

    def apas(self, name: str) -> tuple[str, Relation]:
        r = self.chance
        one = self.relation()
        key, number = r.choice(one.keys), r.choice(one.numbers)
        a = f"${one.name}"
        window = r.choice(
            (*(f"window.range({a}, {size})" for size in (0, 5, 15)), f"mine.last({a}, 3)",
             f"mine.tumbling({a}, 6)", f"window.table({a}, {a}.{key})")
        )  # fmt: skip
        deepest = one.patterns
        if r.random() < 0.5:
            body = (
                f"APAS $$ where {window}"
                f" select {name}[k = agg.count({a}), n = agg.max({a}.{number})] $$"
            )
        else:
            other = self.relation()
            deepest = max(one.patterns, other.patterns)
            b, its = f"${other.name}", r.choice(other.keys)
            if other.name == one.name:
                conditions = [window, f"{a}.{key} > 1"]
                picked = f"n = {a}.{number}"
            else:
                sizes = f"{window}, window.range({b}, {r.choice((0, 9))})"
                conditions = [sizes, f"{a}.{key} == {b}.{its}"]
                picked = f"n = {b}.{r.choice(other.numbers)}"
            body = (
                f"APAS $$ where {', '.join(conditions)} select {name}[k = {a}.{key}, {picked}] $$"
            )
        return body, Relation(name, ("k",), ("n",), patterns=deepest)


# --- ways to run a set ----------------------------------------------------------


def at_once(of: MixedCase, at: int = 1000) -> dict[str, Rows]:
    """Pushes all rows through one run, with which the other ways are compared."""
    compilation = of.compilation
    run = GraphRun(compilation, GoldenDevice(compilation.options.config))
    found: dict[str, Rows] = {name: Counter() for name in compilation.program.names}
    for name, table in drive(run, of.rows, at):
        found[name] += multiset(table)
    return found


def by_files(of: MixedCase, folder: Path) -> dict[str, Rows]:
    """Runs `seustream run`, from Parquet to Parquet."""
    text, out = folder / "q.xsql", folder / "out"
    text.write_text(of.text)
    words = ["run", str(text), "--config", "tiny", "--quiet", "--format", "parquet", "-o", str(out)]
    words += ["--library", str(LIBRARY)]
    for name, rows in of.read.items():
        path = folder / f"{name}.parquet"
        pq.write_table(rows, path)
        words += ["--input", f"{name}={path}"]
    assert seustream(words) == 0, f"seed {of.seed}"
    names = of.compilation.program.names
    return {name: multiset(pq.read_table(out / f"{name}.parquet")) for name in names}


def in_pieces(of: MixedCase, chance: random.Random) -> dict[str, Rows]:
    """Pushes pieces of random sizes; now and then the run is saved and another one goes on."""
    compilation, slack = of.compilation, chance.choice((0, 0, 10))

    def fresh() -> GraphRun:
        return GraphRun(compilation, GoldenDevice(compilation.options.config), slack=slack)

    run, found = fresh(), {name: Rows() for name in compilation.program.names}
    left: Mapping[str, pa.Table] = dict(of.rows)
    while left:
        name = chance.choice(sorted(left))
        size = chance.randint(0, 30)
        run.push(name, left[name].slice(0, size))
        left = {n: t.slice(size) if n == name else t for n, t in left.items()}
        left = {n: t for n, t in left.items() if t.num_rows}
        for query, table in run.advance():
            found[query] += multiset(table)
        if chance.random() < 0.3:
            state, run = run.state(), fresh()
            run.resume(state)
    for query, table in run.finish():
        found[query] += multiset(table)
    return found


def behind_a_bridge(of: MixedCase, folder: Path, chance: random.Random) -> dict[str, Rows]:
    """Sends epochs over Flight; once, the bridge starts again from its journal."""
    compilation, epochs = of.compilation, cut(of.read, chance.randint(2, 6))
    again = chance.randrange(len(epochs))
    libraries = load_libraries([LIBRARY])
    with bridge(folder, libraries=libraries) as (_, url), BridgeClient(url) as client:
        client.load(compilation)
        for epoch in range(again):
            feed_epoch(client, epoch, epochs[epoch])
    with bridge(folder, libraries=libraries) as (_, url), BridgeClient(url) as client:
        client.load(compilation)
        for epoch in range(again, len(epochs)):
            feed_epoch(client, epoch, epochs[epoch])
        client.end()
        return results(client, compilation.program.names)


def check(seed: int, folder: Path) -> MixedCase:
    """Raises an error if any way to run the case of a seed gives other results."""
    of, chance = case(seed), random.Random(seed)
    want = at_once(of)
    ways: dict[str, Callable[[], dict[str, Rows]]] = {
        "in small parts": lambda: at_once(of, chance.randint(1, 20)),
        "in pieces": lambda: in_pieces(of, chance),
        "from files": lambda: by_files(of, folder),
        "behind a bridge": lambda: behind_a_bridge(of, folder / "journal", chance),
    }
    for way, results_of in ways.items():
        found = results_of()
        wrong = [name for name, rows in want.items() if found[name] != rows]
        assert not wrong, f"seed {seed}, {way}, {', '.join(wrong)}:\n{of.text}"
    of.counts["results"] = sum(rows.total() for rows in want.values())
    return of


def check_spark(seeds: Sequence[int], folder: Path, spark: SparkSession) -> Counter[str]:
    """Feeds several cases over the same rows from Spark, in a random number of files, a few per
    batch; raises an error if any has other results than by itself in one process. A Spark job takes
    seconds, whatever it carries, so one job carries them all."""
    from seustream.spark_feeder.bridged import bridged
    from seustream.spark_feeder.connection import Connection
    from seustream.spark_feeder.job import Job, Trigger, feeding, started
    from tests.spark_feeder.feeding import frames, write

    chance = random.Random(seeds[0])
    cases = [case(seed, prefix=f"c{seed}") for seed in seeds]
    rows = cases[0].rows
    compilation = set_compiled(DECLARED + "".join(one.text.removeprefix(DECLARED) for one in cases))
    write(folder / "in", rows, chance.randint(1, 4), whole_times=True)
    sources = frames(spark, compilation, folder / "in", chance.randint(1, 3))
    with (
        bridge(folder / "journal", libraries=load_libraries([LIBRARY])) as (_, url),
        BridgeClient(url) as client,
    ):
        at = bridged(compilation, sources, Connection((url,)))
        at.load(PLAIN, fresh=True)
        writers = started(feeding(at, folder / "checkpoint", Trigger(bounded=True)))
        Job(at.connection, writers, [], True, 10).wait(timeout=240)
        found = results(client, compilation.program.names)
    counts: Counter[str] = Counter()
    for of in cases:
        of.rows = rows
        want = at_once(of)
        wrong = [name for name, its in want.items() if found[name] != its]
        assert not wrong, f"seed {of.seed}, fed by Spark, {', '.join(wrong)}:\n{of.text}"
        counts += of.counts
        counts["results"] += sum(its.total() for its in want.values())
    return counts


AT_ONCE = 20
"""Cases that one Spark job carries."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0] if __doc__ else None)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--spark", action="store_true", help="fed by Spark, and no other way")
    arguments = parser.parse_args()
    spark = None
    if arguments.spark:
        from seustream.spark_feeder.job import SHORT, session

        spark = session(**{**SHORT, "spark.driver.memory": "1g"})
    counts: Counter[str] = Counter()
    end = arguments.first + arguments.cases
    for seed in range(arguments.first, end, 1 if spark is None else AT_ONCE):
        with tempfile.TemporaryDirectory() as folder:
            try:
                if spark is None:
                    counts += check(seed, Path(folder)).counts
                else:
                    seeds = range(seed, min(seed + AT_ONCE, end))
                    counts += check_spark(seeds, Path(folder), spark)
                    print(f"seeds up to {seeds[-1]}", flush=True)
            except BaseException:
                print(f"seed {seed}:\n{case(seed).text}", flush=True)
                raise
    found = ", ".join(f"{count:,} {what}" for what, count in sorted(counts.items()))
    print(f"seeds {arguments.first} to {arguments.first + arguments.cases - 1}: {found}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
