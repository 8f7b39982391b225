"""The image file: what is written reads back, and any other file raises `LoadRefused`."""

from __future__ import annotations

import contextlib
import dataclasses
import random
import struct

import pytest

from seustream.compiler.wjasip.image import MAGIC, decode, encode
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
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
from seustream.hdl.isa import Condition, Jmpli, Nop
from tests.compiler.wjasip.images import mutated, put_together, taken_apart
from tests.cosim.generate import random_queries
from tests.cosim.queries import RANGE, UNBOUNDED, On, Query, R, S, T, Where, build

TINY = CONFIGURATIONS["tiny"]

# Small, but with every kind of section and the extremes of every number.
TABLES = Tables(
    groups=(0, 0, 2),
    selections=(
        (
            Selection(True, (Comparison(3, Condition.NE, 0xFFFF), Comparison(0, Condition.LT, 0))),
            Selection(False, ()),
        ),
        (),
        (Selection(False, (Comparison(1, Condition.TRUE, 7),)),),
    ),
    admission=((0b11, 0b01), (), (0,)),
    areas=(
        Area(
            (Factor(0, 1, 2, Condition.GE), Factor(3, 2, 1, Condition.FALSE)),
            (Combination(1, (0, 1), (1,), (0, 14), 255), Combination(1, (), (), (), 3)),
            (0x10000, 0x00000),
            Retention(None, 0),
        ),
        Area(
            (Factor(2, 0, 1, Condition.EQ), Factor(1, 2, 0, Condition.EQ)),
            (Combination(0, (1, 0), (), (), 3), Combination(2, (1,), (), (), 255)),
            (0x00000,),
            Retention(-1, TINY.longest_rows),
            {2: 1, 0: 0},
        ),
        Area((), (), (0x00000,), Retention(TINY.longest_range, 0)),
    ),
    routes={
        0: Route(True),
        1: Route(True, frozenset({0}), frozenset({1})),
        2: Route(False, frozenset({1, 0})),
        3: Route(False, frozenset({2}), frozenset()),
        255: Route(False, frozenset(), frozenset({0, 1})),
    },
    windows=(
        (Window(WindowKind.RANGE, TINY.longest_range), Window(WindowKind.UNUSED), UNBOUNDED),
        (Window(WindowKind.ROWS, TINY.longest_rows), Window(WindowKind.RANGE, 0), UNBOUNDED),
    ),
)
IMAGE = encode(TABLES, TINY)
HEAD, BODY = taken_apart(IMAGE)
ROWS_WINDOW = struct.pack("<BQ", WindowKind.ROWS, TINY.longest_rows)
GUARDS = b"\x02\x00\x00\x00\x02\x01"  # two: tag 0 by factor 0, tag 2 by factor 1


# --- round trip ---------------------------------------------------------------


def test_round_trip_of_every_section() -> None:
    assert decode(IMAGE, TINY) == TABLES


def test_round_trip_of_groups() -> None:
    for filters in ((), (0, 0)):
        some = {1: Grouped(1, (1, 0), (1, 3), 2**40, -5), 255: Grouped(0, None, None, 1)}
        tables = dataclasses.replace(TABLES, filters=filters, grouped=some)
        again = decode(encode(tables, TINY), TINY)
        assert again == tables
        assert again.grouped == some


@pytest.mark.parametrize("seed", range(20))
def test_round_trip_of_random_queries(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    groups = chance.choice([(0, 1), (0, 1, 2), (0, 0, 2, 3)])
    for config in CONFIGURATIONS.values():
        if config.streams < len(groups):
            continue
        tables = build(random_queries(chance, groups), groups)
        assert decode(encode(tables, config), config) == tables


def test_the_order_of_routes_does_not_matter() -> None:
    turned = dataclasses.replace(TABLES, routes=dict(reversed(TABLES.routes.items())))
    assert encode(turned, TINY) == IMAGE


def test_the_order_of_guards_does_not_matter() -> None:
    turned = dataclasses.replace(TABLES.areas[1], guards={0: 0, 2: 1})
    areas = (TABLES.areas[0], turned, TABLES.areas[2])
    assert encode(dataclasses.replace(TABLES, areas=areas), TINY) == IMAGE


def test_taking_an_image_apart_and_together_changes_nothing() -> None:
    """Otherwise the tests below would damage more than they intend."""
    assert put_together(HEAD, BODY) == IMAGE


def test_the_layout_of_the_file() -> None:
    assert IMAGE[:6] == b"WJAS\x02\x00"
    # Without the members that concern only the device and are newer than the first images.
    built_for = DeviceConfig.from_json(HEAD.decode())
    own = {"selectors": TINY.selectors, "groups": TINY.groups}
    assert dataclasses.replace(built_for, **own) == TINY
    assert BODY[:5] == b"\x03\x00\x00\x00\x02"
    assert Jmpli().encode() == TABLES.areas[0].program[0]
    assert Nop().encode() == TABLES.areas[0].program[1]


# --- damage -------------------------------------------------------------------


def test_truncated_at_every_length() -> None:
    for length in range(len(IMAGE)):
        with pytest.raises(LoadRefused):
            decode(IMAGE[:length], TINY)


def test_longer_than_it_says() -> None:
    with pytest.raises(LoadRefused, match=f"{len(IMAGE) + 1} bytes, its header says {len(IMAGE)}"):
        decode(IMAGE + b"\0", TINY)


def test_every_byte_altered() -> None:
    for at in range(len(IMAGE)):
        for change in (0x01, 0x80, 0xFF):
            altered = bytearray(IMAGE)
            altered[at] ^= change
            with pytest.raises(LoadRefused):
                decode(bytes(altered), TINY)


GROUPS = Grouped(1, (0, 3), None, 500, 7)
GROUPED = taken_apart(encode(dataclasses.replace(TABLES, grouped={255: GROUPS}), TINY))[1][
    len(BODY) :
]
"""An empty list of filters, and the groups of one route tag."""


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (b"", "not an image"),
        (b"PK\x03\x04" + IMAGE[4:], "does not begin with WJAS"),
        (MAGIC, "truncated"),
        (put_together(HEAD, BODY, version=1), "format version 1, this device reads version 2"),
        (put_together(HEAD, BODY, version=0), "format version 0"),
        (IMAGE[:-1] + bytes([IMAGE[-1] ^ 1]), "checksum does not match"),
        (IMAGE[:-5], "truncated or altered: .* its header says"),
        (
            put_together(HEAD, BODY[:-1]),
            "area 2, windows, query 1: truncated: a section ends early",
        ),
        (put_together(HEAD, b""), "refused: groups: truncated: a section ends early"),
        (put_together(HEAD, BODY[:3]), "refused: groups, stream 1: truncated"),
        (put_together(HEAD, BODY + b"\1\0\0\0\0\0"), "refused: grouped: there is nothing in it"),
        (put_together(HEAD, BODY + GROUPED + b"\0\0"), "2 bytes left over after the last section"),
        (put_together(HEAD, BODY + GROUPED[:-1]), "refused: grouped, tag 255: truncated"),
        (
            put_together(HEAD, BODY + b"\0\0\2\0" + GROUPED[4:] + GROUPED[4:]),
            "image refused: grouped, tag 255: the tag is there twice",
        ),
        (put_together(HEAD, BODY + b"\0\0"), "refused: filters: there is nothing in it"),
        (put_together(HEAD, BODY + b"\0"), "refused: filters: truncated"),
        (put_together(b"", BODY), "its configuration is malformed: not JSON"),
        (put_together(b"[" * 60_000, BODY), "its configuration is malformed: not JSON"),
        (put_together(b"\xff\xfe{}", BODY), "its configuration is malformed: not JSON"),
        (put_together(b"[]", BODY), "its configuration is malformed: want a JSON object"),
        (put_together(b'{"lane": 1}', BODY), "malformed: unknown parameter 'lane'"),
        (put_together(b'{"depth": 3}', BODY), "malformed: depth = 3"),
    ],
)
def test_reasons(image: bytes, reason: str) -> None:
    with pytest.raises(LoadRefused, match=reason):
        decode(image, TINY)


def body_with(old: bytes, new: bytes) -> bytes:
    assert BODY.count(old) == 1
    return put_together(HEAD, BODY.replace(old, new))


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        # comparison: attribute, condition, constant; the constant occurs nowhere else
        (
            body_with(b"\x03\x05" + struct.pack("<I", 0xFFFF), b"\x03\x08\xff\xff\0\0"),
            "area 0, selections, row 0: condition code 8 is not defined",
        ),
        # factor 3, 2, 1, FALSE
        (
            body_with(b"\x03\x02\x01\x07", b"\x03\x02\x01\xff"),
            "area 0, factors, row 1: condition code 255 is not",
        ),
        # window: the longest ROWS
        (
            body_with(ROWS_WINDOW, b"\x04" + ROWS_WINDOW[1:]),
            "area 0, windows, query 1: window kind 4 is not defined",
        ),
        # the route row of tag 255 becomes a second row of tag 3
        (
            body_with(b"\xff\x00\x00\x00\x02", b"\x03\x00\x00\x00\x02"),
            "refused: routes, tag 3: the tag is there twice",
        ),
        # the guard of tag 2 becomes a second guard of tag 0
        (
            body_with(GUARDS, b"\x02\x00\x00\x00\x00\x01"),
            "area 1, guards, tag 0: the tag is there twice",
        ),
        (
            body_with(GUARDS, b"\x02\x00\x00\x01\x02\x00"),
            "area 1, guards, tag 2: it is factor 0, which a combination",
        ),
        (
            body_with(GUARDS, b"\x02\x00\x00\x01\x02\x02"),
            "area 1, guards, tag 2: it names factor 2",
        ),
        (
            body_with(GUARDS, b"\x02\x00\x00\x01\x04\x01"),
            "area 1, guards, tag 4: the tag has no route",
        ),
    ],
)
def test_codes_that_are_not_defined(image: bytes, reason: str) -> None:
    with pytest.raises(LoadRefused, match=reason):
        decode(image, TINY)


def test_a_program_at_fault_is_refused_with_its_place() -> None:
    program = struct.pack("<HII", 2, 0x10000, 0)
    with pytest.raises(LoadRefused, match="word 10001 encodes no instruction") as caught:
        decode(body_with(program, struct.pack("<HII", 2, 0x10001, 0)), TINY)
    assert (caught.value.area, caught.value.table, caught.value.row) == (0, "program", 0)
    with pytest.raises(LoadRefused, match="word FFFFFFFF encodes no instruction"):
        decode(body_with(program, struct.pack("<HII", 2, 0xFFFFFFFF, 0)), TINY)


# --- another configuration ----------------------------------------------------


@pytest.mark.parametrize(
    ("member", "other"),
    [
        ("streams", 3),
        ("attribute_width", 32),
        ("timestamp_width", 48),
        ("sequence_width", 17),
        ("depth", 32),
        ("attributes", 3),
        ("factors", 15),
        ("scratch_registers", 8),
        ("selections", 8),
        ("probe_selections", 8),
        ("tags", 128),
        ("instructions", 512),
        ("queries", 32),
    ],
)
def test_an_image_for_another_configuration_is_refused_with_both_values(
    member: str, other: int
) -> None:
    device = dataclasses.replace(TINY, name="mine", **{member: other})
    with pytest.raises(LoadRefused) as caught:
        decode(IMAGE, device)
    assert caught.value.reason == (
        "built for configuration 'tiny', this device is 'mine': "
        f"{member} {getattr(TINY, member)} (device: {other})"
    )


def test_all_differences_are_named() -> None:
    with pytest.raises(LoadRefused) as caught:
        decode(IMAGE, CONFIGURATIONS["default"])
    for difference in (
        "attribute_width 16 (device: 32)",
        "timestamp_width 24 (device: 48)",
        "sequence_width 16 (device: 32)",
        "depth 16 (device: 2048)",
    ):
        assert difference in str(caught.value)
    assert "lanes" not in str(caught.value)


@pytest.mark.parametrize("member", ["lanes", "indexes", "probe_fifo_depth", "output_fifo_depth"])
def test_what_does_not_concern_the_image_may_differ(member: str) -> None:
    device = dataclasses.replace(TINY, name="mine", **{member: 4})
    assert decode(IMAGE, device) == TABLES


# --- fuzz ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_mutations_with_a_right_checksum(seed: int) -> None:
    """Only the checks protect the device from the damage."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    factors = (On(R, 0, "=", S, 0), On(S, 1, "<", T, 1))
    where = {R: Where(((0, "<", 3), (1, "=", 2)), every=False)}
    chain = Query({R: RANGE(5), S: UNBOUNDED, T: RANGE(0)}, (factors, ()), where)
    bodies = [BODY, taken_apart(encode(build([chain]), TINY))[1]]
    taken, reasons = 0, set()
    for _ in range(1000):
        body = mutated(chance, chance.choice(bodies))
        try:
            tables = decode(put_together(HEAD, body), TINY)
        except LoadRefused as refusal:
            reasons.add(refusal.reason)
        else:
            taken += 1
            assert decode(encode(tables, TINY), TINY) == tables
    assert taken > 50
    assert len(reasons) > 50


@pytest.mark.parametrize("seed", range(2))
def test_mutations_of_the_configuration(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    for _ in range(500):
        with contextlib.suppress(LoadRefused):
            assert decode(put_together(mutated(chance, HEAD), BODY), TINY) == TABLES


@pytest.mark.parametrize("seed", range(2))
def test_noise(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    for _ in range(500):
        noise = chance.randbytes(chance.randrange(200))
        with pytest.raises(LoadRefused):
            decode(noise, TINY)
        with pytest.raises(LoadRefused):
            decode(put_together(HEAD, noise), TINY)
