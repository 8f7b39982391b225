"""The copies of a row on the host path: the memory allocated for columns between input rows and
results.

A preloaded library adds up every allocation of a page or more, whoever makes it: Arrow, numpy, the
kernels, Python's lists. Divided by the bytes of the input rows (or of the results, if these are
larger), the sum tells how often a row is written on its way. No time is measured. With
SEUSTREAM_BEFORE=FOLDER, a checkout of the release before the single graph (c557890) is measured
beside this one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from seustream.commands.bench import Measurement

TITLE = "copies: how often the host path writes a row down"

ROWS = 150_000
BEFORE = "SEUSTREAM_BEFORE"
STREAMS = "CREATE STREAM R (a int, b int); CREATE STREAM S (d int, e int); "
QUERIES = {
    "selection": "SELECT a, b FROM R WHERE b > 500 WINDOW NOW;",
    "join": "SELECT R.a, R.b, S.e FROM R, S WHERE R.a = S.d WINDOW RANGE 40;",
    "groups": "SELECT b, count(*) AS n FROM R GROUP BY b WINDOW RANGE 40;",
}
COUNTER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
static unsigned long total;
unsigned long copies_total(void) { return total; }
static void add(size_t n) { if (n >= 4096) __atomic_add_fetch(&total, n, __ATOMIC_RELAXED); }
void *malloc(size_t n) {
    static void *(*real)(size_t);
    if (!real) real = dlsym(RTLD_NEXT, "malloc");
    add(n);
    return real(n);
}
void *realloc(void *p, size_t n) {
    static void *(*real)(void *, size_t);
    if (!real) real = dlsym(RTLD_NEXT, "realloc");
    add(n);
    return real(p, n);
}
int posix_memalign(void **p, size_t a, size_t n) {
    static int (*real)(void **, size_t, size_t);
    if (!real) real = dlsym(RTLD_NEXT, "posix_memalign");
    add(n);
    return real(p, a, n);
}
"""
RUN = r"""
import ctypes, json, os, sys
import numpy as np
import pyarrow as pa
rows, streams, queries = json.load(sys.stdin)
if os.path.exists("engine/graph.py"):
    from seustream.compiler.pipeline import compile_text
    from seustream.engine.graph import GraphRun as run_of
    devices = ()
else:  # as it was before there was one graph
    from compiler.plan.pipeline import compile_text
    from cosim.golden import GoldenDevice
    from engine.host.live import Live as run_of
    devices = (GoldenDevice,)
library = ctypes.CDLL(None)
library.copies_total.restype = ctypes.c_ulong

def counted(text, given):
    c = compile_text(text)
    run = run_of(c, *(device(c.options.config) for device in devices))
    before, out = library.copies_total(), 0
    for start in range(0, rows, 1 << 16):
        for name, table in given.items():
            run.push(name, table.slice(start, 1 << 16))
        out += sum(answer.nbytes for _, answer in run.advance())
    for name in given:
        run.end(name)
    out += sum(answer.nbytes for _, answer in run.advance())
    return library.copies_total() - before, out

chance = np.random.default_rng(5)
def stream(*names):
    columns = {"ts": pa.array(np.arange(rows) * 2)}
    for name, most in zip(names, (64, 1000)):
        columns[name] = pa.array(chance.integers(0, most, rows).astype(np.int32))
    return pa.table(columns)

tables = {"R": stream("a", "b"), "S": stream("d", "e")}
found = {}
for name, query in queries.items():
    given = tables if "S." in query else {"R": tables["R"]}
    counted(streams + query, {k: t.slice(0, 1000) for k, t in given.items()})
    spent, out = counted(streams + query, given)
    found[name] = spent / max(out, sum(table.nbytes for table in given.values()))
print(json.dumps(found))
"""


def measure() -> Measurement:
    trees = {"now": Path(__file__).resolve().parents[1]}
    if BEFORE in os.environ:
        trees["before"] = Path(os.environ[BEFORE]).resolve()
    with tempfile.TemporaryDirectory() as name:
        source, library = Path(name) / "copies.c", Path(name) / "copies.so"
        source.write_text(COUNTER)
        command = ["cc", "-O1", "-shared", "-fPIC", str(source), "-o", str(library), "-ldl"]
        subprocess.run(command, check=True)
        copies = {tree: _copies(where, library) for tree, where in trees.items()}
    ratios = {}
    if len(copies) > 1:
        ratios = {q: copies["now"][q] / copies["before"][q] for q in QUERIES}
    return Measurement(
        ("query", *copies),
        [(query, *(round(found[query], 1) for found in copies.values())) for query in QUERIES],
        {f"{query}, copies now over before": ratio for query, ratio in ratios.items()},
        f"{ROWS:,} tuples a stream, in batches of 65,536; before with its golden device, now with"
        " the engine, each checkout's default; seed 5",
    )


def _copies(tree: Path, library: Path) -> dict[str, float]:
    more = {
        "PYTHONPATH": str(tree),
        "LD_PRELOAD": str(library),
        "ARROW_DEFAULT_MEMORY_POOL": "system",
    }
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps([ROWS, STREAMS, QUERIES]),
        capture_output=True,
        text=True,
        check=True,
        cwd=tree,
        env={**os.environ, **more},
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found
