"""The image: one file with everything a device loads.

    offset  bytes  content
    0       4      "WJAS"
    4       2      format version
    6       2+n    configuration it was built for, JSON, length first
    ..      4+m    body, length first: the sections of `Tables`, in the order of its members
    ..      4      CRC-32 of all that stands before it

All numbers are little-endian. `decode` trusts nothing that it reads: it checks lengths, codes,
references and programs, and raises `LoadRefused` for any fault.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from typing import TypeVar

from seustream.compiler.wjasip.check import check
from seustream.hdl.config import ConfigError, DeviceConfig
from seustream.hdl.device import (
    Area,
    Combination,
    Comparison,
    Factor,
    Grouped,
    LoadRefused,
    Retention,
    Route,
    Selection,
    Tables,
    Window,
    WindowKind,
)
from seustream.hdl.isa import Condition

MAGIC = b"WJAS"
VERSION = 2

# The members that an image depends on. A device's speed does not matter to it, and capacity is
# checked separately.
_BOUND_TO = (
    "streams",
    "attribute_width",
    "timestamp_width",
    "sequence_width",
    "depth",
    "attributes",
    "factors",
    "scratch_registers",
    "selections",
    "probe_selections",
    "tags",
    "instructions",
    "queries",
)

_LATER = ("selectors", "groups")
"""Matters of the device alone, added after the first images; images omit them, so that existing
ones stay the same."""

T = TypeVar("T")


class _Writer:
    """Writes a body. `places` holds the first byte and the end of each named part, by its path:
    `areas:0/program:3` is the fourth word of the first area's program."""

    def __init__(self) -> None:
        self.body = bytearray()
        self.places: dict[str, tuple[int, int]] = {}
        self._path = ""

    def put(self, form: str, *values: int) -> None:
        self.body += struct.pack("<" + form, *values)

    def many(self, items: tuple[T, ...], one: Callable[[T], None], name: str = "") -> None:
        self.put("H", len(items))
        above = self._path
        for number, item in enumerate(items):
            start, self._path = len(self.body), f"{above}{name}:{number}/"
            one(item)
            if name:
                self.places[self._path[:-1]] = (start, len(self.body))
        self._path = above

    def numbers(self, items: tuple[int, ...]) -> None:
        self.many(items, lambda item: self.put("B", item))


class _ImageReader:
    """Reads a body, and knows in which area, table and row it is."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self.area: int | None = None
        self.table: str | None = None
        self.row: int | None = None

    def refusal(self, reason: str) -> LoadRefused:
        return LoadRefused(reason, self.area, self.table, self.row)

    def get(self, form: str) -> int:
        try:
            (value,) = struct.unpack_from("<" + form, self.data, self.at)
        except struct.error:
            raise self.refusal("truncated: a section ends early") from None
        self.at += struct.calcsize("<" + form)
        return int(value)

    def many(self, one: Callable[[], T]) -> tuple[T, ...]:
        return tuple(one() for _ in range(self.get("H")))

    def by_area(self, one: Callable[[], T]) -> tuple[T, ...]:
        def of_area() -> T:
            self.area = 0 if self.area is None else self.area + 1
            return one()

        found = self.many(of_area)
        self.area = None
        return found

    def rows(self, table: str, one: Callable[[], T]) -> tuple[T, ...]:
        def row() -> T:
            self.row = 0 if self.row is None else self.row + 1
            return one()

        self.table = table
        found = self.many(row)
        self.table = self.row = None
        return found

    def by_tag(self, table: str, one: Callable[[], T]) -> dict[int, T]:
        """Reads the rows of a table by route tag, each once."""
        found: dict[int, T] = {}

        def row() -> None:
            self.row = None
            self.row = tag = self.get("B")
            if tag in found:
                raise self.refusal("the tag is there twice")
            found[tag] = one()

        self.table = table
        self.many(row)
        self.table = self.row = None
        return found

    def numbers(self) -> tuple[int, ...]:
        return self.many(lambda: self.get("B"))

    def condition(self) -> Condition:
        code = self.get("B")
        if code > max(Condition):
            raise self.refusal(f"condition code {code} is not defined")
        return Condition(code)


def encode(tables: Tables, config: DeviceConfig) -> bytes:
    """Returns the image file of `tables` for a device of this configuration."""
    body = bytes(_written(tables).body)
    head = _config_text(config)
    data = MAGIC + struct.pack("<HH", VERSION, len(head)) + head
    data += struct.pack("<I", len(body)) + body
    return data + struct.pack("<I", zlib.crc32(data))


def places(tables: Tables, config: DeviceConfig) -> dict[str, tuple[int, int]]:
    """Returns the first byte and the end of each row of each section in the image file."""
    start = len(MAGIC) + 4 + len(_config_text(config)) + 4
    return {name: (start + a, start + b) for name, (a, b) in _written(tables).places.items()}


def _written(tables: Tables) -> _Writer:
    """Writes the body of an image."""
    w = _Writer()

    def comparison(c: Comparison) -> None:
        w.put("BBI", c.attribute, c.condition, c.constant)

    def selection(s: Selection) -> None:
        w.put("B", s.every)
        w.many(s.comparisons, comparison)

    def factor(f: Factor) -> None:
        w.put("BBBB", f.window_attribute, f.probe_stream, f.probe_attribute, f.condition)

    def combination(c: Combination) -> None:
        w.put("B", c.pre_tag)
        w.numbers(c.factors)
        w.numbers(c.window_selections)
        w.numbers(c.probe_selections)
        w.put("B", c.post_tag)

    def area(a: Area) -> None:
        w.many(a.factors, factor, "factors")
        w.many(a.combinations, combination, "combinations")
        w.many(a.program, lambda word: w.put("I", word), "program")
        w.put("BqQ", a.retention.range is None, a.retention.range or 0, a.retention.rows)
        w.many(tuple(sorted(a.guards.items())), lambda guard: w.put("BB", *guard), "guards")

    def route(row: tuple[int, Route]) -> None:
        tag, r = row
        w.put("BB", tag, r.insert)
        w.numbers(tuple(sorted(r.probes)))
        w.numbers(tuple(sorted(r.queries)))

    def window(x: Window) -> None:
        w.put("BQ", x.kind, x.size)

    def grouped(row: tuple[int, Grouped]) -> None:
        tag, g = row
        w.put("BB", tag, g.query)
        for place in (g.key, g.value):
            w.put("BBB", place is not None, *(place or (0, 0)))
        w.put("qq", g.period, g.offset)

    w.numbers(tables.groups)
    w.many(tables.selections, lambda s: w.many(s, selection, "bits"), "selections")
    w.many(tables.admission, lambda m: w.many(m, lambda mask: w.put("H", mask)), "admission")
    w.many(tables.areas, area, "areas")
    w.many(tuple(sorted(tables.routes.items())), route, "routes")
    w.many(tables.windows, lambda q: w.many(q, window), "windows")
    if tables.filters:  # an image of joins ends before it
        w.many(tables.filters, lambda mask: w.put("H", mask), "filters")
    if tables.grouped:
        if not tables.filters:
            w.put("H", 0)
        w.many(tuple(sorted(tables.grouped.items())), grouped, "grouped")
    return w


def decode(data: bytes, config: DeviceConfig) -> Tables:
    """Reads the tables of an image, for a device of this configuration; raises `LoadRefused`."""
    r = _ImageReader(data)
    if data[:4] != MAGIC:
        raise LoadRefused("not an image: it does not begin with WJAS")
    r.at = 4
    version = r.get("H")
    if version != VERSION:
        raise LoadRefused(f"format version {version}, this device reads version {VERSION}")
    head = data[r.at + 2 : r.at + 2 + r.get("H")]
    r.at += len(head)
    body_end = r.get("I") + r.at
    if len(data) != body_end + 4:
        raise LoadRefused(
            f"truncated or altered: {len(data)} bytes, its header says {body_end + 4}"
        )
    if zlib.crc32(data[:body_end]) != struct.unpack("<I", data[body_end:])[0]:
        raise LoadRefused("altered: the checksum does not match")
    _check_config(head, config)
    body = _ImageReader(data[r.at : body_end])
    tables = _read_tables(body)
    if body.at != len(body.data):
        raise LoadRefused(f"{len(body.data) - body.at} bytes left over after the last section")
    check(tables, config)
    return tables


def _read_tables(r: _ImageReader) -> Tables:
    def comparison() -> Comparison:
        return Comparison(r.get("B"), r.condition(), r.get("I"))

    def selection() -> Selection:
        return Selection(bool(r.get("B")), r.many(comparison))

    def factor() -> Factor:
        return Factor(r.get("B"), r.get("B"), r.get("B"), r.condition())

    def combination() -> Combination:
        return Combination(r.get("B"), r.numbers(), r.numbers(), r.numbers(), r.get("B"))

    def area() -> Area:
        factors, combinations = r.rows("factors", factor), r.rows("combinations", combination)
        program = r.rows("program", lambda: r.get("I"))
        r.table = "retention"
        forever, age, rows = r.get("B"), r.get("q"), r.get("Q")
        retention = Retention(None if forever else age, rows)
        return Area(
            factors, combinations, program, retention, r.by_tag("guards", lambda: r.get("B"))
        )

    def route() -> Route:
        return Route(bool(r.get("B")), frozenset(r.numbers()), frozenset(r.numbers()))

    def window() -> Window:
        kind, size = r.get("B"), r.get("Q")
        if kind > max(WindowKind):
            raise r.refusal(f"window kind {kind} is not defined")
        return Window(WindowKind(kind), size)

    def place() -> tuple[int, int] | None:
        there, stream, attribute = r.get("B"), r.get("B"), r.get("B")
        return (stream, attribute) if there else None

    def of_tag() -> Grouped:
        return Grouped(r.get("B"), place(), place(), r.get("q"), r.get("q"))

    groups = r.rows("groups", lambda: r.get("B"))
    selections = r.by_area(lambda: r.rows("selections", selection))
    admission = r.by_area(lambda: r.rows("admission", lambda: r.get("H")))
    areas = r.by_area(area)
    routes = r.by_tag("routes", route)
    windows = r.rows("windows", lambda: r.by_area(window))
    filters: tuple[int, ...] = ()
    if r.at < len(r.data):
        filters = r.rows("filters", lambda: r.get("H"))
        if not filters and r.at == len(r.data):
            raise LoadRefused("there is nothing in it", table="filters")
    grouped: dict[int, Grouped] = {}
    if r.at < len(r.data):
        grouped = r.by_tag("grouped", of_tag)
        if not grouped:
            raise LoadRefused("there is nothing in it", table="grouped")
    return Tables(groups, selections, admission, areas, routes, windows, filters, grouped)


def _config_text(config: DeviceConfig) -> bytes:
    known = {name: value for name, value in config.to_json().items() if name not in _LATER}
    return json.dumps(known, separators=(",", ":")).encode()


def differing(built_for: DeviceConfig, config: DeviceConfig) -> list[str]:
    """Lists the differences between a device and the one that an image was built for."""
    return [
        f"{member} {getattr(built_for, member)} (device: {getattr(config, member)})"
        for member in _BOUND_TO
        if getattr(built_for, member) != getattr(config, member)
    ]


def _check_config(head: bytes, config: DeviceConfig) -> None:
    try:
        built_for = DeviceConfig.from_json(head.decode("utf-8", "replace"))
    except ConfigError as error:
        raise LoadRefused(f"its configuration is malformed: {error}") from None
    differ = differing(built_for, config)
    if differ:
        raise LoadRefused(
            f"built for configuration {built_for.name!r}, this device is {config.name!r}: "
            + ", ".join(differ)
        )
