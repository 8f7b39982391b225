"""`strategy=auto` in lockstep: what a run costs that keeps below every hub, from counts alone.

While some site has no rows nothing can join, and synopses stay at home: a block costs nothing, and
every hub's cost grows. What a site has not told is owed, net of what it deleted meanwhile, and is
told with its next block; so are deletions. A block's way through planned joins is then

    owed synopses -> filter, order -> plan and probes -> results

Each step is taken if `Account` affords it; else the block goes the hub's way, rows -> results.
"""

from __future__ import annotations

from collections import Counter

from engine.sites.lockstep import Outcome, Rounds, Terms, results_of, task_of
from engine.sites.model import Counts, Entry
from engine.sites.planner import Planner, auto, plan
from engine.sites.setting import Setting
from engine.sites.sizes import Synopses
from engine.sites.strategy import Account, Recent


class Adaptive:
    """One run."""

    def __init__(self, setting: Setting, terms: Terms, planner: Planner) -> None:
        self.setting, self.terms, self.planner = setting, terms, planner
        self.rounds = Rounds(setting, terms.window)
        sink = setting.query_node if terms.deliver else None
        self.account = Account(setting.costs, sink, range(setting.n + 1))
        self.recent = Recent(self.account)
        self.centre = setting.costs.centre(setting.sources)
        self.known = Synopses(self.rounds.synopses.join)
        self.owed: list[Counter[Entry]] = [Counter() for _ in setting.sources]
        self.rows = [0] * setting.n
        self.untold = [False] * setting.n
        self.outcome = Outcome()

    def run(self) -> Outcome:
        for t in range(len(self.setting.keys)):
            before, found = self.account.total, 0
            for i, gone in self.rounds.expired(t):
                self.owed[i].subtract(gone)
            for i, block in self.rounds.blocks(t):
                found += self._block(i, block)
            self._look(last=t + 1 == len(self.setting.keys))
            self.outcome.costs.append(self.account.total - before)
            self.outcome.results.append(found)
        return self.outcome

    def _block(self, i: int, block: Counts) -> int:
        rows = sum(block.values())
        self.account.arrived(i, rows)
        self.rows[i] += rows
        self.owed[i].update(block)
        self.untold[i] = self.untold[i] or rows > 0
        results = results_of(self.rounds, i, block)
        if self.account.hub is None and not self._planned(i, block, results):
            self._move(self.account.leader, i, block)
            self._from_hub(i, block, results)
        elif self.account.hub is not None:
            self._to_hub(i, block, results)
        return results

    # --- planned joins -----------------------------------------------------------

    def _planned(self, i: int, block: Counts, results: int) -> bool:
        """Whether the block was joined between the sites, for what that may cost."""
        if not block or not all(self.rows):
            self.account.joined(results)
            return True
        w = self.setting.costs.w
        asked = [k for k in self.setting.sources if k == i or self.untold[k]]
        tell = sum(
            self.terms.entries(self._told(k, block if k == i else {})) * w[k][self.centre]
            for k in asked
        )
        if not self.account.affords(tell):
            return False
        self.account.pay(tell)
        self.outcome.synopses += tell
        for k in asked:
            self._tell(k, but=block if k == i else {})
        kept = self.known.filter(i, block)
        self.known.sites[i].add(block)
        answer = self.terms.entries(kept, cause=block) * w[self.centre][i]
        way = 0.0
        if kept:
            task = task_of(self.setting, i, self.rounds.synopses.sizes(i, kept), self.terms.deliver)
            guess = task_of(self.setting, i, self.known.sizes(i, kept), self.terms.deliver)
            order = plan(guess, self.planner)
            assert order is not None
            way = task.cost(order.sites)
        self.account.joined(results)
        if not self.account.affords(answer + way):
            self.account.joined(-results)
            return False
        self.account.pay(answer + way)
        self.outcome.synopses += answer
        return True

    def _told(self, k: int, block: Counts) -> set[Entry]:
        """The entries of a message: what changed before a block, and the block."""
        changes = self.owed[k]
        return {e for e, change in changes.items() if change - block.get(e, 0)} | block.keys()

    def _tell(self, k: int, but: Counts) -> None:
        """A site's changes reach the centre; those of a block itself when it was filtered."""
        changes, self.untold[k] = self.owed[k], False
        changes.subtract(but)
        self.known.sites[k].add({entry: c for entry, c in changes.items() if c > 0})
        self.known.sites[k].remove({entry: -c for entry, c in changes.items() if c < 0})
        changes.clear()

    # --- the hub --------------------------------------------------------------------

    def _to_hub(self, i: int, block: Counts, results: int) -> None:
        """Rows to the hub, if it is still one to send them to."""
        hub = self.account.hub
        assert hub is not None
        cost = sum(block.values()) * self.setting.costs.w[i][hub]
        if self.account.affords(cost):
            self.account.pay(cost)
        else:
            self._move(self.account.leader, i, block)
        self._from_hub(i, block, results)

    def _from_hub(self, i: int, block: Counts, results: int) -> None:
        hub = self.account.hub
        assert hub is not None
        if results > self.account.most_results(hub):
            self.account.joined(results)
            hub = self.account.leader
            self._move(hub, i, block)
        else:
            self.account.joined(results)
        self.account.pay(self.account.delivery(hub, results))

    def _move(self, to: int, i: int, block: Counts) -> None:
        """Everything alive goes to another hub, the block under way as well."""
        self.account.go(to, self._move_cost(to) + sum(block.values()) * self.setting.costs.w[i][to])

    def _move_cost(self, to: int) -> float:
        return sum(
            sum(sum(kept.values()) for _, kept in live) * self.setting.costs.w[k][to]
            for k, live in enumerate(self.rounds.live)
        )

    def _look(self, last: bool) -> None:
        """Every ten units: a hub that would have saved a fifth is worth its move."""
        if not self.recent.unit_over() or self.account.hub is not None or last:
            return
        best = self.recent.best()
        move = self._move_cost(best)
        if self.recent.gains(best, move):
            self.account.go(best, move)


def run_auto(
    setting: Setting, terms: Terms | None = None, planner: Planner = auto
) -> tuple[Outcome, Account]:
    """Planned joins or a hub, as `strategy` decides; what a move costs is in its unit."""
    run = Adaptive(setting, terms or Terms(), planner)
    return run.run(), run.account
