"""The options of a query, which all languages accept after WITH.

before  WITH (strict, max_latency = '200 ms', priority = 2)
after   `QueryOptions(strict=True, max_latency=200, priority=2)`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from seustream.compiler.errors import Problems, suggest
from seustream.compiler.language import syntax as s
from seustream.compiler.language.types import read_interval

_FORMS = {
    "strict": "WITH (strict)",
    "max_latency": "WITH (max_latency = '200 ms')",
    "priority": "WITH (priority = 2), from 0 to 1000, 1 if it is not given",
}
_HIGHEST = 1000


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """Options of a query. Under `strict` the first fault is an error. If a server cannot keep all
    queries within their `max_latency`, in milliseconds, those of lower `priority` give way."""

    strict: bool = False
    max_latency: int | None = None
    priority: int = 1


def repeated(options: Sequence[s.Option], problems: Problems) -> None:
    """Reports options that are given more than once."""
    seen: set[str] = set()
    for option in options:
        name = option.name.text.lower()
        if name in seen:
            text = f"{option.name.text} is given more than once"
            problems.add("repeated-option", text, option.span, "keep one of them")
        seen.add(name)


def query_options(options: Sequence[s.Option], problems: Problems) -> QueryOptions:
    """Reads the options of a query."""
    strict, latency, priority = False, None, 1
    repeated(options, problems)
    for option in options:
        name, value = option.name.text.lower(), option.value
        if name not in _FORMS:
            text = f"there is no option {option.name.text}"
            problems.add("unknown-option", text, option.name.span, suggest(name, _FORMS, "options"))
            continue
        if name == "strict":
            strict = good = value is None
        elif name == "max_latency":
            length = read_interval(value) if isinstance(value, str) else None
            latency = value if length is None else length // timedelta(milliseconds=1)
            good = isinstance(latency, int) and latency > 0
        else:
            good = isinstance(value, int) and 0 <= value <= _HIGHEST
            priority = value if isinstance(value, int) else 1
        if not good:
            text = f"this is no value of {option.name.text}"
            problems.add("unknown-option", text, option.span, _FORMS[name])
    return QueryOptions(strict, latency if isinstance(latency, int) else None, priority)
