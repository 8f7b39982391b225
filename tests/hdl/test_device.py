"""Tests the plain parts of the device contract: tables' helpers, batches, results, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.device import (
    UNUSED,
    Area,
    Batch,
    BatchRefused,
    Comparison,
    HandedOver,
    LoadRefused,
    NotLoaded,
    Results,
    Retention,
    Selection,
    Status,
    Tables,
    Window,
    WindowKind,
    check_batch,
)
from seustream.hdl.isa import Condition

RANGE_5, RANGE_9 = Window(WindowKind.RANGE, 5), Window(WindowKind.RANGE, 9)
ROWS_2, ROWS_7 = Window(WindowKind.ROWS, 2), Window(WindowKind.ROWS, 7)
UNBOUNDED = Window(WindowKind.UNBOUNDED)
TINY = CONFIGURATIONS["tiny"]


@pytest.mark.parametrize(
    ("windows", "retention"),
    [
        ([], Retention(-1, 0)),
        ([UNUSED], Retention(-1, 0)),
        ([Window(WindowKind.RANGE, 0)], Retention(0, 0)),
        ([RANGE_5, UNUSED, RANGE_9], Retention(9, 0)),
        ([ROWS_7, ROWS_2], Retention(-1, 7)),
        ([RANGE_5, ROWS_7, RANGE_9, ROWS_2], Retention(9, 7)),
        ([RANGE_5, UNBOUNDED, ROWS_7], Retention(None, 0)),
    ],
)
def test_retention_covers_the_largest_windows(windows: list[Window], retention: Retention) -> None:
    assert Retention.over(windows) == retention
    assert Retention.over(reversed(windows)) == retention


@pytest.mark.parametrize(
    ("window", "text"),
    [(RANGE_5, "RANGE 5"), (ROWS_2, "ROWS 2"), (UNBOUNDED, "UNBOUNDED"), (UNUSED, "UNUSED")],
)
def test_window_text(window: Window, text: str) -> None:
    assert str(window) == text


@pytest.mark.parametrize(
    ("refusal", "text"),
    [
        (LoadRefused("too long"), "image refused: too long"),
        (LoadRefused("too long", 2), "image refused: area 2: too long"),
        (
            LoadRefused("too long", 0, "program", 0),
            "image refused: area 0, program, address 0: too long",
        ),
        (
            LoadRefused("too long", 0, "factors", 3),
            "image refused: area 0, factors, row 3: too long",
        ),
        (LoadRefused("too long", table="routes", row=7), "image refused: routes, tag 7: too long"),
        (LoadRefused("too long", table="windows"), "image refused: windows: too long"),
    ],
)
def test_load_refusals_say_where(refusal: LoadRefused, text: str) -> None:
    assert str(refusal) == text
    assert refusal.reason == "too long"


def test_selection_entries_are_comparisons_and_masks() -> None:
    """An empty selection takes an entry, too: it is a bit that is always or never set. Masks of one
    bit share an entry, in the last place of a row, where the last row may have room."""
    test = Comparison(0, Condition.EQ, 1)
    bits = (Selection(True, (test, test)), Selection(False, ()), Selection(True, (test,)))
    tables = Tables((0, 1, 2), (bits, bits[:1], ()), ((1, 2), (), (0,)), (), {}, ())
    for places, entries in {1: [5, 2, 1], 2: [6, 4, 2], 4: [8, 8, 4]}.items():
        assert [tables.selection_entries(stream, places) for stream in range(3)] == entries


def test_areas_differ_by_their_guards_and_can_be_hashed() -> None:
    assert Area() != Area(guards={0: 0})
    assert hash(Area()) == hash(Area(guards={0: 0}))


def test_not_loaded_says_what_to_do() -> None:
    assert isinstance(NotLoaded(), RuntimeError)
    assert "call load()" in str(NotLoaded())


# --- batches ------------------------------------------------------------------


def batch(streams: list[int], times: list[int], widest: int = 0) -> Batch:
    n = len(streams)
    attributes = np.zeros((n, 4), np.uint32)
    attributes[n - 1 :, 3] = widest
    return Batch(
        np.array(streams, np.uint8),
        np.array(times, np.int64),
        np.arange(n),
        np.ones(n, np.bool_),
        attributes,
    )


@pytest.mark.parametrize("short", ["stream", "timestamp", "sequence", "admit", "attributes"])
def test_columns_of_a_batch_agree_in_length(short: str) -> None:
    good = batch([0, 1, 0], [1, 2, 3])
    columns = {name: getattr(good, name) for name in Batch.__dataclass_fields__}
    columns[short] = columns[short][:-1]
    with pytest.raises(ValueError, match=r"differ in length|attributes are"):
        Batch(**columns)


def test_attributes_are_four() -> None:
    good = batch([0], [1])
    with pytest.raises(ValueError, match=r"attributes are \(1, 3\), want \(1, 4\)"):
        Batch(good.stream, good.timestamp, good.sequence, good.admit, good.attributes[:, :3])


def test_slices_of_a_batch() -> None:
    part = batch([0, 1, 0, 2], [1, 2, 3, 4], 7).slice(2, 9)
    assert len(part) == 2
    assert part.stream.tolist() == [0, 2]
    assert part.timestamp.tolist() == [3, 4]
    assert part.sequence.tolist() == [2, 3]
    assert part.attributes.tolist() == [[0, 0, 0, 0], [0, 0, 0, 7]]


TABLES = Tables((0, 1, 2), ((),) * 3, ((),) * 3, (), {}, ())


@pytest.mark.parametrize(
    ("good", "now"),
    [
        (batch([], []), None),
        (batch([], []), 100),
        (batch([0, 2], [-5, -5], 0xFFFF), None),
        (batch([2, 0], [5, 6]), 5),
    ],
)
def test_batches_taken(good: Batch, now: int | None) -> None:
    check_batch(good, TABLES, TINY, now)


@pytest.mark.parametrize(
    ("bad", "now", "row", "message"),
    [
        (batch([0, 3, 4], [1, 2, 3]), None, 1, "stream 3, the image has 3 streams"),
        (batch([0, 0, 0, 0], [1, 2, 1, 0]), None, 2, "timestamp 1 after 2"),
        (batch([0], [1]), 2, 0, "timestamp 1 after 2"),
        (batch([0, 0], [1, 1], 0x10000), None, 1, "attribute 3 = 65536 is wider than 16 bits"),
    ],
)
def test_batches_refused(bad: Batch, now: int | None, row: int, message: str) -> None:
    with pytest.raises(BatchRefused, match=f"row {row}: {message}") as caught:
        check_batch(bad, TABLES, TINY, now)
    assert caught.value.row == row
    assert caught.value.reason == message


def test_the_widest_attributes_take_every_code() -> None:
    check_batch(batch([0], [1], 0xFFFFFFFF), TABLES, CONFIGURATIONS["default"], None)


# --- results ------------------------------------------------------------------


def results(*rows: tuple[int, int, int, tuple[int, int, int, int]]) -> Results:
    return Results(
        np.array([row[0] for row in rows], np.uint64),
        np.array([row[1] for row in rows], np.int64),
        np.array([row[2] for row in rows], np.int64),
        np.array([row[3] for row in rows], np.int64).reshape(-1, 4),
        HandedOver(*(np.array([row[0]], np.int64) for row in rows[:1] for _ in range(4))),
    )


def test_results_put_one_after_another() -> None:
    first = results((1, 9, 8, (0, 1, -1, -1)))
    second = results((2, 9, 7, (3, 1, -1, -1)), (1, 10, 10, (4, 4, -1, -1)))
    both = Results.concatenate(iter([first, Results(), second]))
    assert len(both) == 3
    assert both.queries.tolist() == [1, 2, 1]
    assert both.newest.tolist() == [9, 9, 10]
    assert both.oldest.tolist() == [8, 7, 10]
    assert both.sequences.tolist() == [[0, 1, -1, -1], [3, 1, -1, -1], [4, 4, -1, -1]]
    assert both.handed_over.stream.tolist() == [1, 2]
    assert both.handed_over.sequence.tolist() == [1, 2]
    assert both.handed_over.taker.tolist() == [1, 2]
    assert both.handed_over.taken_by.tolist() == [1, 2]


def test_a_record_is_a_result_of_each_of_its_queries() -> None:
    top = (1 << 63) | 1 << 9
    several = results((5, 9, 8, (0, 1, -1, -1)), (top, 9, 7, (3, 1, -1, -1)))
    assert len(several) == 2
    assert several.delivered == 4
    record, query = several.each()
    assert list(zip(record.tolist(), query.tolist(), strict=True)) == [
        (0, 0), (0, 2), (1, 9), (1, 63)
    ]  # fmt: skip
    assert several.of(0).tolist() == [True, False]
    assert several.of(63).tolist() == [False, True]
    assert several.of(1).tolist() == [False, False]


def test_no_results() -> None:
    for none in (Results(), Results.concatenate([])):
        assert len(none) == len(none.handed_over) == 0
        assert none.sequences.shape == (0, 4)
        assert none.queries.dtype == np.uint64
        assert none.delivered == len(none.each()[0]) == 0


def test_status_starts_from_zero() -> None:
    assert Status() == Status(False, 0, 0, 0, 0, 0, 0, 0, ())
