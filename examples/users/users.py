"""Many users at one server: each registers queries of its own, pauses them, resumes them and drops them,
while prices come. What every query gave is compared with a reckoning of its user's.

    python examples/users/users.py --users 8 --rounds 20 --seed 1
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from seustream.commands.query import listing
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.bridge import Bridge
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.service import Service

STREAM = "CREATE STREAM prices (symbol int, price int);"
QUERY = "SELECT price FROM prices WHERE symbol = {} AND price > {} WINDOW NOW"
BATCH = 200
"""Prices between two moves of the users."""

Price = tuple[int, int]


@dataclass
class Mine:
    """A query of a user: its parameters, and the results expected in its present run."""

    symbol: int
    limit: int
    wanted: list[int] = field(default_factory=list)
    runs: bool = True


class User:
    """A user with a connection and some queries, who decides at random what to do with them."""

    def __init__(self, name: str, url: str, seed: int) -> None:
        self.name, self.client, self._chance = name, BridgeClient(url), random.Random(seed)
        self.queries: dict[str, Mine] = {}
        self.did = Counter[str]()

    def move(self) -> None:
        what = self._chance.choice(("register", "register", "pause", "resume", "drop", "mistake"))
        some = [name for name, one in self.queries.items() if one.runs is (what == "pause")]
        if what == "register":
            name = f"{self.name}_{self.did[what]}"
            mine = Mine(self._chance.randrange(5), self._chance.randrange(100))
            self.queries[name] = mine
            self._register(name, mine)
        elif what == "mistake":
            try:
                self.client.act("statement", p.Statement(f"SELECT prize FROM prices; {STREAM}"))
            except BridgeError as error:
                if "did you mean price" not in str(error):
                    raise
        elif some:
            name = self._chance.choice(some)
            mine = self.queries[name]
            if what == "pause":
                self.client.act("query-stop", p.Named(name))
                mine.runs = False
                self.check(name)
            elif what == "resume":
                mine.wanted, mine.runs = [], True
                self._register(name, mine)
            else:
                self.check(name)
                self.client.act("statement", p.Statement(f"DROP QUERY {name}"))
                del self.queries[name]
        else:
            return
        self.did[what] += 1

    def _register(self, name: str, mine: Mine) -> None:
        text = QUERY.format(mine.symbol, mine.limit)
        self.client.act("query-register", p.Register(name, text, name, "sql"))

    def saw(self, prices: list[Price]) -> None:
        """Computes the results that the user's queries owe for these prices."""
        for mine in self.queries.values():
            if mine.runs:
                fits = (price for symbol, price in prices if symbol == mine.symbol)
                mine.wanted += [price for price in fits if price > mine.limit]

    def check(self, name: str) -> None:
        found = self.client.latest(name)
        rows = self.client.read(name, found["first"], found["end"])
        assert rows.column("price").to_pylist() == self.queries[name].wanted, name
        self.did["checked"] += 1


def feed(client: BridgeClient, epoch: int, prices: list[Price]) -> None:
    """Commits prices as one epoch, and promises that nothing earlier comes."""
    begin = epoch * BATCH
    symbols, values = zip(*prices, strict=True)
    rows = {"ts": range(begin, begin + BATCH), "symbol": symbols, "price": values}
    with client.stage(p.Stage("exchange", "prices", epoch, 0, f"epoch-{epoch}")) as part:
        part.write(pa.table({name: pa.array(list(column)) for name, column in rows.items()}))
    assert part.staged is not None
    client.commit(p.Commit("exchange", epoch, (part.staged,)))
    client.promise("prices", begin + BATCH)
    client.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--users", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        bridge = Bridge(None, Path(folder))
        service = Service(bridge, "grpc://127.0.0.1:0")
        url = f"grpc://127.0.0.1:{service.port}"
        exchange = BridgeClient(url)
        exchange.act("statement", p.Statement(STREAM))
        users = [User(f"user{n}", url, options.seed + n) for n in range(options.users)]
        with ThreadPoolExecutor(options.users) as pool:
            for epoch in range(options.rounds):
                list(pool.map(User.move, users))  # all at once
                prices = [(chance.randrange(5), chance.randrange(100)) for _ in range(BATCH)]
                feed(exchange, epoch, prices)
                for user in users:
                    user.saw(prices)
        for user in users:
            for name in user.queries:
                user.check(name)
        print(*listing(exchange).splitlines()[:6], "…", sep="\n")
        did = sum((user.did for user in users), Counter[str]())
        print(", ".join(f"{what} {times}" for what, times in sorted(did.items())))
        print("every query gave what its user reckoned")
        for client in (exchange, *(user.client for user in users)):
            client.close()
        service.stop(grace=2)
        bridge.close()


if __name__ == "__main__":
    main()
