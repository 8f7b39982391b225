"""Records the centre's decision for each block and its outcome: order, filter, cost.

    record = watch(network)          # before blocks are submitted
    ...
    print(text(record.blocks()))
    save(record.blocks(), Path("run.json"))

Predicted and actual cost of a block's rows agree while synopses are exact and nothing waits to be
deleted; a difference shows late deletions, hash buckets, residual conditions, or classes that are not
independent. `seustream.cosim.sites.cluster.Cluster.blocks` records the same of processes.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from seustream.engine.sites.errors import SitesError
from seustream.engine.sites.ledger import Ledger
from seustream.engine.sites.messages import Announce, Delta, Plan
from seustream.engine.sites.model import EquiJoin
from seustream.engine.sites.network import SiteNetwork
from seustream.engine.sites.node import SiteLayout

HEAD = ("block of", "no", "time", "rows sent", "order", "predicted", "actual")


class BadRecord(SitesError):
    """A file that is no record of a run."""


@dataclass(frozen=True, slots=True)
class Block:
    """One plan and its execution: rows of the block, rows that passed the filter, the sites they
    visited or the hub they went to. Of a block at a hub the cost is not predicted."""

    stream: str
    block: int
    tau: float
    epoch: tuple[int, int]
    rows: int
    sent: int
    order: tuple[str, ...]
    hub: int | None
    predicted: float
    actual: float

    @property
    def way(self) -> str:
        if self.hub is not None:
            return f"{self.stream} → hub at node {self.hub}"
        return " → ".join((self.stream, *self.order)) if self.order else "stays"


def block_of(join: EquiJoin, delta: Delta | Announce, plan: Plan, actual: float = 0.0) -> Block:
    """A block with its plan."""
    names = [stream.name for stream in join.streams]
    hub = None if plan.way is None else plan.way.hub
    kept = sum(plan.keep.values()) if hub is None else delta.rows
    order = tuple(names[k] for k in plan.order)
    return Block(
        names[plan.stream],
        plan.no,
        plan.tau,
        plan.epoch,
        delta.rows,
        kept,
        order,
        hub,
        plan.predicted,
        actual,
    )


@dataclass
class Record:
    """All decisions of a run, in the order in which they were made; of a block planned anew
    after a crash the last one."""

    join: EquiJoin
    ledger: Ledger
    decisions: dict[tuple[int, int], Block] = field(default_factory=dict)

    def note(self, delta: Delta | Announce, plan: Plan) -> None:
        self.decisions[plan.stream, plan.no] = block_of(self.join, delta, plan)

    def blocks(self) -> list[Block]:
        return with_costs(
            self.decisions, {key: self.ledger.of_block(*key) for key in self.decisions}
        )


def with_costs(
    decisions: Mapping[tuple[int, int], Block], costs: Mapping[tuple[int, int], float]
) -> list[Block]:
    """Decisions with what their blocks came to cost."""
    return [
        dataclasses.replace(block, actual=costs.get(key, 0.0)) for key, block in decisions.items()
    ]


def watch(network: SiteNetwork) -> Record:
    """Records what the centres of a network decide from now on, whichever of them leads."""
    assert isinstance(network.layout, SiteLayout)
    record = Record(network.layout.join, network.ledger)
    for node in network.nodes.values():
        node.on_accept(record.note)
    return record


# --- for people, and for files -------------------------------------------------


def rows(blocks: Sequence[Block]) -> list[tuple[str, ...]]:
    """A line a block, under `HEAD`."""
    return [
        (
            block.stream,
            str(block.block),
            f"{block.tau:g}",
            f"{block.sent} of {block.rows}",
            block.way,
            "-" if block.hub is not None else f"{block.predicted:g}",
            f"{block.actual:g}",
        )
        for block in blocks
    ]


def text(blocks: Sequence[Block]) -> str:
    table = [HEAD, *rows(blocks)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    )


def facts(blocks: Sequence[Block]) -> list[dict[str, object]]:
    """For JSON."""
    return [
        {**dataclasses.asdict(block), "epoch": list(block.epoch), "order": list(block.order)}
        for block in blocks
    ]


def save(blocks: Sequence[Block], path: Path) -> None:
    path.write_text(json.dumps(facts(blocks), indent=1, ensure_ascii=False) + "\n")


def load(path: Path) -> list[Block]:
    """Raises `BadRecord`, or `OSError`."""
    names = {field.name for field in dataclasses.fields(Block)}
    try:
        found = json.loads(path.read_text())
        blocks = []
        if not isinstance(found, list):
            raise ValueError("want a list of blocks")
        for one in found:
            if set(one) != names:
                raise ValueError(f"a block has {', '.join(sorted(names))}")
            one |= {"epoch": tuple(one["epoch"]), "order": tuple(map(str, one["order"]))}
            blocks.append(Block(**one))
            numbers = (one["tau"], one["rows"], one["sent"], one["predicted"], one["actual"])
            if not all(isinstance(n, int | float) and math.isfinite(n) for n in numbers):
                raise ValueError("times, rows and costs are numbers")
    except (ValueError, TypeError) as error:
        raise BadRecord(
            f"{path}: no record of a run: {error}", "seustream.engine.sites.explain.save writes one"
        ) from None
    return blocks
