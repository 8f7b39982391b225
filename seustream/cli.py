"""The command line: `seustream COMMAND ...`.

Exit status 0 on success, 2 on an error of the user's with the message on stderr, 1 on a fault
of ours.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from types import ModuleType

from seustream import __version__
from seustream.commands import (
    bench,
    bitstream,
    compile,
    doctor,
    explain,
    feed,
    journal,
    query,
    run,
    serve,
)
from seustream.compiler.errors import CompileError
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.security import AddressRefused
from seustream.cosim.link.errors import LinkError
from seustream.cosim.verilated.build import BuildFailed
from seustream.engine.stream.errors import EngineError
from seustream.errors import UserError
from seustream.hdl.boards.flow.tools import BitstreamFailed
from seustream.hdl.device import LoadRefused

COMMANDS: dict[str, ModuleType] = {
    "compile": compile,
    "explain": explain,
    "run": run,
    "serve": serve,
    "feed": feed,
    "query": query,
    "journal": journal,
    "bitstream": bitstream,
    "bench": bench,
    "doctor": doctor,
}


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="seustream", description="Continuous queries on a WJASIP.")
    top.add_argument("--version", action="version", version=f"seustream {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        one = commands.add_parser(name, help=module.HELP, description=module.__doc__)
        module.add_arguments(one)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    try:
        status: int = COMMANDS[arguments.command].run(arguments)
        sys.stdout.flush()
        return status
    except CompileError as error:
        print(error, file=sys.stderr)
        count = len(error.problems)
        if count > 1:
            print(f"{count} errors", file=sys.stderr)
        return 2
    except UserError as error:
        for message in error.messages:
            print(f"seustream: {message}", file=sys.stderr)
        _hint(error.hint)
        return 2
    except (
        EngineError,
        LoadRefused,
        BuildFailed,
        BridgeError,
        AddressRefused,
        LinkError,
        BitstreamFailed,
    ) as error:
        print(f"seustream: {error}", file=sys.stderr)
        _hint(getattr(error, "hint", None))
        return 2
    except BrokenPipeError:
        # Whoever read our output has seen enough; keep Python from flushing into the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("seustream: interrupted", file=sys.stderr)
        return 130
    except Exception:
        traceback.print_exc()
        print("seustream: internal error; please report it with the lines above", file=sys.stderr)
        return 1


def _hint(hint: str | None) -> None:
    if hint:
        print(f"  hint: {hint}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
