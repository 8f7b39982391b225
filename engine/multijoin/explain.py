"""What the centre decided for each block, and what it came to: order, filter, cost.

    record = watch(network)          # before blocks are submitted
    ...
    print(record.text())

Predicted and actual cost of a block's rows agree while synopses are exact and nothing waits to be
deleted; a difference shows late deletions, hash buckets, or classes that are not independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.multijoin.ledger import Ledger
from engine.multijoin.messages import Announce, Delta, Plan
from engine.multijoin.model import Join
from engine.multijoin.transport import Network


@dataclass(frozen=True, slots=True)
class Decision:
    """One plan: rows of the block, rows that passed the filter, and the order."""

    stream: int
    no: int
    tau: float
    epoch: tuple[int, int]
    rows: int
    kept: int
    order: tuple[int, ...]
    predicted: float


@dataclass
class Record:
    """All decisions of a run, in the order in which they were made; of a block planned anew
    after a crash the last one."""

    join: Join
    ledger: Ledger
    decisions: dict[tuple[int, int], Decision] = field(default_factory=dict)

    def note(self, delta: Delta | Announce, plan: Plan) -> None:
        self.decisions[plan.stream, plan.no] = Decision(
            plan.stream,
            plan.no,
            plan.tau,
            plan.epoch,
            delta.rows,
            sum(plan.keep.values()),
            plan.order,
            plan.predicted,
        )

    def actual(self, decision: Decision) -> float:
        return self.ledger.of_block(decision.stream, decision.no)

    def rows(self) -> list[tuple[str, ...]]:
        """For people: a line a block."""
        found: list[tuple[str, ...]] = []
        for decision in self.decisions.values():
            way = [self._name(k) for k in (decision.stream, *decision.order)]
            found.append(
                (
                    self._name(decision.stream),
                    str(decision.no),
                    f"{decision.tau:g}",
                    f"{decision.kept} of {decision.rows}",
                    " → ".join(way) if decision.order else "stays",
                    f"{decision.predicted:g}",
                    f"{self.actual(decision):g}",
                )
            )
        return found

    def text(self) -> str:
        head = ("block of", "no", "time", "rows sent", "order", "predicted", "actual")
        return _aligned([head, *self.rows()])

    def to_json(self) -> list[dict[str, object]]:
        return [
            {
                "stream": self._name(d.stream),
                "block": d.no,
                "tau": d.tau,
                "epoch": list(d.epoch),
                "rows": d.rows,
                "sent": d.kept,
                "order": [self._name(k) for k in d.order],
                "predicted": d.predicted,
                "actual": self.actual(d),
            }
            for d in self.decisions.values()
        ]

    def _name(self, stream: int) -> str:
        return self.join.streams[stream].name


def watch(network: Network) -> Record:
    """Records what the centres of a network decide from now on, whichever of them leads."""
    assert network.ledger is not None
    record = Record(network.layout.join, network.ledger)
    for node in network.nodes.values():
        node.on_accept(record.note)
    return record


def _aligned(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
