"""`seustream run`: queries over files, on a device, results into files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pyarrow as pa

from compiler.catalogue import Stream
from compiler.errors import nearest, suggest
from compiler.plan.pipeline import Compilation
from engine.host.complete import result_schema
from engine.host.driver import HostDriver
from engine.pattern.nfa import Numbering
from engine.pattern.planner import ENGINES
from hdl.device import Device, UnitCycles
from seustream.boards import SHAPES
from seustream.commands.apas import is_apas, run_apas
from seustream.commands.common import (
    add_compile_arguments,
    answer_requests,
    compile_file,
    input_files,
    keep_apart,
    require_queries,
    table,
)
from seustream.derived import ApasReport, read_by_apas, run_apas_streams
from seustream.devices import BACKENDS, check_backend, device
from seustream.errors import UserError
from seustream.patterns import (
    PatternReport,
    given_streams,
    joined_stream,
    on_time,
    result_schemas,
    run_patterns,
    trace_file,
)
from seustream.progress import Progress
from seustream.reading import read
from seustream.writing import OutputSet

HELP = "run queries over files"
FORMATS = ("csv", "jsonl", "parquet")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_compile_arguments(parser)
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="STREAM=FILE",
        help="a stream's tuples: .csv, .jsonl or .parquet with a column ts (APAS: also te);"
        " once for each stream",
    )
    parser.add_argument(
        "--backend",
        default="golden",
        metavar="|".join((*BACKENDS, *SHAPES, "grpc://…")),
        help="the device, or the bridge that serves it (default: %(default)s)",
    )
    parser.add_argument("--token-file", metavar="F", help="the bridge's token")
    parser.add_argument("--tls-ca", metavar="F", help="who signed the bridge's certificate, PEM")
    parser.add_argument(
        "--waves",
        type=Path,
        metavar="FILE.fst",
        help="record every signal of the processor; with --backend verilated",
    )
    parser.add_argument(
        "-o", dest="output", default=".", metavar="DIR", help="where the results go; - is stdout"
    )
    parser.add_argument("--format", choices=FORMATS, default="csv", help="of the results")
    parser.add_argument(
        "--overflow",
        choices=("software", "error"),
        default="software",
        help="what to do when a window needs more than its buffer (default: join in software)",
    )
    parser.add_argument(
        "--slack",
        type=int,
        default=0,
        metavar="MS",
        help="how far a stream's timestamps may fall back before a tuple is late (default: 0)",
    )
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
    parser.add_argument("--quiet", action="store_true", help="no summary")


def run(arguments: argparse.Namespace) -> int:
    if is_apas(arguments):
        return run_apas(arguments)
    c = compile_file(arguments, bounded=True)
    require_queries(c)
    if arguments.engine not in ENGINES:
        raise UserError(
            [f"there is no engine {arguments.engine!r}"],
            hint=suggest(arguments.engine, ENGINES, "engines"),
        )
    if arguments.slack < 0:
        raise UserError([f"--slack {arguments.slack}: want 0 or more"])
    check_backend(arguments.backend)
    if arguments.waves is not None and arguments.backend != "verilated":
        raise UserError(
            [f"--waves: backend {arguments.backend} has no signals"],
            hint="--backend verilated runs the processor's own description",
        )
    inputs = _inputs(c, arguments.input)
    _check_places(c, arguments, [path for _, path in inputs])
    for query in (*c.program.patterns, *c.program.between.values()):
        if query.empty:
            where = f"pattern {query.name}: {query.empty} is never true, so it has no matches"
            print(f"warning: {where}", file=sys.stderr)
    if arguments.trace is not None:
        return _trace(c, inputs, arguments)
    if not c.program.queries:
        answer_requests(c)
        return _run_patterns_alone(c, inputs, arguments)
    with device(
        arguments.backend,
        c.options.config,
        arguments.waves,
        arguments.token_file,
        arguments.tls_ca,
    ) as made:
        return _run(c, made, inputs, arguments)


def _run(
    c: Compilation,
    device: Device,
    inputs: list[tuple[Stream, Path]],
    arguments: argparse.Namespace,
) -> int:
    late: list[tuple[str, pa.Table]] = []
    keep = late.append if arguments.late is not None else lambda found: None
    driver = HostDriver(
        c,
        device,
        arguments.overflow,
        arguments.slack,
        on_late=lambda stream, rows: keep((stream, rows)),
    )
    answer_requests(c)
    begun, units = _cycles(device), _units(device)
    total = 0
    tables: dict[str, pa.Table] = {}
    read_by_patterns = given_streams(c.program, c.program.patterns)
    read_by_queries = {s.stream.name for query in c.program.queries for s in query.sources}
    read_by_queries |= given_streams(c.program, c.program.between.values())
    given, intervals = _given(c, inputs, arguments, keep)
    for name, rows in given.items():
        if name in read_by_patterns:
            tables[name] = rows
        if name in read_by_queries & {stream.name for stream in driver.streams}:
            total += rows.num_rows
            driver.push(name, rows)
    feeds = {name: stream for stream, name in c.program.feeds.items()}
    schemas = {query.name: result_schema(query) for query in c.program.asked}
    joined: dict[str, list[pa.Table]] = {name: [] for name in feeds}
    total -= sum(driver.report.late.values())
    with (
        OutputSet(
            arguments.output, arguments.format, schemas | result_schemas(c.program)
        ) as outputs,
        Progress("run", total, "tuples") as progress,
    ):
        driver.on_progress = progress.add
        for name, results in driver.finish():
            if name in feeds:
                joined[name].append(results)
            else:
                outputs.write(name, results)
        known = {stream.name: stream for stream in c.streams}
        for query in c.program.queries:
            if query.name in feeds:
                stream_name = feeds[query.name]
                tables[stream_name] = joined_stream(known[stream_name], joined[query.name])
        patterns = _patterns(c, tables, outputs, arguments, keep)
        if late:
            _write_late(arguments.late, arguments.format, late)
    if not arguments.quiet:
        print(_summary(c, driver, patterns, arguments), file=sys.stderr)
        for line in _about_apas(intervals, arguments):
            print(line, file=sys.stderr)
        if begun is not None:
            print(_time(driver, begun, arguments), file=sys.stderr)
        if units:
            print(_spent(units, _units(device)), file=sys.stderr)
    return 0


def _given(
    c: Compilation,
    inputs: list[tuple[Stream, Path]],
    arguments: argparse.Namespace,
    keep: Callable[[tuple[str, pa.Table]], None],
) -> tuple[dict[str, pa.Table], ApasReport]:
    """The rows of files, and the results of APAS queries over them. Late rows that only APAS
    reads are kept here, all others where they are late for a query or a pattern."""
    tables = {stream.name: rows for stream, rows in _rows(inputs)}
    others = given_streams(c.program, (*c.program.patterns, *c.program.between.values()))
    others |= {source.stream.name for query in c.program.queries for source in query.sources}
    taken, late = {}, {}
    for name in sorted(read_by_apas(c.program)):
        taken[name], late[name] = on_time(tables[name], arguments.slack)
    found, report = run_apas_streams(c.program, taken)
    for name, rows in late.items():
        if rows.num_rows:
            report.refused.setdefault(name, {})["late"] = rows.num_rows
            if name not in others:
                keep((name, rows))
    return tables | found, report


def _about_apas(report: ApasReport, arguments: argparse.Namespace) -> list[str]:
    """What became of the APAS queries, in lines."""
    lines = [f"{count:,} tuples of {name} from APAS" for name, count in report.results.items()]
    for stream, reasons in report.refused.items():
        why = ", ".join(f"{reason} {count:,}" for reason, count in reasons.items())
        lines.append(f"warning: stream {stream}: not taken by APAS: {why}")
    return lines


def _rows(inputs: list[tuple[Stream, Path]]) -> Iterable[tuple[Stream, pa.Table]]:
    for stream, path in inputs:
        yield (
            stream,
            read(path, stream, lambda text: print(f"warning: {text}", file=sys.stderr)),
        )


def _patterns(
    c: Compilation,
    tables: dict[str, pa.Table],
    outputs: OutputSet,
    arguments: argparse.Namespace,
    keep: Callable[[tuple[str, pa.Table]], None],
) -> PatternReport:
    """Runs the patterns; late rows of streams the device reads too are written once."""
    of_device = {s.stream.name for query in c.program.queries for s in query.sources}

    def late(stream: str, rows: pa.Table) -> None:
        if stream not in of_device:
            keep((stream, rows))

    return run_patterns(c.program, tables, outputs.write, arguments.slack, arguments.engine, late)


def _run_patterns_alone(
    c: Compilation, inputs: list[tuple[Stream, Path]], arguments: argparse.Namespace
) -> int:
    """Without queries for it there is no device."""
    late: list[tuple[str, pa.Table]] = []
    keep = late.append if arguments.late is not None else lambda found: None
    given, intervals = _given(c, inputs, arguments, keep)
    read = given_streams(c.program, c.program.patterns)
    tables = {name: rows for name, rows in given.items() if name in read}
    with OutputSet(arguments.output, arguments.format, result_schemas(c.program)) as outputs:
        report = _patterns(c, tables, outputs, arguments, keep)
        if late:
            _write_late(arguments.late, arguments.format, late)
    if not arguments.quiet:
        lines = [_files(_results(c, report.results), arguments), "", *_about(report, arguments)]
        lines += _about_apas(intervals, arguments)
        print("\n".join(lines), file=sys.stderr)
    return 0


def _trace(c: Compilation, inputs: list[tuple[Stream, Path]], arguments: argparse.Namespace) -> int:
    """The teaching view, on stdout."""
    patterns = {query.name.lower(): query for query in c.program.patterns}
    query = patterns.get(arguments.trace.lower())
    if query is None:
        known = [pattern.name for pattern in c.program.patterns]
        raise UserError(
            [f"there is no pattern {arguments.trace!r}"],
            hint=suggest(arguments.trace, known, "patterns"),
        )
    files = {stream.name: path for stream, path in inputs}
    if query.stream.name not in files:
        raise UserError(
            [f"--trace {query.name}: its stream {query.stream.name} is derived"],
            hint="trace a pattern over a file",
        )
    rows = read(files[query.stream.name], query.stream)
    for line in trace_file(query, rows, arguments.versions, arguments.engine):
        print(line)
    return 0


def _cycles(device: Device) -> int | None:
    """Clock cycles so far, of a device that has a clock."""
    return getattr(device, "cycles", None)


def _time(driver: HostDriver, begun: int, arguments: argparse.Namespace) -> str:
    cycles = (_cycles(driver.device) or 0) - begun
    taken = driver.device.status().taken
    text = f"{cycles:,} cycles, {cycles / taken:.1f} a tuple" if taken else f"{cycles:,} cycles"
    return text + (f"; waves in {arguments.waves}" if arguments.waves is not None else "")


_SHOWN = 3  # of the busiest units, and of those that wait most


def _units(device: Device) -> dict[str, UnitCycles]:
    """Where the cycles went so far, of a device that says so."""
    found: dict[str, UnitCycles] = getattr(device, "units", dict)()
    return found


def _spent(before: dict[str, UnitCycles], after: dict[str, UnitCycles]) -> str:
    """The busiest units, and those that waited most for others, in shares of all cycles."""
    busy, blocked = {}, {}
    for name, now in after.items():
        then = before[name]
        busy[name], blocked[name] = now.busy - then.busy, now.blocked - then.blocked
        every = busy[name] + blocked[name] + now.starved - then.starved

    def most(cycles: dict[str, int]) -> str:
        names = sorted((n for n in cycles if 200 * cycles[n] >= every), key=lambda n: -cycles[n])
        shares = (f"{name} {100 * cycles[name] / every:.0f} %" for name in names[:_SHOWN])
        return ", ".join(shares) or "none"

    return f"busy: {most(busy)}; blocked: {most(blocked)}"


def _check_places(c: Compilation, arguments: argparse.Namespace, inputs: list[Path]) -> None:
    """Results, late tuples and inputs must not fall on each other."""

    def files(directory: str | None, names: Iterable[str]) -> list[Path]:
        if directory in (None, "-"):
            return []
        return [Path(str(directory)) / f"{name}.{arguments.format}" for name in names]

    if arguments.late == "-":
        raise UserError(["--late -: stdout is for results"], hint="name a folder")
    results = files(arguments.output, c.program.names)
    late = files(arguments.late, (stream.name for stream in c.streams))
    waves = [arguments.waves] if arguments.waves is not None else []
    keep_apart([*results, *late, *waves], [*input_files(arguments), *inputs])
    both = {path.resolve() for path in results} & {path.resolve() for path in late}
    if both:
        raise UserError(
            [f"{min(both)} would hold results and late tuples"], hint="give --late another folder"
        )


def _write_late(directory: str, format: str, late: list[tuple[str, pa.Table]]) -> None:
    """Late tuples, a file a stream, in the shape of inputs."""
    schemas = {stream: rows.schema for stream, rows in late}
    with OutputSet(directory, format, schemas) as files:
        for stream, rows in late:
            files.write(stream, rows)


def _inputs(c: Compilation, given: list[str]) -> list[tuple[Stream, Path]]:
    """The file of each stream; every stream some query reads must have one."""
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
        elif name.lower() in found:
            problems.append(f"--input {argument}: stream {name} already has an input")
        else:
            found[name.lower()] = Path(path)
    used = {source.stream.name for query in c.program.queries for source in query.sources}
    used |= given_streams(c.program, (*c.program.patterns, *c.program.between.values()))
    used |= read_by_apas(c.program)
    missing = [s.name for s in streams.values() if s.name in used and s.name.lower() not in found]
    if missing and not problems:
        problems.append(f"no input for stream {', '.join(missing)}")
    if problems:
        raise UserError(
            problems, hint="give each stream a file: --input R=r.csv --input S=s.parquet"
        )
    return [(streams[name], path) for name, path in found.items()]


def _files(results: list[tuple[str, int]], arguments: argparse.Namespace) -> str:
    to = "stdout" if arguments.output == "-" else str(Path(arguments.output))
    return table(
        [
            (name, count, to if to == "stdout" else f"{to}/{name}.{arguments.format}")
            for name, count in results
        ],
        ("query", "results", "file"),
    )


def _results(c: Compilation, counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return [(name, counts[name]) for name in c.program.names if name in counts]


def _about(report: PatternReport, arguments: argparse.Namespace) -> list[str]:
    """What became of the patterns, in lines."""
    lines = [f"{report.taken[stream]:,} events of {stream} for patterns" for stream in report.taken]
    engines = ", ".join(f"{name} by {engine}" for name, engine in report.engines.items())
    lines = [f"{'; '.join(lines)}: {engines}"] if lines else []
    for stream, count in report.late.items():
        kept = f"written to {arguments.late}" if arguments.late else "not processed"
        lines.append(
            f"warning: stream {stream}: {_tuples(count, 'late ')} of patterns, {kept};"
            " --slack MS accepts them, --late DIR keeps them"
        )
    return lines + _untimed(report.untimed)


def _untimed(counts: Mapping[str, int]) -> list[str]:
    return [
        f"warning: stream {stream}: {_tuples(count)} not taken by patterns: no time, or one beyond"
        " ±2^61 ms, which no window can be added to"
        for stream, count in counts.items()
    ]


def _summary(
    c: Compilation, driver: HostDriver, patterns: PatternReport, arguments: argparse.Namespace
) -> str:
    report, status = driver.report, driver.device.status()
    lines = [
        _files(_results(c, {**report.results, **patterns.results}), arguments),
        "",
        f"{sum(report.taken.values()):,} tuples in on backend {arguments.backend};"
        f" {status.pairs:,} pairs compared, {status.circulated:,} joined tuples circulated,"
        f" {report.repeats:,} repeats and {report.residual:,} residual misses dropped",
        *_about(patterns, arguments),
    ]
    for stream, count in report.late.items():
        kept = f"written to {arguments.late}" if arguments.late else "not processed"
        lines.append(
            f"warning: stream {stream}: {_tuples(count, 'late ')}, {kept};"
            " --slack MS accepts them, --late DIR keeps them"
        )
    lines += _untimed({s: n for s, n in report.untimed.items() if s not in patterns.untimed})
    for stream, count in report.in_software.items():
        lines.append(
            f"note: stream {stream}: {_tuples(count)} joined in software"
            " (NULL, or out of the attribute's range, in a compared column)"
        )
    for stream, overflow in report.overflow.items():
        lines.append(
            f"note: stream {stream}: window {overflow.window} needed"
            f" {' and '.join(overflow.needs(c.options.config))};"
            f" {_tuples(overflow.left_early)} joined in software"
        )
    return "\n".join(lines)


def _tuples(count: int, kind: str = "") -> str:
    return f"{count:,} {kind}tuple{'s' * (count != 1)}"
