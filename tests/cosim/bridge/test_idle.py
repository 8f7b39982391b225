"""Tests streams that bring nothing for their idle_timeout, by a clock that the test sets."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pyarrow as pa

from seustream.compiler.pipeline import compile_text
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.bridge import Bridge
from seustream.cosim.bridge.client import message_of
from seustream.cosim.bridge.idle import IdleStreams
from seustream.cosim.bridge.limits import USUAL
from seustream.cosim.bridge.session import Session
from seustream.cosim.bridge.world import World
from seustream.cosim.golden import GoldenDevice
from seustream.engine.graph import GraphRun
from tests.cosim.bridge.serving import TINY, compiled, stage_epoch

TEXT = """CREATE STREAM R (a int); CREATE STREAM S (a int) WITH (idle_timeout = '2 s');
SELECT R.a FROM R, S WHERE R.a = S.a WINDOW RANGE 1 minute; SELECT a FROM R UNION ALL SELECT a FROM S"""


class Still:
    """Provides what `IdleStreams` uses of a session, over a run and a clock that the test sets."""

    def __init__(self) -> None:
        self.run, self.ended, self.time = GraphRun(compile_text(TEXT)), set[str](), 0.0
        self.changed, self.world = self, SimpleNamespace(now=lambda: self.time)
        self.heard: dict[str, float] = {}
        self.waiting_streams = set[str]()

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...

    def promise(self, promise: p.Promise, is_idle: bool) -> None:
        assert is_idle
        self.run.promise(promise.stream, promise.timestamp)


def test_an_idle_stream_follows_the_others_until_it_brings_something() -> None:
    session, idle = Still(), IdleStreams()

    def at(time: float, stream: str = "", ts: int = 0) -> int | None:
        """Sets the time, after a row if one is given; returns what S has promised."""
        if stream:
            session.run.push(stream, pa.table({"ts": [ts], "a": pa.array([1], pa.int32())}))
            session.heard[stream] = time
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
    assert at(4.6, "S", 8_000) == 9_000  # a late row is a row
    assert at(4.7, "R", 12_000) == 9_000
    assert at(6.5, "S", 8_500) == 9_000
    session.waiting_streams = {"S"}
    assert at(12) == 9_000  # what it has sent waits
    session.waiting_streams = set()
    assert at(13.9) == 9_000
    assert at(14.1) == 12_000


def test_a_stream_that_sends_within_its_slack_is_not_idle(tmp_path: Path) -> None:
    """Rows that do not advance it are none the less there; none of them is late."""
    now = [0.0]

    class Set(World):
        def now(self) -> float:
            return now[0]

    text = """CREATE STREAM R (a int); CREATE STREAM S (a int)
      WITH (idle_timeout = '2 s', max_out_of_orderness = '1 minute');
    REGISTER QUERY q AS SELECT a FROM S WINDOW NOW; REGISTER QUERY r AS SELECT a FROM R WINDOW NOW"""
    with contextlib.closing(Bridge(GoldenDevice(TINY), tmp_path, "golden", USUAL, Set())) as made:
        made.act("load", p.write(message_of(compiled(text))))
        idle = IdleStreams()
        for second in range(20):
            now[0] = float(second)
            rows = {"S": pa.table({"ts": [50_000 - second], "a": pa.array([second], pa.int32())})}
            if not second:
                rows["R"] = pa.table({"ts": [200_000], "a": pa.array([1], pa.int32())})
            stage_epoch(made, second, rows)
            made.session.flush()
            idle.look(made.session)
        assert not made.session.run.report.late
