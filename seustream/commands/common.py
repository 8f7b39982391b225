"""What several commands share: reading query files and options."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from compiler.errors import nearest
from compiler.explain import explain
from compiler.plan.normalise import DEFAULT_MAX_TERMS
from compiler.plan.pipeline import PLANS, STAGES, Compilation, Options, compile_text
from compiler.plan.statistics import Statistics, StatisticsError
from hdl.config import CONFIGURATIONS, ConfigError, DeviceConfig
from seustream.errors import UserError


def add_compile_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="Q.xsql", help="the queries")
    parser.add_argument(
        "--plan",
        choices=PLANS,
        default="cost",
        help="how routes are chosen (default: cost; thesis: numbered as in the thesis)",
    )
    parser.add_argument(
        "--config",
        default="default",
        metavar="NAME|FILE",
        help=f"device configuration: {', '.join(CONFIGURATIONS)}, or a JSON file",
    )
    parser.add_argument(
        "--max-terms",
        type=int,
        default=DEFAULT_MAX_TERMS,
        metavar="N",
        help="terms a condition may expand to before part of it moves to the host (default: %(default)s)",
    )
    parser.add_argument(
        "--statistics",
        type=Path,
        metavar="FILE",
        help='what is known of the streams: {"R": {"rows": 500, "distinct": {"a": 100}}}',
    )


def compile_file(arguments: argparse.Namespace, stop_after: str = STAGES[-1]) -> Compilation:
    """The compilation the arguments ask for."""
    if arguments.file.suffix == ".apas":
        raise UserError(["APAS queries are not compiled by this version"], hint="write X-SQL")
    if arguments.max_terms < 1:
        raise UserError([f"--max-terms {arguments.max_terms}: want 1 or more"])
    statistics = Statistics()
    if arguments.statistics is not None:
        try:
            statistics = Statistics.from_json(read_text(arguments.statistics))
        except StatisticsError as error:
            raise UserError([f"{arguments.statistics}: {error}"]) from None
    options = Options(
        load_config(arguments.config), arguments.plan, arguments.max_terms, statistics
    )
    return compile_text(read_text(arguments.file), str(arguments.file), options, stop_after)


def load_config(name: str) -> DeviceConfig:
    """A configuration by name, or from a file."""
    if name in CONFIGURATIONS:
        return CONFIGURATIONS[name]
    path = Path(name)
    if not path.exists() and path.suffix != ".json":
        close = nearest(name, CONFIGURATIONS)
        raise UserError(
            [f"there is no configuration {name!r}"],
            hint=f"did you mean {close}?" if close else f"known: {', '.join(CONFIGURATIONS)}",
        )
    try:
        return DeviceConfig.from_json(read_text(path))
    except ConfigError as error:
        raise UserError([f"{path}: {error}"]) from None


def read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UserError([f"{path}: {error.strerror}"]) from None
    except UnicodeDecodeError as error:
        raise UserError([f"{path}: byte {error.start} is not UTF-8"]) from None


def answer_requests(c: Compilation) -> None:
    """Prints what SHOW and EXPLAIN statements in the text ask for, on stderr: stdout is for
    results."""
    for request in c.program.requests:
        if request.verb == "explain":
            print(explain(c, None, "text", query=request.target), file=sys.stderr)
        elif request.target == "streams":
            for stream in c.streams:
                columns = ", ".join(f"{column.name} {column.type}" for column in stream.columns)
                print(f"stream {stream.name} ({columns})", file=sys.stderr)
        else:
            for query in c.program.queries:
                print(f"query {query.name}: {' '.join(query.text.split())}", file=sys.stderr)


def table(rows: Sequence[Sequence[object]], head: Sequence[str]) -> str:
    """Rows under a head, numbers to the right."""
    cells = [[f"{c:,}" if isinstance(c, int) else str(c) for c in row] for row in rows]
    widths = [max(len(r[i]) for r in [list(head), *cells]) for i in range(len(head))]
    right = [all(isinstance(row[i], int) for row in rows) for i in range(len(head))]

    def line(row: Sequence[str]) -> str:
        return "  ".join(
            cell.rjust(width) if numeric else cell.ljust(width)
            for cell, width, numeric in zip(row, widths, right, strict=True)
        ).rstrip()

    return "\n".join([line(list(head)), "  ".join("─" * w for w in widths), *map(line, cells)])
