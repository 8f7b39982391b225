"""Libraries of functions that the command line loads: Python files, named explicitly.

    --library windows.py

runs the file, as Python does, and registers the content of its `LIBRARIES`: `{"mine": {"last": Last()}}`.
Files that are not named are neither searched for nor loaded.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from seustream.compiler.apas.libraries import Libraries
from seustream.errors import UserError

NAME = "LIBRARIES"
_SHAPE = f'{NAME} = {{"mine": {{"last": Last()}}}}'


def add_library_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--library",
        type=Path,
        action="append",
        default=[],
        metavar="FILE.py",
        help="run this Python file and take its functions for APAS queries; once for each file",
    )


def load_libraries(paths: Sequence[Path]) -> Libraries:
    """Returns the built-in libraries and those of the files; raises `UserError`."""
    libraries = Libraries()
    for number, path in enumerate(paths):
        module = _executed(path, f"seustream_library_{number}")
        found = getattr(module, NAME, None)
        if not isinstance(found, dict) or not found:
            raise UserError([f"{path}: it defines no {NAME}"], hint=_SHAPE)
        for name, functions in found.items():
            if not isinstance(functions, dict):
                message = f"{path}: {NAME}[{name!r}] is no dict of functions by name"
                raise UserError([message], hint=_SHAPE)
            try:
                libraries.register(name, functions)
            except ValueError as error:
                raise UserError([f"{path}: {error}"]) from None
    return libraries


def _executed(path: Path, name: str) -> ModuleType:
    if path.suffix != ".py":
        raise UserError([f"--library {path}: no Python file"], hint="name a file that ends in .py")
    if not path.is_file():
        raise UserError([f"--library {path}: no such file"])
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        where = path if _same(error.filename or "", path) else error.filename
        raise UserError([f"{where}:{error.lineno}: {error.msg}"]) from None
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        mine = [one for one in frames if _same(one.filename, path)]
        line = f":{mine[-1].lineno}" if mine else ""
        raise UserError([f"{path}{line}: {type(error).__name__}: {error}"]) from None
    return module


def _same(name: str, path: Path) -> bool:
    return os.path.realpath(name) == os.path.realpath(path)
