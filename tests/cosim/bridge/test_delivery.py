"""Tests which results are kept, which readers the bridge waits for, and what makes room."""

from __future__ import annotations

import random
from dataclasses import replace

import pyarrow as pa
import pytest

from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.delivery import Delivery
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.limits import USUAL
from seustream.cosim.bridge.living import STOPPED, Book

SCHEMA = pa.schema([("n", pa.int64())])


def rows(first: int, count: int) -> pa.Table:
    return pa.table({"n": pa.array(range(first, first + count), pa.int64())})


def delivery(*names: str, **limits: int) -> Delivery:
    """Returns the delivery of a query set that was loaded; it waits for readers of the results."""
    book = Book()
    book.loaded(list(names), 0)
    made = Delivery(replace(USUAL, **limits), book)
    made.make(dict.fromkeys(names, SCHEMA), p.Run())
    return made


def numbers(of: Delivery, name: str) -> list[int]:
    log = of.logs[name]
    return log.read(log.first, log.end).column("n").to_pylist()


def test_it_is_full_until_every_reader_has_trimmed() -> None:
    one = delivery("q", "r", result_rows=10)
    one.append("q", rows(0, 6))
    assert not one.full
    one.append("r", rows(0, 4))
    assert one.full
    assert one.retained == 10
    one.logs["q"].trim("b", 2)
    one.logs["q"].trim("a", 6)
    assert one.retained == 8
    assert not one.full
    assert numbers(one, "q") == [2, 3, 4, 5]


def test_bytes_make_it_full_too() -> None:
    one = delivery("q", result_bytes=800)
    one.append("q", rows(0, 99))
    assert not one.full
    one.append("q", rows(99, 1))
    assert one.full


def test_only_what_was_asked_for_is_kept() -> None:
    one = Delivery(USUAL, Book())
    one.make({"q": SCHEMA, "r": SCHEMA, f"{p.LATE}S": SCHEMA}, p.Run(keep=("q",)))
    for name in ("q", "r", f"{p.LATE}S"):
        one.append(name, rows(0, 3))
    assert numbers(one, "q") == numbers(one, f"{p.LATE}S") == [0, 1, 2]
    assert (one.logs["r"].first, one.logs["r"].end) == (3, 3)
    with pytest.raises(BridgeError, match="results 0 to 3 are gone") as error:
        one.logs["r"].read(0, 3)
    assert error.value.hint == "this query's results are not kept"


def test_a_registered_query_holds_nobody_up_and_keeps_its_last_rows() -> None:
    one = delivery("q", result_rows=5, live_rows=4)
    one.book.queries["q"].bounded = True
    one.renew({"registered": {"q": {"run": 2}}})
    one.make({"q": SCHEMA}, p.Run())
    one.append("q", rows(0, 9))
    assert not one.full
    assert (one.logs["q"].run, numbers(one, "q")) == (2, [5, 6, 7, 8])


def test_results_of_a_query_that_has_ended_hold_nobody_up() -> None:
    one = delivery("q", result_rows=3)
    one.append("q", rows(0, 3))
    assert one.full
    one.book.queries["q"].phase = STOPPED
    assert not one.full
    assert numbers(one, "q") == [0, 1, 2]


def test_those_that_ended_first_make_room_first() -> None:
    one = delivery("a", "b", "c", result_rows=5)
    for name in "abc":
        one.append(name, rows(0, 3))
    one.give_up_ended({"c": SCHEMA})
    assert [len(one.logs[name]) for name in "abc"] == [0, 3, 3]
    assert one.logs["a"].end == 3  # its offsets stay


def test_a_new_run_begins_at_offset_0_without_the_old_readers() -> None:
    one = delivery("q")
    one.append("q", rows(0, 5))
    one.logs["q"].trim("a", 5)
    one.renew({"dropped": ["q"]})
    one.append("q", rows(5, 5))  # goes nowhere
    assert "q" not in one.logs
    one.renew({"registered": {"q": {"run": 3}}})
    one.make({"q": SCHEMA}, p.Run())
    one.append("q", rows(0, 2))
    assert one.logs["q"].readers == {}
    assert numbers(one, "q") == [0, 1]


@pytest.mark.parametrize("seed", range(5))
def test_random_appends_and_trims_are_a_list(seed: int) -> None:
    chance = random.Random(seed)
    one, whole, readers = delivery("q"), 0, {}
    for _ in range(200):
        log = one.logs["q"]
        if chance.random() < 0.5:
            count = chance.choice((0, 1, 7, 5000))
            one.append("q", rows(whole, count))
            whole += count
        else:
            reader, to = chance.choice("ab"), chance.randint(0, whole)
            log.trim(reader, to)
            readers[reader] = max(to, readers.get(reader, 0))
        first = min(readers.values(), default=0)
        assert (log.first, log.end) == (first, whole)
        low = chance.randint(first, whole)
        high = chance.randint(low, whole)
        assert log.read(low, high).column("n").to_pylist() == list(range(low, high))
        assert log.bytes == 8 * (whole - first)


def test_late_rows_of_a_stream_that_is_gone_are_not_those_of_the_next() -> None:
    one, late = Delivery(USUAL, Book()), f"{p.LATE}S"
    one.make({late: SCHEMA}, p.Run())
    one.append(late, rows(0, 5))
    one.logs[late].trim("a", 5)
    one.leave({"S", "T"})
    assert late not in one.logs
    one.make({late: SCHEMA}, p.Run())
    log = one.logs[late]
    assert (log.run, log.end, log.readers) == (2, 0, {})


def test_positions_of_a_run_that_is_not_there_yet_wait_for_it() -> None:
    """So they come from a journal; those of earlier runs are forgotten."""
    one = delivery("q")
    for run, offset in ((1, 5), (2, 3), (None, 4)):
        one.trimmed("q", run, "a", offset)
    assert one.logs["q"].readers == {"a": 4}
    one.renew({"registered": {"q": {"run": 2}}})
    one.make({"q": SCHEMA}, p.Run())
    assert one.logs["q"].readers == {"a": 3}
    other = Delivery(USUAL, Book())
    other.restore(one.state())
    assert other.positions == one.positions == {("q", 2): {"a": 3}}
    assert (other.runs, other.stated, other.kept) == ({"q": 2}, {"q"}, set())
    # An earlier release wrote less.
    other.restore({"runs": {"q": 3}, "kept": ["q"], "positions": {"q": {"a": 7}, "r": {"b": 1}}})
    assert other.positions == {("q", 2): {"a": 3}, ("q", 3): {"a": 7}, ("r", 1): {"b": 1}}
    assert other.stated == {"q"}
