"""Layouts of what travels in a processor: what the thesis counts, and that nothing is too narrow."""

from __future__ import annotations

import pytest

from seustream.hdl.config import CONFIGURATIONS, CONTEXTS, MAX_ATTRIBUTES, DeviceConfig
from seustream.hdl.device import MAX_STREAMS
from seustream.hdl.isa import WINDOW_SELECTION_REGISTERS
from seustream.hdl.layouts import CONTEXT_BITS, STREAM_BITS, TAG_BITS, Layouts


def test_a_joined_tuple_of_the_thesis_has_136_bits() -> None:
    assert Layouts(CONFIGURATIONS["thesis"]).joined.size == 136


@pytest.mark.parametrize("config", CONFIGURATIONS.values(), ids=lambda config: config.name)
def test_numbers_have_room_for_all_there_are(config: DeviceConfig) -> None:
    layouts = Layouts(config)
    for bits, count in (
        (STREAM_BITS, MAX_STREAMS), (TAG_BITS, config.tags),
        (CONTEXT_BITS, CONTEXTS), (layouts.slot_bits, config.depth),
        (layouts.level_bits, layouts.levels),
    ):  # fmt: skip
        assert 1 << bits >= count
    assert layouts.pointer_bits == layouts.slot_bits + 1, "one more than a place: full is not empty"
    assert layouts.attributes.size == MAX_ATTRIBUTES * config.attribute_width
    assert Layouts(config).selected["bits"].width >= len(WINDOW_SELECTION_REGISTERS)


@pytest.mark.parametrize("config", CONFIGURATIONS.values(), ids=lambda config: config.name)
def test_a_reference_is_narrower_than_what_it_stands_for(config: DeviceConfig) -> None:
    """So that queues stay narrow; and a context has all of its raw tuple."""
    layouts = Layouts(config)
    components = layouts.component.size * config.streams
    assert layouts.reference.size < components
    assert layouts.fetched.size > layouts.reference.size + components
    assert layouts.context.size > layouts.component.size
    assert layouts.component.size == (
        config.timestamp_width + config.sequence_width + layouts.attributes.size
    )
