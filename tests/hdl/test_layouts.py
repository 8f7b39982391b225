"""Tests layouts of what travels in a processor: the sizes that the thesis counts, and that nothing
is too narrow."""

from __future__ import annotations

import pytest

from seustream.hdl.config import CONFIGURATIONS, CONTEXTS, EPOCHS, MAX_ATTRIBUTES, DeviceConfig
from seustream.hdl.device import MAX_STREAMS
from seustream.hdl.isa import WINDOW_SELECTION_REGISTERS
from seustream.hdl.layouts import CONTEXT_BITS, EPOCH_BITS, STREAM_BITS, TAG_BITS, Layouts


def test_a_joined_tuple_of_the_thesis_has_136_bits() -> None:
    assert Layouts(CONFIGURATIONS["thesis"]).joined.size == 136


@pytest.mark.parametrize("config", CONFIGURATIONS.values(), ids=lambda config: config.name)
def test_numbers_have_room_for_all_there_are(config: DeviceConfig) -> None:
    layouts = Layouts(config)
    for bits, count in (
        (STREAM_BITS, MAX_STREAMS), (TAG_BITS, config.tags),
        (CONTEXT_BITS, CONTEXTS), (EPOCH_BITS, EPOCHS), (layouts.slot_bits, config.depth),
        (layouts.level_bits, layouts.levels),
    ):  # fmt: skip
        assert 1 << bits >= count
    assert layouts.pointer_bits == layouts.slot_bits + 1, "one more than a place: full is not empty"
    assert layouts.attributes.size == MAX_ATTRIBUTES * config.attribute_width
    assert layouts.selected["bits"].width >= len(WINDOW_SELECTION_REGISTERS)
    assert EPOCH_BITS < CONTEXT_BITS, "an epoch is of several contexts"


@pytest.mark.parametrize("config", CONFIGURATIONS.values(), ids=lambda config: config.name)
def test_a_reference_is_narrower_than_what_it_stands_for(config: DeviceConfig) -> None:
    """This keeps queues narrow; and a context has all of its raw tuple."""
    layouts = Layouts(config)
    components = layouts.component.size * config.streams
    assert layouts.reference.size < components
    assert layouts.fetched.size > layouts.reference.size + components
    assert layouts.context.size > layouts.component.size
    assert layouts.component.size == (
        config.timestamp_width + config.sequence_width + layouts.attributes.size
    )


@pytest.mark.parametrize("config", CONFIGURATIONS.values(), ids=lambda config: config.name)
def test_a_raw_tuple_brings_what_an_area_looks_at(config: DeviceConfig) -> None:
    """So it is not fetched; its time, and the counters of its time, stay with its context."""
    layouts = Layouts(config)
    members = {name: field.shape for name, field in layouts.raw_probe}
    for name in ("context", "stream"):
        assert members.pop(name) == layouts.reference[name].shape
    assert members == {"brought": layouts.brought}
    assert {name: field.shape for name, field in layouts.brought} == {
        "bits": layouts.selected["bits"].shape,
        "attributes": layouts.component["attributes"].shape,
    }


@pytest.mark.parametrize("config", CONFIGURATIONS.values(), ids=lambda config: config.name)
def test_a_step_along_a_chain_bears_a_mark(config: DeviceConfig) -> None:
    """The mark has no more bits than its bucket. With the slot it fills two block RAMs, nine bits
    wide, where there are as many slots as fit into one."""
    layouts = Layouts(config)
    assert layouts.link["slot"].width == layouts.slot_bits
    assert 0 < layouts.link["mark"].width <= layouts.bucket_bits
    if config.depth == 2048:
        assert layouts.link.size == 18
