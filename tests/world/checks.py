"""Checks what must hold in a simulated world: after each step, and at the end."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from seustream.cosim.bridge.bridge import Bridge
from seustream.cosim.bridge.session import Session
from tests.cosim.bridge.serving import Rows, multiset
from tests.world.operators import NEW, POISON

if TYPE_CHECKING:
    from tests.world.world import Job

_EVERY = 8
"""Steps between two looks into a session."""


class Checks:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.steps = 0
        self._promises: tuple[Any, dict[str, int]] = (None, {})
        self._retained: tuple[Session | None, int | None] = (None, 0)
        self._staged: tuple[Any, dict[str, int], dict[str, Any]] = (None, {}, {})

    def is_quiet(self) -> bool:
        """Returns whether a glance will do as the look after this step: one is due, and it sees
        nothing."""
        job = self.job
        if (
            job.wrong is not None
            or job.simulation.crashed is not None
            or not (self.steps + 1) % _EVERY
            or job.over()
        ):
            return False
        self.steps += 1
        return True

    def look(self) -> None:
        """Looks after each step; mostly only a glance."""
        job = self.job
        if job.wrong is not None:
            raise AssertionError(job.wrong)
        assert job.simulation.crashed is None, job.simulation.crashed
        self.steps += 1
        server = job.network.server
        if self.steps % _EVERY or server is None:
            return
        bridge = server[1].bridge
        if bridge._session is not None:
            self._look_into(bridge, bridge._session)

    def _look_into(self, bridge: Bridge, session: Session) -> None:
        job, limits = self.job, bridge.limits
        run = session.runner.run
        promises = run.promises
        if self._promises[0] is run:
            for name, before in self._promises[1].items():
                assert promises.get(name, before) >= before, f"the watermark of {name} retreats"
        self._promises = (run, promises)
        if session.applied >= session.replayed:  # a restart takes up what was taken before
            waiting = session.waiting_rows
            assert waiting <= limits.waiting_rows, f"{waiting} rows wait"
        self._look_at_results(session)
        assert job.disk.used < 250_000, f"the journal has {job.disk.used:,} bytes"
        self._look_at_staged(session)
        now = job.simulation.time
        for one in bridge.exchanges._open:
            since = now if one.waiting is None else one.waiting
            assert now - since < 2 * job.idle, "an idle exchange stays open"
        self._look_at_failure(session.failure)

    def _look_at_results(self, session: Session) -> None:
        """A replay goes on despite a full room for a reader that is ahead of it (decision 0230),
        and so do rows behind the reader until it is reached. A surplus then must not grow
        afterwards."""
        found, (of, before) = session.delivery.retained, self._retained
        goes_on = session.applied < session.replayed or bool(session.reading.ahead)
        if goes_on or (of is not session and session.replayed):
            before = None
        elif of is not session:
            before = 0
        usual = session.limits.result_rows + 60
        assert before is None or found < max(usual, before + 1), "results wait without a bound"
        # Only the next look sees what came of the last steps of a replay.
        self._retained = (session, None if goes_on else found)

    def _look_at_staged(self, session: Session) -> None:
        """Everything staged for an epoch goes when the epoch is in, also what was staged in
        vain."""
        epochs = session.epochs
        assert len(epochs.staged) < 60, "staged parts heap up"
        if session.changed._owner is not None:  # type: ignore[attr-defined]
            return  # it may be about to go
        last = {name: writer.epoch for name, writer in epochs.writers.items()}
        of, before, parts = self._staged
        if of is epochs and last != before:
            for staging, kept in parts.items():
                writer, epoch = kept.stage.writer, kept.stage.epoch
                over = before.get(writer, -1) < last.get(writer, -1) >= epoch
                assert not over or epochs.staged.get(staging) is not kept, (
                    f"a part of epoch {epoch} of {writer} stays, which nobody can name any more"
                )
        self._staged = (epochs, last, dict(epochs.staged))

    def _look_at_failure(self, failure: str | None) -> None:
        job = self.job
        if failure is not None:
            process = job.bridge
            if job.faults.damaged:
                job.refuse(failure)
            elif process is not None and process.alive and job.disk.power:
                raise AssertionError(f"the session has failed: {failure}")

    def check(self) -> None:
        """Checks the results at the end."""
        job = self.job
        for name, wanted in job.wanted.items():
            found: Rows = Counter()
            for rows in job.output[name].values():
                found += multiset(rows)
            if found != wanted:
                lost, more = (wanted - found).total(), (found - wanted).total()
                raise AssertionError(f"{name}: {lost} results lost, {more} too many")
        if job.operators.registered is not None and job.network.server is not None:
            self._check_registered(job.network.server[1].bridge, job.operators.registered)

    def _check_registered(self, bridge: Bridge, since: int) -> None:
        """Checks that a query registered in mid-stream has all rows of the epochs that came after
        it, and before them those that still waited for the other stream: a row and all that follow
        in time. A query that has failed must report it."""
        job = self.job
        log = bridge.session.logs["extra"]
        found = Counter(zip(*(log.rows.column(n).to_pylist() for n in ("a", "b")), strict=True))
        rows, offsets = job.rows["R"], job.feeds["R"].offsets
        latest = offsets[since][0] if since in offsets else rows.num_rows
        after = rows.slice(latest)["ts"].to_pylist()
        rows = rows.sort_by("ts")
        at = [ts in {*after} for ts in rows["ts"].to_pylist()]
        pairs = list(zip(rows["a"].to_pylist(), rows["b"].to_pylist(), strict=True))
        first = at.index(True) if after else len(pairs)
        strict, name = job.operators.text != NEW, "extra"
        if strict and (name in bridge.session.run.failed or name in bridge.session.broken):
            assert any(a == POISON for a, _ in pairs), "a query has failed over nothing"
            return
        fits = False
        for start in range(first + 1):
            # Without `a` the strict query knows of no row.
            some = [one for one in pairs[start:] if one[1] > 300]
            if found == Counter(one for one in some if not strict or one[0] is not None):
                fits = True
                # Rows that give no result may be among those before it began.
                if not (strict and any(a == POISON for a, _ in pairs[start:])):
                    return
        assert not fits, "a strict query goes on over a fault"
        raise AssertionError(f"extra has {found.total()} results, which begin nowhere")
