"""The command line: `seustream COMMAND ...`.

The exit status is 0 on success, 2 on an error of the user's, with the message on stderr, and 1 on
an internal fault.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import signal
import sys
import warnings
from collections.abc import Collection, Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from seustream import __version__

COMMANDS = {
    "compile": "compile queries to an image for the WJASIP",
    "explain": "show how queries are compiled and what runs where",
    "run": "run queries over files",
    "serve": "put the engine or a device on a socket, for Spark and other clients",
    "feed": "feed a bridge from Spark, and take results back",
    "sql": "a prompt for statements, to a bridge or an engine in this process",
    "query": "register, list, stop and read queries in a running bridge",
    "studio": "watch queries compiled and run, on a page in the browser",
    "journal": "check, repair and export the journal of a bridge",
    "bitstream": "make a bitstream for an FPGA board",
    "verilog": "write the core as Verilog, with AXI ports, for other tools",
    "bench": "measure, with ratios within one run",
    "completion": "complete commands and options in a shell",
    "doctor": "check this installation",
}
"""One line for each command. Only the module of the command that runs is imported."""

_WITHOUT_PANDAS = ("compile", "explain", "run")
"""Commands that use no pandas frames. If pandas is installed, pyarrow would import it with the
first array, which takes as long as a small query in all."""


class _NoPandas(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("seustream does without pandas here", name=fullname)


def module_of(command: str) -> ModuleType:
    """Returns the module of a command: `add_arguments(parser)` and `run(arguments)`."""
    return import_module(f"seustream.commands.{command}")


_EXAMPLES = """\
examples:
  seustream run -c "SELECT a FROM R WHERE a > 5 WINDOW NOW" --input R=r.csv
  seustream run q.xsql --input R=data/*.csv.gz --input S=s.parquet -o results
  seustream explain q.xsql
  seustream COMMAND --help
"""


class Formatter(argparse.HelpFormatter):
    """Keeps examples as they are typed."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith("examples:") else super()._fill_text(text, width, indent)


class Parser(argparse.ArgumentParser):
    """Suggests what was meant by a mistake, and prints nothing else."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        options.setdefault("formatter_class", Formatter)
        super().__init__(*arguments, **options)

    def error(self, message: str) -> NoReturn:
        choice = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message, re.DOTALL)
        unknown = re.search(r"unrecognized arguments: (\S+)", message)
        hint = f"{self.prog} --help"
        if choice is not None:
            known = [name.strip("' ") for name in choice[2].split(",")]
            what = message.split(":")[0].removeprefix("argument ")
            message = f"{what} {choice[1]}: there is no such choice"
            if what == "COMMAND":
                message = f"there is no command {choice[1]}"
            every = f"choose from {', '.join(known)}"
            hint = every if len(known) < 6 else _meant(choice[1], known) or every
        elif unknown is not None:
            message = f"there is no option {unknown[1]}"
            if not unknown[1].startswith("-"):
                message = f"{unknown[1]} is one argument too many"
            options = [name for action in self._actions for name in action.option_strings]
            given = unknown[1].partition("=")[0]
            taken = [name for name in ("--input", "--source") if name in options]
            if taken and re.fullmatch(r"\w+=.+", unknown[1]):
                hint = f"{taken[0]} {unknown[1]}"
            elif taken and given in ("--input", "--source"):
                hint = f"{self.prog} takes rows by {taken[0]}"
            elif len(given) > 2:  # one letter resembles any other
                hint = _meant(given, options) or hint
        self.exit(2, f"{self.prog}: {message}\n  hint: {hint}\n")


def _meant(given: str, known: Collection[str]) -> str | None:
    import difflib

    match = difflib.get_close_matches(given, known, n=1, cutoff=0.5)
    return f"did you mean {match[0]}?" if match else None


def parser(wanted: Collection[str] = COMMANDS) -> Parser:
    """Returns a parser of all commands, with the arguments of the wanted ones."""
    return _parsers(wanted)[0]


def _parsers(wanted: Collection[str]) -> tuple[Parser, dict[str, Parser]]:
    top = Parser(prog="seustream", description="Continuous queries over streams.", epilog=_EXAMPLES)
    top.add_argument("--version", action="version", version=f"seustream {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    made = {}
    for name, said in COMMANDS.items():
        if name not in wanted:
            commands.add_parser(name, help=said)
            continue
        module = module_of(name)
        made[name] = commands.add_parser(
            name,
            help=said,
            description=(module.__doc__ or "").split("\n\n")[0],
            epilog=getattr(module, "EXAMPLES", None),
        )
        module.add_arguments(made[name])
    return top, made


def parsed(given: Sequence[str]) -> argparse.Namespace:
    """Returns the arguments of a command, with the defaults of file and environment."""
    top, made = _parsers(given[:1])
    for of in made.values():
        from seustream.defaults import BadDefault, set_defaults

        try:
            set_defaults(of, given, COMMANDS, os.environ, Path())
        except BadDefault as error:
            of.exit(2, f"seustream: {error}\n" + (f"  hint: {error.hint}\n" if error.hint else ""))
    arguments, rest = top.parse_known_args(given)
    if rest:
        made.get(arguments.command, top).error(f"unrecognized arguments: {rest[0]}")
    for of in made.values():
        from seustream.defaults import override

        override(of, given, arguments)
    arguments.all_commands = parser  # for shell completion
    arguments.usual = lambda: top.parse_args(given[:1])  # for a command that asks what was given
    return arguments


class _Terminated(BaseException):
    """Ends a command by a signal; partial output is removed on the way out."""


def _end_tidily() -> None:
    """Makes SIGTERM, or the end of the terminal, end this process as Ctrl-C does. A second one, or
    one in a forked process, ends it at once."""
    me = os.getpid()

    def end(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        if os.getpid() != me:
            signal.raise_signal(number)
        if number == signal.SIGHUP:  # nothing can be said on a terminal that is gone
            sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        raise _Terminated(number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, end)


def main(argv: Sequence[str] | None = None) -> int:
    _open_what_is_closed()
    if argv is None:
        _end_tidily()
        _print_anything()
    given = sys.argv[1:] if argv is None else argv
    if argv is None and given[:1] and given[0] in _WITHOUT_PANDAS:
        sys.meta_path.insert(0, _NoPandas())
    try:
        # Inside the try: parsing imports the command for its options, which takes most of the
        # start-up time.
        arguments = parsed(given)
        if hasattr(arguments, "text"):
            from seustream.commands.common import settle_text

            settle_text(arguments)
        status: int = module_of(arguments.command).run(arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The reader of our output has closed it.
        _say_no_more()
        return 0
    except KeyboardInterrupt:
        _leave_unused()
        print("seustream: interrupted", file=sys.stderr)
        return 130
    except _Terminated as ended:
        _leave_unused()
        print("seustream: terminated", file=sys.stderr)
        return 128 + int(ended.args[0])
    except Exception as error:
        _leave_unused()
        if isinstance(error.__context__, _Terminated):  # a bar cannot be erased any more
            return 128 + int(error.__context__.args[0])
        return _failed(error)


def _open_what_is_closed() -> None:
    """Opens the null device as standard input or output in a process started without them."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115


def _print_anything() -> None:
    """Makes texts for people print anywhere: what the encoding of standard output lacks, as a
    backslash and a number, as on standard error. Results are bytes, in UTF-8."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _leave_unused() -> None:
    """Keeps Amaranth from a warning of each part that a design left half done does not use."""
    if (unused := sys.modules.get("amaranth._unused")) is not None:
        warnings.simplefilter("ignore", unused.UnusedMustUse)


def _say_no_more() -> None:
    """Keeps Python from flushing unwritable output when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _failed(error: Exception) -> int:
    """Prints an error and returns the exit status. The classes are imported here, since a command
    that succeeds needs few of them."""
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
    if isinstance(error, OSError):
        # An operation that the system refuses is not an internal fault, wherever it comes up.
        if error.filename is None:
            _say_no_more()
        place = "" if error.filename is None else f"{error.filename}: "
        print(f"seustream: {place}{error.strerror or error}", file=sys.stderr)
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
