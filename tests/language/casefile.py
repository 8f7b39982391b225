"""Parser of `cases.txt`: what an expression means, case by case.

    == Division, DIV and mod                         a section

    # integers divide as reals                       a case, by its title
    row: i int = 7, j int = 2                        the columns it reads, with their types and values
    expr: i / j                                      the expression; ¶ stands for a line break
    type: double                                     the type of its value
    value: 3.5                                       the value

Other keys:

- `rows: x int, u varchar; 1, 'a'; NULL, 'b'` in place of `row:` gives an aggregate its rows, in order
  of arrival; without rows after the columns there are none.
- `params: y = 38` gives the parameters of `:y` their values.
- `value: ~1.41` is met within four units of the last place: what a mathematical library computes.
- `fault: division by zero @ 1:3` is a fault that is counted, with a part of its reason and the line
  and column, from 1, of the faulting operator's sign or the function's name in the expression, or of
  where a cast or LIKE begins; ` (2)` after it says in how many rows, if not in one. Several faults have a line each. A case with a fault
  and without `value:` has the value NULL.
- `error: text` is a case that is refused when it is bound: the text, in any case of letters, is a
  part of the message or its hint.
- `only: xsql pattern` names the languages that have the case; without it all three have it.
- `duckdb: SQL` is how DuckDB spells the expression, `duckdb: no (reason)` a case with a meaning of its
  own there. Without it DuckDB is asked the expression as it stands.

Values are written as in the languages, except that dates and times stand bare (`2024-02-29`,
`13:14:15.678`, `2024-02-29 13:14:15`), intervals are short forms (`5 min`, `-300000 ms`), and
doubles know `Infinity` and `NaN`.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

CASES = Path(__file__).with_name("cases.txt")

LANGUAGES = ("xsql", "pattern", "apas")

Scalar = (
    bool
    | int
    | float
    | Decimal
    | str
    | datetime.date
    | datetime.time
    | datetime.datetime
    | datetime.timedelta
)
Value = Scalar | list["Scalar | None"] | None


class CaseError(ValueError):
    """A mistake in the file of cases, with its line."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line, self.reason = line, reason


@dataclass(frozen=True, slots=True)
class Fault:
    """A counted fault: part of its reason, its place from 1, and the number of rows."""

    reason: str
    line: int
    column: int
    rows: int = 1


@dataclass(frozen=True, slots=True)
class Case:
    """One case. `line` is the line of its title in the file; `columns` are names with types; if
    `nearly`, the value need only be close; `aggregate` cases have any number of rows, others
    one."""

    section: str
    name: str
    line: int
    expression: str
    columns: tuple[tuple[str, str], ...] = ()
    rows: tuple[tuple[Scalar | None, ...], ...] = ((),)
    aggregate: bool = False
    parameters: tuple[tuple[str, Scalar | None], ...] = ()
    type: str = ""
    value: Value = None
    nearly: bool = False
    faults: tuple[Fault, ...] = ()
    error: str | None = None
    languages: tuple[str, ...] = LANGUAGES
    duckdb: str | None = None
    without_duckdb: str | None = None

    @property
    def title(self) -> str:
        return f"{self.section}: {self.name}"

    def __str__(self) -> str:
        return f"{self.title} (line {self.line}): {self.expression}"

    def spelled(self, spell: Callable[[str], str]) -> Case:
        """Returns the case with each of its columns spelled by `spell`, such as `e.a` for `a`, and
        the places of its faults moved along."""
        parts: list[str] = []
        moved: list[tuple[int, int]] = []  # offsets before and after the replacement
        names = {name for name, _ in self.columns}
        end = length = 0
        for found in _WORD.finditer(self.expression):
            if found["name"] not in names:
                continue
            start = found.start("name")
            between, spelling = self.expression[end:start], spell(found["name"])
            parts += [between, spelling]
            length += len(between) + len(spelling)
            end = found.end("name")
            moved.append((end, length))
        text = "".join(parts) + self.expression[end:]

        def move(fault: Fault) -> Fault:
            at = offset(self.expression, fault.line, fault.column)
            before, after = max((pair for pair in moved if pair[0] <= at), default=(0, 0))
            line, column = place(text, after + at - before)
            return replace(fault, line=line, column=column)

        return replace(self, expression=text, faults=tuple(map(move, self.faults)))


_WORD = re.compile(r"'(?:[^']|'')*'|(?<![\w.:$\"])(?P<name>[A-Za-z_]\w*)(?!\w*\s*\()")


def offset(text: str, line: int, column: int) -> int:
    """Returns the offset of a place in a text; lines and columns count from 1."""
    lines = text.split("\n")
    return sum(len(each) + 1 for each in lines[: line - 1]) + column - 1


def place(text: str, at: int) -> tuple[int, int]:
    """Returns line and column, from 1, of an offset in a text."""
    before = text[:at]
    return before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1


def read(path: Path = CASES) -> list[Case]:
    """Reads all cases of a file."""
    return parse(path.read_text(encoding="utf-8"))


def parse(text: str) -> list[Case]:
    """Parses all cases of a text; raises `CaseError` for a mistake in it."""
    cases: list[Case] = []
    seen: dict[str, int] = {}
    for section, title, line, lines in _blocks(text):
        case = _case(section, title, line, lines)
        if case.title in seen:
            raise CaseError(line, f"the title stands in line {seen[case.title]} already")
        seen[case.title] = line
        cases.append(case)
    return cases


_Lines = list[tuple[int, str, str]]
_KEYS = (
    "row", "rows", "params", "expr", "type", "value", "fault", "error", "only", "duckdb",
)  # fmt: skip


def _blocks(text: str) -> Iterator[tuple[str, str, int, _Lines]]:
    """Yields the cases as sections, titles, lines of titles, and keys with their values."""
    section, title, start = "", "", 0
    lines: _Lines = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(("== ", "# ")):
            if title:
                yield section, title, start, lines
            lines, title = [], ""
            if line.startswith("== "):
                section = line.removeprefix("== ").strip()
            else:
                title, start = line.removeprefix("# ").strip(), number
                if not section:
                    raise CaseError(number, "a case stands before the first section")
        elif line.startswith("--") or not line.strip():
            continue
        else:
            key, colon, value = line.partition(":")
            if not colon or key not in _KEYS:
                raise CaseError(number, f"expected one of {', '.join(_KEYS)}, found {line!r}")
            if not title:
                raise CaseError(number, f"{key} stands outside a case")
            if key != "fault" and any(key == other for _, other, _ in lines):
                raise CaseError(number, f"{key} stands twice")
            lines.append((number, key, value.strip().replace("¶", "\n")))
    if title:
        yield section, title, start, lines


def _case(section: str, title: str, line: int, lines: _Lines) -> Case:
    given = {key: (number, value) for number, key, value in lines}
    if "expr" not in given:
        raise CaseError(line, "a case needs expr")
    if ("error" in given) == ("type" in given):
        raise CaseError(line, "a case has a type or an error")
    if "type" in given and "value" not in given and "fault" not in given:
        raise CaseError(line, "a case with a type has a value or a fault")
    if "error" in given and ("value" in given or "fault" in given):
        raise CaseError(line, "a case that is refused has no value")
    if "row" in given and "rows" in given:
        raise CaseError(line, "a case has row or rows")
    case = Case(section, title, line, given["expr"][1])
    if "row" in given:
        columns, row = _row(*given["row"])
        case = replace(case, columns=columns, rows=(row,))
    if "rows" in given:
        columns, rows = _rows(*given["rows"])
        case = replace(case, columns=columns, rows=rows, aggregate=True)
    if "params" in given:
        case = replace(case, parameters=_parameters(*given["params"]))
    if "error" in given:
        case = replace(case, error=given["error"][1])
    if "type" in given:
        case = replace(case, type=given["type"][1])
    if "value" in given:
        number, text = given["value"]
        nearly = text.startswith("~")
        value = value_of(text.removeprefix("~"), case.type, number)
        case = replace(case, value=value, nearly=nearly)
    faults = tuple(_fault(number, value) for number, key, value in lines if key == "fault")
    case = replace(case, faults=faults)
    if "only" in given:
        number, names = given["only"]
        languages = tuple(names.split())
        if not languages or not set(languages) <= set(LANGUAGES):
            raise CaseError(number, f"languages are {', '.join(LANGUAGES)}, not {names}")
        case = replace(case, languages=languages)
    if "duckdb" in given:
        number, text = given["duckdb"]
        without = re.fullmatch(r"no \((.+)\)", text)
        if text == "no":
            raise CaseError(number, "duckdb: no needs its reason in parentheses")
        case = replace(case, without_duckdb=without[1]) if without else replace(case, duckdb=text)
    return case


def _split(text: str, separator: str) -> list[str]:
    """Splits at separators outside quotes, parentheses and brackets."""
    parts, depth, quoted = [""], 0, False
    for letter in text:
        if letter == "'":
            quoted = not quoted
        elif not quoted:
            depth += (letter in "([") - (letter in ")]")
            if letter == separator and depth == 0:
                parts.append("")
                continue
        parts[-1] += letter
    return [part.strip() for part in parts]


_Row = tuple[Scalar | None, ...]
_Columns = tuple[tuple[str, str], ...]


def _column(number: int, text: str) -> tuple[str, str]:
    name, _, type_ = text.partition(" ")
    if not name.isidentifier() or not type_:
        raise CaseError(number, f"a column is a name and a type, not {text!r}")
    return name, type_.strip()


def _row(number: int, text: str) -> tuple[_Columns, _Row]:
    columns, values = [], []
    for part in _split(text, ","):
        column, equals, value = part.partition("=")
        if not equals:
            raise CaseError(number, f"a column is a name, a type, = and a value, not {part!r}")
        columns.append(_column(number, column.strip()))
        values.append(_scalar(value.strip(), columns[-1][1], number))
    return tuple(columns), tuple(values)


def _rows(number: int, text: str) -> tuple[_Columns, tuple[_Row, ...]]:
    head, *body = _split(text, ";")
    columns = tuple(_column(number, part) for part in _split(head, ","))
    rows = []
    for line in body:
        cells = _split(line, ",")
        if len(cells) != len(columns):
            raise CaseError(number, f"a row has {len(columns)} values, not {line!r}")
        rows.append(
            tuple(
                _scalar(cell, type_, number)
                for cell, (_, type_) in zip(cells, columns, strict=True)
            )
        )
    return columns, tuple(rows)


def _parameters(number: int, text: str) -> tuple[tuple[str, Scalar | None], ...]:
    given = []
    for part in _split(text, ","):
        name, equals, value = part.partition("=")
        if not equals:
            raise CaseError(number, f"a parameter is a name, = and a value, not {part!r}")
        value = value.strip()
        kind = "varchar" if value.startswith("'") else "double" if "." in value else "bigint"
        given.append((name.strip(), _scalar(value, kind, number)))
    return tuple(given)


_FAULT = re.compile(r"(?P<reason>.+?) @ (?P<line>\d+):(?P<column>\d+)(?: \((?P<rows>\d+)\))?")


def _fault(number: int, text: str) -> Fault:
    found = _FAULT.fullmatch(text)
    if found is None:
        raise CaseError(number, f"a fault is reason @ line:column, not {text!r}")
    return Fault(found["reason"], int(found["line"]), int(found["column"]), int(found["rows"] or 1))


# --- values -------------------------------------------------------------------

_UNITS = {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_INTERVAL = re.compile(r"(-?\d+) (ms|s|min|h|d)")


def _text(text: str) -> str:
    if not re.fullmatch(r"'(?:[^']|'')*'", text, re.DOTALL):
        raise ValueError
    return text[1:-1].replace("''", "'")


def _boolean(text: str) -> bool:
    return {"TRUE": True, "FALSE": False}[text]


def _interval(text: str) -> datetime.timedelta:
    found = _INTERVAL.fullmatch(text)
    if found is None:
        raise ValueError
    return datetime.timedelta(milliseconds=int(found[1]) * _UNITS[found[2]])


_READERS: dict[str, Callable[[str], Scalar]] = {
    "boolean": _boolean,
    "smallint": int,
    "int": int,
    "bigint": int,
    "real": float,
    "double": float,
    "decimal": Decimal,
    "char": _text,
    "varchar": _text,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "timestamp": datetime.datetime.fromisoformat,
    "interval": _interval,
}

_TYPE = re.compile(r"([a-z]+)(?:\(\d+(?:,\d+)?\))?")
_LIST = re.compile(r"list\((.+)\)")


def value_of(text: str, type_: str, line: int) -> Value:
    """Returns a value of a type from its text."""
    of = _LIST.fullmatch(type_)
    if of is None:
        return _scalar(text, type_, line)
    if text == "NULL":
        return None
    if not (text.startswith("[") and text.endswith("]")):
        raise CaseError(line, f"a list stands in brackets, not {text!r}")
    inside = text[1:-1].strip()
    return [_scalar(part, of[1], line) for part in _split(inside, ",")] if inside else []


def _scalar(text: str, type_: str, line: int) -> Scalar | None:
    found = _TYPE.fullmatch(type_)
    reader = _READERS.get(found[1]) if found else None
    if reader is None and type_ != "null":
        raise CaseError(line, f"no type {type_!r}")
    if text == "NULL":
        return None
    if reader is not None:
        try:
            return reader(text)
        except (ValueError, KeyError, ArithmeticError):
            pass
    raise CaseError(line, f"{text!r} is no {type_}")
