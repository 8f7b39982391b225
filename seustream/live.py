"""`connect`: queries over rows as they arrive, in this process or behind a bridge."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from seustream.api import warn_of
from seustream.compiler.catalogue import Stream
from seustream.compiler.errors import CompileError, SourceText, suggest
from seustream.compiler.logical.program import ShowRequest
from seustream.compiler.pipeline import Compilation, Options
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.statements import answer_to, check_streams
from seustream.devices import ENGINE, check_backend, configuration
from seustream.durations import slack_of
from seustream.engine.runs import Report
from seustream.engine.times import UNKNOWN, Times, Tuples, milliseconds
from seustream.errors import InputError, QueryError
from seustream.frames import Rows, declared, readable, stream_of, tuples_of
from seustream.results import Explanation, QueryResult
from seustream.texts import NAME, check_text, compiled, lasting, text_of, translated


def connect(
    url: str | None = None,
    *,
    token: str | None = None,
    certificate: bytes | None = None,
    backend: str = ENGINE,
    config: str | Path = "default",
    slack: int | str | None = None,
    strict: bool = False,
    writer: str | None = None,
) -> LiveQueries:
    """Opens queries that keep running: in this process, or at the bridge of an address such as
    `grpc://127.0.0.1:8815`, with its `token` and the PEM `certificate` of the authority that signed its own.
    `backend`, `config`, `slack` and `strict` are as for `run`; a bridge has its own device, and refuses a
    `slack` or `strict` that its queries were begun without.
    A stream at a bridge has one writer. A writer with a name continues where it was: a program that feeds
    streams and reconnects passes the same `writer`.

    >>> import seustream as ss
    >>> with ss.connect() as con:
    ...     con.sql("CREATE STREAM R (a int); REGISTER QUERY low AS SELECT a FROM R WHERE a < 5 WINDOW NOW")
    ...     con.push("R", [{"ts": 1, "a": 7}, {"ts": 2, "a": 3}])
    ...     con.watermark("R", 3)
    ...     for name, rows in con.results():
    ...         print(name, rows.rows())
    low [(3, 2, 2)]
    """
    with translated():
        slack = slack_of(slack)
        check_text(**{k: v for k, v in (("token", token), ("writer", writer)) if v is not None})
        if url is not None:
            check_text(url=url)
            # Imported here, since they need this module, and only a bridge needs Arrow Flight.
            from seustream.live_bridge import BridgeQueries

            return BridgeQueries(url, token, certificate, slack, strict, writer)
        check_text(backend=backend)
        check_backend(backend)
        from seustream.live_engine import EngineQueries

        return EngineQueries(backend, configuration(config), slack, strict)


class LiveQueries(ABC):
    """Runs queries over rows as they arrive; created by `connect`. As a context manager, it closes
    at the end. Several threads may use it: each call is carried out as a whole, and each result is
    given to one of them.

    >>> import seustream as ss
    >>> con = ss.connect()
    >>> con.sql("CREATE STREAM R (a int); REGISTER QUERY q AS SELECT a FROM R WINDOW NOW")
    >>> con.push("R", {"ts": [1, 2], "a": [5, 6]})
    >>> [rows.rows() for _, rows in con.finish()]
    [[(5, 1, 1), (6, 2, 2)]]
    >>> con.close()
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._compiled: Compilation | None = None
        self._given: dict[str, pa.DataType] = {}
        self._finished = False
        self._found: list[tuple[str, QueryResult]] = []
        """Results that were read and not handed out yet, with the types of their own queries."""
        self._raised: dict[str, str] = {}
        """The failures of queries that `results` or `finish` has raised."""
        self._lock = threading.RLock()
        """Is held by calls, but not while a caller's code runs, nor for longer than a request takes
        at a bridge."""
        self._writing = self._lock
        """Orders what is given to streams. Whoever needs both takes this one first."""

    def sql(self, text: str | Path) -> str | None:
        """Executes statements, given as a text or as the `Path` of a file: CREATE STREAM, REGISTER
        QUERY, a SELECT or PATTERN without a name, DROP QUERY. Returns the answers to SHOW, DESCRIBE
        and EXPLAIN. Existing queries keep the content of their windows; if the text has a mistake,
        nothing changes. At a bridge, the statements join those of other clients.

        >>> import seustream as ss
        >>> with ss.connect() as con:
        ...     con.push("R", {"ts": [1], "a": [5]})
        ...     con.sql("REGISTER QUERY high AS SELECT a FROM R WHERE a > 5 WINDOW NOW")
        ...     con.push("R", {"ts": [2], "a": [6]})
        ...     [rows.rows() for _, rows in con.finish()]
        [[(6, 2, 2)]]
        """
        with self._lock, translated():
            self._open()
            text = text_of(text)
            self._catch_up()
            try:
                shown = self._carried_out(text)
            except CompileError as error:
                answers = self._judged_there(text, error)
                if answers is None:
                    raise
                shown = answers
            # A query that is registered anew may fail anew.
            self._raised = {n: why for n, why in self._raised.items() if n in self._failures()}
            return "\n".join(shown) or None

    def push(self, stream: str, rows: Rows) -> None:
        """Pushes rows of one stream, in any form that `run` accepts. A stream that does not exist
        yet is created with the columns of the rows.

        >>> import pandas, seustream as ss
        >>> with ss.connect() as con:
        ...     con.sql("CREATE STREAM R (a int); SELECT a FROM R WINDOW NOW")
        ...     con.push("R", pandas.DataFrame({"ts": [1], "a": [5]}))
        ...     con.push("R", [{"ts": 2, "a": 6}])
        ...     [rows.rows() for _, rows in con.finish()]
        [[(5, 1, 1), (6, 2, 2)]]
        """
        with translated():
            check_text(stream=stream)
            self._open()
            rows = readable(stream, rows)  # without a lock, since a reader may be a caller's code
            with self._writing:
                of, found = self._taken(stream, rows)
                self._push(of.name, found)
                if of.table:  # all of it
                    self._end(of.name)

    def watermark(self, stream: str, ts: int | datetime) -> None:
        """Advances the watermark of a stream: no row before this time follows, so whatever waits
        for it can proceed.

        >>> import seustream as ss
        >>> with ss.connect() as con:
        ...     con.push("R", {"ts": [1], "a": [5]})
        ...     con.push("S", {"ts": [3], "b": [5]})
        ...     con.sql("SELECT a FROM R, S WHERE a = b WINDOW RANGE 10")
        ...     con.push("S", {"ts": [4], "b": [7]})
        ...     con.watermark("R", 5)
        ...     list(con.results())
        []
        """
        with self._writing, translated():
            check_text(stream=stream)
            with self._lock:
                self._open()
                self._catch_up()
                of = self._stream(stream)
            if of is None:
                known = [] if self._compiled is None else [s.name for s in self._compiled.streams]
                raise QueryError(f"there is no stream {stream}", suggest(stream, known, "streams"))
            try:
                time = milliseconds(ts)
            except (TypeError, ValueError):
                hint = "milliseconds since 1970, or a datetime"
                raise QueryError(f"{ts!r} is no time", hint) from None
            self._watermark(of.name, time)

    def results(self) -> Iterator[tuple[str, QueryResult]]:
        """Yields query and rows for all results that are certain by now and were not returned
        before. A query that fails takes no other with it: behind the results of the others, a
        `QueryError` is raised, once for each failure. Take them in a loop: the error also ends a
        `list(con.results())`. Later calls give the results of the other queries.

        >>> import seustream as ss
        >>> with ss.connect() as con:
        ...     con.sql("CREATE STREAM R (a int); REGISTER QUERY q AS SELECT a FROM R WINDOW NOW")
        ...     con.push("R", {"ts": [1], "a": [5]})
        ...     con.watermark("R", 2)
        ...     for name, rows in con.results():
        ...         print(name, rows.rows())
        q [(5, 1, 1)]
        """
        with translated():
            self._more()
        goes_on = True
        while goes_on:
            yield from self._handed_out()
            with translated():
                goes_on = self._goes_on()
        yield from self._handed_out()
        self._raise_failures()

    def finish(self) -> Iterator[tuple[str, QueryResult]]:
        """Ends all streams and yields the remaining results; behind these it warns of rows that were
        left out and of evaluations without a value, and raises a `QueryError` for queries that have
        failed, as `results` does.

        >>> import seustream as ss
        >>> with ss.connect() as con:
        ...     con.sql("CREATE STREAM R (a int); SELECT a FROM R WINDOW NOW")
        ...     con.push("R", {"ts": [1], "a": [5]})
        ...     [(name, len(rows)) for name, rows in con.finish()]
        [('q0', 1)]
        """
        with self._writing, translated():
            with self._lock:
                self._open()
                self._finished = True
            self._end_all()
        is_all = False
        while not is_all:
            with translated():
                is_all = self._more()
            yield from self._handed_out()
        self._warn()
        self._raise_failures()

    def subscribe(self, query: str) -> None:
        """Includes in `results` a query that another client registered at the bridge, from its
        first kept result on, or from where a writer with a name has read it. `late.R` are the late rows of a stream R WITH (late = 'side').

        >>> import seustream as ss
        >>> with ss.connect() as con:
        ...     con.sql("CREATE STREAM R (a int); REGISTER QUERY q AS SELECT a FROM R WINDOW NOW")
        ...     con.subscribe("q")
        """
        with self._lock, translated():
            check_text(query=query)
            self._catch_up()
            self._subscribe(self._named(query))

    def queries(self) -> list[dict[str, Any]]:
        """Returns the queries, each with its name, phase and number of results; at a bridge also
        with latency, selectivity and shares, as `seustream query list` shows them.

        >>> import seustream as ss
        >>> with ss.connect() as con:
        ...     con.sql("CREATE STREAM R (a int); REGISTER QUERY q AS SELECT a FROM R WINDOW NOW")
        ...     con.queries()
        [{'name': 'q', 'phase': 'RUNNING', 'results': 0}]
        """
        with self._lock, translated():
            return self._queries()

    def explain(self, query: str | None = None) -> Explanation:
        """Explains how a query runs, or how all of them do.

        >>> import seustream as ss
        >>> with ss.connect() as con:
        ...     con.sql("CREATE STREAM R (a int); REGISTER QUERY q AS SELECT a FROM R WINDOW NOW")
        ...     print(str(con.explain("q")).splitlines()[0])
        query q of <sql>: 1 query over 1 stream, plan cost, configuration default
        """
        with self._lock, translated():
            if query is not None:
                check_text(query=query)
            self._catch_up()
            c = self._compiled
            name = None if query is None or c is None else self._named(query)
            if c is None or not (c.program.names or name):
                raise QueryError("there are no queries yet", "con.sql(…) registers them")
            if name is not None and name not in c.program.names:
                hint = f'con.sql("EXPLAIN {name}") asks the bridge'
                raise QueryError(f"{name} cannot be explained here", hint)
            return Explanation(c, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the device or the connection. Queries at a bridge keep running."""
        with self._writing, self._lock:
            self._finished = True
            self._close()

    def _taken(self, stream: str, rows: Rows) -> tuple[Stream, pa.Table]:
        """Returns the stream that rows are for, which is created if need be, and the rows in its
        types."""
        found: Tuples | None = None
        with self._lock:
            self._open()
            if self._stream(stream) is None:
                self._catch_up()
            if self._stream(stream) is None:
                if self._is_defined_there(stream):
                    raise InputError(f"stream {stream} is defined by a query, it takes no rows")
                new = stream_of(stream, rows)
                found = tuples_of(stream, rows, new)  # refused rows leave no stream behind
                self.sql(declared(new))
            of = self._stream(stream)
            assert of is not None
            if of.defined_by is not None:
                raise InputError(f"stream {of.name} is defined by a query, it takes no rows")
            if found is None:
                found = tuples_of(of.name, rows, of)
            if found.time != UNKNOWN:
                self._given.setdefault(of.name, found.time)
            return of, found.rows

    def _named(self, query: str) -> str:
        names = [] if self._compiled is None else self._compiled.program.names
        for name in names:
            if name.lower() == query.lower():
                return name
        if query.startswith(p.LATE) and (of := self._stream(query.removeprefix(p.LATE))):
            return p.LATE + of.name
        raise QueryError(f"there is no query {query}", suggest(query, names, "queries"))

    def _answers(self, c: Compilation) -> list[str]:
        """Returns the answers to the requests of the latest text."""
        return [line for request in self._requests(c) for line in answer_to(c, c, request)]

    def _requests(self, c: Compilation) -> list[ShowRequest]:
        """Returns the requests of the latest text."""
        before = 0 if self._compiled is None else len(self._compiled.source.text)
        return [one for one in c.program.requests if one.span.start >= before]

    def _carried_out(self, text: str) -> list[str]:
        """Compiles statements and continues with them; returns their answers."""
        asked = compiled(self._compiled, text, self._options)
        standing = lasting(text)
        c = asked if standing == text else compiled(self._compiled, standing, self._options)
        if self._compiled is not None:
            check_streams(self._compiled, c, SourceText(text, NAME))
        shown = self._install(c, text, asked)
        if standing.strip():
            self._stand(c)
        return shown

    def _judged_there(self, text: str, error: CompileError) -> list[str] | None:
        """Has statements executed elsewhere that do not compile here; returns their answers, or None
        if there is no such place."""
        return None

    def _is_defined_there(self, stream: str) -> bool:
        """Returns whether there is a stream that does not compile here."""
        return False

    @abstractmethod
    def _install(self, c: Compilation, text: str, asked: Compilation) -> list[str]:
        """Continues with other queries, by the statements of `text`; returns their answers. `asked`
        also has the queries that are only explained."""

    @abstractmethod
    def _catch_up(self) -> None:
        """Takes over the changes of other clients."""

    @abstractmethod
    def _subscribe(self, query: str) -> None: ...

    @abstractmethod
    def _queries(self) -> list[dict[str, Any]]: ...

    @abstractmethod
    def _push(self, stream: str, rows: pa.Table) -> None: ...

    @abstractmethod
    def _end(self, stream: str) -> None: ...

    @abstractmethod
    def _watermark(self, stream: str, timestamp: int) -> None: ...

    @abstractmethod
    def _end_all(self) -> None: ...

    @abstractmethod
    def _more(self) -> bool:
        """Keeps the results that are certain until they are handed out; returns whether they are all
        so far. Takes the lock by itself, since it may wait."""

    def _goes_on(self) -> bool:
        """Keeps some more of the results that were certain when `_more` was called, until they are handed
        out; returns False if there are no more."""
        return False

    @abstractmethod
    def _account(self) -> Report:
        """Returns the account that `finish` gives of rows and evaluations."""

    @abstractmethod
    def _close(self) -> None: ...

    @abstractmethod
    def _failures(self) -> dict[str, str]:
        """Returns what is known of the queries that have failed."""

    def _warn(self) -> None:
        """Warns for `finish`, whose caller the warning names."""
        with self._lock, translated():
            account = self._account()
        warn_of(account)

    def _raise_failures(self) -> None:
        """Raises the failures that were not raised before."""
        with self._lock:
            failed, before = self._failures(), self._raised
            self._raised = dict(failed)
        fresh = [why for name, why in failed.items() if before.get(name) != why]
        if fresh:
            hint = (
                "DROP QUERY ends it, REGISTER OR REPLACE QUERY registers it anew; the others go on"
            )
            raise QueryError("\n".join(fresh), hint)

    def _open(self) -> None:
        if self._finished:
            raise QueryError("the streams have ended", "connect again")

    def _stand(self, c: Compilation) -> None:
        """Takes over a catalogue. A stream that is made anew has the times of its own rows."""
        self._compiled = c
        self._given = {name: kind for name, kind in self._given.items() if self._stream(name)}

    def _stream(self, name: str) -> Stream | None:
        known = [] if self._compiled is None else self._compiled.streams
        return next((s for s in known if s.name.lower() == name.lower()), None)

    def _handed_out(self) -> Iterator[tuple[str, QueryResult]]:
        """Yields the results that were not handed out before: a caller may leave its loop early."""
        while True:
            with self._lock:
                if not self._found:
                    return
                first = self._found.pop(0)
            yield first

    def _timed(self, found: Iterable[tuple[str, pa.Table]]) -> Iterator[tuple[str, QueryResult]]:
        if self._compiled is None:
            return
        times = Times(self._compiled.program, self._given)
        for name, rows in found:
            stream = name.removeprefix(p.LATE)
            is_late = name != stream and self._stream(stream) is not None
            yield (
                name,
                QueryResult(
                    name, times.rows(stream, rows) if is_late else times.results(name, rows)
                ),
            )
