"""The files that make up an input.

r.csv           itself
r.csv.gz        unpacked
data            a folder: its files, by name
data/*.csv      a pattern: the files that match it, by name
-               standard input: CSV, JSON lines or Parquet, detected by its beginning
"""

from __future__ import annotations

import codecs
import contextlib
import functools
import glob
import gzip
import shutil
import sys
import tempfile
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from seustream.errors import InputError

STANDARD_INPUT = "-"
_PACKED = ".gz"


@dataclass(frozen=True, slots=True)
class PlainFile:
    """A file to read, and its name in messages."""

    path: Path
    said: str


@contextlib.contextmanager
def plain_files(given: Path, suffixes: Collection[str]) -> Iterator[list[PlainFile]]:
    """Yields the files of an input, unpacked; raises `InputError`. For a folder, these are the
    files with one of the suffixes."""
    with contextlib.ExitStack() as stack:
        yield [_plain(path, suffixes, stack) for path in named(given, suffixes)]


def named(given: Path, suffixes: Collection[str]) -> list[Path]:
    """Returns the files of an input; raises `InputError` if there is none."""
    if "\0" in str(given):
        raise InputError(f"{str(given)!r}: no such file")
    if given.is_dir():
        # As with a pattern, hidden files are no inputs.
        visible = (path for path in sorted(given.iterdir()) if not path.name.startswith("."))
        found = [path for path in visible if _suffix(path) in suffixes]
        if not found:
            known = ", ".join(suffixes)
            raise InputError(f"{given}: no file of this folder is an input", f"suffixes: {known}")
        return found
    text = str(given)
    if not glob.has_magic(text) or given.exists():
        return [given]
    matching = [Path(name) for name in sorted(glob.glob(text, recursive=True))]
    if not matching:
        raise InputError(f"{given}: no file fits this pattern")
    return matching


def _suffix(path: Path) -> str:
    """Returns the suffix, without that of a packed file."""
    return Path(path.stem if path.suffix.lower() == _PACKED else path.name).suffix.lower()


def _plain(path: Path, suffixes: Collection[str], stack: contextlib.ExitStack) -> PlainFile:
    if str(path) == STANDARD_INPUT:
        return PlainFile(_spooled(stack), "standard input")
    if path.suffix.lower() != _PACKED:
        return PlainFile(path, str(path))
    unpacked = _temporary(stack) / f"input{_suffix(path)}"
    try:
        with gzip.open(path) as packed, unpacked.open("wb") as plain:
            shutil.copyfileobj(packed, plain)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError(f"{path}: is no gzip file, or is cut off") from None
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be unpacked: {error.strerror or error}") from None
    return PlainFile(unpacked, str(path))


def _spooled(stack: contextlib.ExitStack) -> Path:
    """Stores standard input in a file, since inputs are read twice if they have errors."""
    data = _whole(sys.stdin.buffer)
    begin = data.removeprefix(codecs.BOM_UTF8).lstrip()[:4]
    suffix = ".parquet" if begin == b"PAR1" else ".jsonl" if begin[:1] == b"{" else ".csv"
    path = _temporary(stack) / f"input{suffix}"
    path.write_bytes(data)
    return path


@functools.lru_cache(maxsize=1)
def _whole(stream: BinaryIO) -> bytes:
    """Reads all of a stream. The result is cached, since it is needed twice: for the columns and
    for the rows."""
    return stream.read()


def _temporary(stack: contextlib.ExitStack) -> Path:
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="seustream-")))
