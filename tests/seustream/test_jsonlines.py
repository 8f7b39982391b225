"""JSON lines as a stream's rows: values, and lines and columns that are refused."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from seustream import jsonlines
from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.types import BIGINT, BOOLEAN, DOUBLE, Kind, Type
from seustream.engine.kernels import native
from seustream.errors import InputError
from seustream.jsonlines import lines_of
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


# The kernel and its readable twin

MIXED = Stream(
    "R",
    (
        Column("i", BIGINT),
        Column("d", DOUBLE),
        Column("t", Type(Kind.VARCHAR)),
        Column("o", BOOLEAN),
    ),
)
GOOD = {
    "ts": ["1", '"7"', "1000000"],
    "i": ["0", "-0", "-12", "9223372036854775807", '"5"', "null", '""', '" 3 "'],
    "d": [
        "1.5",
        "-0.0",
        "1e3",
        "2E-2",
        "1.25e+2",
        "-0",
        "3",
        "NaN",
        "-Infinity",
        "Infinity",
        '"inf"',
        "null",
    ],
    "t": [
        '""',
        '"a"',
        '"\\n\\"\\\\\\/\\b\\f\\r\\t"',
        '"é\\u00e9\\u20ac"',
        '"\\ud83d\\ude00 x"',
        "null",
        '"\x7f"',
    ],
    "o": ["true", "false", '"T"', "1", "null"],
    "x": [
        "[]",
        "{}",
        '[1, {"a": [null, "}"]}]',
        '{"ts": 1, "i": "\\u0041"}',
        "-1.5e9",
        "true",
        '"\\t"',
    ],
}
UNCOMMON = [
    "NaN",
    "-Infinity",
    "[1]",
    '{"a": 1}',
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\ud800\\u0041"',
    "12",
    "true",
    '"x"',
]
BROKEN = [
    "01",
    "1.",
    ".5",
    "+1",
    "1e",
    "-",
    "tru",
    '"\\x"',
    '"\\u12g4"',
    '"\t"',
    '"a',
    "'a'",
    "[1,]",
    '{"a":}',
    "{1: 2}",
]
BLANKS = ["", "", " ", "\t", " \r "]


def object_of(chance: random.Random, values: dict[str, list[str]]) -> str:
    keys = [key for key in values if key == "ts" or chance.random() < 0.8]
    chance.shuffle(keys)
    spelt = {"i": ['"i"', '"I"', '"\\u0069"'], "x": ['"x"', '"y"', '"é"']}
    blank = lambda: chance.choice(BLANKS)  # noqa: E731
    members = [
        f"{blank()}{chance.choice(spelt.get(key, [json.dumps(key)]))}{blank()}:{blank()}"
        f"{chance.choice(values[key])}{blank()}"
        for key in keys
    ]
    return f"{blank()}{{{','.join(members)}}}{blank()}"


def line_of(chance: random.Random) -> bytes:
    kind = chance.random()
    if kind < 0.75:
        return object_of(chance, GOOD).encode()
    if kind < 0.80:
        return chance.choice([b"", b" ", b"\x0c", "\u2028".encode()])
    key = chance.choice(list(GOOD))
    if kind < 0.86:
        return object_of(chance, GOOD | {key: UNCOMMON}).encode()
    if kind < 0.92:
        return object_of(chance, GOOD | {key: BROKEN}).encode()
    text = bytearray(object_of(chance, GOOD).encode())
    for _ in range(chance.randrange(1, 3)):
        at = chance.randrange(len(text) + 1)
        if chance.random() < 0.5:
            del text[at : at + 1]
        else:
            text[at:at] = chance.choice(
                [b",", b"}", b'"', b"\\", b"0", b"\xff", b"\xc3", b"\0", b" "]
            )
    return bytes(text)


def outcome(text: bytes) -> tuple[object, ...]:
    """Everything that reading a file tells: its rows, its faults, its warnings."""
    warnings: list[str] = []
    try:
        found: object = [
            column.to_pylist()
            for column in read(put("r.jsonl", text), MIXED, warnings.append).columns
        ]
    except InputError as error:
        found = error.messages, error.total
    return repr(found), warnings


@pytest.mark.parametrize("seed", range(300))
def test_the_kernel_reads_what_the_readable_twin_does(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    monkeypatch.setattr(jsonlines, "_ROWS_AT_ONCE", chance.choice([1, 3, 4096]))
    monkeypatch.setattr(jsonlines, "_BYTES_AT_ONCE", chance.choice([1, 50, 1 << 20]))
    good_only = chance.random() < 0.4
    lines = [
        object_of(chance, GOOD).encode() if good_only else line_of(chance)
        for _ in range(chance.randrange(1, 20))
    ]
    text = chance.choice([b"\n", b"\r\n"]).join(lines) + chance.choice([b"", b"\n"])
    together = outcome(text)
    monkeypatch.setattr(jsonlines.Objects, "_together", lambda *_: False)
    assert outcome(text) == together


@pytest.mark.parametrize("key", GOOD)
def test_the_kernel_reads_each_uncommon_value_as_the_twin_does(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [
        f'{{"ts": 5, "{key}": {value}}}\n'.encode()
        if key != "ts"
        else f'{{"ts": {value}}}\n'.encode()
        for value in [*UNCOMMON, *BROKEN, *GOOD[key]]
    ]
    together = [outcome(text) for text in texts]
    monkeypatch.setattr(jsonlines.Objects, "_together", lambda *_: False)
    assert [outcome(text) for text in texts] == together


def test_the_kernel_reads_what_is_common() -> None:
    """Otherwise the twin would be compared with itself."""
    chance = random.Random(1)
    slots = {key: place for place, key in enumerate(("ts", "i", "d", "t", "o"))}
    for _ in range(200):
        text, ends, numbers = lines_of(object_of(chance, GOOD).encode(), 1)
        kernel = native.Objects()
        kernel.configure(np.array([0, 0, 0, 1, 0], np.uint8))
        assert kernel.read(text, ends, numbers, lambda key: slots.get(key.lower())) is not None, (
            text
        )


def test_what_the_kernel_is_given_wrongly() -> None:
    kernel = native.Objects()
    kernel.configure(np.zeros(1, np.uint8))
    places = np.zeros(1, np.int64)
    for ends in ([0, 3], [1, 0], [-1, 2]):
        with pytest.raises(RuntimeError, match="beyond the data"):
            kernel.read(b"{}", np.array(ends), places, lambda key: None)
    with pytest.raises(RuntimeError, match="no such column"):
        kernel.read(b'{"a": 1}', np.array([0, 8]), places, lambda key: 1)
    with pytest.raises(ZeroDivisionError):
        kernel.read(b'{"b": 1}', np.array([0, 8]), places, lambda key: 1 // 0)
