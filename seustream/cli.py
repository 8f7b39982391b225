"""The command line: `seustream COMMAND ...`.

Exit status 0 on success, 2 on an error of the user's with the message on stderr, 1 on a fault
of ours.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection, Sequence
from importlib import import_module
from types import ModuleType

from seustream import __version__

COMMANDS = {
    "compile": "compile queries to an image for the WJASIP",
    "explain": "show how queries are compiled and what runs where",
    "run": "run queries over files",
    "serve": "put the engine or a device on a socket, for Spark and other clients",
    "feed": "feed a bridge from Spark, and take results back",
    "sql": "a prompt for statements, to a bridge or an engine in this process",
    "query": "register, list, stop and read queries in a running bridge",
    "journal": "check, repair and export the journal of a bridge",
    "bitstream": "make a bitstream for an FPGA board",
    "bench": "measure, with ratios within one run",
    "doctor": "check this installation",
}
"""A line on each command. Its module is imported when the command runs, and no other's."""


def module_of(command: str) -> ModuleType:
    """The module of a command: `add_arguments(parser)` and `run(arguments)`."""
    return import_module(f"seustream.commands.{command}")


def parser(wanted: Collection[str] = COMMANDS) -> argparse.ArgumentParser:
    """All commands, with the arguments of those that are wanted."""
    top = argparse.ArgumentParser(prog="seustream", description="Continuous queries on a WJASIP.")
    top.add_argument("--version", action="version", version=f"seustream {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, said in COMMANDS.items():
        if name not in wanted:
            commands.add_parser(name, help=said)
            continue
        module = module_of(name)
        module.add_arguments(commands.add_parser(name, help=said, description=module.__doc__))
    return top


def main(argv: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if argv is None else argv
    arguments = parser(given[:1]).parse_args(given)
    try:
        status: int = module_of(arguments.command).run(arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Whoever read our output has seen enough; keep Python from flushing into the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("seustream: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        return _failed(error)


def _failed(error: Exception) -> int:
    """Prints an error; the exit status. The classes are imported here, since a command that goes
    well needs few of them."""
    from seustream.compiler.errors import CompileError
    from seustream.cosim.bridge.errors import BridgeError
    from seustream.cosim.bridge.security import AddressRefused
    from seustream.cosim.link.errors import LinkError
    from seustream.cosim.verilated.build import BuildFailed
    from seustream.engine.stream.errors import EngineError
    from seustream.errors import UserError
    from seustream.hdl.boards.flow.tools import BitstreamFailed
    from seustream.hdl.device import LoadRefused

    if isinstance(error, CompileError):
        print(error, file=sys.stderr)
        count = len(error.problems)
        if count > 1:
            print(f"{count} errors", file=sys.stderr)
        return 2
    if isinstance(error, UserError):
        for message in error.messages:
            print(f"seustream: {message}", file=sys.stderr)
        _hint(error.hint)
        return 2
    own = EngineError, LoadRefused, BuildFailed, BridgeError, AddressRefused, LinkError
    if isinstance(error, (*own, BitstreamFailed)):
        print(f"seustream: {error}", file=sys.stderr)
        _hint(getattr(error, "hint", None))
        return 2
    import traceback

    traceback.print_exception(error)
    print("seustream: internal error; please report it with the lines above", file=sys.stderr)
    return 1


def _hint(hint: str | None) -> None:
    if hint:
        print(f"  hint: {hint}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
