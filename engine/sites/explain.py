"""Records the centre's decision for each block and its outcome: order, filter, cost.

Predicted and actual cost of a block's rows agree while synopses are exact and no deletions are
pending. A difference shows late deletions, hash buckets, residual conditions, or classes that are
not independent. `seustream run --record FILE` writes the blocks of a run, `explain --stage sites`
shows them.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from seustream.compiler.explain.text import Columns
from seustream.engine.sites.errors import SitesError
from seustream.engine.sites.messages import Announce, Delta, Plan
from seustream.engine.sites.model import BlockId, EquiJoin


class BadRecord(SitesError):
    """A file that is not a record of a run."""


@dataclass(frozen=True, slots=True)
class Block:
    """One plan and its execution: rows of the block, rows that passed the filter, and the sites
    they visited or the hub they went to. The cost of a block at a hub is not predicted."""

    COLUMNS: ClassVar[Columns] = (
        ("block of", "stream"),
        ("no", "block"),
        ("time", lambda block: f"{block.tau:g}"),
        ("rows sent", lambda block: f"{block.sent} of {block.rows}"),
        ("order", "way"),
        ("predicted", lambda block: "-" if block.hub is not None else f"{block.predicted:g}"),
        ("actual", lambda block: f"{block.actual:g}"),
    )

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

    @property
    def taken(self) -> str:
        """The way, or that the block stays if no rows left."""
        return self.way if self.sent else f"{self.stream} stays"

    def named(self, names: Mapping[str, str]) -> Block:
        """Returns the block with other names for its sites."""
        order = tuple(names[site] for site in self.order)
        return dataclasses.replace(self, stream=names[self.stream], order=order)


def block_of(join: EquiJoin, delta: Delta | Announce, plan: Plan) -> Block:
    """Returns a block with its plan, at no cost yet."""
    names = [stream.name for stream in join.streams]
    hub = None if plan.way is None else plan.way.hub
    kept = sum(plan.keep.values()) if hub is None else delta.rows
    order = tuple(names[k] for k in plan.order)
    of = (names[plan.stream], plan.no, plan.tau, plan.epoch, delta.rows, kept)
    return Block(*of, order, hub, plan.predicted, 0.0)


Decided: TypeAlias = tuple[int, BlockId]
"""A block, by the number of its join and its own."""
Report: TypeAlias = tuple[Mapping[Decided, Block], Mapping[Decided, float]]
"""The blocks whose plans a process remembers, and the costs of blocks that it knows."""


def gathered(reports: Iterable[Report]) -> dict[int, list[Block]]:
    """Returns, by join, the blocks of all processes in the order of time; a block planned again
    after a crash has its last plan."""
    decided: dict[Decided, Block] = {}
    costs: dict[Decided, float] = {}
    for blocks, spent in reports:
        for key, block in blocks.items():
            if key not in decided or decided[key].epoch < block.epoch:
                decided[key] = block
        costs |= spent
    found: dict[int, list[Block]] = {}
    for key, block in decided.items():
        whole = dataclasses.replace(block, actual=costs.get(key, 0.0))
        found.setdefault(key[0], []).append(whole)
    return {g: sorted(some, key=lambda b: (b.tau, b.stream, b.block)) for g, some in found.items()}


def save(record: Mapping[str, Sequence[Block]], path: Path) -> None:
    """Writes the blocks of each query."""
    plain = {name: [dataclasses.asdict(one) for one in blocks] for name, blocks in record.items()}
    path.write_text(json.dumps(plain, indent=1, ensure_ascii=False) + "\n")


def load(path: Path) -> dict[str, list[Block]]:
    """Returns the blocks by query; raises `BadRecord`, or `OSError`."""
    try:
        found = json.loads(path.read_text())
        return {name: [_block(one) for one in blocks] for name, blocks in found.items()}
    except (ValueError, TypeError, AttributeError) as error:
        hint = "seustream run --site … --record FILE writes one"
        raise BadRecord(f"{path}: no record of a run: {error}", hint) from None


def _block(one: dict[str, Any]) -> Block:
    names = {field.name for field in dataclasses.fields(Block)}
    if set(one) != names:
        raise ValueError(f"a block has {', '.join(sorted(names))}")
    block = Block(**one | {"epoch": tuple(one["epoch"]), "order": tuple(map(str, one["order"]))})
    numbers = (block.tau, block.rows, block.sent, block.predicted, block.actual)
    if not all(isinstance(n, int | float) and math.isfinite(n) for n in numbers):
        raise ValueError("times, rows and costs are numbers")
    return block
