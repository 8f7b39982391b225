"""JSON lines as a stream's rows: values, and lines and columns that are refused."""

from __future__ import annotations

import pytest

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.types import BIGINT, BOOLEAN, DOUBLE, Kind, Type
from seustream.reading import read
from tests.seustream.streamfiles import ROADS, R, errors, put, rows

pytestmark = pytest.mark.usefixtures("here")


def test_json_values() -> None:
    stream = Stream(
        "R",
        (
            Column("i", BIGINT),
            Column("d", DOUBLE),
            Column("t", Type(Kind.VARCHAR)),
            Column("o", BOOLEAN),
        ),
    )
    text = (
        '{"ts": "2024-01-02T00:00:00Z", "i": 9223372036854775807, "d": 1e2, "t": "a\\n\\u00e9", "o": true}\n'
        "\n"
        '  {"TS": 5, "i": "12", "d": 3, "t": "", "o": "f"}\r\n'
        '{"ts": 6, "i": null, "d": NaN, "o": 1}\n'
        '{"ts": 7, "d": "Infinity", "t": null}'
    )
    assert rows(put("r.jsonl", text), stream) == [
        (1704153600000, 2**63 - 1, 100.0, "a\né", True),
        (5, 12, 3.0, "", False),
        (6, None, None, None, True),
        (7, None, float("inf"), None, None),
    ]


def test_json_bad_values() -> None:
    lines = [
        '{"ts": 1, "a": 1.5, "b": "x"}',
        '{"ts": 2, "a": true, "b": 12}',
        '{"ts": true, "a": [1], "b": {"x": 1}}',
        '{"ts": null, "a": "", "b": "\\ud800"}',
        '{"a": 99999999999, "b": 1.5}',
        '{"ts": 6, "b": false}',
    ]
    assert errors(put("r.jsonl", "\n".join(lines))) == [
        "r.jsonl:1: column a: '1.5' is not an int",
        "r.jsonl:2: column a: 'true' is not an int",
        "r.jsonl:2: column b: the JSON number 12 is not a string",
        "r.jsonl:3: column ts: 'true' is not a time (integer milliseconds or an ISO timestamp)",
        "r.jsonl:3: column a: a JSON array is not an int",
        "r.jsonl:3: column b: a JSON object is not a varchar",
        "r.jsonl:4: column ts: NULL, every tuple needs a time",
        "r.jsonl:4: column b: '\\ud800' is not Unicode text",
        "r.jsonl:5: column ts: NULL, every tuple needs a time",
        "r.jsonl:5: column a: '99999999999' is out of range, int is -2147483648 to 2147483647",
        "r.jsonl:5: column b: the JSON number 1.5 is not a string",
        "r.jsonl:6: column b: the JSON boolean false is not a string",
    ]


def test_json_numbers_too_large() -> None:
    stream = Stream("R", (Column("d", DOUBLE),))
    text = '{"ts": 1, "d": 1e400}\n{"ts": 1e3, "d": 1}\n'
    assert errors(put("r.jsonl", text), stream) == [
        "r.jsonl:1: column d: '1e400' is too large for double precision",
        "r.jsonl:2: column ts: '1e3' is not a time (integer milliseconds or an ISO timestamp)",
    ]


def test_json_bad_lines() -> None:
    lines = [
        b'{"ts": 1, "a": 1, "b": "x"}',
        b'{"ts": 2, "a": ',
        b"[1, 2]",
        b"7",
        b"",
        b'{"ts": 3, "a": 1, "A": 2, "b": "x"}',
        b'{"ts": 4, "a": 1, "b": "\xff"}',
        b"[" * 100_000,
        b'{"ts": 5, "a": x}',
        b'{"ts": 6, "a": "x"}',
    ]
    found = errors(put("r.jsonl", b"\n".join(lines)))
    assert found[:5] == [
        "r.jsonl:2: not a JSON object: Expecting value at column 15",
        "r.jsonl:3: a JSON array, expected one JSON object a line",
        "r.jsonl:4: a JSON number, expected one JSON object a line",
        "r.jsonl:6: column a is there more than once",
        "r.jsonl:7: not UTF-8 text, at byte 24 of the line",
    ]
    assert found[5].startswith("r.jsonl:8: not a JSON object: maximum recursion depth exceeded")
    assert found[6:] == [
        "r.jsonl:9: not a JSON object: Expecting value at column 16",
        "r.jsonl:10: column a: 'x' is not an int",
    ]


def test_json_lines_are_right_far_into_a_file() -> None:
    good = '{"ts": 1, "a": 1, "b": "x"}\n\n'
    path = put("r.jsonl", good * 6000 + '{"ts": 1, "a": "?", "b": "x"}\n')
    assert errors(path) == ["r.jsonl:12001: column a: '?' is not an int"]
    assert len(rows(put("r.jsonl", good * 10_000))) == 10_000


def test_json_columns() -> None:
    warnings: list[str] = []
    table = read(
        put("r.jsonl", '{"ts": 1, "a": 1, "x": 0}\n{"timestamp": 2, "B": "b", "y": [0], "x": 1}\n'),
        R,
        warnings.append,
    )
    assert table.to_pylist() == [{"ts": 1, "a": 1, "b": None}, {"ts": 2, "a": None, "b": "b"}]
    assert warnings == ["r.jsonl: columns 'x', 'y' are not in stream R and ignored"]


def test_json_missing_columns() -> None:
    assert errors(put("roads.jsonl", '{"ts": 1, "xpoz": 1, "dir": "E"}\n'), ROADS) == [
        "roads.jsonl: no column xPos, which stream Roads has; the nearest is 'xpoz'",
        "roads.jsonl: no column speed, which stream Roads has",
    ]


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_json_empty_is_a_stream_without_tuples(text: str) -> None:
    """Results without rows are such a file, so it is no error; but it may be a mistake."""
    warnings: list[str] = []
    assert read(put("r.jsonl", text), R, warnings.append).num_rows == 0
    assert warnings == ["r.jsonl: is empty, stream R has no tuples"]
