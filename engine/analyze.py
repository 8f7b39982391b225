"""EXPLAIN ANALYZE: what each operator of a run has done, and for which queries; where the cycles of its
device went."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import ClassVar

from seustream.compiler.explain.text import Columns, write
from seustream.compiler.logical.levels import Node, nodes, reads
from seustream.engine.graph import GraphRun
from seustream.engine.host.driver import HostDriver
from seustream.engine.relational.periods import held_together


@dataclass(frozen=True, slots=True)
class OperatorFacts:
    """One operator: its results, rows, its own time and its share of all operators' time, the bytes
    of its state where known, and cycles of a device that has a clock."""

    COLUMNS: ClassVar[Columns] = (
        ("node", "name"),
        ("gives", "gives"),
        ("rows in", "taken"),
        ("rows out", "given"),
        ("ms", lambda one: f"{1000 * one.seconds:,.1f}"),
        ("share", lambda one: f"{100 * one.share:.0f} %"),
        ("state KiB", lambda one: "–" if one.state is None else f"{one.state / 1024:,.1f}"),
        ("cycles", lambda one: "–" if one.cycles is None else f"{one.cycles:,}"),
    )

    name: str
    gives: tuple[str, ...]
    taken: int
    given: int
    seconds: float
    share: float
    state: int | None
    cycles: int | None


@dataclass(frozen=True, slots=True)
class UnitFacts:
    """One unit of a device: the shares of its cycles in which it was busy, had no work, or had work but
    waited for another unit."""

    COLUMNS: ClassVar[Columns] = (
        ("node", "node"),
        ("unit", "name"),
        ("busy", lambda one: f"{100 * one.busy:.0f} %"),
        ("starved", lambda one: f"{100 * one.starved:.0f} %"),
        ("blocked", lambda one: f"{100 * one.blocked:.0f} %"),
    )

    node: str
    name: str
    busy: float
    starved: float
    blocked: float


def analyzed(run: GraphRun, queries: Collection[str]) -> list[str]:
    """Returns, as lines, the operators that some queries go through, and the units of their devices as
    `read_units` found them; the run has to have meters."""
    meters, known = run.meters, set(run.compilation.program.names)
    if meters is None or not queries:
        return []
    left = [
        f"{name} does not run: register it, and ask again" for name in queries if name not in known
    ]
    found, of_device = run.operators_of(known.intersection(queries)), cycles(run)
    seconds = seconds_of(run)
    total = sum(seconds.get(own, 0.0) for own in run.operators) or 1.0
    facts = tuple(
        OperatorFacts(
            own,
            tuple(gives),
            meters.rows_in[own],
            meters.rows_out[own],
            seconds.get(own, 0.0),
            seconds.get(own, 0.0) / total,
            meters.state.get(own),
            of_device.get(own),
        )
        for own, gives in found.items()
    )
    lines = left
    for table in (facts, tuple(_units(run, found))):
        lines += [*([""] if lines and table else []), *write(table)]
    return lines


def _units(run: GraphRun, owns: Collection[str]) -> Iterator[UnitFacts]:
    for own in owns:
        one = run.operators[own]
        for name, unit in one.units.items() if isinstance(one, HostDriver) else ():
            total = (unit.busy + unit.starved + unit.blocked) or 1
            shares = unit.busy / total, unit.starved / total, unit.blocked / total
            yield UnitFacts(own, name, *shares)


def read_units(run: GraphRun) -> None:
    """Reads how the devices of a run have spent their cycles, those that count them. Only the thread that
    uses the devices may do so."""
    for one in run.operators.values():
        if isinstance(one, HostDriver):
            one.read_units()


def seconds_of(run: GraphRun) -> dict[str, float]:
    """Returns the time of each operator of a run with meters. Time that several share is divided
    among them."""
    assert run.meters is not None
    found = dict(run.meters.seconds)
    for some in held_together(run.operators):
        each = sum(found.get(own, 0.0) for own in some) / len(some)
        found |= dict.fromkeys(some, each)
    return found


def through(run: GraphRun) -> dict[str, list[str]]:
    """Returns, by operator, the queries whose results go through it and are asked for, except
    failed ones."""
    behind: dict[str, set[str]] = {}

    def of_stream(name: str) -> set[str]:
        if name not in behind:
            behind[name] = of_node(run.definitions[name])
        return behind[name]

    def of_node(node: Node) -> set[str]:
        derived = (of_stream(name) for name in reads(node) if name in run.definitions)
        return {run.answers_at(node)}.union(*derived)

    found: dict[str, list[str]] = {own: [] for own in run.operators}
    asked = set(run.compilation.program.names)
    for node in nodes(run.compilation.program):
        if node.name in asked and node.name not in run.failures:
            for own in of_node(node):
                found[own].append(node.name)
    return found


def cycles(run: GraphRun) -> dict[str, int]:
    """Returns clock cycles of devices that have a clock, by operator, since the image was loaded."""
    found = {}
    for own, one in run.operators.items():
        if isinstance(one, HostDriver) and one.cycles_before is not None:
            now: int = getattr(one.device, "cycles")  # noqa: B009 (not every device has a clock)
            found[own] = now - one.cycles_before
    return found
