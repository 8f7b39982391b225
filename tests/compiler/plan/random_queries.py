"""Random query sets over the streams of the fixtures, as text."""

from __future__ import annotations

import random

JOINABLE = {"R": ("a", "b", "c"), "S": ("d", "e"), "T": ("f", "g"), "U": ("h", "i")}


def query(chance: random.Random, connected: bool = False) -> str:
    streams = chance.sample(list(JOINABLE), chance.choice((2, 2, 3, 3, 4)))
    terms = [_term(chance, streams, connected) for _ in range(chance.choice((1, 1, 2)))]
    window = chance.choice(("RANGE 100", "RANGE 200", "5"))
    condition = " OR ".join(f"({term})" for term in terms)
    return f"SELECT * FROM {', '.join(streams)} WHERE {condition} WINDOW {window};"


def _term(chance: random.Random, streams: list[str], connected: bool) -> str:
    conditions = []
    if connected:
        for number, stream in enumerate(streams[1:], start=1):
            conditions.append(_factor(chance, stream, chance.choice(streams[:number])))
    else:
        for _ in range(chance.choice((1, 1, 2))):
            conditions.append(_factor(chance, *chance.sample(streams, 2)))
    if chance.random() < 0.3:
        stream = chance.choice(streams)
        conditions.append(f"{stream}.{chance.choice(JOINABLE[stream])} > {chance.randrange(2)}")
    return " AND ".join(conditions)


def _factor(chance: random.Random, one: str, other: str) -> str:
    one, other = sorted((one, other))
    symbol = chance.choice(("=", "=", "=", "<"))
    # Only a few columns, so that queries share factors.
    return f"{one}.{chance.choice(JOINABLE[one][:2])} {symbol} {other}.{JOINABLE[other][0]}"
