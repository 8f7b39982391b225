"""Tests streams that bring nothing for their idle_timeout, by a clock that the test sets."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pyarrow as pa

from seustream.compiler.pipeline import compile_text
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.idle import IdleStreams
from seustream.cosim.bridge.session import Session
from seustream.engine.graph import GraphRun

TEXT = """CREATE STREAM R (a int); CREATE STREAM S (a int) WITH (idle_timeout = '2 s');
SELECT R.a FROM R, S WHERE R.a = S.a WINDOW RANGE 1 minute; SELECT a FROM R UNION ALL SELECT a FROM S"""


class Still:
    """Provides what `IdleStreams` uses of a session, over a run and a clock that the test sets."""

    def __init__(self) -> None:
        self.run, self.ended, self.time = GraphRun(compile_text(TEXT)), set[str](), 0.0
        self.changed, self.world = self, SimpleNamespace(now=lambda: self.time)

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...

    def promise(self, promise: p.Promise) -> None:
        self.run.promise(promise.stream, promise.timestamp)


def test_an_idle_stream_follows_the_others_until_it_brings_something() -> None:
    session, idle = Still(), IdleStreams()

    def at(time: float, stream: str = "", ts: int = 0) -> int | None:
        """Sets the time, after a row if one is given; returns what S has promised."""
        if stream:
            session.run.push(stream, pa.table({"ts": [ts], "a": pa.array([1], pa.int32())}))
        session.time = time
        idle.look(cast(Session, session))
        return session.run.promises.get("S")

    assert at(0, "S", 100) == 100
    assert at(1, "R", 5_000) == 100
    assert at(1.9) == 100
    assert at(2.1) == 5_000
    assert at(2.2, "R", 6_000) == 6_000  # it follows at once
    assert at(2.3, "S", 7_000) == 7_000
    assert at(2.4, "R", 9_000) == 7_000  # S has brought a row: R waits for it
    assert at(4.5) == 9_000
