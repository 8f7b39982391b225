"""Defaults of options, from a file `seustream.toml` in the working folder and from the environment.

    [run]                       SEUSTREAM_BACKEND=golden
    backend = "golden"          SEUSTREAM_SLACK=5s
    slack = "5s"

The environment overrides the file, and an option on the command line overrides both.
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

FILE, PREFIX = "seustream.toml", "SEUSTREAM_"


class BadDefault(Exception):
    """A default that no option accepts; `hint` gives an acceptable one."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def set_defaults(
    parser: argparse.ArgumentParser,
    given: Sequence[str],
    commands: Collection[str],
    environment: Mapping[str, str],
    folder: Path,
) -> None:
    """Gives the options of the command that is `given` the defaults of the file and the environment,
    and those of its sub-command. The file may name options of the other sub-commands, too."""
    command, options = given[0], _options(_running(parser, given))
    known = _options([parser, *_sub_commands(parser).values()])
    for name, value in _table(folder / FILE, command, commands).items():
        if name not in known:
            where = f"{FILE}: [{command}] has an option {name}, which {command} has not"
            raise BadDefault(where, _near(name, known))
        if name in options:
            _give(options[name], value, f"{FILE}: {name}")
    for name, action in options.items():
        variable = PREFIX + name.upper().replace("-", "_")
        if variable in environment:
            _give(action, environment[variable], variable)


def override(
    parser: argparse.ArgumentParser, given: Sequence[str], arguments: argparse.Namespace
) -> None:
    """Removes defaults of NAME=VALUE where the command line has another value of the name: what may be
    given several times adds to its defaults."""
    for action in _options(_running(parser, given)).values():
        if not isinstance(action, argparse._AppendAction) or not action.default:
            continue
        usual, found = list(action.default), list(getattr(arguments, action.dest))
        more = found[len(usual) :]
        names = {_name(one) for one in more} - {None}
        kept = [one for one in usual if _name(one) not in names]
        setattr(arguments, action.dest, kept + more)


def _running(
    parser: argparse.ArgumentParser, given: Sequence[str]
) -> list[argparse.ArgumentParser]:
    """Returns the parsers of a command and of its sub-command."""
    below = _sub_commands(parser)
    return [parser, *(below[name] for name in given[1:2] if name in below)]


def _sub_commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    return {name: sub for one in found for name, sub in one.choices.items()}


def _options(parsers: Collection[argparse.ArgumentParser]) -> dict[str, argparse.Action]:
    """Returns the options that may have another default, by name."""
    return {
        action.option_strings[-1].lstrip("-"): action
        for parser in parsers
        for action in parser._actions
        if action.option_strings and action.dest not in ("help", "text")
    }


def _give(action: argparse.Action, value: Any, where: str) -> None:
    action.default = _value(action, value, where)
    action.required = False


def _name(value: object) -> str | None:
    name, equals, _ = str(value).partition("=")
    return name.lower() if equals else None


def _table(path: Path, command: str, commands: Collection[str]) -> dict[str, Any]:
    if not path.is_file():
        return {}
    import tomllib

    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadDefault(f"{path.name}: {error}") from None
    for name, table in found.items():
        if name not in commands:
            what = f"{path.name}: {name} is no command"
            raise BadDefault(what, _near(name, commands) or "a table for each: [run]")
        if not isinstance(table, dict):
            raise BadDefault(f"{path.name}: {name} is no table", f"its options under [{name}]")
    return dict(found.get(command, {}))


def _value(action: argparse.Action, value: Any, where: str) -> Any:
    if action.nargs == 0:  # a switch
        found = {"1": True, "true": True, "0": False, "false": False}.get(str(value).lower())
        if found is None:
            raise BadDefault(f"{where}: {value!r} is neither true nor false")
        return found
    if isinstance(action.default, list):
        values = value if isinstance(value, list) else [value]
        return [_converted(action, str(one), where) for one in values]
    if isinstance(value, list | dict):
        raise BadDefault(f"{where}: {value!r} is no single value", "give one value, without []")
    return _converted(action, str(value), where)


def _converted(action: argparse.Action, text: str, where: str) -> Any:
    kind = action.type
    try:
        found = text if kind is None else kind(text)  # type: ignore[operator]
    except (argparse.ArgumentTypeError, ValueError) as error:
        raise BadDefault(f"{where}: {error}") from None
    if action.choices is not None and found not in action.choices:
        raise BadDefault(f"{where}: {text}", f"one of {', '.join(map(str, action.choices))}")
    return found


def _near(name: str, known: Collection[str]) -> str | None:
    match = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    return f"did you mean {match[0]}?" if match else None
