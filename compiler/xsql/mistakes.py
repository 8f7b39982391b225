"""Examples of bad input, with hints; the parser compares its state with the states to which they
lead."""

from __future__ import annotations

import difflib
import functools
import re
from itertools import islice
from pathlib import Path
from typing import Any

from lark import Lark, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from seustream.compiler.errors import Problems, SourceText, Span
from seustream.compiler.language.elsewhere import INSTEAD
from seustream.compiler.language.parse import expected, library_call, listed, no_number, parser
from seustream.compiler.xsql.statements import end_of, written

_WITHOUT_PARENTHESES = "leave the parentheses around SELECT out"

MISTAKES: dict[str, list[str]] = {
    "say which streams the columns come from: FROM name": [
        "select * where a = 1 window 1",
        "select a window 1",
    ],
    "name the columns to select, or *": ["select from R window 1"],
    "a stream is written CREATE STREAM name (column type, column type)": [
        "create stream R {a int}",
        "create stream R a int",
        "create stream R (a, b)",
        "create stream R (a int b int)",
        "create stream R ()",
    ],
    "a window is RANGE n unit, ROWS n, PARTITION BY k ROWS n, SINCE EVERY day, NOW or UNBOUNDED": [
        "select * from R window",
        "select * from R window range",
        "select * from R window rows",
        "select * from R window range minutes",
    ],
    "WINDOW stands last: SELECT a FROM R WHERE a > 1 ORDER BY a LIMIT 3 WINDOW RANGE 5 minutes": [
        "select a from R window range 5 where a > 1",
        "select a from R window range 5 order by a",
        "select a from R window range 5 group by a",
        "select a from R window range 5 minutes where a > 1",
        "select a from R window range 5 minutes order by a",
        "select a from R window range 5 minutes group by a",
        "select a from R window unbounded order by a",
        "select a from R window unbounded where a > 1",
        "select a from R window rows 5 order by a",
        "select a from R window rows 5 where a > 1",
    ],
    "WHERE is followed by a condition, such as R.a = S.b": [
        "select * from R where and a = 1 window 1",
    ],
    "a bracket is not closed; the form is SELECT items FROM streams": ["select (a from R window 1"],
    "lag(x) and lead(x) look at the rows around; a frame ends with CURRENT ROW": [
        "select sum(a) over (order by ts rows between current row and 2 following) from R",
        "select sum(a) over (order by ts rows between 3 preceding and 1 preceding) from R",
        "select sum(a) over (order by ts rows between current row and unbounded following) from R",
    ],
    "windows in FROM are TUMBLE(TABLE R, DESCRIPTOR(ts), 1 minute)": [
        "select a from tumble(table R, ts, 4)",
        "select a from tumble(table (select a from R), descriptor(ts), 4)",
        "select a from tumble(R, ts, 4)",
        "register query q as select a from tumble(table R, ts, 4)",
        "register query q as select a from tumble(R, ts, 4)",
    ],
    "a table is the rows of a file; results are streams: CREATE STREAM name AS SELECT ...": [
        "create table t as select a from R window 1",
    ],
    "remove the comma": [
        "select a, from R window 1",
        "select * from R, window 1",
        "select * from R,",
        "select * from R window 1,",
    ],
    "a join says when rows match, with ON or USING: R JOIN S ON R.a = S.b": [
        "select * from R join S window 1",
        "select * from R left join S where a = 1 window 1",
        "select * from R a left join S b where a = 1 window 1",
        "select * from R, S join T window 1",
        "select * from R, S, T join U window 1",
        "select * from R join S",
    ],
    "windows have no names, they stand in the order of FROM: WINDOW RANGE 5 minutes, ROWS 3": [
        "select * from R, S window s range 5",
        "select * from R, S window s rows 5",
        "select * from R join S on a = b window s range 5",
    ],
    "columns get their names in SELECT: SELECT a AS k": [
        "with t (k) as (select a from R) select k from t",
        "select k from (select a from R) as t (k)",
        "select k from (select a from R) t (k)",
    ],
    _WITHOUT_PARENTHESES: [
        "register query q as (select a from R)",
        "create stream q as (select a from R)",
        "select a from R union all (select a from S)",
        "select a from R union (select a from S)",
    ],
    "leave REGISTER QUERY name AS out: the query has its name, such as the one given before its file": [
        "register query q as register query p as select a from R",
    ],
    "a query stands here; statements that it needs stand before it": [
        "register query q as create stream R (a int)",
    ],
    "the text of an APAS query stands between $$: APAS $$ FROM ... SELECT ... $$": [
        "register query q as apas from a",
        "create stream q as apas from a",
    ],
    "a statement begins with CREATE, DROP, SELECT, WITH, PATTERN, REGISTER, SHOW, DESCRIBE or EXPLAIN": [
        "window 1",
        "(select * from R window 1)",
    ],
}

_SOURCES = "rows come from sources, and results are streams: CREATE STREAM name AS SELECT ..."
_READ = "REGISTER QUERY name AS SELECT ...; its results are read where it runs"
_NAMED = "name the columns that are wanted"
WORDS: dict[str, str] = {
    **dict.fromkeys(("INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE"), _SOURCES),
    "ALTER": "CREATE OR REPLACE STREAM name (column type, ...) takes the place of the old one",
    **dict.fromkeys(
        ("VIEW", "MATERIALIZED", "TEMPORARY", "TEMP"), "CREATE STREAM name AS SELECT ..."
    ),
    "SOURCE": "CREATE STREAM name (column type, ...); its source is named where it runs, such as --source",
    "SINK": _READ,
    "SUBSCRIBE": _READ,
    "PRINT": "SELECT * FROM name gives the rows of a stream",
    "TERMINATE": "DROP QUERY name",
    "INDEX": "none: joins and conditions make the indexes they need",
    "EXTENDED": "DESCRIBE name, and SHOW CREATE STREAM name for its options",
    "RECURSIVE": "none: queries have no cycles",
    "INTERSECT SELECT": "write EXISTS (SELECT ...)",
    "EXCEPT SELECT": "write NOT EXISTS (SELECT ...)",
    **dict.fromkeys(("EXCEPT", "EXCLUDE", "REPLACE"), _NAMED),
    "LATERAL": "what depends on a row is a join: R LEFT JOIN S ON ...",
    "UNNEST": INSTEAD["unnest"],
    "PIVOT": "a column each: sum(x) FILTER (WHERE k = 1) AS one, sum(x) FILTER (WHERE k = 2) AS two",
    "NATURAL": "name the columns that are equal: R JOIN S USING (a)",
    **dict.fromkeys(
        ("RIGHT SEMI", "RIGHT ANTI"),
        "the rows of the left side are given: S LEFT SEMI JOIN R ON ...",
    ),
    "CREATE QUERY": "REGISTER QUERY name AS SELECT ...",
    "REPLACE QUERY": "REGISTER OR REPLACE QUERY name AS SELECT ...",
    "TABLESAMPLE": "WHERE mod(hash(x), 10) = 0 takes the same part of the rows in every run",
    "SETS": INSTEAD["rollup"],
    "WITHIN GROUP": "quantile_cont(x, 0.5); string_agg(x, ',') is in the order of time",
    "WITHIN": "WINDOW RANGE 5 minutes stands at the end, behind ON and WHERE",
    **dict.fromkeys(
        ("TUMBLING", "HOPPING", "SESSION"),
        "groups of windows are GROUP BY TUMBLE(ts, 1 minute), HOP(ts, slide, size) or SESSION(ts, gap)",
    ),
    "TO": "date_trunc('hour', t) cuts a time off",
    **dict.fromkeys(
        ("TO MONTH", "TO HOUR", "TO MINUTE", "TO SECOND"),
        "an interval has its units in its text: INTERVAL '1 hour 30 min'",
    ),
    **dict.fromkeys(
        ("SIMILAR", "SIMILAR TO"), "regexp_matches(x, 'pattern') compares with a pattern"
    ),
    "MOD": "write a % b or mod(a, b)",
    **dict.fromkeys(("REGEXP", "RLIKE"), "regexp_matches(x, 'pattern') finds a pattern in a text"),
    "IGNORE NULLS": "a NULL is a value like any other here; WHERE x IS NOT NULL leaves such rows out",
    "MATCH_RECOGNIZE": "it stands behind the name of a stream: CREATE STREAM f AS SELECT ..., and FROM f MATCH_RECOGNIZE (...)",
    "VALUES": _SOURCES,
    "FINAL": "leave EMIT FINAL out: without EMIT CHANGES a group of a window gives its row once, when it is over",
    "CHANGES LIMIT": "LIMIT stands before it: LIMIT 10 EMIT CHANGES",
    "OFFSET": "QUALIFY row_number() OVER (ORDER BY x) > 5 leaves the first rows out",
}
"""Words of other SQL dialects, at the place of a mistake or before it, and what to write instead."""

FORMS: dict[str, str] = {
    "CREATE": "CREATE STREAM name (column type, ...), CREATE TABLE name (column type, ...) or CREATE STREAM"
    " name AS SELECT ...",
    "DESCRIBE": "DESCRIBE name",
    "DROP": "DROP STREAM name or DROP QUERY name",
    "REGISTER": "REGISTER QUERY name AS SELECT ...",
    "SHOW": "SHOW STREAMS, SHOW QUERIES or SHOW CREATE STREAM name",
    "EXPLAIN": "EXPLAIN query, EXPLAIN SELECT ... or EXPLAIN ANALYZE query",
    "WITH": "WITH name AS (SELECT ...) SELECT ...",
    "SELECT": "SELECT items FROM streams [WHERE condition] [GROUP BY columns] [HAVING condition]"
    " [WINDOW windows]",
}
"""The form of each statement, by its first word: the hint if no mistake above fits."""


def sql_parser() -> Lark:
    """Returns the parser of one statement."""
    return parser(Path(__file__).with_name("xsql.lark"))


def report(error: UnexpectedInput, source: SourceText, span: Span, problems: Problems) -> None:
    """Reports a statement that cannot be parsed."""
    at = error.pos_in_stream or 0
    so_far = source.text[span.start : at]
    hint = (
        ("comments do not nest" if source.text[at : at + 2] == "*/" else None)
        or _of_a_bracket(so_far, source.text[at : at + 8])
        or _of_a_word(error, source, span)
        or _of_an_example(error, source, span)
    )
    # The parser's state is the same before whatever else stands there.
    if hint is None or (hint == _WITHOUT_PARENTHESES and source.text[at : at + 1] != "("):
        first = next(written(source, span)).group().split()[0].upper()
        hint = f"the form is {FORMS.get(first, FORMS['SELECT'])}"
    if isinstance(error, UnexpectedCharacters):
        char = source.text[at]
        if (wrong := no_number(source.text, at)) is not None:
            problems.add(wrong.kind, wrong.message, wrong.span, wrong.hint)
            return
        if char == "[":
            hint = "strings stand in single quotes, names in double quotes"
        elif char in _INSTEAD:
            hint = f"write {_INSTEAD[char]}"
        problems.add("syntax", f"{char!r} has no meaning here", Span(at, at + 1), hint)
        return
    if not isinstance(error, UnexpectedToken):
        problems.add("syntax", "the statement ends too early", end_of(source, span), hint)
        return
    token = error.token
    possible = error.accepts or error.expected
    if token.type == "COMMA" and {*possible} == {"RPAR"}:
        by_one = re.compile(r"(?i)[^()]*\)\s*((not\s+)?in\s*\(\s*\(|[<>=!])").match(
            source.text, token.start_pos or 0
        )
        hint = _BY_ONE if by_one else _BY_EXISTS
    written_here = expected(sql_parser(), error)
    if {"REGISTER", "APAS", "ANALYZE"} & {*written_here}:  # where a parser of its own takes over
        written_here = sorted([*written_here, "PATTERN"])
    wanted = listed(written_here)
    if token.type == "$END":
        problems.add(
            "syntax",
            f"the statement ends too early; expected {wanted}",
            end_of(source, span),
            hint,
        )
        return
    keywords = [word for word in written_here if word.isupper()]
    start = token.start_pos or 0
    unit = re.search(r"(?i)\bINTERVAL\s+'[^']*'\s+(\w+)\s*$", so_far)
    if unit is not None:
        hint = "units are ms, seconds, minutes, hours, days and weeks; a month has no fixed length"
        place = Span(span.start + unit.start(1), span.start + unit.end(1))
        problems.add("unknown-unit", f"there is no unit {unit[1]} of an interval", place, hint)
        return
    # A misspelt keyword may have been read as a new name, such as FRM in SELECT a FRM R.
    before = re.search(r"(\w{3,})\s+$", so_far)
    if before is not None and (near := _close(before[1], keywords)):
        place = Span(span.start + before.start(1), span.start + before.end(1))
        said = f"{before[1]!r} is unexpected; expected {wanted}"
        problems.add("syntax", said, place, f"did you mean {near}?")
        return
    close = _close(str(token), keywords)
    if token == "(" and (library := library_call(source.text, start)):
        problems.add("syntax", library.message, library.span, library.hint)
        return
    # The token may be a keyword that only begins the word.
    word = re.compile(r"\w*").match(source.text, start)
    end = max(token.end_pos or start + 1, 0 if word is None else word.end())
    problems.add(
        "syntax",
        f"{source.text[start:end]!r} is unexpected; expected {wanted}",
        Span(start, end),
        f"did you mean {close}?" if close and token.upper() not in WORDS else hint,
    )


def _of_a_bracket(so_far: str, here: str) -> str | None:
    """Returns the hint for a query or an ORDER BY in brackets that is not allowed there."""
    query = re.search(r"(?i)(\w*)\s*\(\s*SELECT\s+$", so_far)
    if query is not None:
        return _QUANTIFIED if query[1].upper() in ("ANY", "ALL", "SOME") else _SCALAR
    ordered = re.match(r"(?i)ORDER\s", here) and re.search(r"\w\s*\([^()]*$", so_far)
    return _IN_TIME if ordered else None


def _of_an_example(error: UnexpectedInput, source: SourceText, span: Span) -> str | None:
    """Returns the hint of a similar mistake. Most examples begin with SELECT, so the text from each
    SELECT before the mistake is compared too."""
    at = error.pos_in_stream or 0
    alike = [error]
    for begin in islice(re.finditer(r"(?i)\bselect\b", source.text[span.start : at]), 8):
        text = source.text[span.start + begin.start() : span.end]
        try:
            sql_parser().parse(text)
        except UnexpectedInput as inner:
            if (inner.pos_in_stream or 0) + span.end - len(text) == at:
                alike.append(inner)
    hints = (
        one.match_examples(
            _read_example, MISTAKES, token_type_match_fallback=True, use_accepts=False
        )
        for one in reversed(alike)
    )
    return next((hint for hint in hints if hint is not None), None)


def _of_a_word(error: UnexpectedInput, source: SourceText, span: Span) -> str | None:
    """Returns the hint for a word at the place where parsing fails, or before it."""
    at = error.pos_in_stream or 0
    here = re.compile(r"\w+").match(source.text, at)
    before = re.findall(r"\w+", source.text[span.start : at])[-1:]
    one, other = "".join(before).upper(), here[0].upper() if here else ""
    return WORDS.get(f"{one} {other}") or WORDS.get(other) or WORDS.get(one)


def _close(word: str, keywords: list[str]) -> str | None:
    """Returns the keyword most similar to a word; None if the word is itself a keyword."""
    near = difflib.get_close_matches(word.upper(), keywords, n=1, cutoff=0.7)
    return near[0] if near and near[0] != word.upper() else None


_SCALAR = "a scalar subquery is a join with a derived stream: CREATE STREAM m AS SELECT max(x) AS x FROM ..."
_QUANTIFIED = "write EXISTS (SELECT ...), NOT EXISTS (SELECT ...)"
_IN_TIME = "values are taken in the order of time: array_agg(x), string_agg(x, ','); min_by(x, y) is the first by y"
_BY_EXISTS = "EXISTS (SELECT * FROM S WHERE S.a = R.a AND S.b = R.b) compares several columns"
_BY_ONE = "compare one by one: a = 1 AND b = 2 OR a = 3 AND b = 4"
_INSTEAD = {"&": "AND", "!": "NOT, and <> for not equal"}


def _read_example(text: str) -> Tree[Any]:
    read = _example(text)
    if isinstance(read, UnexpectedInput):
        raise read.with_traceback(None)
    return read


@functools.cache
def _example(text: str) -> Tree[Any] | UnexpectedInput:
    try:
        return sql_parser().parse(text)
    except UnexpectedInput as error:
        return error
