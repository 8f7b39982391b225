"""The model of a join: classes of equal columns, refused joins, and the rows that belong
together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from seustream.engine.sites.errors import BadQuery, DisconnectedJoinGraph, RowWindowRefused
from seustream.engine.sites.model import EquiJoin, SiteStream, Stored, admitted, extend, start
from seustream.hdl.device import Window, WindowKind

AB = SiteStream("b", ("x", "y"))


def test_statement_38_cross_products_and_row_windows_are_refused() -> None:
    with pytest.raises(DisconnectedJoinGraph, match="no equality connects c with a"):
        EquiJoin((SiteStream("a", ("x",)), AB, SiteStream("c", ("z",))), (((0, "x"), (1, "x")),))
    with pytest.raises(RowWindowRefused, match="ROWS 5"):
        EquiJoin.on_one_key([math.inf, Window(WindowKind.ROWS, 5)])
    EquiJoin.on_one_key([Window(WindowKind.RANGE, 5), Window(WindowKind.UNBOUNDED)])


@pytest.mark.parametrize("window", [-1, math.nan])
def test_no_window(window: float) -> None:
    with pytest.raises(BadQuery):
        EquiJoin.on_one_key([1, window])


def test_unknown_columns_name_those_there_are() -> None:
    with pytest.raises(BadQuery) as raised:
        EquiJoin((AB, AB), (((0, "x"), (1, "q")),))
    assert raised.value.hint == "its columns: x, y"
    with pytest.raises(BadQuery, match="no stream 2"):
        EquiJoin((AB, AB), (((0, "x"), (2, "x")),))
    with pytest.raises(BadQuery, match="no streams"):
        EquiJoin((), ())
    with pytest.raises(BadQuery, match="one window for each"):
        EquiJoin((AB, AB), (((0, "x"), (1, "x")),), windows=((1,),))


def test_equalities_make_classes() -> None:
    a, c = SiteStream("a", ("p",)), SiteStream("c", ("q",))
    join = EquiJoin((a, AB, c), (((0, "p"), (1, "x")), ((1, "y"), (2, "q"))))
    assert [join.classes_of(k) for k in range(3)] == [(0,), (0, 1), (1,)]
    assert join.values(1, (1.0, "b")) == (1, "b")
    assert join.values(1, (1, None)) is None
    assert not join.linked(0b001, 2)
    assert join.linked(0b011, 2)


def test_two_columns_of_a_stream_in_one_class_must_agree() -> None:
    join = EquiJoin((AB, SiteStream("c", ("z",))), (((0, "x"), (1, "z")), ((0, "y"), (1, "z"))))
    assert join.values(0, (2, 2.0)) == (2,)
    assert join.values(0, (2, 3)) is None


def test_partials_end_with_the_shortest_window() -> None:
    join = EquiJoin.on_one_key([5, 2])
    old = Stored((0, 0, 0), (7,), 10, 10, (15,))
    new = Stored((1, 0, 0), (7,), 15, 15, (17,))
    late = Stored((1, 0, 1), (7,), 16, 16, (18,))
    part = extend(join, start(join, old), new)
    assert part is not None
    assert (part.newest, part.ends, part.tids) == (15, (15,), ((0, 0, 0), (1, 0, 0)))
    assert extend(join, start(join, old), late) is None


@dataclass(frozen=True)
class Less:
    streams: tuple[int, ...]

    def among(self, payloads: Sequence[tuple[object, ...]]) -> list[bool]:
        return [a < b for a, b in payloads]  # type: ignore[operator]


def test_residuals_where_their_rows_meet() -> None:
    join = EquiJoin(
        EquiJoin.on_one_key([math.inf] * 3).streams,
        EquiJoin.on_one_key([math.inf] * 3).equal,
        residuals=(Less((0, 2)),),
    )
    rows = [Stored((k, 0, 0), (1,), 0, 0, (math.inf,), payload=5 - k) for k in range(3)]
    both = extend(join, start(join, rows[0]), rows[1])
    assert both is not None
    assert admitted(join, 1, [both]) == [both]
    all_three = extend(join, both, rows[2])
    assert all_three is not None
    assert admitted(join, 2, [all_three]) == []
    without = extend(join, start(join, rows[1]), rows[2])
    assert without is not None
    assert admitted(join, 2, [without]) == [without]
