"""A run over several sites, from the side of the process that wants its results.

with SitesRun(setup, names, rows) as run:    # rows of the streams that are here
    tuples = run.fetch(definition, process)  # a whole stream, for queries that need it
    run.wait()
    run.results                              # a query's number and a combination each
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from seustream.compiler.catalogue import Stream as Definition
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.sites.client import Client
from seustream.cosim.sites.process import TICK, Process, Setup
from seustream.engine.sites.errors import SitesError
from seustream.engine.sites.explain import Block, gathered
from seustream.engine.sites.model import Result
from seustream.engine.sites.shared import SharedLayout
from seustream.engine.times import Tuples

PATIENCE = 10.0
"""Seconds for which a silent site is called again before the run gives up."""


class RunFailed(SitesError):
    """A run that cannot continue: what was tried, and what to do."""


class SitesRun:
    """Process 0 of a setup. `names` are the names of the other processes for people, `rows` those
    of the streams that process 0 feeds."""

    def __init__(
        self,
        setup: Setup,
        names: Mapping[int, str],
        rows: Mapping[str, pa.Table],
        patience: float | None = None,
    ) -> None:
        assert isinstance(setup.layout, SharedLayout)
        self.setup, self.names, self.rows = setup, names, rows
        self.layout = setup.layout
        self.patience = PATIENCE if patience is None else patience
        self.process = Process(setup, 0)
        self.clients: dict[int, Client] = {}
        self.late: dict[str, int] = {}
        self.taken: dict[str, int] = {}
        self.times: dict[str, pa.DataType] = {}

    def __enter__(self) -> SitesRun:
        try:
            for number, address in enumerate(self.setup.addresses):
                if address is not None:
                    self.clients[number] = Client(address, self.setup)
            for number in self.clients:
                # A site of an earlier release does not answer with the types of times.
                self.times |= self._ask(number, "open", self.setup.plain(), number, 0) or {}
        except BaseException:
            self.__exit__()
            raise
        self.process.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.process.close()
        for client in self.clients.values():
            with contextlib.suppress(BridgeError):  # a site that is gone needs no farewell
                client.act("close")
            client.close()

    def fetch(self, definition: Definition, process: int) -> Tuples:
        """Returns a whole stream."""
        try:
            return self.clients[process].tuples(definition)
        except BridgeError as error:
            raise self._failed(process, error, 1) from None

    @property
    def results(self) -> list[tuple[int, Result]]:
        return self.process.results

    def blocks(self) -> dict[int, list[Block]]:
        """Returns, by join, the latest blocks with their routes and costs."""
        reports = [self._ask(number, "blocks") for number in self.clients]
        return gathered([self.process.report(), *reports])

    def wait(self) -> None:
        """Feeds all sites and waits until nothing is left to do anywhere; raises `RunFailed`."""
        for number in self.clients:
            self._ask(number, "feed")
        self.process.feed(self.rows)
        quiet = 0
        while quiet < 2:
            time.sleep(TICK)
            states = [self._ask(number, "state") for number in self.clients]
            own = self.process.state()
            for number, state in zip((0, *self.clients), (own, *states), strict=True):
                self._check(number, state)
                self.late |= state["late"]
                self.taken |= state["rows"]
            quiet = quiet + 1 if all(state["idle"] for state in (own, *states)) else 0

    def _ask(self, number: int, action: str, *arguments: object) -> Any:
        """Returns a service's answer; calls again while the service is silent."""
        end, tries = time.monotonic() + self.patience, 0
        while True:
            tries += 1
            try:
                return self.clients[number].act(action, *arguments)
            except BridgeError as error:
                if not error.retriable or time.monotonic() > end:
                    raise self._failed(number, error, tries) from None
            time.sleep(0.2)

    def _check(self, number: int, state: Mapping[str, Any]) -> None:
        where = self._name(number)
        if state["fault"] is not None:
            raise RunFailed(f"{where}: {state['fault']}")
        for other, (seconds, why) in state["unreachable"].items():
            if seconds > self.patience:
                raise RunFailed(
                    f"{where} cannot reach {self._name(other)}, tried for {seconds:.0f} s: {why}",
                    "each site calls the others at the addresses given here: give addresses that"
                    " all of them reach",
                )

    def _name(self, number: int) -> str:
        return self.names[number] if number else "this machine"

    def _failed(self, number: int, error: BridgeError, tries: int) -> RunFailed:
        where = self._name(number)
        if error.kind == "no-session":
            return RunFailed(f"{where}: {error}", "run the queries again")
        if error.kind == "unavailable":
            name = where.partition(" ")[2].partition(" at")[0]
            tried = f"called {tries} times in {self.patience:g} s" if tries > 1 else "called once"
            return RunFailed(
                f"{where} does not answer, {tried}",
                f"start it there (seustream serve --site {name.split(',')[0]}=FILE --listen …) and"
                " run the queries again",
            )
        hint = error.hint
        if error.kind == "unauthenticated":
            hint = "--token-file F, with the token the sites were started with"
        return RunFailed(f"{where}: {error}", hint)
