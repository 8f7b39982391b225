"""`seustream feed`: a Spark job that brings streams to a bridge and takes results back."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from seustream.commands.common import (
    access,
    add_access_arguments,
    add_compile_arguments,
    add_delivery_arguments,
    add_strict_argument,
    compile_file,
    duration,
    fault_lines,
    input_files,
    keep_apart,
    require_queries,
    table,
)
from seustream.commands.feed_signals import HeldSignals
from seustream.compiler.errors import nearest
from seustream.compiler.pipeline import Compilation
from seustream.cosim.bridge.protocol import Run
from seustream.devices import client
from seustream.engine.assembly import streams_read
from seustream.errors import UserError
from seustream.progress import Notes

if TYPE_CHECKING:
    from seustream.spark_feeder.job import Sink
    from seustream.spark_feeder.progress import FeedCounts

INSIDE = "spark"
"""Takes the place of a bridge: the queries run inside Spark."""
SINKS = ("parquet", "csv", "json", "console", "none")


EXAMPLES = """\
examples:
  seustream feed q.xsql --bridge grpc://127.0.0.1:8815 --source R=r.csv
  seustream feed q.xsql --bridge spark --source R=r.csv --source S=s.csv
  seustream feed q.xsql --bridge grpc://fpga:8815 --source R=kafka:host:9092/R \\
      --checkpoint state --lag 10s
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_compile_arguments(parser)
    parser.add_argument(
        "--bridge",
        action="append",
        default=[],
        metavar="grpc://HOST:PORT",
        help="where the device is served; several share the tuples by key; spark: queries that go by"
        " key run inside Spark, without a bridge",
    )
    parser.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="STREAM=SOURCE",
        help="a file or folder (csv:, json:, parquet:), rate:N, kafka:HOST:PORT/TOPIC",
    )
    parser.add_argument(
        "--select",
        action="append",
        default=[],
        metavar="STREAM=SQL",
        help="the stream's columns from the source's: R=\"timestamp AS ts, value %% 9 AS a\"",
    )
    parser.add_argument(
        "--checkpoint", metavar="DIR", help="go on from there, and keep the way back there"
    )
    parser.add_argument(
        "-o",
        dest="output",
        default="results",
        metavar="DIR",
        help="write the results into this folder",
    )
    parser.add_argument(
        "--format", choices=SINKS, default="parquet", help="write the results in this format"
    )
    parser.add_argument(
        "--files-a-batch",
        type=int,
        metavar="N",
        help="read files in the order they were written, N at a time (default: all at once)",
    )
    parser.add_argument(
        "--prefilter",
        action="store_true",
        help="keep tuples at their source that can join nothing within their window",
    )
    parser.add_argument(
        "--every", default="0 seconds", metavar="TIME", help="how often to look for more"
    )
    add_delivery_arguments(parser)
    parser.add_argument(
        "--lag",
        type=duration,
        metavar="TIME",
        help="a silent stream holds the others back by at most this (default: for ever)",
    )
    parser.add_argument(
        "--late", metavar="DIR", help="write late tuples there, a folder a stream, in --format"
    )
    parser.add_argument("--master", default="local[2]", help="of Spark (default: %(default)s)")
    parser.add_argument(
        "--conf", action="append", default=[], metavar="NAME=VALUE", help="Spark's configuration"
    )
    add_access_arguments(parser)
    add_strict_argument(parser)
    parser.add_argument(
        "--quiet", action="store_true", help="no summary, but its warnings, such as of late tuples"
    )
    parser.add_argument(
        "--verbose", action="store_true", help="list every place of a fault in the summary"
    )


def run(arguments: argparse.Namespace) -> int:
    c = compile_file(arguments)
    require_queries(c)
    sources = _named(c, "--source", arguments.source)
    select = _named(c, "--select", arguments.select)
    _check(arguments, c, sources)
    if arguments.bridge == [INSIDE]:
        _check_keys(c)
    need_spark()
    for url in arguments.bridge if arguments.bridge != [INSIDE] else ():
        client(url, access(arguments)).close()

    from pyspark.errors import PySparkException

    from seustream.spark_feeder.errors import FeedError
    from seustream.spark_feeder.inputs import InputSource, read
    from seustream.spark_feeder.job import run as start
    from seustream.spark_feeder.job import session

    streams = {stream.name: stream for stream in c.streams}
    try:
        found = {name: InputSource.parse(text) for name, text in sources.items()}
        with Notes() as note, contextlib.ExitStack() as stack:
            note("starting Spark")
            spark = session(arguments.master, **_conf(arguments.conf))
            stack.callback(spark.stop)
            held = stack.enter_context(HeldSignals())  # in place of Spark's own handler
            frames = {
                name: read(spark, source, streams[name], arguments.files_a_batch, select.get(name))
                for name, source in found.items()
            }
            note("starting the streams")
            job = start(
                c,
                frames,
                _sink(arguments),
                bridge=tuple(arguments.bridge),
                checkpoint=arguments.checkpoint,
                bounded=all(source.bounded for source in found.values()),
                every=arguments.every,
                how=Run(
                    arguments.overflow, arguments.slack, arguments.lag, strict=arguments.strict
                ),
                select=select,
                access=access(arguments),
                late=_late(arguments),
                prefilter=arguments.prefilter,
                say=note.warn,
            )
            with job:

                def show(now: FeedCounts, seconds: float) -> None:
                    held.look()
                    note(now.line(seconds))

                counts = job.wait(show)
    except FeedError as error:
        raise UserError([str(error)], hint=error.hint) from None
    except PySparkException as error:
        raise UserError([f"Spark: {str(error).splitlines()[0]}"]) from error
    lines = _warnings(counts, arguments) if arguments.quiet else [_summary(counts, arguments)]
    for line in lines:
        print(line, file=sys.stderr)
    return 0


def _check_keys(c: Compilation) -> None:
    from seustream.spark_feeder.errors import FeedError
    from seustream.spark_feeder.queries import keys_inside

    try:
        keys_inside(c.program)
    except FeedError as error:
        raise UserError([str(error)], hint=error.hint) from None


def need_spark() -> None:
    """Raises `UserError` if Spark cannot run."""
    if importlib.util.find_spec("pyspark") is None:
        raise UserError(
            ["Spark is not installed"], hint='python3 -m pip install "seustream[spark]"'
        )
    if shutil.which("java") is None:
        raise UserError(["Spark needs Java"], hint="install Java 17, for example openjdk-17-jre")


def _check(arguments: argparse.Namespace, c: Compilation, sources: dict[str, str]) -> None:
    problems = []
    if not arguments.bridge:
        problems.append("--bridge is missing: where is the device served?")
    if INSIDE in arguments.bridge:
        if len(arguments.bridge) > 1:
            problems.append(f"--bridge {INSIDE}: either bridges, or {INSIDE} alone")
        if arguments.prefilter:
            problems.append("--prefilter saves ways to a bridge, and inside Spark there is none")
    if (arguments.slack or 0) < 0:
        problems.append(f"--slack {arguments.slack}: want 0 or more")
    if arguments.lag is not None and arguments.lag < 0:
        problems.append(f"--lag {arguments.lag}: want 0 or more")
    if arguments.files_a_batch is not None and arguments.files_a_batch < 1:
        problems.append(f"--files-a-batch {arguments.files_a_batch}: want 1 or more")
    if missing := sorted(streams_read(c.program) - set(sources)):
        problems.append(f"no source for stream {', '.join(missing)}")
    if problems:
        raise UserError(problems, hint="--bridge grpc://127.0.0.1:8815 --source R=r.csv …")
    if arguments.format not in ("console", "none"):
        places = [Path(arguments.output), *([Path(arguments.late)] if arguments.late else [])]
        if len({os.path.realpath(place) for place in places}) < len(places):
            raise UserError(
                [f"--late {arguments.late}: results go there"], hint="name another folder"
            )
        keep_apart(places, input_files(arguments))
    elif arguments.late is not None:
        raise UserError(
            [f"--late {arguments.late}: --format {arguments.format} writes no files"],
            hint="--format parquet, csv or json",
        )


def _named(c: Compilation, option: str, given: list[str]) -> dict[str, str]:
    """Returns STREAM=TEXT arguments by the stream's own name."""
    streams = {s.name.lower(): s.name for s in c.streams if s.defined_by is None}
    found: dict[str, str] = {}
    for argument in given:
        name, equals, text = argument.partition("=")
        if not equals or not text:
            raise UserError([f"{option} {argument}: want STREAM=…"])
        if name.lower() not in streams:
            close = nearest(name, streams.values())
            hint = f"did you mean {close}?" if close else f"streams: {', '.join(streams.values())}"
            raise UserError([f"{option} {argument}: there is no stream {name}"], hint=hint)
        if streams[name.lower()] in found:
            raise UserError([f"{option} {argument}: stream {name} already has one"])
        found[streams[name.lower()]] = text
    return found


def _conf(given: list[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    if wrong := [name for name, equals, _ in pairs if not equals]:
        raise UserError([f"--conf {wrong[0]}: want NAME=VALUE"])
    return {name: value for name, _, value in pairs}


def _sink(arguments: argparse.Namespace) -> Sink:
    from seustream.spark_feeder.job import console, files, nowhere

    if arguments.format == "console":
        return console()
    return nowhere() if arguments.format == "none" else files(arguments.output, arguments.format)


def _late(arguments: argparse.Namespace) -> Sink | None:
    from seustream.spark_feeder.job import files

    return None if arguments.late is None else files(arguments.late, arguments.format)


def _saved(counts: FeedCounts) -> str:
    """Describes what the synopsis filter kept at the sources; bytes exclude those of the synopses."""
    rows = [
        (
            name,
            f"{saved.dropped:,} of {saved.tuples:,}",
            f"{saved.saved_bytes:,} of {saved.bytes:,}",
        )
        for name, saved in counts.saved.items()
    ]
    return table(rows, ("stream", "tuples kept at the source", "bytes saved"))


def _warnings(counts: FeedCounts, arguments: argparse.Namespace) -> list[str]:
    """Lists the late tuples and the faults."""
    kept = f"written to {arguments.late}" if arguments.late else "not processed"
    lines = [
        f"warning: stream {stream}: {late:,} late tuple{'s' * (late != 1)}, {kept};"
        " --slack MS accepts them, --late DIR keeps them"
        for stream, late in counts.late.items()
        if late
    ]
    return lines + fault_lines(counts.faults, arguments.verbose)


def _summary(counts: FeedCounts, arguments: argparse.Namespace) -> str:
    kept = arguments.format not in ("console", "none")
    where = str(Path(arguments.output)) if kept else arguments.format
    rows = [
        (name, count, f"{where}/{name}" if kept else where)
        for name, count in counts.results.items()
    ]
    device = counts.device
    through = f"{sum(counts.rows.values()):,} tuples in {counts.epochs:,} "
    if arguments.bridge == [INSIDE]:
        through += "micro-batches inside Spark"
    else:
        through += (
            f"epochs through {len(arguments.bridge)} bridge{'s' * (len(arguments.bridge) > 1)};"
            f" {device.get('pairs', 0):,} pairs compared,"
            f" {device.get('circulated', 0):,} joined tuples circulated"
        )
    lines = [table(rows, ("query", "results", "where")), "", through, *_warnings(counts, arguments)]
    if counts.saved:
        lines += ["", _saved(counts)]
    if "cycles" in device:
        taken = max(device.get("taken", 0), 1)
        lines.append(f"{device['cycles']:,} cycles, {device['cycles'] / taken:.1f} a tuple")
    return "\n".join(lines)
