"""Formats the summary of `seustream run`, for people and for programs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from seustream.commands.common import fault_lines, table
from seustream.compiler.pipeline import Compilation
from seustream.compiler.plan.layout import uses_device
from seustream.engine.graph import GraphRun
from seustream.hdl.device import WindowKind


def _files(results: list[tuple[str, int]], arguments: argparse.Namespace) -> str:
    to = "stdout" if arguments.output == "-" else str(Path(arguments.output))
    return table(
        [
            (name, count, to if to == "stdout" else f"{to}/{name}.{arguments.format}")
            for name, count in results
        ],
        ("query", "results", "file"),
    )


def as_json(c: Compilation, run: GraphRun) -> str:
    """Returns the summary for a program."""
    report = run.report
    faults = {
        name: [{"place": at, "rows": rows, "first": first} for at, (rows, first) in places.items()]
        for name, places in report.faults.items()
    }
    found = {
        "results": {name: report.results[name] for name in c.program.names},
        "tuples": dict(report.taken),
        "late": dict(report.late),
        "without_time": dict(report.timeless),
        "faults": {name: places for name, places in faults.items() if places},
        "in_software": dict(report.join.in_software),
    }
    return json.dumps(found)


def apart(
    c: Compilation, counts: Mapping[str, int], tables: Mapping[str, pa.Table]
) -> Iterator[str]:
    """Yields joins without a result whose streams are farther apart than their windows reach, often
    because of two clocks or two units."""
    spans = {
        name: (pc.min(rows.column("ts")).as_py(), pc.max(rows.column("ts")).as_py())
        for name, rows in tables.items()
        if rows.num_rows
    }
    for query in c.program.queries:
        names = sorted({source.stream.name for source in query.sources} & spans.keys())
        if counts.get(query.name, 1) or len(names) < 2:  # a stream's results are not counted
            continue
        first, last = min(names, key=lambda n: spans[n][1]), max(names, key=lambda n: spans[n][0])
        windows = [source.window for source in query.sources]
        if any(window.kind is not WindowKind.RANGE for window in windows):
            continue
        if spans[last][0] - spans[first][1] > max(window.size for window in windows):
            yield (
                f"note: {query.name} has no results: {first} ends at {spans[first][1]:,} ms, before"
                f" {last} begins at {spans[last][0]:,} ms; are their clocks and units the same?"
            )


def summary(c: Compilation, run: GraphRun, arguments: argparse.Namespace) -> str:
    report = run.report
    lines = [_files([(name, report.results[name]) for name in c.program.names], arguments), ""]
    taken = sum(report.taken.values())
    lines.append(f"{_tuples(taken)} in{_joined_by(run, arguments.backend)}")
    lines += _left_to_the_engine(c)
    if report.engines:
        engines = ", ".join(f"{name} by {engine}" for name, engine in report.engines.items())
        lines.append(f"patterns: {engines}")
    lines += [f"{_tuples(count)} of {name} from APAS" for name, count in report.derived.items()]
    lines += warnings(c, run, arguments)
    for stream, count in report.join.in_software.items():
        lines.append(
            f"note: stream {stream}: {_tuples(count)} joined in software"
            " (NULL, or out of the attribute's range, in a compared column)"
        )
    for stream, overflow in report.join.overflow.items():
        lines.append(
            f"note: stream {stream}: window {overflow.window} needed"
            f" {' and '.join(overflow.needs(c.options.config))};"
            f" {_tuples(overflow.left_early)} joined in software"
        )
    return "\n".join(lines)


def warnings(c: Compilation, run: GraphRun, arguments: argparse.Namespace) -> list[str]:
    """Lists the tuples that were left out, and the faults."""
    report = run.report
    lines: list[str] = []
    aside = {s.name for s in c.streams if s.late == "side" and arguments.output != "-"}
    for stream, count in report.late.items():
        side = stream in aside and arguments.late is None
        kept = f"written to {arguments.late}" if arguments.late else "not processed"
        kept = f"in {arguments.output}/late.{stream}.{arguments.format}" if side else kept
        lines.append(
            f"warning: stream {stream}: {_tuples(count, 'late ')}, {kept};"
            " --slack MS accepts them, --late DIR keeps them"
        )
    lines += [
        f"warning: stream {stream}: {_tuples(count)} without a time, left out"
        for stream, count in report.timeless.items()
    ]
    lines += [
        f"warning: stream {stream}: {_tuples(count)} not taken by patterns: no time, or one beyond"
        " ±2^61 ms, which no window can be added to"
        for stream, count in report.untimed.items()
    ]
    kept = f"written to {arguments.late}" if arguments.late else "--late DIR keeps them"
    lines += [
        f"warning: stream {stream}: {_tuples(count)} not taken by APAS, te is before ts; {kept}"
        for stream, count in report.refused.items()
        if count
    ]
    lines += [
        f"warning: {_tuples(count)} with key 0 dropped from time-tables of {name}"
        for name, count in report.bad_keys.items()
    ]
    return lines + fault_lines(report.faults, arguments.verbose)


def _joined_by(run: GraphRun, backend: str) -> str:
    """Describes where base streams were joined, and the cost of that."""
    if not run.devices:
        queries = run.compilation.program.queries
        joins = any(len(query.sources) > 1 and uses_device(query) for query in queries)
        return "; joined by the engine" if joins else ""
    found, join = [device.status() for device in run.devices], run.report.join
    several = f"{len(found)} devices, " if len(found) > 1 else ""
    return (
        f" on {several}backend {backend}; {sum(one.pairs for one in found):,} pairs compared,"
        f" {sum(one.circulated for one in found):,} joined tuples circulated,"
        f" {join.repeats:,} repeats and {join.residual:,} residual misses dropped"
    )


_NAMED = 3  # queries that a line names


def _left_to_the_engine(c: Compilation) -> list[str]:
    """Lists the queries that no device had room for, by what they needed."""
    if c.options.devices == 0:
        return []
    by_reason: dict[str, list[str]] = {}
    for name, why in c.placement.software.items():
        by_reason.setdefault(why, []).append(name)
    return [
        f"note: left to the engine: {', '.join(names[:_NAMED])}"
        + (f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else "")
        + f" ({why})"
        for why, names in by_reason.items()
    ]


def _tuples(count: int, kind: str = "") -> str:
    return f"{count:,} {kind}tuple{'s' * (count != 1)}"
