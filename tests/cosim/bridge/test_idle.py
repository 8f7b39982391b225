"""Tests streams that bring nothing for their idle_timeout, by a clock that the test sets."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pyarrow as pa

from seustream.compiler.pipeline import compile_text
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.bridge import Bridge
from seustream.cosim.bridge.client import message_of
from seustream.cosim.bridge.idle import let_idle_streams_follow
from seustream.cosim.bridge.limits import USUAL
from seustream.cosim.bridge.session import Session
from seustream.cosim.bridge.world import World
from seustream.cosim.golden import GoldenDevice
from seustream.engine.graph import GraphRun
from tests.cosim.bridge.serving import TINY, compiled, stage_epoch

TEXT = """CREATE STREAM R (a int); CREATE STREAM S (a int) WITH (idle_timeout = '2 s');
SELECT R.a FROM R, S WHERE R.a = S.a WINDOW RANGE 1 minute; SELECT a FROM R UNION ALL SELECT a FROM S"""


class Still:
    """Provides what is read of a session, over a run and a clock that the test sets."""

    def __init__(self) -> None:
        self.run, self.ended, self.time = GraphRun(compile_text(TEXT)), set[str](), 0.0
        self.changed, self.world = self, SimpleNamespace(now=lambda: self.time)
        self.active_at: dict[str, float] = {}
        self.pending: Counter[str] = Counter()
        self.followed: dict[str, int] = {}

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...

    def promise(self, promise: p.Promise, is_idle: bool) -> None:
        assert is_idle
        self.run.promise(promise.stream, promise.timestamp)


def test_an_idle_stream_follows_the_others_until_it_brings_something() -> None:
    session = Still()

    def at(time: float, stream: str = "", ts: int = 0) -> int | None:
        """Sets the time, after a row if one is given; returns what S has promised."""
        if stream:
            session.run.push(stream, pa.table({"ts": [ts], "a": pa.array([1], pa.int32())}))
            session.active_at[stream] = time
        session.time = time
        let_idle_streams_follow(cast(Session, session))
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
    session.pending["S"] = 1
    assert at(12) == 9_000  # what it has sent waits
    session.pending["S"], session.active_at["S"] = 0, 12
    assert at(13.9) == 9_000
    assert at(14.1) == 12_000


class Set(World):
    """A world whose clock the test sets."""

    time = 0.0

    def now(self) -> float:
        return self.time


_WITH = "WITH (idle_timeout = '2 s', max_out_of_orderness = '1 minute')"


@contextlib.contextmanager
def session_of(folder: Path) -> Iterator[tuple[Bridge, Set]]:
    world = Set()
    text = f"""CREATE STREAM R (a int); CREATE STREAM S (a int) {_WITH};
    REGISTER QUERY q AS SELECT a FROM S WINDOW NOW; REGISTER QUERY r AS SELECT a FROM R WINDOW NOW"""
    with contextlib.closing(Bridge(GoldenDevice(TINY), folder, "golden", USUAL, world)) as made:
        made.act("load", p.write(message_of(compiled(text))))
        yield made, world


def row(ts: int) -> pa.Table:
    return pa.table({"ts": [ts], "a": pa.array([1], pa.int32())})


def test_a_stream_that_sends_within_its_slack_is_not_idle(tmp_path: Path) -> None:
    """Rows that do not advance it are none the less there; none of them is late."""
    with session_of(tmp_path) as (made, world):
        for second in range(20):
            world.time = float(second)
            rows = {"S": row(50_000 - second)} | ({} if second else {"R": row(200_000)})
            stage_epoch(made, second, rows)
            made.session.flush()
            let_idle_streams_follow(made.session)
        assert not made.session.run.report.late


def test_an_idle_stream_follows_in_every_look(tmp_path: Path) -> None:
    """What is promised for it does not make it active, not even while it waits."""
    with session_of(tmp_path) as (made, world):
        stage_epoch(made, 0, {"S": row(1), "R": row(1)})
        for second in range(1, 12):
            world.time = float(second)
            stage_epoch(made, second, {"R": row(1000 * second)})
            made.session.flush()
            let_idle_streams_follow(made.session)
            let_idle_streams_follow(made.session)  # its own promise may wait
            made.session.flush()
            behind = 1000 * second - (made.session.run.promises["S"] or 0)
            assert behind <= (0 if second > 2 else 70_000), second


def test_a_stream_made_anew_is_not_idle_yet(tmp_path: Path) -> None:
    with session_of(tmp_path) as (made, world):
        stage_epoch(made, 0, {"S": row(1), "R": row(100_000)})
        made.session.flush()
        let_idle_streams_follow(made.session)
        world.time = 60.0
        for text in ("DROP QUERY q; DROP STREAM S", f"CREATE STREAM S (a int) {_WITH}"):
            made.act("statement", p.write(p.Statement(text)))
        let_idle_streams_follow(made.session)
        made.session.flush()
        assert "S" not in made.session.run.promises


def test_what_is_promised_for_an_idle_stream_is_promised_once(tmp_path: Path) -> None:
    """Also while it waits to be processed behind results that wait for a reader."""
    with session_of(tmp_path) as (made, world):
        session = made.session
        with session.changed:  # nothing is processed
            for time in range(9):
                world.time = time
                session.run.push("R", row(1000 * (1 + time // 5)))
                let_idle_streams_follow(session)
            promised = [r["timestamp"] for r in session.records if r.get("idle")]
        assert promised == [1000, 2000]
