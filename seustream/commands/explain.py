"""`seustream explain`: every stage of a compilation, as text, JSON or a picture."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from seustream.commands.common import (
    add_compile_arguments,
    compile_file,
    described,
    input_files,
    is_apas,
    keep_apart,
)
from seustream.compiler.catalogue import Stream
from seustream.compiler.errors import suggest
from seustream.compiler.pipeline import STAGES
from seustream.devices import ENGINE, check_backend
from seustream.engine.explain import FORMATS, SHOWN, SITES, ExplainRefused, explain, last_stage
from seustream.engine.sites.explain import BadRecord, Block, load
from seustream.errors import UserError
from seustream.files import write_all
from seustream.intervals import by_files, read_schema
from seustream.patterns import samples

EXAMPLES = """\
examples:
  seustream explain q.xsql
  seustream explain q.xsql --devices 1
  seustream explain q.xsql --stage routes --format svg -o routes.svg
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_compile_arguments(parser)
    parser.add_argument(
        "--stage",
        metavar="STAGE",
        help=f"one stage only: {', '.join(SHOWN)}",
    )
    parser.add_argument(
        "--backend",
        default=ENGINE,
        metavar="BACKEND",
        help="what is to run the queries, as in seustream run: the engine by itself, or a device, as"
        " --devices and the stages of its plan ask for one, too (default: %(default)s)",
    )
    parser.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="for the stage sites: a run, as seustream run --record wrote it",
    )
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="STREAM=FILE",
        help="a file whose columns are the stream's, where the text does not create it (APAS: or its"
        " schema as .json); for patterns: tuples of their stream, whose beginning shows what each"
        " matcher would cost",
    )
    parser.add_argument("--format", choices=FORMATS, default="text")
    parser.add_argument("--query", metavar="NAME", help="explain this query only")
    parser.add_argument("-o", dest="output", type=Path, metavar="FILE", help="write into this file")


def run(arguments: argparse.Namespace) -> int:
    stage = arguments.stage
    streams: Iterable[Stream] | None
    if is_apas(arguments):
        if stage is not None or arguments.query is not None:
            raise UserError(
                ["--stage and --query are for X-SQL"], hint="an APAS query is shown whole"
            )
        streams = by_files(arguments.input, read_schema).values()
    else:
        streams = described(arguments)
    if stage is not None and stage not in SHOWN:
        raise UserError([f"there is no stage {stage!r}"], hint=suggest(stage, SHOWN, "stages"))
    if arguments.record is not None and stage != SITES:
        raise UserError(["--record is for --stage sites"])
    check_backend(arguments.backend)
    devices = None if _asks_for_device(arguments) else 0
    c = compile_file(arguments, last_stage(stage), True, devices, streams)
    seen = {}
    if arguments.input and not is_apas(arguments):
        if c.program.patterns:
            seen = samples(c, c.program.patterns, arguments.input)
        elif not streams:
            raise UserError(
                [
                    "--input has no use here: CREATE STREAM says the columns, and there is no pattern"
                ],
                hint="leave it out",
            )
    record = None if arguments.record is None else _record(arguments.record)
    try:
        text = explain(c, stage, arguments.format, arguments.query, seen=seen, record=record)
    except ExplainRefused as error:
        raise UserError(str(error).splitlines(), hint=error.hint) from None
    if arguments.output is not None:
        inputs = (Path(given.partition("=")[2]) for given in arguments.input)
        keep_apart([arguments.output], [*input_files(arguments), *inputs])
    if arguments.output is None:
        print(text)
    else:
        write_all(arguments.output.parent, {arguments.output.name: (text + "\n").encode()})
    return 0


def _asks_for_device(arguments: argparse.Namespace) -> bool:
    """Returns whether the plan of a device is asked for; otherwise it is that of the engine, which
    `seustream run` uses."""
    asked = (
        arguments.backend != ENGINE or arguments.devices is not None or arguments.fit == "strict"
    )
    return asked or arguments.stage in STAGES[STAGES.index("predicate") + 1 :]


def _record(path: Path) -> dict[str, list[Block]]:
    try:
        return load(path)
    except OSError as error:
        raise UserError([f"{path}: cannot be read: {error.strerror or error}"]) from None
    except BadRecord as error:
        raise UserError([str(error)], hint=error.hint) from None
