"""Tests statements on an existing catalogue: what they change, what they answer, and what is wrong
with them."""

from __future__ import annotations

import contextlib
import random
from dataclasses import replace
from pathlib import Path

import pytest

from seustream.compiler.pipeline import compile_text
from seustream.cosim.bridge.limits import USUAL
from tests.cosim.bridge.catalogue import STREAM, phases, register, say, served
from tests.cosim.bridge.serving import (
    EVERYTHING,
    Rows,
    compiled,
    cut,
    feed_epoch,
    multiset,
    refused,
    streams,
    wanted,
)


@pytest.mark.parametrize("seed", range(6))
def test_registered_one_by_one_as_loaded_at_once(seed: int, tmp_path: Path) -> None:
    """Sends statements of all three languages in pieces, with restarts between them; from then on
    the results are those of the set run over files."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    rows = streams(200, seed)
    compilation = compiled(EVERYTHING)
    limits = replace(USUAL, journal_bytes=chance.choice((1, 20_000, 1 << 30)), live_rows=100_000)
    pieces = [piece for piece in EVERYTHING.split(";\n") if piece.strip()]
    with contextlib.ExitStack() as stack:
        _, client = stack.enter_context(served(tmp_path, limits))
        while pieces:
            count = chance.randint(1, 5)
            say(client, ";\n".join(pieces[:count]))
            del pieces[:count]
            if chance.random() < 0.3:
                stack.close()
                _, client = stack.enter_context(served(tmp_path, limits))
        found: dict[str, Rows] = {}
        for epoch, part in enumerate(cut(rows, 5)):
            feed_epoch(client, epoch, part)
            if chance.random() < 0.3:
                stack.close()
                _, client = stack.enter_context(served(tmp_path, limits))
        client.end()
        client.flush()
        for name in compilation.program.names:
            found[name] = multiset(client.read(name, 0, client.latest(name)["end"]))
    assert found == wanted(compilation, rows)


def test_errors_of_a_text_keep_place_and_hint_and_change_nothing(tmp_path: Path) -> None:
    with served(tmp_path) as (_, client):
        say(client, STREAM)
        error = refused(lambda: register(client, text="where $I.v > 5\nselect [x = $I.w]"))
        assert error.kind == "compile"
        assert "some.apas:2:" in str(error)
        assert "^" in str(error)
        text = "REGISTER QUERY a AS SELECT v FROM I WINDOW NOW;\nREGISTER QUERY b AS SELECT w FROM I WINDOW NOW"
        error = refused(lambda: say(client, text))
        assert str(error).startswith("some.xsql:2:28: no stream of this query has a column w")
        assert phases(client) == {}


PATTERNS = (
    "PATTERN ANY a; ANY b FROM I WHERE b.v > a.v WITHIN 5 s RETURN a.v, b.v AS w",
    "SELECT * FROM I MATCH_RECOGNIZE (ORDER BY ts MEASURES A.v AS v PATTERN (A B) WITHIN INTERVAL '5' SECOND)",
)


@pytest.mark.parametrize("query", PATTERNS)
def test_patterns_are_replaced_and_left(query: str, tmp_path: Path) -> None:
    with served(tmp_path) as (_, client):
        say(client, STREAM)
        say(client, "REGISTER QUERY q AS SELECT v FROM I WINDOW NOW")
        assert say(client, f"REGISTER OR REPLACE QUERY q AS {query}")["registered"]
        assert say(client, f"CREATE OR REPLACE STREAM m AS {query}")["created"] == ["m"]
        assert say(client, f"CREATE OR REPLACE STREAM m AS {query}")["created"] == ["m"]
        for nothing in ("REGISTER QUERY IF NOT EXISTS Q AS", "CREATE STREAM IF NOT EXISTS M AS"):
            assert not any(say(client, f"{nothing} {query}").values())
        shown = say(client, "SHOW CREATE QUERY q; SHOW CREATE STREAM m")["shown"]
        assert shown == [f"REGISTER QUERY q AS {query}", f"CREATE STREAM m AS {query}"]
    with served(tmp_path) as (_, client):
        assert phases(client) == {"q": "RUNNING"}
        assert say(client, "SHOW CREATE QUERY q; SHOW CREATE STREAM m")["shown"] == shown


def test_a_stream_that_is_replaced_may_read_later_ones(tmp_path: Path) -> None:
    """The statements in effect stay in an order that compiles, however many of them are obsolete."""
    with served(tmp_path) as (_, client):
        say(client, STREAM)
        say(
            client,
            "CREATE STREAM a AS SELECT v FROM I; CREATE STREAM b AS SELECT v + 1 AS w FROM I",
        )
        say(client, "CREATE OR REPLACE STREAM a AS SELECT w AS v FROM b")
        compile_text(client.act("catalogue")["text"])
        long = "x" * 3000
        for number in range(12):
            text = f"SELECT v + {number} AS v, '{long}' AS x FROM a"
            say(client, f"REGISTER OR REPLACE QUERY q AS {text}")
        assert len(client.act("catalogue")["text"]) < 8 * len(long)
    with served(tmp_path) as (_, client):
        say(client, "REGISTER QUERY r AS SELECT v FROM a")
        assert phases(client) == {"q": "RUNNING", "r": "RUNNING"}


def test_show_and_explain_are_answered_and_change_nothing(tmp_path: Path) -> None:
    with served(tmp_path) as (_, client):
        say(client, STREAM)
        register(client)
        assert say(client, "SHOW STREAMS")["shown"] == ["stream I (te bigint, v bigint)"]
        assert any("q" in line for line in say(client, "SHOW QUERIES")["shown"])
        assert say(client, "EXPLAIN SELECT v FROM I WINDOW NOW")["shown"]
        assert say(client, "EXPLAIN q")["shown"]
        say(client, "REGISTER OR REPLACE QUERY q AS SELECT v + 1 AS w FROM I WINDOW NOW")
        assert say(client, "SHOW CREATE QUERY q; EXPLAIN q")["shown"]
        assert phases(client)["q"] == "RUNNING"
        for nothing in ("DROP QUERY IF EXISTS p", "REGISTER QUERY IF NOT EXISTS q AS SELECT v FROM I",
                        "CREATE STREAM IF NOT EXISTS I (v int)"):  # fmt: skip
            assert not any(say(client, nothing).values())
        assert refused(lambda: say(client, "CREATE OR REPLACE STREAM I (v int)")).kind == "compile"
        assert phases(client) == {"q": "RUNNING"}
