"""Tests that netlists are compared by their structure: other names are equal, one other gate is not."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Module, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from tests.hdl.netlists import Netlist, differing, netlist


class Part(wiring.Component):
    """A register of a gate, and the memory that it addresses."""

    def __init__(self, gate: Callable[[Value, Value], Value], start: int, content: int) -> None:
        self.gate, self.start, self.content = gate, start, content
        super().__init__({"a": In(2), "b": In(2), "read": Out(3)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        at = Signal(2, init=self.start)
        m.submodules.kept = kept = memory.Memory(shape=3, depth=4, init=[self.content])
        port = kept.read_port()
        m.d.sync += at.eq(self.gate(self.a, self.b))
        m.d.comb += [port.addr.eq(at), port.en.eq(1), self.read.eq(port.data)]
        return m


class Top(wiring.Component):
    """Two parts side by side. With `other_names`, names differ, wires lead through a signal of an interface,
    and a register drives nothing."""

    def __init__(
        self,
        gates: tuple[Callable, Callable],
        other_names: bool = False,
        crossed: bool = False,
        place: str = "left",
        start: int = 0,
        content: int = 0,
    ) -> None:
        self.other_names, self.crossed, self.place = other_names, crossed, place
        self.parts = Part(gates[0], start, content), Part(gates[1], 0, 0)
        super().__init__({"a": In(2), "b": In(2), "x": Out(3), "y": Out(3)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        names = ("one", "other") if self.other_names else (self.place, "right")
        for name, part, out in zip(names, self.parts, (self.x, self.y), strict=True):
            m.submodules[name] = part
            a, b = (self.b, self.a) if self.crossed and part is self.parts[1] else (self.a, self.b)
            if self.other_names:
                between = wiring.Signature({"a": Out(2), "b": Out(2)}).create()
                m.d.comb += [between.a.eq(a), between.b.eq(b)]
                m.d.sync += Signal(2, name="unused").eq(a)
                a, b = between.a, between.b
            m.d.comb += [part.a.eq(a), part.b.eq(b), out.eq(part.read)]
        return m


def both(a: Value, b: Value) -> Value:
    return a & b


def either(a: Value, b: Value) -> Value:
    return a | b


def less(a: Value, b: Value) -> Value:
    return a - b


@functools.cache
def of(*gates: Callable, **members: object) -> Netlist:
    return netlist(rtlil.convert(Top(gates, **members), name="top", emit_src=False))


def test_names_and_detours_do_not_count() -> None:
    assert differing(of(both, less), of(both, less, other_names=True)) is None


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"gates": (either, less)}, "left"),
        ({"gates": (less, both)}, "left"),
        ({"crossed": True}, "right"),
        ({"place": "area0"}, "area0"),  # is synthesised apart
        ({"start": 1}, "left"),
        ({"content": 5}, "left"),
    ],
    ids=["other gate", "gates exchanged", "crossed", "placed apart", "start", "content"],
)
def test_a_change_is_told(change: dict, told: str) -> None:
    members = {"gates": (both, less), **change}
    said = differing(of(*members.pop("gates"), **members), of(both, less))
    assert said
    assert any(line.startswith("only here: ") and told in line for line in said), said
