"""`seustream explain`: every stage of a compilation, as text, JSON or a picture."""

from __future__ import annotations

import argparse
from pathlib import Path

from compiler.errors import suggest
from compiler.explain import explain
from compiler.plan.pipeline import STAGES
from seustream.commands.apas import explain_apas, is_apas
from seustream.commands.common import add_compile_arguments, compile_file, input_files, keep_apart
from seustream.errors import UserError
from seustream.files import write_all

HELP = "show how queries are compiled and what runs where"
FORMATS = ("text", "json", "svg")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_compile_arguments(parser)
    parser.add_argument("--stage", metavar="|".join(STAGES), help="one stage only")
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="STREAM=FILE",
        help="for APAS: a file whose columns are the stream's, or its schema as .json",
    )
    parser.add_argument("--format", choices=FORMATS, default="text")
    parser.add_argument("--query", metavar="NAME", help="one query only")
    parser.add_argument("-o", dest="output", type=Path, metavar="FILE", help="into a file")


def run(arguments: argparse.Namespace) -> int:
    if is_apas(arguments):
        return explain_apas(arguments)
    if arguments.input:
        raise UserError(["--input is for APAS"], hint="X-SQL streams say their columns themselves")
    stage = arguments.stage
    if stage is not None and stage not in STAGES:
        raise UserError([f"there is no stage {stage!r}"], hint=suggest(stage, STAGES, "stages"))
    c = compile_file(arguments, stage or STAGES[-1])
    query = arguments.query
    if query is not None and stage == "tokens":
        raise UserError(["stage tokens comes before queries are known"], hint="leave out --query")
    if query is not None:
        names = {q.name.lower(): q.name for q in c.program.queries}
        if query.lower() not in names:
            known = list(names.values())
            raise UserError([f"there is no query {query!r}"], hint=suggest(query, known, "queries"))
        query = names[query.lower()]
    try:
        text = explain(c, stage, arguments.format, query=query)
    except ValueError as error:
        raise UserError([str(error)]) from None
    if arguments.output is not None:
        keep_apart([arguments.output], input_files(arguments))
    if arguments.output is None:
        print(text)
    else:
        write_all(arguments.output.parent, {arguments.output.name: (text + "\n").encode()})
    return 0
