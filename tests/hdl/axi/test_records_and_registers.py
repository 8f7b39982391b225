"""Tests the tables of the AXI ports: places of members and registers, and commands against the
gateware's layout."""

from __future__ import annotations

import random

import pytest

from seustream.hdl.axi.records import BEAT, input_record, output_record
from seustream.hdl.axi.registers import ADDRESS_WIDTH, REGISTERS, words
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.hdl.control import COMMAND
from seustream.hdl.control_words import (
    ADDRESS_BITS,
    DATA_BITS,
    UNIT_BITS,
    Command,
    ControlOperation,
    Target,
)
from seustream.hdl.layouts import Layouts
from tests.hdl.bench import pack

SHAPES = [
    *CONFIGURATIONS.values(),
    DeviceConfig(name="wide", sequence_width=64, timestamp_width=64),
]


@pytest.mark.parametrize("config", SHAPES, ids=lambda config: config.name)
def test_records_are_structs_that_hold_what_the_processor_has(config: DeviceConfig) -> None:
    layouts = Layouts(config)
    for record in (input_record(config), output_record(config)):
        taken = [
            member.at + member.bytes * number + byte
            for member in record.members
            for number in range(member.count)
            for byte in range(member.bytes)
        ]
        assert len(taken) == len(set(taken))
        assert all(member.at % member.bytes == 0 for member in record.members)
        assert record.beats * BEAT == record.bytes == record.dtype.itemsize
        assert 8 * record["sequences" if record.name.endswith("output") else "sequence"].bytes >= (
            layouts.sequence
        )
    # A raw tuple takes the processor 6 cycles, so this port never makes it wait.
    assert input_record(config).beats + 1 <= 6
    assert 8 * input_record(config)["attributes"].bytes == config.attribute_width


def test_registers_are_apart_and_within_the_span() -> None:
    offsets = [register.offset for register in REGISTERS]
    assert offsets == sorted(set(offsets))
    assert all(offset % 4 == 0 and offset < 1 << ADDRESS_WIDTH for offset in offsets)
    for register in REGISTERS:
        places = [bits.low + i for bits in register.bits for i in range(bits.width)]
        assert len(places) == len(set(places))
        assert all(place < 32 for place in places)


def test_words_are_the_bits_of_a_command() -> None:
    chance = random.Random(5)
    for _ in range(500):
        command = Command(
            chance.choice([*ControlOperation]), chance.choice([*Target]),
            chance.getrandbits(UNIT_BITS), chance.getrandbits(ADDRESS_BITS), chance.getrandbits(DATA_BITS),
        )  # fmt: skip
        head, low, high = words(command)
        members = {name: int(getattr(command, name)) for name in Command.__dataclass_fields__}
        bits = COMMAND.size - DATA_BITS
        assert head | (low | high << 32) << bits == pack(COMMAND, members)
        assert head < 1 << bits
