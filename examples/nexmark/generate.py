"""Persons, auctions and bids, as Nexmark's generator draws them.

Every 50 events have 1 person, 3 auctions and 46 bids. Some sellers, auctions, bidders and channels
are hot; prices spread evenly over six powers of ten.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

TUPLES = 20_000
SEED = 20080902
FIRST, BEGIN = 1000, 1_436_918_400_000  # identifiers, and milliseconds since 1970
CITIES = ("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne")  # fmt: skip
STATES = ("AZ", "CA", "CA", "ID", "OR", "OR", "WA", "WA", "WA", "WY")
GIVEN = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")  # fmt: skip
FAMILY = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
CHANNELS = ("Google", "Facebook", "Baidu", "Apple")

Ints = npt.NDArray[np.int64]


def streams(events: int, seed: int, gap: int = 10) -> dict[str, pa.Table]:
    """Returns so many events, `gap` milliseconds apart on average, as three streams."""
    draw = np.random.default_rng(seed)
    number = np.arange(events)
    place, epoch = number % 50, number // 50
    time = BEGIN + np.cumsum(draw.integers(0, 2 * gap + 1, events))
    persons, auctions = epoch + 1, 3 * epoch + np.clip(place, 1, 3)  # seen so far

    def identifier(seen: Ints, active: int, hot: int, every: int) -> Ints:
        """Returns an identifier seen before: a recent one in one of `hot` cases, otherwise a hot
        one."""
        last = np.maximum(seen - 1, 0)
        some = last - draw.integers(0, active, len(seen)) % (last + 1)
        chosen = draw.integers(0, hot, len(seen)) > 0
        return FIRST + np.where(chosen, last // every * every, some)

    def some(names: tuple[str, ...], count: int) -> npt.NDArray[np.str_]:
        return np.array(names)[draw.integers(0, len(names), count)]

    def texts(count: int) -> list[str]:
        letters = draw.integers(97, 123, (count, 12)).astype(np.uint8)
        return [bytes(one).decode() for one in letters]

    def prices(count: int) -> Ints:
        return np.round(10 ** (draw.random(count) * 6) * 100).astype(np.int64)

    is_person, is_auction = place == 0, (place > 0) & (place < 4)
    is_bid = place > 3
    at = time.astype("datetime64[ms]")
    n = int(is_person.sum())
    where = draw.integers(0, len(CITIES), n)
    names = [f"{a} {b}" for a, b in zip(some(GIVEN, n), some(FAMILY, n), strict=True)]
    person = {
        "id": FIRST + epoch[is_person],
        "name": names,
        "emailAddress": [f"{name.lower().replace(' ', '@')}.com" for name in names],
        "creditCard": [f"{card:016d}" for card in draw.integers(0, 10**16, n)],
        "city": np.array(CITIES)[where],
        "state": np.array(STATES)[where],
        "dateTime": at[is_person],
        "extra": texts(n),
    }
    n = int(is_auction.sum())
    initial = prices(n)
    auction = {
        "id": FIRST + 3 * epoch[is_auction] + place[is_auction] - 1,
        "itemName": texts(n),
        "description": texts(n),
        "initialBid": initial,
        "reserve": initial + prices(n),
        "dateTime": at[is_auction],
        "expires": (time[is_auction] + draw.integers(1, 40 * 50 * gap, n)).astype("datetime64[ms]"),
        "seller": identifier(persons[is_auction], 1000, 4, 100),
        "category": draw.integers(10, 15, n),
        "extra": texts(n),
    }
    n = int(is_bid.sum())
    hot, other = draw.integers(0, 4, n), draw.integers(0, 10_000, n)
    chosen = draw.random(n) < 0.5
    channel = np.where(chosen, np.array(CHANNELS)[hot], np.char.add("channel-", other.astype(str)))
    queries = [f"&channel_id={one}" if one % 10 else "" for one in other]
    bid = {
        "auction": identifier(auctions[is_bid], 100, 2, 100),
        "bidder": identifier(persons[is_bid], 1000, 4, 100),
        "price": prices(n),
        "channel": channel,
        "url": [f"https://www.nexmark.com/{a}/{b}/{c}/item.htm?query=1{q}"
                for a, b, c, q in zip(texts(n), texts(n), texts(n), queries, strict=True)],
        "dateTime": at[is_bid],
        "extra": texts(n),
    }  # fmt: skip
    found = {"person": pa.table(person), "auction": pa.table(auction), "bid": pa.table(bid)}
    side = pa.table({"key": np.arange(100), "value": [f"value {key}" for key in range(100)]})
    return found | {"side_input": side}
