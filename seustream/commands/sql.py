"""`seustream sql`: a prompt for statements of all three languages, to a bridge or to an engine in this process."""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from seustream.commands.common import access, add_access_arguments, fault_lines, piped, table
from seustream.compiler.catalogue import Stream
from seustream.compiler.errors import Problems
from seustream.compiler.xsql.statements import split
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.bridge import Bridge
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.service import Service
from seustream.devices import client
from seustream.encoding import python_values
from seustream.engine.assembly import streams_read
from seustream.engine.completeness import BEGINNING
from seustream.engine.times import Times
from seustream.errors import UserError
from seustream.reading import read_timed

if TYPE_CHECKING:
    from prompt_toolkit.history import History

_SHOWN = 200
"""Rows of results shown at once; if there are more, the last ones."""
_LOOK = 0.2
"""Seconds between two polls for results at a terminal."""
_WORDS = (
    "CREATE STREAM", "REGISTER QUERY", "DROP QUERY", "DROP STREAM", "SELECT", "FROM", "WHERE", "GROUP BY",
    "HAVING", "WINDOW RANGE", "WINDOW ROWS", "WINDOW NOW", "JOIN", "LEFT JOIN", "ON", "AND", "OR", "NOT",
    "BETWEEN", "PATTERN", "WITHIN", "RETURN", "MATCH_RECOGNIZE", "APAS", "SHOW STREAMS", "SHOW QUERIES",
    "EXPLAIN", "DESCRIBE", "LIST", "HELP", "EXIT",
)  # fmt: skip
_LEFT_OUT = {
    "untimed_total": "not taken by patterns: no time, or one that no window can be added to",
    "refused": "not taken by APAS, te is before ts",
}
"""By counter, what became of rows. Files are put in order, and each of their rows has a time."""
_HELP = """Statements end with a semicolon. Results of queries are shown as they come.
  CREATE STREAM R (a int);  REGISTER QUERY q AS SELECT …;  SELECT …;  DROP QUERY q;
  SHOW STREAMS;  SHOW QUERIES;  EXPLAIN q;
  LIST   the queries and streams, and their state      HELP   this      EXIT   the end
  Ctrl-C leaves the statement that has begun, Ctrl-D ends."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bridge",
        metavar="grpc://HOST:PORT",
        help="talk to this bridge (default: an engine in this process, which ends with it)",
    )
    add_access_arguments(parser)
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="STREAM=FILE",
        help="rows of a stream of the engine in this process, once it and a query are there",
    )


def run(arguments: argparse.Namespace) -> int:
    files: dict[str, Path] = {}
    for one in arguments.input:
        name, equals, path = one.partition("=")
        if not (name and equals and path):
            raise UserError([f"--input {one}: want STREAM=FILE"])
        if arguments.bridge is not None:
            raise UserError(
                [f"--input {one}: a bridge is fed by others"], hint="seustream feed does it"
            )
        if name.lower() in map(str.lower, files):
            raise UserError([f"--input {one}: stream {name} already has an input"])
        files[name] = Path(path)
    with contextlib.ExitStack() as stack:
        here: Bridge | None = None
        url = arguments.bridge
        if url is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="seustream-")))
            here = Bridge((), folder, "engine")
            stack.callback(here.close)
            service = Service(here, "grpc://127.0.0.1:0", None, None)
            stack.callback(service.stop, 1)
            url = f"grpc://127.0.0.1:{service.port}"
        bridge = client(url, access(arguments), patience=5)
        stack.callback(bridge.close)
        talk = Conversation(bridge, here, files)
        if sys.stdin.isatty():
            _typed(talk, url)
        else:
            for line in piped():
                if not talk.hear(line):
                    break
            else:
                talk.end()
            talk.refuse_unread()
        talk.account()
        return talk.status


class Conversation:
    """Sends statements to a bridge and shows its answers. `status` is 2 once a statement or a file was
    refused."""

    def __init__(self, bridge: BridgeClient, here: Bridge | None, files: dict[str, Path]) -> None:
        self.bridge, self.here, self.files = bridge, here, files
        self.status = 0
        self.names: dict[str, tuple[int, int]] = {}  # by query: the run, and results shown
        self._registered = set[str]()  # queries of this conversation
        self._read = set[str]()  # streams whose files have been read
        self._times: dict[str, pa.DataType] = {}  # of their rows
        self._text = ""
        self._lock = threading.Lock()

    @property
    def is_within(self) -> bool:
        """Returns whether a statement has begun and not ended."""
        return bool(self._text.strip())

    def forget(self) -> None:
        """Discards a statement that has begun."""
        self._text = ""

    def hear(self, line: str) -> bool:
        """Takes a line and executes the statements that it completes. Returns False at the end."""
        word = line.strip().rstrip(";").upper()
        if not self.is_within and word in ("EXIT", "QUIT", "\\Q"):
            return False
        if not self.is_within and word in ("HELP", "?"):
            print(_HELP)
            return True
        if not self.is_within and word == "LIST":
            from seustream.commands.query import listing  # imported only when it is needed

            self._try(lambda: print(listing(self.bridge)))
            return True
        self._text += line if line.endswith("\n") else f"{line}\n"
        ended = _ended(self._text)
        if ended:
            text, self._text = self._text[:ended], self._text[ended:].lstrip()
            if any(split(text, Problems())):
                self._try(lambda: self._say(text))
                self._try(self.results)
        return True

    def end(self) -> None:
        """Executes a statement that has begun, as if it ended here."""
        text, self._text = self._text, ""
        problems = Problems()
        if any(split(text, problems)) or problems.found:
            self._try(lambda: self._say(text))
            self._try(self.results)

    def _try(self, call: Callable[[], None]) -> None:
        """Shows an error and continues."""
        try:
            call()
        except (BridgeError, UserError) as error:
            self._refused(error)

    def _refused(self, error: BridgeError | UserError) -> None:
        self.status = 2
        said = str(error) if isinstance(error, BridgeError) else "; ".join(error.messages)
        hint = getattr(error, "hint", None)
        sys.stdout.flush()
        print(f"{said}{f' ({hint})' if hint else ''}", file=sys.stderr, flush=True)

    def _say(self, text: str) -> None:
        # No retry if the answer is lost: this very statement would have taken a name.
        found = self.bridge.act("statement", p.Statement(text, "<sql>"), patience=0)
        for line in found["shown"]:
            print(line)
        for name in found["created"]:
            print(f"stream {name} is created")
        for name in found["dropped"]:
            self.names.pop(name, None)
            print(f"query {name} is dropped")
        for one in found["registered"]:
            self.names[one["name"]] = one["run"], 0
            self._registered.add(one["name"])
            late = "" if one["complete"] == BEGINNING else f", complete {one['complete']}"
            print(f"query {one['name']} is {one['phase']}{late}")
        if self.here is not None and self.names:
            self._feed(self.here)

    def _feed(self, here: Bridge) -> None:
        """Pushes the rows of their files to the streams that exist now, all at once; a table that a
        query reads loads its own."""
        streams = {stream["name"].lower(): stream["name"] for stream in here.registry().streams({})}
        program = here.session.compilation.program
        read_now = streams_read(program)
        given = self._read | {name.lower() for name in self.files}
        for of in program.base:
            if of.path and of.name in read_now and of.name.lower() not in given:
                self.files[of.name] = Path(of.path)
        for name in [name for name in self.files if name.lower() in streams]:
            stream = here.session.stream(streams[name.lower()])
            rows, self._times[stream.name] = _tuples(self.files.pop(name), stream)
            self._read.add(stream.name.lower())
            stage = p.Stage(f"sql-{stream.name}", stream.name, 0, 0, secrets.token_hex(8))
            with self.bridge.stage(stage) as part:
                part.write(rows)
            assert part.staged is not None
            self.bridge.commit(p.Commit(stage.writer, 0, (part.staged,), {}))
            self.bridge.end(stream.name)

    def refuse_unread(self) -> None:
        """Refuses the files that no query has read."""
        streams = [] if self.here is None else self.here.registry().streams({})
        known = {stream["name"].lower() for stream in streams}
        for name, path in self.files.items():
            missing = "query that reads it" if name.lower() in known else f"stream {name}"
            print(f"--input {name}={path}: there is no {missing}", file=sys.stderr)
            self.status = 2

    def account(self) -> None:
        """Tells of rows of the files that were left out, and of the faults of queries that were
        registered here."""
        with contextlib.suppress(BridgeError):  # one that is gone has no account
            found = self.bridge.status()
            lines = []
            for counted, said in _LEFT_OUT.items():
                streams = found.get(counted, {}) if self.here is not None else {}
                lines += [
                    f"warning: stream {name}: {count:,} row{'s' * (count != 1)} {said}"
                    for name, count in streams.items()
                    if count
                ]
            faults = found.get("faults", {})
            lines += fault_lines({n: of for n, of in faults.items() if n in self._registered}, True)
            for line in lines:
                print(line, file=sys.stderr)

    def results(self) -> None:
        """Shows the results that came since the last call; with files, all of them."""
        with self._lock:
            if self.here is not None and self._read:
                self.bridge.flush()
            for name in list(self.names):
                try:
                    self._show(name)
                except BridgeError as error:
                    if error.kind != "failed":
                        raise
                    del self.names[name]  # it has no more of them
                    self._refused(error)

    def _show(self, name: str) -> None:
        """Shows the results of a query that came since the last call; raises `BridgeError` behind those of
        one that has failed."""
        run_number, start = self.names[name]
        while True:
            found = self.bridge.latest(name, start)
            if found["run"] != run_number:
                run_number, start = found["run"], 0
            first, end = max(start, found["first"], found["end"] - _SHOWN), found["end"]
            self.names[name] = run_number, end
            if end <= start:
                return
            rows = self.bridge.read(name, first, end)
            if self.here is not None:
                program = self.here.session.compilation.program
                rows = Times(program, self._times).results(name, rows)
            above = f", {first - start:,} above are not shown" if first > start else ""
            print(f"{name}: {end - start:,} row{'s' * (end - start != 1)}{above}")
            print(table(list(zip(*map(_cells, rows.columns), strict=True)), rows.column_names))
            start = end


def _tuples(path: Path, stream: Stream) -> tuple[pa.Table, pa.DataType]:
    found = read_timed(path, stream, _warn)
    return found.rows, found.time


def _warn(text: str) -> None:
    print(f"warning: {text}", file=sys.stderr)


def _cells(column: pa.ChunkedArray[Any]) -> Iterator[str]:
    for value in python_values(column):
        yield (
            "NULL" if value is None else _time(value) if isinstance(value, datetime) else str(value)
        )


def _time(value: datetime) -> str:
    """Shows a time as result files do."""
    return value.isoformat(timespec="auto" if value.microsecond % 1000 else "milliseconds")


def _ended(text: str) -> int:
    """Returns the place after the last complete statement of a text."""
    # A statement that is not closed reaches to the end of the text; a complete one has a semicolon.
    spans = list(split(text, Problems()))
    closed = [span.end + 1 for span in spans if text[span.end : span.end + 1] == ";"]
    if not spans and text.strip() in ("", ";"):
        return len(text)
    return max(closed, default=0)


def _history() -> History:
    """Returns the lines of earlier sessions, or none where a user has no folder to keep them in: a
    prompt needs none."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    class KeptHistory(FileHistory):
        def store_string(self, string: str) -> None:
            with contextlib.suppress(OSError):  # such as a disk that is full by now
                super().store_string(string)

    try:
        folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
        file = folder / "seustream" / "sql-history"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.open("a+b").close()
    except (OSError, RuntimeError):  # also of a user without a home
        return InMemoryHistory()
    return KeptHistory(str(file))


def _typed(talk: Conversation, url: str) -> None:
    """Prompts a user, with history and completion."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.patch_stdout import patch_stdout

    def words() -> list[str]:
        with contextlib.suppress(BridgeError):
            found = talk.bridge.act("query-list")
            return [
                *_WORDS,
                *(one["name"] for kind in ("queries", "streams") for one in found[kind]),
            ]
        return list(_WORDS)

    session: PromptSession[str] = PromptSession(
        history=_history(), completer=WordCompleter(words, ignore_case=True)
    )
    print(f"seustream, at {url}; HELP; says what there is")
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_LOOK):
            with contextlib.suppress(BridgeError):
                talk.results()

    with patch_stdout():
        watching = threading.Thread(target=watch, name="results", daemon=True)
        watching.start()
        try:
            going = True
            while going:
                try:
                    line = session.prompt("     ... " if talk.is_within else "seustream> ")
                except KeyboardInterrupt:
                    talk.forget()
                else:
                    going = talk.hear(line)
        except EOFError:
            pass
        finally:
            over.set()
            watching.join()
    talk.status = 0  # the user has seen the refusals
