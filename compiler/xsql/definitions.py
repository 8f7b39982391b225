"""CREATE STREAM and CREATE TABLE: from the statement to a stream of the catalogue, and back.

before  CREATE STREAM R (a int NOT NULL) WITH (max_out_of_orderness = '5 s')
after   Stream("R", (Column("a", INT, nullable=False),), out_of_orderness=5000)
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.errors import Problems, suggest
from seustream.compiler.language import syntax
from seustream.compiler.language.options import repeated
from seustream.compiler.language.typenames import bind_type
from seustream.compiler.language.types import Kind, read_interval
from seustream.compiler.xsql import tree

_LENGTHS = {"max_out_of_orderness": "out_of_orderness", "idle_timeout": "idle_timeout"}
_LATE = ("drop", "error", "side")


def defined(s: tree.CreateStream, problems: Problems) -> Stream:
    """Returns the stream or table that a statement defines; reports its problems."""
    seen: dict[str, str] = {}
    columns = []
    for column in s.columns:
        folded = column.name.text.lower()
        if folded in seen:
            problems.add(
                "duplicate-name",
                f"stream {s.name.text} already has a column {seen[folded]}",
                column.name.span,
                "give one of them another name",
            )
        if folded in ("ts", "timestamp"):
            problems.add(
                "duplicate-name",
                f"{column.name.text} is the implicit time of every stream",
                column.name.span,
                "rows of a table have none; give the column another name"
                if s.table
                else "leave it out; input files carry it in their column ts",
            )
        seen[folded] = column.name.text
        kind = bind_type(column.type, problems)
        columns.append(Column(column.name.text, kind, column.nullable))
    given = _settings(s, problems)
    if (time := given.get("time")) is not None:
        given["time"] = _time_column(s, time, columns, problems)
    return Stream(s.name.text, tuple(columns), table=s.table, **given)


def _settings(s: tree.CreateStream, problems: Problems) -> dict[str, Any]:
    """Reads the settings after WITH for a stream or a table."""
    forms = {"path": "WITH (path = 'file.csv')"}
    if not s.table:
        forms = {
            "max_out_of_orderness": "WITH (max_out_of_orderness = '5 s')",
            "late": "WITH (late = 'drop'), 'error' or 'side'",
            "time": "WITH (time = 'column')",
            "idle_timeout": "WITH (idle_timeout = '30 s')",
        }
    found: dict[str, Any] = {}
    repeated(s.settings, problems)
    for setting in s.settings:
        name, value = setting.name.text.lower(), setting.value
        if name not in forms:
            problems.add(
                "unknown-option",
                f"a {'table' if s.table else 'stream'} has no option {setting.name.text}",
                setting.span,
                suggest(name, forms, "options"),
            )
        elif name in _LENGTHS:
            length = read_interval(value) if isinstance(value, str) else None
            ms = value if length is None else length // timedelta(milliseconds=1)
            if not isinstance(ms, int) or ms < 0:
                _no_value(setting, forms[name], problems)
            else:
                found[_LENGTHS[name]] = ms
        elif not isinstance(value, str) or (name == "late" and value not in _LATE):
            _no_value(setting, forms[name], problems)
        else:
            found[name] = value
    return found


def _time_column(
    s: tree.CreateStream, name: str, columns: list[Column], problems: Problems
) -> str | None:
    """Returns the column that WITH (time = …) names, None for the implicit time."""
    at = next(one.span for one in s.settings if one.name.text.lower() == "time")
    found = next((one for one in columns if one.name.lower() == name.lower()), None)
    if found is None and name.lower() in ("ts", "timestamp"):
        return None  # the implicit time
    if found is None:
        known = [one.name for one in columns]
        said = f"stream {s.name.text} has no column {name}"
        problems.add("unknown-column", said, at, suggest(name, known, "columns"))
    elif found.type.kind not in (Kind.TIMESTAMP, Kind.BIGINT, Kind.INT, Kind.ERROR):
        said = f"{found.name} is {found.type}, which is no time of rows"
        problems.add("type-mismatch", said, at, "a timestamp, or a bigint of milliseconds")
    return None if found is None else found.name


def _no_value(setting: syntax.Option, form: str, problems: Problems) -> None:
    name = setting.name.text
    problems.add("unknown-option", f"this is no value of {name}", setting.span, form)
