"""Tests that every parameter value that a device cannot be built with is refused and quoted."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest

from seustream.hdl.config import CONFIGURATIONS, ConfigError, DeviceConfig, depth_for


@pytest.mark.parametrize(
    ("member", "value", "want"),
    [
        ("streams", 1, "2 to 4"),
        ("streams", 5, "2 to 4"),
        ("attribute_width", 24, "8, 16 or 32"),
        ("attribute_width", 64, "8, 16 or 32"),
        ("timestamp_width", 15, "16 to 64"),
        ("timestamp_width", 65, "16 to 64"),
        ("depth", 0, "a power of two, 2 to 1048576"),
        ("depth", 1, "a power of two, 2 to 1048576"),
        ("depth", 2000, "a power of two, 2 to 1048576"),
        ("depth", -4, "a power of two, 2 to 1048576"),
        ("sequence_width", 7, "8 to 64"),
        ("sequence_width", 65, "8 to 64"),
        ("lanes", -1, "0 or a power of two"),
        ("lanes", 3, "0 or a power of two"),
        ("lanes", 4096, "no more than depth = 2048"),
        ("indexes", -1, "0 to 4"),
        ("indexes", 5, "0 to 4"),
        ("comparisons", 0, "1 to 1024"),
        ("comparisons", 1025, "1 to 1024"),
        ("probe_fifo_depth", 0, "1 to 1048576"),
        ("output_fifo_depth", 0, "1 to 1048576"),
        ("depth", 1 << 21, "a power of two, 2 to 1048576"),
        ("probe_fifo_depth", 1 << 21, "1 to 1048576"),
        ("name", "", "1 to 64 characters"),
        ("name", "x" * 65, "1 to 64 characters"),
        ("name", "\ud800", "1 to 64 characters"),
        ("attributes", 0, "1 to 4"),
        ("attributes", 5, "1 to 4"),
        ("factors", 0, "1 to 16"),
        ("factors", 17, "1 to 16"),
        ("scratch_registers", -1, "0 to 16"),
        ("scratch_registers", 17, "0 to 16"),
        ("selections", -1, "0 to 16"),
        ("selections", 17, "0 to 16"),
        ("probe_selections", -1, "0 to 15"),
        ("probe_selections", 16, "0 to 15"),
        ("tags", 4, "more than streams, at most 256"),
        ("tags", 257, "more than streams, at most 256"),
        ("instructions", 0, "1 to 1024"),
        ("instructions", 1025, "1 to 1024"),
        ("queries", 0, "1 to 64"),
        ("queries", 65, "1 to 64"),
        ("streams", True, "int"),
        ("depth", 16.0, "int"),
        ("lanes", "8", "int"),
        ("name", 7, "str"),
    ],
)
def test_refusals_quote_the_value(member: str, value: object, want: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"{member} = {value!r}: want {want}")):
        DeviceConfig(**{member: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("members"),
    [
        {"streams": 2, "tags": 3},
        {"attribute_width": 8, "timestamp_width": 16},
        {"timestamp_width": 64, "sequence_width": 64},
        {"sequence_width": 8, "indexes": 4, "comparisons": 1024},
        {"depth": 2, "lanes": 2},
        {"lanes": 0, "indexes": 0, "comparisons": 1},
        {"lanes": 1, "probe_fifo_depth": 1, "output_fifo_depth": 1},
        {"attributes": 1, "factors": 1, "scratch_registers": 0},
        {"selections": 0, "probe_selections": 0, "instructions": 1, "queries": 1},
    ],
)
def test_the_edges_are_allowed(members: dict[str, int]) -> None:
    config = DeviceConfig(**members)  # type: ignore[arg-type]
    for member, value in members.items():
        assert getattr(config, member) == value


def test_named_configurations() -> None:
    assert {"default", "thesis", "serial", "tiny"} <= CONFIGURATIONS.keys()
    for name, config in CONFIGURATIONS.items():
        assert config.name == name
    assert CONFIGURATIONS["default"] == DeviceConfig()
    assert CONFIGURATIONS["default"].attribute_width == 32
    assert CONFIGURATIONS["default"].depth == 2048


def test_serial_is_the_thesis_without_arrays() -> None:
    serial = dataclasses.replace(CONFIGURATIONS["serial"], name="thesis", lanes=8, indexes=2)
    assert serial == CONFIGURATIONS["thesis"]
    assert (CONFIGURATIONS["serial"].lanes, CONFIGURATIONS["serial"].indexes) == (0, 0)


def test_the_thesis_configuration_gives_its_tuple_of_136_bits() -> None:
    thesis = CONFIGURATIONS["thesis"]
    tag_bits = (thesis.tags - 1).bit_length()
    assert tag_bits + thesis.streams * thesis.attributes * thesis.attribute_width == 136


@pytest.mark.parametrize(("width", "longest"), [(16, 32767), (24, 8388607), (64, (1 << 63) - 1)])
def test_longest_range_is_half_the_clock(width: int, longest: int) -> None:
    assert DeviceConfig(timestamp_width=width).longest_range == longest


@pytest.mark.parametrize(("width", "longest"), [(8, 127), (32, 2147483647), (64, (1 << 63) - 1)])
def test_longest_rows_are_half_the_counter(width: int, longest: int) -> None:
    assert DeviceConfig(sequence_width=width).longest_rows == longest


@pytest.mark.parametrize(
    ("depth", "capacity"), [(2, 2), (4, 3), (16, 12), (256, 192), (512, 416), (2048, 1952)]
)
def test_slots_are_kept_for_those_that_left(depth: int, capacity: int) -> None:
    assert DeviceConfig(depth=depth, lanes=2).capacity == capacity


@pytest.mark.parametrize(
    ("tuples", "depth"), [(1, 2), (2, 2), (3, 4), (12, 16), (13, 32), (192, 256), (1985, 4096)]
)
def test_the_smallest_depth_that_has_room(tuples: int, depth: int) -> None:
    assert depth_for(tuples) == depth


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_json_round_trip(name: str) -> None:
    config = CONFIGURATIONS[name]
    assert DeviceConfig.from_json(json.dumps(config.to_json())) == config


def test_json_members_left_out_keep_their_defaults() -> None:
    assert DeviceConfig.from_json('{"lanes": 2}') == DeviceConfig(lanes=2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "want a JSON object"),
        ('"tiny"', "want a JSON object"),
        ('{"lane": 2}', "unknown parameter 'lane'; known: .*lanes"),
        ('{"lanes": 3}', "lanes = 3: want"),
        ('{"lanes": null}', "lanes = None: want int"),
        ('{"lanes": 2.0}', "lanes = 2.0: want int"),
        ('{"depth": NaN}', "depth = nan: want int"),
    ],
    ids=lambda text: str(text)[:12],
)
def test_json_refusals(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DeviceConfig.from_json(text)
