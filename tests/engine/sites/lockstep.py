"""The experiment in lockstep: the cost of a run for each way of joining, computed from counts of
rows.

Each time unit first deletes what no window reaches; then the sites' blocks come one by one, each
seen by the next. No row is made: sizes of joins are products of counts, so runs with 10^8 results
take milliseconds. The tests compare it with the protocol and real rows.

    unit t:  delete rows with t - t_r > window   (Expire: a quarter for each key, site to centre)
             for each site: Delta, filter, order, Plan, Probes, Result

| way | |
|---|---|
| `Planned` | synopses, filter and a planned order: SMJ with any planner |
| `Lottery` | each site sends a block to the site that let the fewest rows through |
| `AtHub` | everything goes to one node, results from there |
| `Bloom` | filters of 64 bits between all sites, the nearest site next |
| `Auto` | planned joins or a hub, block by block, as an account allows |

The setting: nodes 0..n-1 are sites, node n is the query node. Unit costs are 1..10; each site gets
about five rows a time unit, with keys 1..20. The generator is plain Python, so that a seed means
the same everywhere.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from seustream.engine.sites.account import Account, Recent
from seustream.engine.sites.costs import ENTRY, UnitCosts, times
from seustream.engine.sites.keys import Key
from seustream.engine.sites.model import Counts, Entry, EquiJoin, counts
from seustream.engine.sites.planner import Planner, Task, auto, plan
from seustream.engine.sites.synopsis import Synopses

UNITS, RATE, DOMAIN, DEAREST, BITS = 30, 5, 20, 10, 64


@dataclass(frozen=True, slots=True)
class LockstepSetting:
    """The input of one run: costs, and `keys[t][i]`, the keys of site i's block at time t."""

    n: int
    costs: UnitCosts
    keys: tuple[tuple[tuple[int, ...], ...], ...]

    @property
    def query_node(self) -> int:
        return self.n

    @property
    def sources(self) -> range:
        return range(self.n)

    @property
    def rows(self) -> int:
        return sum(len(block) for unit in self.keys for block in unit)


def setting(seed: int, n: int, units: int = UNITS) -> LockstepSetting:
    """Returns the setting of one seed; the paper's has 30 units and seeds 1000·n + s."""
    chance = random.Random(seed)
    w = [[0] * (n + 1) for _ in range(n + 1)]
    for a in range(n + 1):
        for b in range(a + 1, n + 1):
            w[a][b] = w[b][a] = 1 + int(chance.random() * DEAREST)

    def block() -> tuple[int, ...]:
        return tuple(1 + int(chance.random() * DOMAIN) for _ in range(_poisson(chance)))

    keys = tuple(tuple(block() for _ in range(n)) for _ in range(units))
    return LockstepSetting(n, UnitCosts.of(w), keys)


def _poisson(chance: random.Random) -> int:
    """Draws a Poisson number by Knuth's method."""
    k, p, floor = 0, 1.0, math.exp(-RATE)
    while True:
        p *= chance.random()
        if p <= floor:
            return k
        k += 1


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms on which a run is counted. `vector`, if given, is the price of a dense synopsis in
    entries; it applies to each non-empty block, to the plan for it, and to each deletion."""

    window: float = math.inf
    deliver: bool = True
    vector: int | None = None

    def entries(self, counts: Collection[Entry], cause: Counts | None = None) -> float:
        """Returns the price of sending counts; a dense plan for a non-empty block has all its
        entries."""
        dense = self.vector if cause or counts else None
        return ENTRY * (dense or len(counts))


@dataclass(slots=True)
class Outcome:
    """Cost and results by time unit; `synopses` is the part of the cost spent on synopses."""

    costs: list[float] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    synopses: float = 0.0

    @property
    def total(self) -> float:
        return sum(self.costs)

    @property
    def mean(self) -> float:
        return self.total / len(self.costs)


class Way:
    """A way to join, over one setting: the loop, and the synopses at the time each block comes. A
    way gives its costs of deletions, of a block, and of the end of a unit."""

    def __init__(self, setting: LockstepSetting, terms: Terms | None = None) -> None:
        self.setting, self.terms = setting, terms or Terms()
        self.w = setting.costs.w
        self.synopses = Synopses(EquiJoin.on_one_key([self.terms.window] * setting.n))
        self.live: list[deque[tuple[int, Counts]]] = [deque() for _ in setting.sources]
        self.outcome = Outcome()

    def run(self) -> Outcome:
        last = len(self.setting.keys) - 1
        for t, blocks in enumerate(self.setting.keys):
            cost, results = 0.0, 0
            for i, gone in self._expired(t):
                cost += self.expired(i, gone)
            for i, keys in enumerate(blocks):
                block = counts((key,) for key in keys)
                spent, joined = self.block(i, block)
                cost, results = cost + spent, results + joined
                self.synopses.sites[i].add(block)
                self.live[i].append((t, block))
            self.outcome.costs.append(cost + self.unit_over(last=t == last))
            self.outcome.results.append(results)
        return self.outcome

    def _expired(self, t: int) -> Iterator[tuple[int, Counts]]:
        """Yields the rows that each site deletes at the start of a unit, by key."""
        for i in self.setting.sources:
            gone: Counter[Entry] = Counter()
            while self.live[i] and t - self.live[i][0][0] > self.terms.window:
                gone.update(self.live[i].popleft()[1])
            if gone:
                self.synopses.sites[i].remove(gone)
                yield i, gone

    def expired(self, i: int, gone: Counts) -> float:
        return 0.0

    def block(self, i: int, block: Counts) -> tuple[float, int]:
        """Returns cost and results of site i's block."""
        raise NotImplementedError

    def unit_over(self, last: bool) -> float:
        return 0.0

    # Shared by several ways.

    @property
    def sink(self) -> int | None:
        return self.setting.query_node if self.terms.deliver else None

    def task(self, source: int, rows: Counts, known: Synopses | None = None) -> Task:
        size = (known or self.synopses).sizes(source, rows)
        return Task(self.setting.n, source, size, self.setting.costs, self.sink)

    def results(self, source: int, block: Counts) -> int:
        """Returns the number of results of a block."""
        task = self.task(source, self.synopses.filter(source, block))
        return int(task.size(task.all))


class Planned(Way):
    """Synopses, filter and a planned order. Without `filtered` only the order, as if counts were
    known at no cost."""

    def __init__(
        self,
        setting: LockstepSetting,
        terms: Terms | None,
        planner: Planner,
        filtered: bool = True,
        on_block: Callable[[Task, float], None] = lambda task, cost: None,
    ) -> None:
        super().__init__(setting, terms)
        self.planner, self.filtered, self.on_block = planner, filtered, on_block
        self.centre = setting.costs.centre(setting.sources)

    def expired(self, i: int, gone: Counts) -> float:
        return self._synopses(self.terms.entries(gone) * self.w[i][self.centre])

    def _synopses(self, cost: float) -> float:
        cost = cost if self.filtered else 0.0
        self.outcome.synopses += cost
        return cost

    def block(self, i: int, block: Counts) -> tuple[float, int]:
        kept, there, back = self.synopses.filter(i, block), self.w[i], self.w[self.centre]
        asked = self.terms.entries(block) * there[self.centre]
        answered = self.terms.entries(kept, cause=block) * back[i]
        cost, going = self._synopses(asked + answered), kept if self.filtered else block
        if not going:
            return cost, 0
        task = self.task(i, going)
        order = plan(task, self.planner)
        assert order is not None
        self.on_block(task, order.cost)
        return cost + order.cost, int(task.size(task.all))


@dataclass(frozen=True, slots=True)
class Trip:
    """A block's path: the nodes in order, the rows that left each, and whether it got through."""

    nodes: tuple[int, ...]
    rows: tuple[int, ...]
    through: bool

    @property
    def results(self) -> int:
        return self.rows[-1] if self.through else 0

    def cost(self, costs: UnitCosts, sink: int | None) -> float:
        steps = zip(self.nodes, self.nodes[1:], self.rows, strict=False)
        total = sum(times(rows, costs.w[a][b]) for a, b, rows in steps)
        if self.through and sink is not None:
            total += times(self.rows[-1], costs.w[self.nodes[-1]][sink])
        return total


class Memory:
    """The memory of all sites for lottery routing: for each other site, the number of rows sent
    there and the number that came of them. The next stop is the site with the highest share `sf =
    (sent + 1)/(came + 1)` among those not yet visited, the lowest-numbered of equals; nothing is
    drawn, and unit costs do not matter. The 1s give an unseen site the share 1."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.sent = [[0] * n for _ in range(n)]
        self.came = [[0] * n for _ in range(n)]

    def share(self, at: int, to: int) -> Fraction:
        return Fraction(self.sent[at][to] + 1, self.came[at][to] + 1)

    def next(self, at: int, left: set[int]) -> int:
        return max(left, key=lambda to: (self.share(at, to), -to))

    def route(self, source: int, block: Counts, synopses: Synopses) -> Trip:
        """Routes a block through the sites, by counts, and remembers the outcome."""
        nodes, rows = [source], [sum(block.values())]
        left, at, current = set(range(self.n)) - {source}, source, dict(block)
        while left and current:
            to = self.next(at, left)
            held = synopses.sites[to].by_class[0]
            joined = {e: c * held.count(e[0]) for e, c in current.items() if held.has(e[0])}
            self.sent[at][to] += rows[-1]
            self.came[at][to] += sum(joined.values())
            left.discard(to)
            at, current = to, joined
            nodes.append(to)
            rows.append(sum(joined.values()))
        return Trip(tuple(nodes), tuple(rows), not left)


class Lottery(Way):
    """Lottery routing, without synopses or costs."""

    def __init__(self, setting: LockstepSetting, terms: Terms | None = None) -> None:
        super().__init__(setting, terms)
        self.memory = Memory(setting.n)

    def block(self, i: int, block: Counts) -> tuple[float, int]:
        trip = self.memory.route(i, block, self.synopses)
        return trip.cost(self.setting.costs, self.sink), trip.results


class AtHub(Way):
    """Sends everything to node h, and results from there."""

    def __init__(self, setting: LockstepSetting, terms: Terms | None, h: int) -> None:
        super().__init__(setting, terms)
        self.h = h

    def block(self, i: int, block: Counts) -> tuple[float, int]:
        results = self.results(i, block)
        delivery = 0.0 if self.sink is None else results * self.w[self.h][self.sink]
        return sum(block.values()) * self.w[i][self.h] + delivery, results


class Bloom(Way):
    """After each block its site sends every other site 64 bits that hold its keys; sites filter by
    the bits they received and route to the nearest site not yet visited."""

    def block(self, i: int, block: Counts) -> tuple[float, int]:
        left = {k for k in self.setting.sources if k != i}
        cost = ENTRY * sum(self.w[i][k] for k in left) if block else 0.0
        filters = dict.fromkeys(left, 0)
        for k in left:
            for (key,) in (entry for _, kept in self.live[k] for entry in kept):
                filters[k] |= bits(key)
        survivors = {
            entry: count
            for entry, count in block.items()
            if all(bits(entry[0]) & of == bits(entry[0]) for of in filters.values())
        }
        order, at = [], i
        while left:
            row = self.w[at]
            at = min(left, key=lambda k: (row[k], k))  # takes effect at once
            order.append(at)
            left.discard(at)
        if survivors:
            cost += self.task(i, survivors).cost(tuple(order))
        return cost, self.results(i, block)


def bits(key: Key) -> int:
    """Returns the two bits of a key: the first two bytes of the hash of its decimal form."""
    digest = hashlib.blake2b(str(key).encode(), digest_size=8).digest()
    return 1 << digest[0] % BITS | 1 << digest[1] % BITS


class Auto(Way):
    """`strategy=auto`: stays below the cost of every hub.

    While some site has no rows, nothing can join and synopses stay at home: a block costs nothing,
    and every hub's cost grows. A site owes whatever it has not sent, net of what it deleted
    meanwhile, and sends it with its next block; the same holds for deletions. A block's way through
    planned joins is then

        owed synopses -> filter, order -> plan and probes -> results

    Each step is taken if the account affords it; otherwise the block goes the hub's way, rows ->
    results. The cost of a move counts in its unit."""

    def __init__(
        self, setting: LockstepSetting, terms: Terms | None = None, planner: Planner = auto
    ) -> None:
        super().__init__(setting, terms)
        self.planner = planner
        self.account = Account(setting.costs, self.sink, range(setting.n + 1))
        self.recent = Recent(self.account)
        self.centre = setting.costs.centre(setting.sources)
        self.known = Synopses(self.synopses.join)
        self.owed: list[Counter[Entry]] = [Counter() for _ in setting.sources]
        self.rows = [0] * setting.n
        self.unsent = [False] * setting.n

    def expired(self, i: int, gone: Counts) -> float:
        self.owed[i].subtract(gone)
        return 0.0

    def block(self, i: int, block: Counts) -> tuple[float, int]:
        before, rows = self.account.total, sum(block.values())
        self.account.arrived(i, rows)
        self.rows[i] += rows
        self.owed[i].update(block)
        self.unsent[i] = self.unsent[i] or rows > 0
        results = self.results(i, block)
        if self.account.hub is None:
            if not self._planned(i, block, results):
                self._move(self.account.leader, i, block)
                self._from_hub(i, block, results)
        else:
            cost = rows * self.w[i][self.account.hub]
            if self.account.affords(cost):
                self.account.pay(cost)
            else:
                self._move(self.account.leader, i, block)
            self._from_hub(i, block, results)
        return self.account.total - before, results

    def unit_over(self, last: bool) -> float:
        """Checks every ten units: a hub that would have saved a fifth is worth its move."""
        before = self.account.total
        if self.recent.unit_over() and self.account.hub is None and not last:
            best = self.recent.best()
            move = self._move_cost(best)
            if self.recent.gains(best, move):
                self.account.go(best, move)
        return self.account.total - before

    def _planned(self, i: int, block: Counts, results: int) -> bool:
        """Returns whether the block was joined between the sites within what the account
        affords."""
        if not block or not all(self.rows):
            self.account.joined(results)
            return True
        asked = [k for k in self.setting.sources if k == i or self.unsent[k]]
        own: dict[int, Counts] = {i: block}
        cost = sum(
            self.terms.entries(self._changed(k, own.get(k, {}))) * self.w[k][self.centre]
            for k in asked
        )
        if not self.account.affords(cost):
            return False
        self.account.pay(cost)
        self.outcome.synopses += cost
        for k in asked:
            self._send(k, but=own.get(k, {}))
        kept = self.known.filter(i, block)
        self.known.sites[i].add(block)
        answer = self.terms.entries(kept, cause=block) * self.w[self.centre][i]
        way = 0.0
        if kept:
            order = plan(self.task(i, kept, self.known), self.planner)
            assert order is not None
            way = self.task(i, kept).cost(order.sites)
        self.account.joined(results)
        if not self.account.affords(answer + way):
            self.account.joined(-results)
            return False
        self.account.pay(answer + way)
        self.outcome.synopses += answer
        return True

    def _changed(self, k: int, block: Counts) -> set[Entry]:
        """Returns the entries of a message: the changes before a block, and the block."""
        changes = self.owed[k]
        return {e for e, change in changes.items() if change - block.get(e, 0)} | block.keys()

    def _send(self, k: int, but: Counts) -> None:
        """Sends a site's changes to the centre, except those of its block, which are added after
        the filter."""
        changes, self.unsent[k] = self.owed[k], False
        changes.subtract(but)
        self.known.sites[k].add({entry: c for entry, c in changes.items() if c > 0})
        self.known.sites[k].remove({entry: -c for entry, c in changes.items() if c < 0})
        changes.clear()

    def _from_hub(self, i: int, block: Counts, results: int) -> None:
        hub = self.account.hub
        assert hub is not None
        too_many = results > self.account.most_results(hub)
        self.account.joined(results)
        if too_many:
            hub = self.account.leader
            self._move(hub, i, block)
        self.account.pay(self.account.delivery(hub, results))

    def _move(self, to: int, i: int, block: Counts) -> None:
        """Moves everything alive to another hub, including the block under way."""
        self.account.go(to, self._move_cost(to) + sum(block.values()) * self.w[i][to])

    def _move_cost(self, to: int) -> float:
        return sum(
            sum(sum(kept.values()) for _, kept in live) * self.w[k][to]
            for k, live in enumerate(self.live)
        )


# --- one run of each -----------------------------------------------------------------


def run_smj(
    setting: LockstepSetting,
    planner: Planner,
    terms: Terms | None = None,
    *,
    filtered: bool = True,
    on_block: Callable[[Task, float], None] = lambda task, cost: None,
) -> Outcome:
    return Planned(setting, terms, planner, filtered, on_block).run()


def run_lottery(setting: LockstepSetting, terms: Terms | None = None) -> Outcome:
    return Lottery(setting, terms).run()


def run_hub(setting: LockstepSetting, terms: Terms | None = None) -> Outcome:
    """Returns the outcome of the best hub in hindsight."""
    outcomes = [AtHub(setting, terms, h).run() for h in range(setting.n + 1)]
    return min(outcomes, key=lambda outcome: outcome.total)


def run_bloom(setting: LockstepSetting, terms: Terms | None = None) -> Outcome:
    return Bloom(setting, terms).run()


def run_auto(
    setting: LockstepSetting, terms: Terms | None = None, planner: Planner = auto
) -> tuple[Outcome, Account]:
    way = Auto(setting, terms, planner)
    return way.run(), way.account
