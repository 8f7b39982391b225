"""The tolls of the road example compared with brute force by the thesis's definition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from examples.tolls.generate import reports
from tests.engine.relational.running import at_once

TEXT = (Path(__file__).parents[2] / "examples" / "tolls" / "tolls.xsql").read_text("utf-8")
MINUTES_5 = 300_000


def told(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Returns each first report from a segment with a mean speed below 40 over 5 minutes:
    vehicle, segment, time, speed, and the vehicles whose latest report up to that time is from
    the segment."""
    found, before = [], dict[str, Any]()
    for row in rows:
        place = (row["hwy"], row["dir"], row["xPos"] // 5280)
        entered = before.get(row["vehicleId"]) != place
        before[row["vehicleId"]] = place
        if not entered:
            continue
        past = [r for r in rows if r["ts"] <= row["ts"]]
        latest = {r["vehicleId"]: (r["hwy"], r["dir"], r["xPos"] // 5280) for r in past}
        speeds = [
            r["speed"]
            for r in past
            if (r["hwy"], r["dir"], r["xPos"] // 5280) == place
            and r["ts"] >= row["ts"] - MINUTES_5
            and r["speed"] is not None
        ]
        if speeds and sum(speeds) / len(speeds) < 40:
            vehicles = list(latest.values()).count(place)
            toll = round(0.02 * (vehicles - 150) ** 2, 6)
            mean = round(sum(speeds) / len(speeds), 4)
            found.append((row["vehicleId"], *place, row["ts"], mean, vehicles, toll))
    return sorted(found)


@pytest.mark.parametrize("jitter", [0, 500, 2000])
def test_every_toll_is_right_and_none_is_missing(jitter: int) -> None:
    table = reports(1200, 7, jitter)
    table = table.set_column(0, "ts", table["ts"].cast(pa.int64()))
    found = [
        (
            row["vehicleId"],
            row["hwy"],
            row["dir"],
            int(row["seg"]),
            row["ts_newest"],
            round(row["speed"], 4),
            row["vehicles"],
            round(row["toll"], 6),
        )
        for row in at_once(TEXT, {"PosSpeedStr": table})["toll"].to_pylist()
    ]
    want = told(table.to_pylist())
    assert len(want) > 50
    assert sorted(found) == want
