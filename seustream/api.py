"""`run`: queries over complete inputs."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from seustream.compiler.catalogue import Stream
from seustream.compiler.errors import nearest, suggest
from seustream.compiler.language.bind import ParameterValue
from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.compiler.plan.place import MOST_DEVICES
from seustream.cosim.bridge.protocol import LATE
from seustream.devices import ENGINE, SIMULATED, check_backend, configuration
from seustream.devices import devices as made_devices
from seustream.durations import slack_of
from seustream.engine.assembly import answer_schemas, streams_read
from seustream.engine.graph import GraphRun, drive
from seustream.engine.runs import Report
from seustream.engine.stream.merge import OnLate
from seustream.engine.times import Times, Tuples
from seustream.errors import InputError, QueryError
from seustream.frames import Rows, declarations, has_word, readable, stream_of, tuples_of
from seustream.hdl.device import Device
from seustream.results import QueryResult, QueryResults
from seustream.texts import NAME, check_text, text_of, translated


class DataWarning(UserWarning):
    """Reports rows that were left out because they came late, and evaluations without a value.

    >>> import warnings, seustream as ss
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     ss.run("SELECT a / 0 AS b FROM R WINDOW NOW", R={"ts": [1], "a": [5]})["q0"].rows()
    [(None, 1, 1)]
    >>> print(seen[0].message)
    1 fault in q0: division by zero in R.a / 0 at 1:10, first at row 1 of R at ts 1
    """


def run(
    sql: str | Path,
    /,
    *,
    backend: str = ENGINE,
    devices: int | str | None = 1,
    strict: bool = False,
    slack: int | str | None = None,
    config: str | Path = "default",
    parameters: Mapping[str, ParameterValue] | None = None,
    streams: Mapping[str, Rows] | None = None,
    **frames: Rows,
) -> QueryResults:
    """Runs queries over complete inputs. Returns the results by query and, as `late.R`, the late rows of a
    stream R WITH (late = 'side').

    `sql` is a text, or the `Path` of a file. The rows of a stream are an Arrow table, a pandas or Polars
    frame, a DuckDB relation, a dict of columns, a list of dicts, or the path of a file. They have a
    column `ts`. CREATE STREAM may be left out, since the columns define the stream.

    Args:
        backend: "engine" for no device; or "golden", "iss", "verilated", or a bridge's address.
        devices: the number of devices, with 0 the engine joins; "auto" for as many as the queries take.
        strict: the first evaluation without a value is an error, instead of NULL.
        slack: how far a stream's times may fall back before a row is late: milliseconds, or "5s".
        config: the device's configuration, by name or file.
        parameters: values of the text's `:name`.
        streams: rows by the stream's name, if a name is that of an option.
        **frames: rows by the stream's name.

    >>> import seustream as ss
    >>> orders = {"ts": [1_000, 5_000], "id": [1, 2], "customer": ["Ada", "Grace"]}
    >>> payments = [{"ts": 4_000, "orderId": 1, "paid": 20.0}]
    >>> found = ss.run('''
    ...     REGISTER QUERY settled AS
    ...     SELECT o.customer, p.paid FROM orders o, payments p
    ...     WHERE o.id = p.orderId WINDOW RANGE 10 minutes
    ... ''', orders=orders, payments=payments)
    >>> found["settled"].rows()
    [('Ada', 20.0, 1000, 4000)]
    """
    with translated():
        text = text_of(sql)
        check_text(backend=backend)
        for option, by_name in ("streams", streams), ("parameters", parameters):
            if by_name is not None and not isinstance(by_name, Mapping):
                raise QueryError(f"{option} = {by_name!r}: want a dict, by name")
        rows = {**(streams or {}), **frames}
        for name in rows:
            check_text(stream=name)
        folded = [name.lower() for name in rows]
        if twice := {name for name in folded if folded.count(name) > 1}:
            raise InputError(f"stream {min(twice)} is given twice")
        known = declarations(text, whole=True)
        slack = slack_of(slack)
        count = _count(devices)
        new = []
        for name in rows:
            if name.lower() not in known:
                rows[name], stream = _described(name, rows[name], text)
                new.append(stream)
        check_backend(backend)
        if backend not in SIMULATED:
            count = 0 if backend == ENGINE else 1
        options = Options(
            configuration(config),
            parameters=parameters or {},
            streams=tuple(new),
            bounded=True,
            devices=count,
        )
        c = compile_text(text, NAME, options)
        if not c.program.names:
            raise QueryError("there are no queries in it", "SELECT … FROM … WINDOW …")
        given = _given(c, rows)
        tuples = {
            s.name: tuples_of(s.name, given[s.name], s) for s in c.program.base if s.name in given
        }
        with made_devices(backend, options.config, len(c.devices)) as made:
            return _run(c, made, slack, strict, tuples)


def _count(devices: int | str | None) -> int | None:
    """Returns the number of devices, None for as many as it takes."""
    if devices is None or devices == "auto":
        return None
    if not isinstance(devices, int) or not 0 <= devices <= MOST_DEVICES:
        raise QueryError(
            f"devices = {devices!r}: want a number up to {MOST_DEVICES}, or 'auto' for as many as it takes"
        )
    return devices


OPTIONS = tuple(
    name
    for name, parameter in inspect.signature(run).parameters.items()
    if parameter.kind is parameter.KEYWORD_ONLY
)


def _described(name: str, given: Rows, text: str) -> tuple[Rows, Stream]:
    """Returns the rows of a frame, to be read again, and their stream. A name that the text does not
    have may be a misspelt option."""
    try:
        rows = readable(name, given)
        return rows, stream_of(name, rows)
    except InputError as error:
        meant = nearest(name, OPTIONS)
        if meant is None or has_word(text, name):
            raise
        raise InputError(error.messages, f"did you mean {meant}=?") from None


def _run(
    c: Compilation,
    made: Sequence[Device],
    slack: int | None,
    strict: bool,
    tuples: Mapping[str, Tuples],
) -> QueryResults:
    late: dict[str, list[pa.Table]] = {s.name: [] for s in c.program.base if s.late == "side"}
    graph = GraphRun(c, made, slack=slack, strict=strict, on_late=aside(late))
    times = Times(c.program, {name: found.time for name, found in tuples.items()})
    used = streams_read(c.program)
    parts: dict[str, list[pa.Table]] = {
        name: [times.schema(name, schema).empty_table()]
        for name, schema in answer_schemas(c.program).items()
    }
    for name, rows in drive(graph, {n: t.rows for n, t in tuples.items() if n in used}):
        parts[name].append(times.results(name, rows))
    for name, some in late.items():
        none = times.rows(name, graph.schemas[name].empty_table())
        parts[LATE + name] = [none, *(times.rows(name, rows) for rows in some)]
    warn_of(graph.report)
    return QueryResults(
        {name: QueryResult(name, pa.concat_tables(found), c) for name, found in parts.items()}
    )


def aside(late: Mapping[str, list[pa.Table]]) -> OnLate:
    """Returns a callback that keeps the late rows of some streams."""
    return lambda stream, rows: late[stream].append(rows) if stream in late else None


def warn_of(report: Report) -> None:
    """Warns of what the summary of `seustream run` would report."""
    for said in _left_out(report):
        warnings.warn(said, DataWarning, stacklevel=4)


def _left_out(report: Report) -> Iterator[str]:
    for stream, count in report.late.items():
        yield f"stream {stream}: {_rows(count, 'late ')} left out; slack= takes them"
    for stream, count in report.timeless.items():
        yield f"stream {stream}: {_rows(count)} without a time left out"
    for stream, count in report.untimed.items():
        yield f"stream {stream}: {_rows(count)} without a time that patterns can use left out"
    for stream, count in report.refused.items():
        if count:
            yield f"stream {stream}: {_rows(count)} not taken by APAS, te is before ts"
    for query, count in report.bad_keys.items():
        yield f"{_rows(count)} with key 0 dropped from time-tables of {query}"
    for query, places in report.faults.items():
        for place, (count, row) in places.items():
            yield f"{count:,} fault{'s' * (count != 1)} in {query}: {place}, first at {row}"


def _rows(count: int, kind: str = "") -> str:
    return f"{count:,} {kind}row{'s' * (count != 1)}"


def _given(c: Compilation, rows: Mapping[str, Rows]) -> dict[str, Rows]:
    """Returns the rows of each base stream; every stream that queries read must have some."""
    base: dict[str, Stream] = {stream.name.lower(): stream for stream in c.program.base}
    for name in rows:
        if name.lower() not in base:
            raise InputError(
                f"stream {name} is defined by a query, it takes no rows",
                suggest(name, [stream.name for stream in base.values()], "streams"),
            )
    found = {base[name.lower()].name: given for name, given in rows.items()}
    for name, stream in ((s.name, s) for s in base.values() if s.path is not None):
        found.setdefault(name, Path(str(stream.path)))
    if missing := sorted(streams_read(c.program) - set(found)):
        raise InputError(f"no rows for stream {', '.join(missing)}", f"{missing[0]}=frame")
    return found
