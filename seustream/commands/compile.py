"""`seustream compile`: a query file to an image, its manifest and its listing."""

from __future__ import annotations

import argparse
from pathlib import Path

from seustream.commands.common import (
    INLINE,
    add_compile_arguments,
    answer_requests,
    compile_file,
    input_files,
    keep_apart,
    require_queries,
    table,
)
from seustream.compiler.explain import explain
from seustream.compiler.explain.marks import plural
from seustream.compiler.manifest import manifest
from seustream.errors import UserError
from seustream.files import write_all

_UNNAMED = "query"
"""Stem of the files of a text that comes from no file."""
EXAMPLES = """\
examples:
  seustream compile q.xsql -o build
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_compile_arguments(parser)
    parser.add_argument(
        "-o", dest="output", type=Path, default=Path(), metavar="DIR", help="where the files go"
    )
    parser.add_argument(
        "--words",
        action="store_true",
        help="also write the image as writes to the control port of the Verilog core",
    )


def run(arguments: argparse.Namespace) -> int:
    c = compile_file(arguments)
    require_queries(c)
    if not c.program.queries:
        hint = "patterns run in the engine: seustream run"
        raise UserError([f"{c.source.name}: there is nothing for a device in it"], hint=hint)
    if c.others:
        number = len(c.devices)
        parts = "; ".join(
            f"text {i}: {', '.join(q.division.query.name for q in one.device_queries)}"
            for i, one in enumerate(c.devices, 1)
        )
        raise UserError(
            [f"{c.source.name}: the set is spread over {number} devices, and an image is for one"],
            hint=f"compile a text for each ({parts}); seustream run spreads them by itself",
        )
    answer_requests(c)
    stem = _UNNAMED if arguments.file == INLINE else arguments.file.stem
    outputs = [
        arguments.output / f"{stem}{suffix}" for suffix in (".wjas", ".json", ".lst", ".words")
    ]
    keep_apart(outputs, input_files(arguments))
    files = {
        f"{stem}.wjas": c.image,
        f"{stem}.json": manifest(c, f"{stem}.wjas").encode(),
        f"{stem}.lst": (explain(c, "listing", "text") + "\n").encode(),
    }
    contents = ["image", "manifest", "listing"]
    if arguments.words:
        from seustream.cosim.export.words import load_words, packed

        files[f"{stem}.words"] = packed(load_words(c.image, c.options.config))
        contents.append("register writes")
    write_all(arguments.output, files)
    print(
        table(
            [
                (str(arguments.output / name), len(data), what)
                for (name, data), what in zip(files.items(), contents, strict=True)
            ],
            ("file", "bytes", "what"),
        )
    )
    on_device = len(c.device_queries)
    print(
        f"\n{plural(len(c.program.names), 'query', 'queries')}, {on_device} in the device;"
        f" {plural(len(c.subqueries), 'subquery', 'subqueries')},"
        f" {plural(len(c.routes.tags), 'route tag')},"
        f" {plural(sum(map(len, c.programs)), 'instruction')} (plan {c.options.plan},"
        f" configuration {c.options.config.name})"
    )
    return 0
