"""The messages between a client and the bridge, and their validation.

A message is a JSON object with the members of a dataclass here, no others; a member that is
missing, unknown or of another type is refused with its name (`malformed`). Nothing executable
crosses the wire: texts, numbers and Arrow columns.

Actions (Flight DoAction; the body is the request, the one result is an object):

    health                    whether the bridge is alive; its device, and what it does
    status                    everything that is counted, as an object
    metrics                   the same as Prometheus text, in member `text`
    load     Load             takes a query set; the same one again is no change
    swap     Load             replaces the loaded query set; windows stay
    queries                   the loaded streams and queries
    commit   Commit           an epoch of a writer, from staged parts; idempotent
    abort    Abort            forgets what is staged of an epoch; idempotent
    promise  Promise          a stream sends nothing before a timestamp any more
    end      End              streams send nothing more
    flush    Flush            waits until everything committed is processed
    latest   Latest           how far a query's results reach
    trim     Trim             a reader has read a query's results up to an offset
    reset                     the same queries from the beginning: no rows, no results, no epochs
    close                     forgets the query set

    statement       Statement creates, registers and drops streams and queries of all languages
    query-register  Register  compiles and starts a query under a name
    query-list                queries and base streams, as they are now
    query-stop      Named     ends a query, whose results stay; idempotent
    query-log       QueryLog  its events, over all its runs

Exchanges (DoExchange; the descriptor's command is the request):

    Stage    batches of one stream, then metadata `End of stage`; answered by a `Staged`
    Lease    the bare device (`seustream.cosim.bridge.lease`)

Results (DoGet; the ticket is a `Read`): rows [start, end) of a query.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from dataclasses import dataclass, field
from typing import Any, TypeVar

from seustream.cosim.bridge.errors import BridgeError

VERSION = 1
MAX_MESSAGE = 64 << 20
"""The most bytes of a message; an image in a `Load` is the longest content."""
MAX_NAME = 200
LATE = "late."
"""Prefix of a stream's name for its late rows, which are read like results."""


@dataclass(frozen=True, slots=True)
class Run:
    """Options of a running query set; as for `HostDriver`.

    slack  as for `GraphRun`: None uses each stream's own
    lag    a stream holds the others back by at most this many milliseconds; None: for ever
    keep   queries whose results are kept for readers; None: all
    late   whether late rows are kept for readers too
    strict whether the first fault of any query ends the run
    """

    overflow: str = "software"
    slack: int | None = None
    lag: int | None = None
    keep: tuple[str, ...] | None = None
    late: bool = False
    strict: bool = False


PLAIN = Run()


@dataclass(frozen=True, slots=True)
class Load:
    """A query set: the manifest's text and its image in base 64."""

    manifest: str
    image: str
    run: Run = PLAIN


@dataclass(frozen=True, slots=True)
class Stage:
    """Rows for one epoch of one writer. A part staged again, under another staging identifier, is
    another part; the commit names those that count."""

    writer: str
    stream: str
    epoch: int
    partition: int
    staging: str


@dataclass(frozen=True, slots=True)
class StageEnd:
    """Closes a stage: nothing was lost if the bridge counts the same number of rows."""

    rows: int


@dataclass(frozen=True, slots=True)
class StagedPart:
    """A staged part of an epoch; partitions are put in their order."""

    staging: str
    rows: int


@dataclass(frozen=True, slots=True)
class Staged:
    """The bridge's answer to a stage: stored on disk, with its highest timestamp."""

    staging: str
    rows: int
    highest: int | None


@dataclass(frozen=True, slots=True)
class Commit:
    """Commits an epoch. `seen` are the highest timestamps of its streams, including rows that went
    to other bridges."""

    writer: str
    epoch: int
    parts: tuple[StagedPart, ...] = ()
    seen: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Abort:
    writer: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Promise:
    stream: str
    timestamp: int


@dataclass(frozen=True, slots=True)
class End:
    """Ends streams; None means all."""

    streams: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Flush:
    """Waits for processing. Answers `busy` after `wait_ms`; without it, after the patience of the
    bridge."""

    wait_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Latest:
    """Answers when there are `least` results past `beyond`, or some that the bridge has no room
    for, when the input has ended, or after `wait_ms`."""

    query: str
    beyond: int = -1
    wait_ms: int = 0
    least: int = 1


@dataclass(frozen=True, slots=True)
class Read:
    """Reads results [start, end), of this run of the query if one is given."""

    query: str
    start: int
    end: int
    run: int | None = None


@dataclass(frozen=True, slots=True)
class Trim:
    query: str
    offset: int
    reader: str = ""


@dataclass(frozen=True, slots=True)
class Lease:
    """Holds the bare device while the exchange is open."""

    lease: str = "device"


@dataclass(frozen=True, slots=True)
class Statement:
    """Statements of all three languages, and the name of their file in errors. `kept`: the results
    of the queries they register are kept until readers trim them, like those of a loaded set."""

    text: str
    file: str = ""
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Register:
    """Registers a query without a name of its own: `language` is apas, or sql for a SELECT or
    PATTERN."""

    name: str
    text: str
    file: str = ""
    language: str = "apas"


@dataclass(frozen=True, slots=True)
class Named:
    """Names a query."""

    name: str


@dataclass(frozen=True, slots=True)
class QueryLog:
    """Asks for a query's events from `start` on."""

    name: str
    start: int = 0


@dataclass(frozen=True, slots=True)
class Nothing:
    """The request of an action that needs none."""


ACTIONS: dict[str, tuple[type[Any], str]] = {
    "health": (Nothing, "is anybody there; which device, and what it does"),
    "status": (Nothing, "everything that is counted"),
    "metrics": (Nothing, "the same as Prometheus text"),
    "load": (Load, "take a query set"),
    "swap": (Load, "another query set in place of the loaded one; windows stay"),
    "queries": (Nothing, "the loaded streams and queries"),
    "commit": (Commit, "an epoch of a writer, from staged parts; idempotent"),
    "abort": (Abort, "forget what is staged of an epoch"),
    "promise": (Promise, "a stream sends nothing before a timestamp any more"),
    "end": (End, "streams send nothing more"),
    "flush": (Flush, "wait until everything committed is processed"),
    "latest": (Latest, "how far a query's results reach"),
    "trim": (Trim, "a reader has read a query's results up to an offset"),
    "reset": (Nothing, "the same queries from the beginning"),
    "close": (Nothing, "forget the query set"),
    "statement": (Statement, "create, register and drop streams and queries"),
    "query-register": (Register, "compile and start a query under a name"),
    "query-list": (Nothing, "queries and base streams, as they are now"),
    "catalogue": (Nothing, "the statements that stand, as a text, and how they run"),
    "query-stop": (Named, "end a query; its results stay"),
    "query-log": (QueryLog, "what happened to it"),
}

Message = TypeVar("Message")


def write(message: object) -> bytes:
    """Encodes a message for the wire."""
    return _ENCODER.encode(message).encode()


def _members_of(message: Any) -> dict[str, object]:
    members = _members(typing.cast(typing.Hashable, type(message)))
    said = {name: getattr(message, name) for name in members}
    return {name: value for name, value in said.items() if value or name not in _LATER}


_LATER = ("kept", "run")
"""Members that came later: only those that say something are written, since an older bridge knows
none of them."""
_ENCODER = json.JSONEncoder(default=_members_of, separators=(",", ":"))


def read(kind: type[Message], data: bytes | memoryview) -> Message:
    """Decodes a message of this kind; raises `BridgeError` (malformed) naming the fault."""
    if len(data) > MAX_MESSAGE:
        raise BridgeError("too-large", f"a message of {len(data):,} bytes, at most {MAX_MESSAGE:,}")
    try:
        value = json.loads(bytes(data) or b"{}")
    except (ValueError, RecursionError) as error:
        raise BridgeError("malformed", f"{kind.__name__}: not JSON: {error}") from None
    try:
        return typing.cast(Message, _read(kind, value, kind.__name__))
    except RecursionError:
        raise BridgeError("malformed", f"{kind.__name__}: nested too deep") from None


def _read(kind: Any, value: object, where: str) -> object:
    """Converts a JSON value to one of the types that messages consist of."""
    # True is an int to Python, but not to a reader of JSON.
    if type(value) is kind and (kind is not int or _fits(typing.cast(int, value))):
        return value
    if dataclasses.is_dataclass(kind):
        return _read_members(typing.cast(type[Any], kind), value, where)
    origin, of = typing.get_origin(kind), typing.get_args(kind)
    if origin is types.UnionType:
        return None if value is None else _read(of[0], value, where)
    if origin is tuple and isinstance(value, list):
        return tuple(_read(of[0], one, f"{where}[{i}]") for i, one in enumerate(value))
    if origin is dict and isinstance(value, dict):
        return {key: _read(of[1], one, f"{where}.{key}") for key, one in value.items()}
    wanted = {str: "a text", int: "a whole number of 64 bits", bool: "true or false"}
    raise BridgeError("malformed", f"{where}: want {wanted.get(kind, 'a list or an object')}")


def _fits(number: int) -> bool:
    return -(1 << 63) <= number < 1 << 63


@functools.cache
def _members(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Returns a message's members, looked up once: the type of each, and whether it may be missing."""
    hints = typing.get_type_hints(kind)
    missing = dataclasses.MISSING
    return {
        one.name: (hints[one.name], (one.default, one.default_factory) != (missing, missing))
        for one in dataclasses.fields(kind)
    }


def _read_members(kind: type[Any], value: object, where: str) -> object:
    if not isinstance(value, dict):
        raise BridgeError("malformed", f"{where}: want an object")
    members = _members(typing.cast(typing.Hashable, kind))
    if unknown := sorted(set(value) - set(members)):
        raise BridgeError("malformed", f"{where}: there is no member {unknown[0]!r:.60}")
    found = {}
    for name, (hint, optional) in members.items():
        if name in value:
            found[name] = _read(hint, value[name], f"{where}.{name}")
        elif not optional:
            raise BridgeError("malformed", f"{where}: member {name!r} is missing")
    return kind(**found)


def check_name(what: str, name: str) -> None:
    """Checks a name, since names are untrusted and end up in messages, labels and journals."""
    if not 0 < len(name) <= MAX_NAME or not name.isprintable():
        raise BridgeError("malformed", f"{what}: want 1 to {MAX_NAME} printable characters")
