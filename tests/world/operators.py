"""Simulates people at a bridge, besides Spark: they swap and register queries, and one of them is
malicious."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.errors import BridgeError
from tests.cosim.bridge.serving import QUERIES
from tests.world.simulation import Process
from tests.world.spark import Driver

if TYPE_CHECKING:
    from tests.world.world import Job

TEXT = QUERIES + "REGISTER QUERY counts AS SELECT R.a, count(*) FROM R GROUP BY R.a WINDOW ROWS 9;"
MORE = TEXT + "REGISTER QUERY few AS SELECT S.d FROM S WHERE S.d > 5 WINDOW NOW;"
NEW = "REGISTER QUERY extra AS SELECT R.a, R.b FROM R WHERE R.b > 300 WINDOW NOW"
POISON = 3
STRICT = (
    f"REGISTER QUERY extra AS SELECT R.a, R.b FROM R WHERE R.b > 300 + 0 / (R.a - {POISON})"
    " WINDOW NOW WITH (strict)"
)
"""The strict query fails at a row with this `a`, and no other query may."""


class Operators:
    """Swaps, registers and forges. `registered` is the first epoch that was planned when a query
    with `text` came in."""

    def __init__(self, job: Job, seed: int) -> None:
        self.job = job
        self.process = Process("operators")
        self.swaps = "queries swapped" in job.faults.kinds
        self.text = STRICT if seed % 5 < 2 else NEW
        self.registered: int | None = None
        self.asked = False

    def tick(self) -> None:
        job = self.job
        faults, simulation, now = job.faults, job.simulation, job.simulation.time
        if faults.happens("queries swapped", now):
            text = faults.of("queries swapped").choice((TEXT, MORE))
            simulation.spawn(self.process, "swap", lambda: self._swap(text))
        # Before rows are in there may be no stream, and a statement would begin a catalogue of its
        # own.
        free = not (self.swaps or self.asked) and job.acked
        if free and faults.happens("query registered", now):
            self.asked = True
            simulation.spawn(self.process, "register", self._register)
        if faults.happens("rows forged", now):
            simulation.spawn(self.process, "forge", self._forge)

    def _client(self) -> BridgeClient:
        job = self.job
        return Driver(job.simulation, job.network, job.faults).client()

    def _swap(self, text: str) -> None:
        from tests.world.world import compilation

        self.job.simulation.tell(f"operator: swaps to {text.count('QUERY')} queries")
        with contextlib.suppress(BridgeError):
            self._client().swap(compilation(text), self.job.run)

    def _register(self) -> None:
        job = self.job
        job.simulation.tell("operator: registers a query")
        while True:
            try:
                self._client().act("statement", p.Statement(self.text))
            except BridgeError as error:
                if error.kind != "compile" and not (error.retriable or error.kind == "no-session"):
                    if not job.faults.damaged:
                        job.fail(f"a query is not registered: {error}")
                    return
                if error.kind != "compile":
                    job.simulation.park(1.0)
                    continue
            planned = max(job.feeds["R"].offsets, default=-1)
            self.registered = planned + 1
            return

    # --- what must be refused -----------------------------------------------------

    def _forge(self) -> None:
        """Sends other rows in the place of an epoch that is in, a part twice, another writer's
        rows, or rows after the end: each is refused."""
        job, chance = self.job, self.job.faults.of("rows forged")
        name = chance.choice(("R", "S"))
        writer = f"writer-{name}"
        last = job.acked.get(writer)
        if last is None:
            return
        start, end = job.feeds[name].offsets[last]
        rows = job.rows[name].slice(start, end - start)
        column = 2 if name == "R" else 1  # one without NULL, because NULL plus one is NULL again
        changed = pc.add(rows.column(column), 1).cast("int32")
        other = rows.set_column(column, rows.schema.names[column], changed)
        way = chance.choice(("other rows", "two attempts", "another writer"))
        if f"feed {name}" in job.finished:
            way = chance.choice(("after the end", way))
        job.simulation.tell(f"somebody: {way} for epoch {last} of {name}")
        try:
            match way:
                case "other rows":
                    self._commit(writer, name, last, [(0, other)])
                case "two attempts":
                    self._commit(writer, name, last + 1, [(0, rows), (0, rows)])
                case "another writer":
                    self._commit("nobody", name, 0, [(0, rows)])
                case "after the end":
                    self._commit(writer, name, last + 1, [(0, rows)])
        except BridgeError:
            return
        job.fail(f"{way} for epoch {last} of {writer}, and nobody minds")

    def _commit(
        self, writer: str, stream: str, epoch: int, parts: list[tuple[int, pa.Table]]
    ) -> None:
        client, staged = self._client(), []
        for number, (partition, rows) in enumerate(parts):
            stage = p.Stage(writer, stream, epoch, partition, f"forged-{epoch}-{number}")
            with client.stage(stage) as part:
                part.write(rows)
            assert part.staged is not None
            staged.append(part.staged)
        client.commit(p.Commit(writer, epoch, tuple(staged)))
