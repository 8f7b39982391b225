"""`seustream explain`: every stage of a compilation, as text, JSON or a picture."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from compiler.errors import suggest
from compiler.explain import explain
from compiler.pattern import ir
from compiler.plan.pipeline import STAGES, Compilation
from engine.pattern import explain as patterns
from engine.pattern.picture import picture
from seustream.commands.apas import explain_apas, is_apas
from seustream.commands.common import add_compile_arguments, compile_file, input_files, keep_apart
from seustream.errors import UserError
from seustream.files import write_all
from seustream.patterns import samples

HELP = "show how queries are compiled and what runs where"
FORMATS = ("text", "json", "svg")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_compile_arguments(parser)
    parser.add_argument(
        "--stage", metavar="|".join((*STAGES, *patterns.STAGES)), help="one stage only"
    )
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="STREAM=FILE",
        help="for APAS: a file whose columns are the stream's, or its schema as .json; for patterns:"
        " tuples of their stream, whose beginning tells what each matcher would cost",
    )
    parser.add_argument("--format", choices=FORMATS, default="text")
    parser.add_argument("--query", metavar="NAME", help="one query only")
    parser.add_argument("-o", dest="output", type=Path, metavar="FILE", help="into a file")


def run(arguments: argparse.Namespace) -> int:
    if is_apas(arguments):
        return explain_apas(arguments)
    stage = arguments.stage
    known = (*STAGES, *patterns.STAGES)
    if stage is not None and stage not in known:
        raise UserError([f"there is no stage {stage!r}"], hint=suggest(stage, known, "stages"))
    of_pattern = stage in patterns.STAGES
    c = compile_file(arguments, STAGES[-1] if of_pattern else stage or STAGES[-1], bounded=True)
    names = {q.name.lower() for q in _every(c)}
    if arguments.input and not names:
        raise UserError(
            ["--input is for APAS and patterns"], hint="X-SQL streams say their columns themselves"
        )
    asked = arguments.query is not None and arguments.query.lower() in names
    if of_pattern or asked or (stage is None and names and not c.program.queries):
        text = _patterns(c, stage, arguments)
    else:
        text = _queries(c, stage, arguments)
    if arguments.output is not None:
        keep_apart([arguments.output], input_files(arguments))
    if arguments.output is None:
        print(text)
    else:
        write_all(arguments.output.parent, {arguments.output.name: (text + "\n").encode()})
    return 0


def _every(c: Compilation) -> tuple[ir.Query, ...]:
    """The patterns, those whose results queries read among them."""
    return (*c.program.patterns, *c.program.between.values())


def _patterns(c: Compilation, stage: str | None, arguments: argparse.Namespace) -> str:
    """The patterns, or the one asked for."""
    if stage is not None and stage not in patterns.STAGES:
        raise UserError([f"a pattern has no stage {stage!r}"], hint=f"{', '.join(patterns.STAGES)}")
    wanted = [
        q for q in _every(c) if arguments.query is None or q.name.lower() == arguments.query.lower()
    ]
    if not wanted:
        known = [q.name for q in _every(c)]
        if arguments.query is None:
            raise UserError([f"{c.source.name}: there are no patterns in it"])
        hint = suggest(arguments.query, known, "patterns")
        raise UserError([f"there is no pattern {arguments.query!r}"], hint=hint)
    if arguments.format == "svg":
        if len(wanted) > 1:
            names = ", ".join(q.name for q in wanted)
            raise UserError(["a picture is of one pattern"], hint=f"--query one of {names}")
        return picture(wanted[0], stage or "automaton")
    seen = samples(c, wanted, arguments.input)
    if arguments.format == "json":
        found = [patterns.facts(q, seen.get(q.name)) for q in wanted]
        if stage is not None:
            found = [{"name": one["name"], stage: one[stage]} for one in found]
        return json.dumps(found, indent=2, ensure_ascii=False)
    lines = [line for q in wanted for line in patterns.as_text(q, stage, seen.get(q.name))]
    return "\n".join(lines).rstrip()


def _queries(c: Compilation, stage: str | None, arguments: argparse.Namespace) -> str:
    """The queries of the device; with the overview of all, the patterns after them."""
    query = arguments.query
    if query is not None and stage == "tokens":
        raise UserError(["stage tokens comes before queries are known"], hint="leave out --query")
    if query is not None:
        names = {q.name.lower(): q.name for q in c.program.queries}
        if query.lower() not in names:
            known = [*names.values(), *(p.name for p in c.program.patterns)]
            raise UserError([f"there is no query {query!r}"], hint=suggest(query, known, "queries"))
        query = names[query.lower()]
    try:
        text = explain(c, stage, arguments.format, query=query)
    except ValueError as error:
        raise UserError([str(error)]) from None
    if stage is None and query is None and arguments.format == "text" and _every(c):
        text += "\n" + _patterns(c, None, arguments)
    return text
