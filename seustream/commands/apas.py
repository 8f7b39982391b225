"""`seustream run` and `seustream explain` of APAS queries."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pyarrow as pa

from seustream.commands.common import fault_lines, keep_apart, read_text, table
from seustream.compiler.apas.compile import Compiled, compile_query
from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.apas.symbols import Schema
from seustream.compiler.apas.tree import Node
from seustream.compiler.errors import CompileError
from seustream.compiler.explain.apas import explain
from seustream.devices import ENGINE
from seustream.engine.stream.faults import QueryFaults, told
from seustream.engine.temporal.columnar.run import ColumnarRun
from seustream.engine.temporal.stream import result_schema
from seustream.errors import UserError
from seustream.files import write_all
from seustream.intervals import read_intervals, read_schema
from seustream.libraries import load_libraries
from seustream.progress import Progress
from seustream.writing import OutputSet

NAME = "q0"
"""Of a query whose select has no name."""


def is_apas(arguments: argparse.Namespace) -> bool:
    return bool(arguments.file.suffix == ".apas")


def run_apas(arguments: argparse.Namespace) -> int:
    if arguments.slack:
        raise UserError(
            ["--slack: APAS inputs are taken in the order of (ts, te)"], hint="sort the files"
        )
    if arguments.waves is not None or arguments.backend != ENGINE:
        raise UserError(
            ["--backend, --waves: an APAS query runs in the engine, no device has a part in it"],
            hint="leave them out",
        )
    paths = _inputs(arguments.input)
    found = {name: read_intervals(path, name) for name, path in paths.items()}
    trees = {name: tree for name, (tree, _) in found.items()}
    c = _compile(arguments.file, trees, load_libraries(arguments.library))
    unused = sorted(set(paths) - set(c.network.sources))
    for name in unused:
        print(f"warning: the query does not read stream {name}", file=sys.stderr)
    name = c.tree.label
    schemas = {name: result_schema(c.tree)}
    _check_places(arguments, name, paths)
    faults = QueryFaults(arguments.strict, source=c.source)
    run = ColumnarRun(c, trees, faults=faults)
    total = sum(found[stream][1].num_rows for stream in c.network.sources)
    with (
        OutputSet(arguments.output, arguments.format, schemas) as outputs,
        Progress("run", total, "tuples") as progress,
    ):
        for stream in c.network.sources:
            rows = found[stream][1]
            run.push(stream, rows)
            progress.add(rows.num_rows)
        count = 0
        for results in run.finish():
            count += results.num_rows
            outputs.write(name, results.cast(schemas[name]))
        if arguments.late is not None and run.rejected:
            _write_rejected(arguments, run.rejected)
    if not arguments.quiet:
        _summary(arguments, c, run, name, count, faults)
    return 0


def explain_apas(arguments: argparse.Namespace) -> int:
    if arguments.stage is not None or arguments.query is not None:
        raise UserError(["--stage and --query are for X-SQL"], hint="an APAS query is shown whole")
    paths = _inputs(arguments.input)
    trees = {name: read_schema(path, name) for name, path in paths.items()}
    c = _compile(arguments.file, trees, load_libraries(arguments.library))
    shown = explain(c, arguments.format)
    if arguments.output is None:
        print(shown)
    else:
        keep_apart([arguments.output], [arguments.file, *arguments.library, *paths.values()])
        write_all(arguments.output.parent, {arguments.output.name: (shown + "\n").encode()})
    return 0


def _compile(file: Path, trees: dict[str, Node], libraries: Libraries) -> Compiled:
    schemas = {name: Schema(tree) for name, tree in trees.items()}
    try:
        c = compile_query(read_text(file), schemas, NAME, libraries, str(file))
    except CompileError as error:
        missing = sorted(
            problem.message.split()[-1]
            for problem in error.problems
            if problem.kind == "UnknownStream" and problem.message.startswith("there is no stream")
        )
        if missing:
            files = " ".join(f"--input {name}=FILE" for name in dict.fromkeys(missing))
            print(f"note: streams are known by their inputs: {files}", file=sys.stderr)
        raise
    for warning in c.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return c


def _inputs(given: list[str]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    problems = []
    for argument in given:
        name, equals, path = argument.partition("=")
        if not equals or not path or not (name.isidentifier() and name.isascii()):
            problems.append(f"--input {argument}: want STREAM=FILE")
        elif name in found:
            problems.append(f"--input {argument}: stream {name} already has an input")
        else:
            found[name] = Path(path)
    if problems:
        raise UserError(problems, hint="give each stream a file: --input I=i.csv")
    return found


def _check_places(arguments: argparse.Namespace, name: str, inputs: dict[str, Path]) -> None:
    if arguments.late == "-":
        raise UserError(["--late -: stdout is for results"], hint="name a folder")
    outputs = []
    if arguments.output != "-":
        outputs.append(Path(arguments.output) / f"{name}.{arguments.format}")
    if arguments.late is not None:
        late = [Path(arguments.late) / f"{stream}.{arguments.format}" for stream in inputs]
        if outputs and outputs[0].resolve() in {path.resolve() for path in late}:
            raise UserError(
                [f"{outputs[0]} would hold results and rejected tuples"],
                hint="give --late another folder",
            )
        outputs += late
    keep_apart(outputs, [arguments.file, *arguments.library, *inputs.values()])


def _write_rejected(arguments: argparse.Namespace, rejected: dict[str, list[pa.Table]]) -> None:
    """Rejected tuples, a file a stream, in the shape of inputs, with the reason."""
    tables = {stream: pa.concat_tables(parts) for stream, parts in rejected.items()}
    schemas = {stream: rows.schema for stream, rows in tables.items()}
    with OutputSet(arguments.late, arguments.format, schemas) as files:
        for stream, rows in tables.items():
            files.write(stream, rows)


def _summary(
    arguments: argparse.Namespace,
    c: Compiled,
    run: ColumnarRun,
    name: str,
    count: int,
    faults: QueryFaults,
) -> None:
    to = "stdout" if arguments.output == "-" else f"{arguments.output}/{name}.{arguments.format}"
    lines = [table([(name, count, to)], ("query", "results", "file")), ""]
    lines.append(f"{sum(run.accepted.values()):,} tuples in through {len(c.network.nodes)} nodes")
    for stream, reasons in run.reasons.items():
        kept = f"written to {arguments.late}" if arguments.late else "--late DIR keeps them"
        why = ", ".join(f"{reason} {number:,}" for reason, number in reasons.items())
        total = sum(reasons.values())
        plural = "s" if total != 1 else ""
        lines.append(f"warning: stream {stream}: {total:,} tuple{plural} rejected ({why}); {kept}")
    if run.bad_keys:
        lines.append(f"warning: {run.bad_keys:,} tuples with key 0 dropped")
    lines += fault_lines(told({name: faults}), arguments.verbose)
    print("\n".join(lines), file=sys.stderr)
