"""`seustream explain`: every stage of a compilation, as text, JSON or a picture."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from seustream import sites_explain as sites
from seustream.commands.common import (
    add_compile_arguments,
    apas_queries,
    compile_file,
    input_files,
    is_apas,
    keep_apart,
)
from seustream.compiler.errors import suggest
from seustream.compiler.explain import SHOWN, explain
from seustream.compiler.explain.apas import explain as explain_apas
from seustream.compiler.logical.program import Query
from seustream.compiler.pattern import ir
from seustream.compiler.pipeline import STAGES, Compilation
from seustream.engine.pattern import explain as patterns
from seustream.engine.pattern.picture import picture
from seustream.engine.sites.errors import SitesError
from seustream.engine.sites.explain import BadRecord, Block, load
from seustream.errors import UserError
from seustream.files import write_all
from seustream.intervals import by_files, read_schema
from seustream.patterns import samples

SITES = "sites"
_LAST = {SITES: "predicate", "graph": "tree"}
"""The stage of the pipeline after which these are known."""
FORMATS = ("text", "json", "svg")


EXAMPLES = """\
examples:
  seustream explain q.xsql
  seustream explain q.xsql --stage routes --format svg -o routes.svg
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_compile_arguments(parser)
    parser.add_argument(
        "--stage",
        metavar="STAGE",
        help=f"one stage only: {', '.join((*SHOWN, *patterns.STAGES, SITES))}",
    )
    parser.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="for the stage sites: a run, as seustream.engine.sites.explain.save wrote it",
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
    stage, streams = arguments.stage, None
    if is_apas(arguments):
        if stage is not None or arguments.query is not None:
            raise UserError(
                ["--stage and --query are for X-SQL"], hint="an APAS query is shown whole"
            )
        streams = by_files(arguments.input, read_schema).values()
    known = (*SHOWN, *patterns.STAGES, SITES)
    if stage is not None and stage not in known:
        raise UserError([f"there is no stage {stage!r}"], hint=suggest(stage, known, "stages"))
    if arguments.record is not None and stage != SITES:
        raise UserError(["--record is for --stage sites"])
    of_pattern = stage in patterns.STAGES
    last = STAGES[-1] if of_pattern else _LAST.get(stage, stage or STAGES[-1])
    c = compile_file(arguments, last, bounded=True, streams=streams)
    names = {q.name.lower() for q in _every(c)}
    if arguments.input and not names and not is_apas(arguments):
        raise UserError(
            ["--input is for APAS and patterns"], hint="X-SQL streams say their columns themselves"
        )
    asked = arguments.query is not None and arguments.query.lower() in names
    apas = apas_queries(c).get((arguments.query or "").lower())
    if is_apas(arguments):
        (apas,) = c.program.asked_apas
    if apas is not None:
        if stage is not None:
            raise UserError([f"{apas.name} is an APAS query, which is shown whole"])
        text = explain_apas(apas, arguments.format)
    elif stage == SITES:
        text = _sites(c, arguments)
    elif of_pattern or asked or (stage is None and names and not c.program.queries):
        text = _patterns(c, stage, arguments)
    else:
        text = _queries(c, stage, arguments)
    if arguments.output is not None:
        inputs = (Path(given.partition("=")[2]) for given in arguments.input)
        keep_apart([arguments.output], [*input_files(arguments), *inputs])
    if arguments.output is None:
        print(text)
    else:
        write_all(arguments.output.parent, {arguments.output.name: (text + "\n").encode()})
    return 0


def _every(c: Compilation) -> tuple[ir.MatchQuery, ...]:
    """The patterns, those whose results queries read among them."""
    return c.program.patterns


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


def _sites(c: Compilation, arguments: argparse.Namespace) -> str:
    """Queries as joins across sites; those that are none are left out, unless asked for."""
    wanted = [
        q
        for q in c.program.queries
        if arguments.query is None or q.name.lower() == arguments.query.lower()
    ]
    if not wanted:
        known = [q.name for q in c.program.queries]
        hint = suggest(arguments.query or "", known, "queries")
        raise UserError([f"there is no query {arguments.query!r}"], hint=hint)
    problems = {}
    for query in wanted:
        try:
            sites.outline(query)
        except SitesError as error:
            problems[query.name] = error
    if len(problems) == len(wanted):
        first = next(iter(problems.values()))
        raise UserError([f"{name}: {error}" for name, error in problems.items()], hint=first.hint)
    wanted = [query for query in wanted if query.name not in problems]
    blocks = None
    if arguments.record is not None:
        if len(wanted) > 1:
            names = ", ".join(query.name for query in wanted)
            raise UserError(["a record is of one query"], hint=f"--query one of {names}")
        blocks = _record(arguments.record, wanted[0])
    if arguments.format == "json":
        return json.dumps(
            [sites.as_json(query, blocks) for query in wanted], indent=2, ensure_ascii=False
        )
    if arguments.format == "svg":
        if blocks is None:
            raise UserError(["a picture of the stage sites is of a run"], hint="--record FILE")
        return sites.as_picture(wanted[0], blocks)
    lines = [line for query in wanted for line in sites.as_text(query, blocks)]
    lines += [f"  left out  {name}: {error}" for name, error in problems.items()]
    return "\n".join(lines).rstrip()


def _record(path: Path, query: Query) -> list[Block]:
    try:
        blocks = load(path)
    except OSError as error:
        raise UserError([f"{path}: cannot be read: {error.strerror or error}"]) from None
    except BadRecord as error:
        raise UserError([str(error)], hint=error.hint) from None
    aliases = {source.alias for source in query.sources}
    if strangers := sorted({block.stream for block in blocks} - aliases):
        raise UserError(
            [f"{path}: a run with the site {strangers[0]}, which query {query.name} has not"]
        )
    return blocks


def _queries(c: Compilation, stage: str | None, arguments: argparse.Namespace) -> str:
    """The queries of the device; with the overview of all, the patterns after them."""
    query = arguments.query
    if query is not None and stage == "tokens":
        raise UserError(["stage tokens comes before queries are known"], hint="leave out --query")
    if query is not None:
        names = {q.name.lower(): q.name for q in c.program.relations}
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
