"""DuckDB as an independent judge of conditions, on rows with NULLs."""

from __future__ import annotations

import random
from collections.abc import Sequence

import duckdb

COLUMNS = {
    "R": ("a", "b", "c", "n", "m", "s", "x", "ok"),
    "S": ("d", "e", "k", "s", "x", "ok"),
    "T": ("f", "g"),
}
NEVER_NULL = ("n", "m", "k")
VALUES: dict[str, tuple[object, ...]] = {
    "s": ("", "a", "ab", "b%", "it's"),
    "x": (-1.5, 0.0, 0.5, 2.0),
    "ok": (True, False),
}
TYPES = {"s": "VARCHAR", "x": "REAL", "ok": "BOOLEAN"}


class Judge:
    def __init__(self, chance: random.Random, rows: int = 6) -> None:
        self.connection = duckdb.connect(":memory:")
        self.connection.execute("SET threads = 1")
        for stream, columns in COLUMNS.items():
            definitions = ", ".join(f"{c} {TYPES.get(c, 'INT')}" for c in columns)
            self.connection.execute(f"CREATE TABLE {stream} (number INT, {definitions})")
            for number in range(rows):
                values = [
                    None
                    if column not in NEVER_NULL and (number == 0 or chance.random() < 0.25)
                    else chance.choice(VALUES.get(column, (0, 1, 2, 5)))
                    for column in columns
                ]
                marks = ", ".join("?" * (len(columns) + 1))
                self.connection.execute(f"INSERT INTO {stream} VALUES ({marks})", [number, *values])

    def differing(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """Returns the positions of the pairs whose conditions select different rows."""
        differ = ", ".join(
            f"count(*) FILTER (WHERE (({a}) IS TRUE) <> (({b}) IS TRUE))" for a, b in pairs
        )
        counts = self.connection.execute(f"SELECT {differ} FROM R, S, T").fetchone()
        assert counts is not None
        return [position for position, count in enumerate(counts) if count]

    def selected(self, condition: str) -> int:
        row = self.connection.execute(f"SELECT count(*) FROM R, S, T WHERE {condition}").fetchone()
        assert row is not None
        return int(row[0])
