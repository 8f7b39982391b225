"""`seustream run`: queries over files, on a device, results into files."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from seustream import sites
from seustream.boards import SHAPES
from seustream.commands.common import (
    access,
    add_access_arguments,
    add_compile_arguments,
    add_delivery_arguments,
    add_strict_argument,
    answer_requests,
    compile_file,
    described,
    input_files,
    is_apas,
    keep_apart,
    require_queries,
)
from seustream.commands.summary import apart, as_json, summary, warnings
from seustream.compiler.catalogue import Stream
from seustream.compiler.errors import nearest, suggest
from seustream.compiler.pattern.ir import PatternQuery
from seustream.compiler.pipeline import STAGES, Compilation
from seustream.devices import BACKENDS, ENGINE, check_backend, check_devices, devices
from seustream.engine.assembly import answer_schemas, streams_read
from seustream.engine.graph import GraphRun, drive
from seustream.engine.meters import RunMeters
from seustream.engine.pattern.planner import ENGINES
from seustream.engine.pattern.versions import Numbering
from seustream.engine.sites.errors import SitesError
from seustream.engine.times import Times, Tuples
from seustream.errors import UserError
from seustream.hdl.device import Device, UnitCycles
from seustream.intervals import by_files, read_intervals
from seustream.progress import Progress
from seustream.reading import read, read_timed
from seustream.writing import OutputSet, commit_all

FORMATS = ("csv", "jsonl", "parquet")


EXAMPLES = """\
examples:
  seustream run q.xsql --input R=r.csv --input S=s.parquet
  seustream run -c "SELECT a FROM R WHERE a > 5 WINDOW NOW" --input R=r.csv -o -
  zcat r.csv.gz | seustream run q.xsql --input R=- --slack 5s --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_compile_arguments(parser)
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="STREAM=FILE",
        help="a stream's tuples: .csv, .jsonl or .parquet with a column ts (APAS: also te); a table has"
        " no ts; once for each stream and table",
    )
    sites.add_arguments(parser)
    parser.add_argument(
        "--backend",
        default=ENGINE,
        metavar="BACKEND",
        help="what joins: the engine by itself, a device, or the bridge that serves one:"
        f" {', '.join((*BACKENDS, *SHAPES, 'grpc://…'))} (default: %(default)s)",
    )
    add_access_arguments(parser, "send the token in this file to the bridge or the sites")
    parser.add_argument(
        "--waves",
        type=Path,
        metavar="FILE.fst",
        help="record every signal of the processor; with --backend verilated",
    )
    parser.add_argument(
        "-o",
        dest="output",
        default=".",
        metavar="DIR",
        help="write the results into this folder; - is stdout",
    )
    parser.add_argument(
        "--format", choices=FORMATS, default="csv", help="write the results in this format"
    )
    add_delivery_arguments(parser)
    parser.add_argument("--late", metavar="DIR", help="write late tuples there, a file a stream")
    parser.add_argument(
        "--engine",
        default="auto",
        metavar="|".join(ENGINES),
        help="the matcher of patterns (default: the planner's choice)",
    )
    parser.add_argument(
        "--trace",
        metavar="QUERY",
        help="print what a pattern's matcher does and keeps at every event, and no results:"
        " the automaton's runs and buffer, or with --engine optiseq the lists and their search",
    )
    parser.add_argument(
        "--versions",
        choices=[numbering.value for numbering in Numbering],
        default=Numbering.PER_TAKE.value,
        help="how --trace numbers versions (default: %(default)s)",
    )
    add_strict_argument(parser)
    parser.add_argument(
        "--quiet", action="store_true", help="no summary, but its warnings, such as of late tuples"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="the summary as a JSON object, on stdout if that is free",
    )
    parser.add_argument(
        "--verbose", action="store_true", help="list every place of a fault in the summary"
    )


def run(arguments: argparse.Namespace) -> int:
    remote = sites.given_sites(arguments)
    check_backend(arguments.backend)
    check_devices(arguments.backend, arguments.devices)
    count = 0 if arguments.backend == ENGINE else None
    known = by_files(arguments.input, read_intervals) if is_apas(arguments) else {}
    streams = [stream for stream, _ in known.values()] if known else described(arguments)
    c = compile_file(arguments, STAGES[-1], True, count, streams)
    if c.program.requests and not c.program.names:
        answer_requests(c)  # nothing else was asked for
        return 0
    require_queries(c)
    if arguments.engine not in ENGINES:
        raise UserError(
            [f"there is no engine {arguments.engine!r}"],
            hint=suggest(arguments.engine, ENGINES, "engines"),
        )
    if (arguments.slack or 0) < 0:
        raise UserError([f"--slack {arguments.slack}: want 0 or more"])
    if arguments.waves is not None and arguments.backend != "verilated":
        raise UserError(
            [f"--waves: backend {arguments.backend} has no signals"],
            hint="--backend verilated runs the processor's own description",
        )
    inputs = _inputs(c, arguments.input, remote.of)
    _check_places(c, arguments, [path for _, path in inputs])
    for query in c.program.patterns:
        if query.empty:
            where = f"pattern {query.name}: {query.empty} is never true, so it has no matches"
            print(f"warning: {where}", file=sys.stderr)
    if arguments.trace is not None:
        return _trace(c, inputs, arguments)
    exchanged = sites.Exchanged()
    if arguments.record is not None and not remote:
        raise UserError(["--record is of a run across sites"], hint="--site STREAM=grpc://…")
    if remote:
        exchanged = _exchanged(c, remote, dict(inputs), arguments)
    with devices(
        arguments.backend,
        c.options.config,
        len(c.devices),
        arguments.waves,
        access(arguments),
    ) as made:
        found = {name: tuples for name, (_, tuples) in known.items()} or _tuples_of(inputs)
        return _run(c, made, found | exchanged.tuples, exchanged, arguments)


def _exchanged(
    c: Compilation,
    remote: sites.Sites,
    inputs: Mapping[Stream, Path],
    arguments: argparse.Namespace,
) -> sites.Exchanged:
    """Returns the rows from streams at sites."""
    sites.check_streams(c, remote)
    try:
        return sites.exchanged(
            c,
            remote,
            lambda stream: read(inputs[stream], stream),
            arguments.slack,
            arguments.strict,
            _aside(c, arguments),
        )
    except SitesError as error:
        raise UserError([str(error)], hint=error.hint) from None


def _run(
    c: Compilation,
    devices: Sequence[Device],
    found: Mapping[str, Tuples],
    exchanged: sites.Exchanged,
    arguments: argparse.Namespace,
) -> int:
    """Runs the queries over the tuples of each stream, regardless of their source."""
    late: list[tuple[str, pa.Table]] = []
    aside = _aside(c, arguments)
    run = GraphRun(
        c,
        devices,
        arguments.overflow,
        arguments.slack,
        on_late=lambda stream, rows: late.append((stream, rows)) if stream in aside else None,
        engine=arguments.engine,
        strict=arguments.strict,
        meters=RunMeters() if any(one.verb == "analyze" for one in c.program.requests) else None,
    )
    answer_requests(c)
    begun = [_cycles(device) for device in devices]
    used = streams_read(c.program)
    tables = {name: tuples.rows for name, tuples in found.items() if name in used}
    times = Times(c.program, {name: tuples.time for name, tuples in found.items()})
    schemas = answer_schemas(c.program)
    total = sum(rows.num_rows for rows in tables.values())
    with (
        OutputSet(
            arguments.output,
            arguments.format,
            {name: times.schema(name, schema) for name, schema in schemas.items()},
        ) as outputs,
        Progress("run", total, "tuples") as progress,
    ):
        run.on_progress = progress.add
        for name, results in drive(run, tables):
            outputs.write(name, times.results(name, results))
        if late:
            late = [(stream, times.rows(stream, rows)) for stream, rows in late]
            _write_late(outputs, arguments, late)
    ended = [_cycles(device) for device in devices]  # to read what units did takes cycles, too
    if arguments.record is not None:
        from seustream.engine.sites.explain import save

        save(exchanged.record, arguments.record)
    if asked := {one.target for one in c.program.requests if one.verb == "analyze"}:
        from seustream.engine.analyze import analyzed, read_units

        read_units(run)
        figures = analyzed(run, asked)
        print(*figures, "", sep="\n", file=sys.stderr)
    if arguments.json:
        print(as_json(c, run), file=sys.stderr if arguments.output == "-" else sys.stdout)
    elif arguments.quiet:
        for line in warnings(c, run, arguments):
            print(line, file=sys.stderr)
    else:
        print(summary(c, run, arguments), file=sys.stderr)
        for line in apart(c, run.report.results, tables):
            print(line, file=sys.stderr)
        for line in exchanged.lines:
            print(line, file=sys.stderr)
        for device, before, after in zip(devices, begun, ended, strict=True):
            if before is not None and after is not None:
                print(_time(device, after - before, arguments), file=sys.stderr)
            if units := _units(device):
                print(_spent(units), file=sys.stderr)
    return 0


def _tuples_of(inputs: list[tuple[Stream, Path]]) -> dict[str, Tuples]:
    def warn(text: str) -> None:
        print(f"warning: {text}", file=sys.stderr)

    return {stream.name: read_timed(path, stream, warn) for stream, path in inputs}


def _trace(c: Compilation, inputs: list[tuple[Stream, Path]], arguments: argparse.Namespace) -> int:
    """Prints the teaching view on stdout."""
    patterns = {way.name.lower(): way for query in c.program.patterns for way in query.ways}
    query = patterns.get(arguments.trace.lower())
    if query is None:
        known = [way.name for way in patterns.values()]
        raise UserError(
            [f"there is no pattern {arguments.trace!r}"],
            hint=suggest(arguments.trace, known, "patterns"),
        )
    if not isinstance(query, PatternQuery):
        raise UserError(
            [f"--trace {query.name}: it is a MATCH_RECOGNIZE query"],
            hint="CLASSIFIER() and MATCH_NUMBER() with ALL ROWS PER MATCH show what matched",
        )
    files = {stream.name: path for stream, path in inputs}
    if query.stream.name not in files:
        raise UserError(
            [f"--trace {query.name}: its stream {query.stream.name} is derived"],
            hint="trace a pattern over a file",
        )
    from seustream.patterns import trace_file

    rows = read(files[query.stream.name], query.stream)
    for line in trace_file(query, rows, arguments.versions, arguments.engine):
        print(line)
    return 0


def _cycles(device: Device) -> int | None:
    """Returns the clock cycles so far, for a device that has a clock."""
    known: int | None = getattr(device, "cycles", None)
    if known is None and hasattr(device, "counters"):  # a board
        return int(device.counters()["cycles"])
    return known


def _time(device: Device, cycles: int, arguments: argparse.Namespace) -> str:
    taken = device.status().taken
    text = f"{cycles:,} cycles, {cycles / taken:.1f} a tuple" if taken else f"{cycles:,} cycles"
    return text + (f"; waves in {arguments.waves}" if arguments.waves is not None else "")


_SHOWN = 3  # of the busiest units, and of those that wait most


def _units(device: Device) -> dict[str, UnitCycles]:
    """Returns how the cycles were spent since the device was reset, if it counts them."""
    found: dict[str, UnitCycles] = getattr(device, "units", dict)()
    return found


def _spent(units: dict[str, UnitCycles]) -> str:
    """Describes the busiest units, and those that waited most for others, in shares of all cycles."""
    busy = {name: unit.busy for name, unit in units.items()}
    blocked = {name: unit.blocked for name, unit in units.items()}
    every = max(unit.busy + unit.starved + unit.blocked for unit in units.values()) or 1

    def most(cycles: dict[str, int]) -> str:
        names = sorted((n for n in cycles if 200 * cycles[n] >= every), key=lambda n: -cycles[n])
        shares = (f"{name} {100 * cycles[name] / every:.0f} %" for name in names[:_SHOWN])
        return ", ".join(shares) or "none"

    return f"busy: {most(busy)}; blocked: {most(blocked)}"


def _check_places(c: Compilation, arguments: argparse.Namespace, inputs: list[Path]) -> None:
    """Refuses places at which results, late tuples and inputs would overwrite each other."""

    def files(directory: str | None, names: Iterable[str]) -> list[Path]:
        if directory in (None, "-"):
            return []
        return [Path(str(directory)) / f"{name}.{arguments.format}" for name in names]

    named = Path(arguments.output)
    if named.suffix.removeprefix(".") in FORMATS and not named.is_dir():
        format = named.suffix.removeprefix(".")
        other = "" if format == "csv" else f" --format {format}"
        raise UserError(
            [f"-o {named}: results go into a folder, a file for each query"],
            hint=f"-o FOLDER{other}, or for one query: -o -{other} > {named}",
        )
    if arguments.late == "-":
        raise UserError(["--late -: stdout is for results"], hint="name a folder")
    results = files(arguments.output, c.program.names)
    late = files(
        _late_folder(arguments), (_late_name(arguments, stream) for stream in _aside(c, arguments))
    )
    others = [path for path in (arguments.waves, arguments.record) if path is not None]
    keep_apart([*results, *late, *others], [*input_files(arguments), *inputs])
    both = {*map(os.path.realpath, results)} & {*map(os.path.realpath, late)}
    if both:
        raise UserError(
            [f"{min(both)} would hold results and late tuples"], hint="give --late another folder"
        )


def _write_late(
    outputs: OutputSet, arguments: argparse.Namespace, late: list[tuple[str, pa.Table]]
) -> None:
    """Writes late tuples, one file per stream, in the format of inputs, and has them appear with the
    results or not at all."""
    schemas = {_late_name(arguments, stream): rows.schema for stream, rows in late}
    with OutputSet(_late_folder(arguments), arguments.format, schemas) as files:
        for stream, rows in late:
            files.write(_late_name(arguments, stream), rows)
        commit_all([outputs, files])


def _aside(c: Compilation, arguments: argparse.Namespace) -> list[str]:
    """Returns the streams whose late tuples are written. Results on stdout leave them no place."""
    if arguments.late is None and arguments.output == "-":
        return []
    return [s.name for s in c.streams if arguments.late is not None or s.late == "side"]


def _late_folder(arguments: argparse.Namespace) -> str:
    return str(arguments.output if arguments.late is None else arguments.late)


def _late_name(arguments: argparse.Namespace, stream: str) -> str:
    """Returns the name of the file of late tuples. It is beside the results if the stream asks for it with
    late = 'side'."""
    return f"late.{stream}" if arguments.late is None else stream


def _inputs(
    c: Compilation, given: list[str], elsewhere: Collection[str]
) -> list[tuple[Stream, Path]]:
    """Returns the file of each stream. Every stream that a query reads must have one, unless it is
    `elsewhere`, by its folded name."""
    streams = {s.name.lower(): s for s in c.streams if s.defined_by is None}
    known = [stream.name for stream in streams.values()]
    found: dict[str, Path] = {}
    problems = []
    for argument in given:
        name, equals, path = argument.partition("=")
        if not equals or not name or not path:
            problems.append(f"--input {argument}: want STREAM=FILE")
        elif name.lower() not in streams:
            close = nearest(name, known)
            hint = f"; did you mean {close}?" if close else f"; streams: {', '.join(known)}"
            problems.append(f"--input {argument}: there is no stream {name}{hint}")
        elif name.lower() in elsewhere:
            problems.append(f"--input {argument}: stream {name} lives at a site")
        elif name.lower() in found:
            problems.append(f"--input {argument}: stream {name} already has an input")
        else:
            found[name.lower()] = Path(path)
    used = streams_read(c.program)
    for folded, stream in streams.items():
        if stream.path is not None and stream.name in used:
            found.setdefault(folded, Path(stream.path))
    has = found.keys() | set(elsewhere)
    missing = [s.name for s in streams.values() if s.name in used and s.name.lower() not in has]
    if missing and not problems:
        tables = all(streams[name.lower()].table for name in missing)
        problems.append(f"no input for {'table' if tables else 'stream'} {', '.join(missing)}")
    if problems:
        raise UserError(
            problems, hint="give each stream a file: --input R=r.csv --input S=s.parquet"
        )
    return [(streams[name], path) for name, path in found.items()]
