"""Helpers shared by commands: reading query files and options."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from seustream.compiler.apas.compile import Compiled
from seustream.compiler.catalogue import Stream
from seustream.compiler.cells import padded, width_of
from seustream.compiler.errors import CompileError, suggest
from seustream.compiler.language.bind import ParameterValue
from seustream.compiler.pipeline import (
    FITS,
    PLANS,
    STAGES,
    Compilation,
    Options,
    compile_text,
)
from seustream.compiler.plan.normalise import DEFAULT_MAX_TERMS
from seustream.compiler.plan.place import MOST_DEVICES
from seustream.compiler.plan.statistics import Statistics, StatisticsError
from seustream.cosim.bridge.access import Access
from seustream.devices import configuration
from seustream.durations import WANTED, milliseconds_of
from seustream.engine.stream.faults import Lines
from seustream.errors import InputError, UserError
from seustream.frames import declarations, has_word, stream_of
from seustream.hdl.config import CONFIGURATIONS
from seustream.inputs import named
from seustream.libraries import add_library_argument, load_libraries
from seustream.reading import SUFFIXES


def add_compile_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        type=Path,
        nargs="?",
        metavar="Q.xsql",
        help="the file of the queries; - is standard input",
    )
    parser.add_argument(
        "-c",
        dest="text",
        metavar="SQL",
        help="take the queries from the command line instead of a file",
    )
    parser.add_argument(
        "--plan",
        choices=PLANS,
        default="cost",
        help="how routes are chosen (default: cost; thesis: numbered as in the thesis)",
    )
    add_config_argument(parser)
    parser.add_argument(
        "--max-terms",
        type=int,
        default=DEFAULT_MAX_TERMS,
        metavar="N",
        help="terms a condition may expand to before part of it moves to the host (default: %(default)s)",
    )
    parser.add_argument(
        "--fit",
        choices=FITS,
        default="auto",
        help="queries no device has room for: the engine joins them, or they are an error"
        " (default: %(default)s)",
    )
    parser.add_argument(
        "--devices",
        metavar="auto|N",
        help="spread queries over N devices (default: 1), or over as many as they need",
    )
    parser.add_argument(
        "--statistics",
        type=Path,
        metavar="FILE",
        help='what is known of the streams: {"R": {"rows": 500, "distinct": {"a": 100}}}',
    )
    parser.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="the value of :NAME in a query, a number or a text; once for each",
    )
    add_library_argument(parser)


INLINE, STANDARD_INPUT = Path("<sql>"), Path("-")
"""Names of texts that come from no file."""


def settle_text(arguments: argparse.Namespace) -> None:
    """Names the text of `-c`; raises `UserError` if there is no text, or two."""
    if (arguments.file is None) == (arguments.text is None):
        what = "there are no queries" if arguments.file is None else "queries are given twice"
        raise UserError([what], hint='name a file, or give them with -c "SELECT …"')
    if arguments.text is not None:
        arguments.file = INLINE


def _text(arguments: argparse.Namespace) -> str:
    if arguments.text is not None:
        return str(arguments.text)
    if arguments.file == STANDARD_INPUT:
        for one in getattr(arguments, "input", ()):
            if one.endswith(f"={STANDARD_INPUT}"):
                what = f"--input {one}: standard input has the queries already"
                raise UserError([what], hint='give them with -c "SELECT …"')
        arguments.text, arguments.file = "".join(piped()), INLINE
        return str(arguments.text)
    return read_text(arguments.file)


def described(arguments: argparse.Namespace) -> list[Stream] | None:
    """Returns the streams that a text reads and does not create; the files of `--input` define their
    columns. Returns None if it creates all of them."""
    if is_apas(arguments):
        return None
    text = _text(arguments)
    try:
        known = declarations(text, whole=True)
    except CompileError:
        return None  # the compilation reports it
    found = []
    for argument in arguments.input:
        name, _, path = argument.partition("=")
        # Beside others that it creates, a name that it does not have may be a misspelt one.
        if known and (name.lower() in known or not has_word(text, name)):
            continue
        if not name.isidentifier() or not path:
            hint = "give each stream a file: --input R=r.csv"
            raise UserError([f"--input {argument}: want STREAM=FILE"], hint=hint)
        found.append(stream_of(name, path))
    return found if found or not known else None


def duration(text: str) -> int:
    """Reads the milliseconds of an option."""
    found = milliseconds_of(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text}: {WANTED}")
    return found


def is_apas(arguments: argparse.Namespace) -> bool:
    """Returns whether the file is one APAS query."""
    return bool(arguments.file.suffix == ".apas")


def apas_queries(c: Compilation) -> dict[str, Compiled]:
    """Returns the APAS queries by folded name, including those that define streams."""
    every = (*c.program.apas.values(), *c.program.asked_apas)
    return {query.name.lower(): query for query in every}


def device_count(given: str | None) -> int | None:
    """Reads `--devices`: a number of devices, or None for as many as it takes."""
    if given is None:
        return 1
    if given == "auto":
        return None
    if not given.isascii() or not given.isdecimal() or int(given) > MOST_DEVICES:
        raise UserError([f"--devices {given}: want auto, or a number up to {MOST_DEVICES}"])
    return int(given)


def add_config_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config",
        default="default",
        metavar="NAME|FILE",
        help=f"device configuration: {', '.join(CONFIGURATIONS)}, or a JSON file",
    )


def add_delivery_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--overflow",
        choices=("software", "error"),
        default="software",
        help="what to do when a window needs more than its buffer (default: join in software)",
    )
    parser.add_argument(
        "--slack",
        type=duration,
        metavar="TIME",
        help="how far a stream's timestamps may fall back before a tuple is late: 500ms, 5s"
        " (default: what each stream says, 0)",
    )


def add_access_arguments(
    parser: argparse.ArgumentParser, whose: str = "send the token in this file to the bridge"
) -> None:
    """Adds the options for the files with which a client authenticates."""
    parser.add_argument("--token-file", metavar="F", help=whose)
    parser.add_argument(
        "--tls-ca", metavar="F", help="trust a bridge whose certificate this authority signed, PEM"
    )
    parser.add_argument(
        "--tls-cert",
        metavar="F",
        help="present this certificate to a bridge that asks for one, PEM",
    )
    parser.add_argument(
        "--tls-key", metavar="F", help="read the certificate's private key from this file"
    )


def access(arguments: argparse.Namespace) -> Access:
    """Returns the files that give access to the bridge."""
    given = {
        name: getattr(arguments, name) for name in ("token_file", "tls_ca", "tls_cert", "tls_key")
    }
    try:
        return Access(**given)
    except ValueError as error:
        raise UserError([f"--tls-cert, --tls-key: {error}"], hint="give both, or none") from None


def add_strict_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--strict",
        action="store_true",
        help="stop at the first fault, such as a division by zero (default: NULL, and counted)",
    )


_PLACES = 3
"""Places of faults that a summary lists for each query, unless all are asked for."""


def fault_lines(faults: Mapping[str, Lines], every: bool) -> list[str]:
    """Lists the faults of each query, for a summary."""
    lines = []
    for name, places in faults.items():
        total = sum(count for count, _ in places.values())
        if not total:
            continue
        said = list(places.items())[: None if every else _PLACES]
        parts = [
            f"{place}, {f'{count:,} of them, ' if len(places) > 1 else ''}first at {row}"
            for place, (count, row) in said
        ]
        if len(said) < len(places):
            parts.append(f"{len(places) - len(said)} more places, which --verbose lists")
        plural = "s" * (total != 1)
        lines.append(f"warning: {total:,} fault{plural} in {name}: {'; '.join(parts)}")
    return lines


def parameters(given: Iterable[str]) -> dict[str, ParameterValue]:
    """Reads values of parameters: a number if it parses as one, else a text."""
    found: dict[str, ParameterValue] = {}
    for argument in given:
        name, equals, value = argument.partition("=")
        if not equals or not name.isidentifier():
            raise UserError([f"--param {argument}: want NAME=VALUE"])
        if name in found:
            raise UserError([f"--param {argument}: {name} has a value already"])
        found[name] = _value(value)
    return found


def _value(text: str) -> ParameterValue:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def compile_file(
    arguments: argparse.Namespace,
    stop_after: str = STAGES[-1],
    bounded: bool = False,
    devices: int | None = None,
    streams: Iterable[Stream] | None = None,
) -> Compilation:
    """Compiles what the arguments ask for, possibly for another number of `devices`. `bounded` is
    set if the input will be files. `streams` are those that an APAS query may read."""
    if is_apas(arguments) and streams is None:
        raise UserError(
            [f"{arguments.file}: an APAS query does not say what columns its streams have"],
            hint="seustream run takes them from its inputs, seustream query register from a bridge;"
            " or write CREATE STREAM …; REGISTER QUERY q AS APAS $$ … $$ into a file .xsql",
        )
    if arguments.max_terms < 1:
        raise UserError([f"--max-terms {arguments.max_terms}: want 1 or more"])
    statistics = Statistics()
    if arguments.statistics is not None:
        try:
            statistics = Statistics.from_json(read_text(arguments.statistics))
        except StatisticsError as error:
            raise UserError([f"{arguments.statistics}: {error}"]) from None
    options = Options(
        configuration(arguments.config),
        arguments.plan,
        arguments.max_terms,
        statistics,
        parameters(arguments.param),
        load_libraries(arguments.library),
        bounded,
        arguments.fit,
        device_count(arguments.devices) if devices is None else devices,
        tuple(streams or ()),
        is_apas(arguments),
    )
    text = _text(arguments)
    try:
        c = compile_text(text, str(arguments.file), options, stop_after)
    except CompileError as error:
        missing = [
            p.message.split()[-1] for p in error.problems if "there is no stream" in p.message
        ]
        if missing and streams is not None:
            files = " ".join(f"--input {name}=FILE" for name in sorted(set(missing)))
            print(f"note: streams are known by their inputs: {files}", file=sys.stderr)
        raise
    for query in apas_queries(c).values():
        for warning in query.warnings:
            print(f"warning: {warning}", file=sys.stderr)
    if arguments.statistics is not None:
        _check_statistics(c, arguments.statistics)
    return c


def _check_statistics(c: Compilation, path: Path) -> None:
    """Refuses a misspelt name, which would silently leave the plan unchanged."""
    streams = {stream.name.lower(): stream for stream in c.streams}
    known = c.options.statistics
    for name in sorted({*known.rows, *(stream for stream, _ in known.distinct)}):
        if name not in streams:
            names = [stream.name for stream in c.streams]
            hint = suggest(name, names, "streams")
            raise UserError([f"{path}: there is no stream {name}"], hint=hint)
    for name, column in sorted(known.distinct):
        if streams[name].column(column) is None:
            columns = [c.name for c in streams[name].columns]
            hint = suggest(column, columns, "columns")
            raise UserError([f"{path}: stream {name} has no column {column}"], hint=hint)


def require_queries(c: Compilation) -> None:
    """Refuses a file without queries, which is a mistake if they are to be compiled or run."""
    if not c.program.names:
        hint = "SELECT ... FROM ... WINDOW ..., or PATTERN ...; see the tutorial"
        raise UserError([f"{c.source.name}: there are no queries in it"], hint=hint)


def input_files(arguments: argparse.Namespace) -> list[Path]:
    """Returns the files that a compilation reads."""
    given = [arguments.file, arguments.statistics, *arguments.library]
    if arguments.config not in CONFIGURATIONS:
        given.append(Path(arguments.config))
    return [path for path in given if path is not None]


def keep_apart(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Refuses to overwrite input files; an input may be a folder or a pattern."""
    read = {os.path.realpath(path) for given in inputs for path in _files(given)}
    for output in outputs:
        if os.path.realpath(output) in read:
            raise UserError(
                [f"{output} would be overwritten, and it is an input"],
                hint="choose another folder with -o",
            )


def _files(given: Path) -> list[Path]:
    try:
        return named(given, SUFFIXES)
    except InputError:  # nothing is there that could be overwritten
        return [given]


def read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UserError([f"{path}: {error.strerror}"]) from None
    except UnicodeDecodeError as error:
        raise UserError([f"{path}: byte {error.start} is not UTF-8"]) from None


def piped() -> Iterator[str]:
    """Yields the lines of standard input, which are UTF-8 whatever the locale."""
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            what = f"standard input, line {number}: byte {error.start} is not UTF-8"
            raise UserError([what]) from None


def answer_requests(c: Compilation) -> None:
    """Prints the answers to SHOW and EXPLAIN statements on stderr, since stdout is for results."""
    for request in c.program.requests:
        text = "\n".join(request.lines)
        if request.verb == "explain":
            # Its modules take longer to import than a small query takes to run.
            from seustream.engine.explain import explain

            text = explain(c, query=request.target)
        print(text, file=sys.stderr)


def table(rows: Sequence[Sequence[object]], head: Sequence[str]) -> str:
    """Formats rows under a head, with numbers right-aligned; folds them on a narrower terminal."""
    cells = [[f"{c:,}" if isinstance(c, int) else str(c) for c in row] for row in rows]
    widths = [max(width_of(r[i]) for r in [list(head), *cells]) for i in range(len(head))]
    right = [all(isinstance(row[i], int) for row in rows) for i in range(len(head))]

    def line(row: Sequence[str]) -> str:
        return "  ".join(map(padded, row, widths, right)).rstrip()

    if sys.stdout.isatty() and sum(widths) + 2 * len(head) - 2 > shutil.get_terminal_size().columns:
        return _folded(cells, head, right)
    return "\n".join([line(list(head)), "  ".join("─" * w for w in widths), *map(line, cells)])


def _folded(cells: Sequence[Sequence[str]], head: Sequence[str], right: Sequence[bool]) -> str:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    made = Table(
        box=SIMPLE_HEAD, header_style="", show_edge=False, pad_edge=False, padding=(0, 1, 0, 0)
    )
    for name, numeric in zip(head, right, strict=True):
        made.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in cells:
        made.add_row(*map(Text, row))
    console = Console(no_color=True, highlight=False, width=shutil.get_terminal_size().columns)
    with console.capture() as shown:
        console.print(made)
    return "\n".join(line.rstrip() for line in shown.get().splitlines())
