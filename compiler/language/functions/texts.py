"""Functions of texts. Characters are Unicode code points; positions count from 1."""

from __future__ import annotations

import functools
import hashlib
import operator
import re
from typing import Any

from seustream.compiler.language.functions.columns import all_ascii, constant
from seustream.compiler.language.registry import INTEGER, TEXT, ArgumentKind, ScalarFunction
from seustream.compiler.language.types import BIGINT, BOOLEAN, VARCHAR, Kind

MAX_TEXT = 1 << 24
"""Most characters in a text that `repeat`, `lpad` and `rpad` produce; more are a fault."""

SHOWN = ArgumentKind("a value", lambda of: of.kind is not Kind.LIST, VARCHAR)

# --- rows ---------------------------------------------------------------------


def _substring(text: str, first: int, length: int | None = None) -> str:
    """Returns the text from position `first`; a negative one counts from the end, 0 means 1."""
    start = first - 1 if first > 0 else len(text) + first if first else 0
    stop = len(text) if length is None else start + length
    return text[max(start, 0) : max(stop, 0)]


def _padded(text: str, length: int, fill: str) -> str | None:
    """Returns what must be added to pad a text to a length."""
    missing = length - len(text)
    if length > MAX_TEXT:
        return None
    return (fill * (missing // len(fill) + 1))[:missing] if fill and missing > 0 else ""


def _left_pad(text: str, length: int, fill: str = " ") -> str | None:
    beside = _padded(text, length, fill)
    return None if beside is None else (beside + text)[: max(length, 0)]


def _right_pad(text: str, length: int, fill: str = " ") -> str | None:
    beside = _padded(text, length, fill)
    return None if beside is None else (text + beside)[: max(length, 0)]


def _replace(text: str, old: str, new: str = "") -> str | None:
    if not old:
        return text
    if len(new) > len(old) and len(text) + text.count(old) * (len(new) - len(old)) > MAX_TEXT:
        return None
    return text.replace(old, new)


def _translated(text: str, letters: str, others: str) -> str:
    """Translates letters; if a letter is given twice, the first one decides."""
    table = {
        ord(letter): others[place] if place < len(others) else None
        for place, letter in reversed(list(enumerate(letters)))
    }
    return text.translate(table)


def _joined(separator: str | None, *texts: str | None) -> str | None:
    if separator is None:
        return None
    return separator.join(text for text in texts if text is not None)


def _left(text: str, count: int) -> str:
    return text[: max(count, 0)]


def _right(text: str, count: int) -> str:
    return text[-count:] if count > 0 else ""


def _part(text: str, delimiter: str, index: int) -> str | None:
    if index == 0:
        return None
    parts = text.split(delimiter) if delimiter else [text]
    place = index - 1 if index > 0 else len(parts) + index
    return parts[place] if 0 <= place < len(parts) else ""


def _repeat(text: str, count: int) -> str | None:
    return text * max(count, 0) if len(text) * count <= MAX_TEXT else None


@functools.lru_cache(maxsize=256)
def _regex(pattern: str) -> re.Pattern[str] | None:
    translated = _pythons(pattern)
    try:
        return None if translated is None else re.compile(translated, re.ASCII)
    except (re.error, OverflowError, RecursionError):
        return None


_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r" \t-\r",
    "upper": "A-Z",
    "word": r"\w",
    "xdigit": "0-9A-Fa-f",
}
"""The classes of POSIX, which a bracket may name, such as `[[:alpha:]_]`."""
_PIECE = re.compile(r"(?P<escaped>\\.)|(?P<bracket>\[\^?\]?)|(?P<letter>.)", re.DOTALL)
_NAMED = re.compile(r"\[:(\^?\w*):\]")


def _pythons(pattern: str) -> str | None:
    """Writes a pattern as Python has it: with the letters of a class in place of its name, and `\\Z`
    for `\\z`. Returns None for a name of no class."""
    parts: list[str] = []
    at, inside = 0, False
    while found := (_NAMED.match(pattern, at) if inside else None) or _PIECE.match(pattern, at):
        at = found.end()
        if found.re is _NAMED:
            if found[1] not in _CLASSES:
                return None
            parts.append(_CLASSES[found[1]])
        elif found["escaped"]:
            parts.append(r"\Z" if found[0] == r"\z" and not inside else found[0])
        elif not inside:
            inside = found["bracket"] is not None
            parts.append(found[0])
        elif found[0] == "]":
            inside = False
            parts.append(found[0])
        else:  # a letter of the bracket; Python warns of some that may mean more one day
            at = found.start() + 1
            parts.append(("\\" if pattern[at - 1] in "[|&~" else "") + pattern[at - 1])
    return "".join(parts)


def _matches(text: str, pattern: str) -> bool | None:
    compiled = _regex(pattern)
    return None if compiled is None else compiled.search(text) is not None


def _extracted(text: str, pattern: str, group: int = 1) -> str | None:
    compiled = _regex(pattern)
    if compiled is None or not 0 <= group <= compiled.groups:
        return None
    found = compiled.search(text)
    return "" if found is None else found[group] or ""


def _check_regex(text: Any, pattern: Any, group: Any = 0) -> str | None:
    known = isinstance(pattern, str)
    return f"'{pattern}' is no regular expression" if known and not _regex(pattern) else None


@functools.lru_cache(maxsize=256)
def _glob_regex(pattern: str) -> str | None:
    """Turns a GLOB pattern into a regular expression; returns None if a bracket is not closed or a
    backslash ends the pattern."""
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        at += 1
        if letter == "[":
            found = _GLOB_CLASS.match(pattern, at)
            if found is None:
                return None
            parts.append(_letters(found[2], bool(found[1])))
            at = found.end()
        elif letter == "\\":
            if at == len(pattern):
                return None
            parts.append(re.escape(pattern[at]))
            at += 1
        else:
            parts.append({"*": ".*", "?": "."}.get(letter) or re.escape(letter))
    return "".join(parts)


_GLOB_CLASS = re.compile(r"(!?)((?:.-.|.)(?:.-.|[^\]])*)\]", re.DOTALL)
_GLOB_RANGE = re.compile(r"(.)-(.)|(.)", re.DOTALL)


def _letters(text: str, negated: bool) -> str:
    """Translates the letters between brackets; a descending range is empty."""
    ranges = [(low or one, high or one) for low, high, one in _GLOB_RANGE.findall(text)]
    parts = [f"{re.escape(low)}-{re.escape(high)}" for low, high in ranges if low <= high]
    if not parts:
        return "." if negated else r"[^\s\S]"
    return f"[{'^' * negated}{''.join(parts)}]"


def _globs(text: str, pattern: str) -> bool | None:
    regex = _glob_regex(pattern)
    return None if regex is None else re.fullmatch(regex, text, re.DOTALL) is not None


def _globs_columns(pc: Any, text: Any, pattern: Any) -> Any:
    regex = _glob_regex(constant(pattern))
    if regex is None:
        raise ValueError("no such pattern")
    return pc.match_substring_regex(text, rf"(?s)\A(?:{regex})\z")


def _check_glob(text: Any, pattern: Any) -> str | None:
    known = isinstance(pattern, str)
    return (
        "the pattern has a [ or \\ without its end"
        if known and _glob_regex(pattern) is None
        else None
    )


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


# --- columns ------------------------------------------------------------------


def _trimmed(name: str) -> Any:
    def columns(pc: Any, text: Any, letters: Any = None) -> Any:
        return getattr(pc, name)(text, characters=" " if letters is None else constant(letters))

    return columns


def _searched(name: str) -> Any:
    return lambda pc, text, part: getattr(pc, name)(text, constant(part))


def _sliced(pc: Any, text: Any, first: Any, length: Any = None) -> Any:
    start = constant(first)
    stop = None if length is None else start - 1 + max(constant(length), 0)
    if start < 1 or (stop is not None and stop >= 1 << 62) or start >= 1 << 62:
        raise ValueError("counted from the end")
    return pc.utf8_slice_codeunits(text, start - 1, stop)


def _left_columns(pc: Any, text: Any, count: Any) -> Any:
    return pc.utf8_slice_codeunits(text, 0, min(max(constant(count), 0), MAX_TEXT))


def _replaced(pc: Any, text: Any, old: Any, new: Any = None) -> Any:
    pattern, by = constant(old), "" if new is None else constant(new)
    if not pattern or len(by) > len(pattern):
        raise ValueError("may grow without end")
    return pc.replace_substring(text, pattern, by)


def _found_at(pc: Any, part: Any, text: Any) -> Any:
    # A byte position equals a character position only in ASCII.
    at = pc.find_substring(all_ascii(pc, text), constant(part))
    return pc.cast(pc.add(at, 1), "int64")


# --- entries ------------------------------------------------------------------

_TRIMS = (TEXT, TEXT)
_LONG = "text too long"
_BAD = "bad regular expression"

TEXTS: tuple[ScalarFunction, ...] = (
    ScalarFunction(
        "lower", (TEXT,), VARCHAR, row=str.lower,
        columns=lambda pc, text: pc.ascii_lower(all_ascii(pc, text)),
        doc="The text in lower case.", example="lower('AbC')", aliases=("lcase",),
    ),
    ScalarFunction(
        "upper", (TEXT,), VARCHAR, row=str.upper,
        columns=lambda pc, text: pc.ascii_upper(all_ascii(pc, text)),
        doc="The text in upper case.", example="upper('AbC')", aliases=("ucase",),
    ),
    ScalarFunction(
        "length", (TEXT,), BIGINT, row=len,
        columns=lambda pc, text: pc.cast(pc.utf8_length(text), "int64"),
        doc="The number of characters.", example="length('abc')",
        aliases=("char_length", "character_length", "len"),
    ),
    ScalarFunction(
        "substr", (TEXT, INTEGER, INTEGER), VARCHAR, row=_substring, columns=_sliced, optional=1,
        doc="The part of a text from a position on, up to a length. A negative position counts "
        "from the end.",
        example="substr('abcdef', 2, 3)", aliases=("substring",),
    ),
    ScalarFunction(
        "trim", _TRIMS, VARCHAR, row=lambda text, letters=" ": text.strip(letters),
        columns=_trimmed("utf8_trim"), optional=1,
        doc="The text without spaces, or without the given characters, at both ends.",
        example="trim('  ab ')", aliases=("btrim",),
    ),
    ScalarFunction(
        "ltrim", _TRIMS, VARCHAR, row=lambda text, letters=" ": text.lstrip(letters),
        columns=_trimmed("utf8_ltrim"), optional=1,
        doc="The text without spaces, or without the given characters, at its beginning.",
        example="ltrim('  ab ')",
    ),
    ScalarFunction(
        "rtrim", _TRIMS, VARCHAR, row=lambda text, letters=" ": text.rstrip(letters),
        columns=_trimmed("utf8_rtrim"), optional=1,
        doc="The text without spaces, or without the given characters, at its end.",
        example="rtrim('  ab ')",
    ),
    ScalarFunction(
        "lpad", (TEXT, INTEGER, TEXT), VARCHAR, row=_left_pad, optional=1,
        doc="The text filled on the left to a length, or cut to it.",
        example="lpad('7', 3, '0')", fault=_LONG,
    ),
    ScalarFunction(
        "rpad", (TEXT, INTEGER, TEXT), VARCHAR, row=_right_pad, optional=1,
        doc="The text filled on the right to a length, or cut to it.",
        example="rpad('7', 3, '0')", fault=_LONG,
    ),
    ScalarFunction(
        "replace", (TEXT, TEXT, TEXT), VARCHAR, row=_replace, columns=_replaced, optional=1,
        doc="The text with every occurrence of a part replaced.",
        example="replace('aXbX', 'X', '-')", fault=_LONG,
    ),
    ScalarFunction(
        "translate", (TEXT, TEXT, TEXT), VARCHAR, row=_translated,
        doc="The text with each character of the second one replaced by the character at the same "
        "place of the third, and left out where the third has none.",
        example="translate('2.5', '.', ',')",
    ),
    ScalarFunction(
        "position", (TEXT, TEXT), BIGINT, row=lambda part, text: text.find(part) + 1,
        columns=_found_at,
        doc="The position of a part, given first, in a text; 0 where it is not in it.",
        example="position('c', 'abc')",
    ),
    ScalarFunction(
        "concat", (SHOWN,), VARCHAR, row=lambda *texts: "".join(texts), variadic=True,
        columns=lambda pc, *texts: pc.binary_join_element_wise(*texts, ""),
        doc="The values as one text; NULL if one of them is.", example="concat('a', 1)",
    ),
    ScalarFunction(
        "concat_ws", (TEXT, SHOWN), VARCHAR, row=_joined, variadic=True, optional=1,
        strict=False, quiet=True,  # Arrow's own version drops rows that are all NULL
        doc="The values that are not NULL as one text, with the first argument between them.",
        example="concat_ws('-', 'a', NULL, 'b')",
    ),
    ScalarFunction(
        "left", (TEXT, INTEGER), VARCHAR, row=_left, columns=_left_columns,
        doc="So many characters of the beginning.", example="left('abc', 2)",
    ),
    ScalarFunction(
        "right", (TEXT, INTEGER), VARCHAR, row=_right,
        doc="So many characters of the end.", example="right('abc', 2)",
    ),
    ScalarFunction(
        "starts_with", (TEXT, TEXT), BOOLEAN, row=str.startswith,
        columns=_searched("starts_with"),
        doc="Whether the text starts with another.", example="starts_with('abc', 'ab')",
        aliases=("startswith",),
    ),
    ScalarFunction(
        "ends_with", (TEXT, TEXT), BOOLEAN, row=str.endswith, columns=_searched("ends_with"),
        doc="Whether the text ends with another.", example="ends_with('abc', 'bc')",
        aliases=("endswith",),
    ),
    ScalarFunction(
        "contains", (TEXT, TEXT), BOOLEAN, row=operator.contains,
        columns=_searched("match_substring"),
        doc="Whether the text contains another.", example="contains('abc', 'b')",
    ),
    ScalarFunction(
        "split_part", (TEXT, TEXT, INTEGER), VARCHAR, row=_part,
        doc="The part with this number of a text cut at a delimiter; a negative number counts "
        "from the end, and where there is no such part the text is empty.",
        example="split_part('a,b,c', ',', 2)", fault="part 0",
    ),
    ScalarFunction(
        "reverse", (TEXT,), VARCHAR, row=lambda text: text[::-1],
        columns=lambda pc, text: pc.utf8_reverse(text),
        doc="The text from its end to its beginning.", example="reverse('abc')",
    ),
    ScalarFunction(
        "repeat", (TEXT, INTEGER), VARCHAR, row=_repeat,
        doc="The text so many times.", example="repeat('ab', 3)", fault=_LONG,
    ),
    ScalarFunction(
        "regexp_matches", (TEXT, TEXT), BOOLEAN, row=_matches,
        doc="Whether a regular expression, in the syntax of Python, matches a part of the text. A bracket "
        "may name the classes of POSIX, such as `[[:alpha:]_]`. One that repeats a repetition, "
        "such as `(a+)+$`, can take very long on a text that it does not match.",
        example="regexp_matches('abc', 'b.')", aliases=("regexp_like", "rlike"), fault=_BAD, check=_check_regex,
    ),
    ScalarFunction(
        "regexp_extract", (TEXT, TEXT, INTEGER), VARCHAR, row=_extracted, optional=1,
        doc="What a group of a regular expression matches first, group 1 if not said, 0 for the "
        "whole; the empty text where nothing matches.",
        example="regexp_extract('a-12', '([a-z])-([0-9]+)', 2)", fault=_BAD, check=_check_regex,
    ),
    ScalarFunction(
        "glob", (TEXT, TEXT), BOOLEAN, row=_globs, columns=_globs_columns,
        doc="Whether a text has the form of a pattern of file names: * is any text, ? any "
        "character, [a-c] and [!a-c] one of some characters or another, \\ takes the next as it is.",
        example="'abc' GLOB 'a[a-c]*'", hidden=True, fault="bad pattern", check=_check_glob,
    ),
    ScalarFunction(
        "md5", (TEXT,), VARCHAR, row=_md5,
        doc="The MD5 sum of the text in UTF-8, as 32 hexadecimal digits.", example="md5('abc')",
    ),
)  # fmt: skip
