"""Jobs inside Spark: the same results as at a bridge, late rows, counts, and continuing from a
checkpoint."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from seustream.spark_feeder.errors import FeedError
from seustream.spark_feeder.job import files, nowhere, run
from tests.cosim.bridge.serving import compiled, multiset, streams, wanted
from tests.spark_feeder.feeding import committed, found, frames, write


def test_a_job_and_another_of_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    """Rows of R that are older than an earlier file are late, and put aside."""
    rows, compilation = streams(400, 9), compiled()
    tardy = rows["R"].slice(0, 30)
    rows["R"] = rows["R"].slice(30)
    write(tmp_path / "in", {"R": pa.concat_tables([rows["R"], tardy]), "S": rows["S"]}, 3)
    results = {name: sum(r.values()) for name, r in wanted(compilation, rows).items()}
    for first in (True, False):
        job = run(
            compilation,
            frames(spark, compilation, tmp_path / "in"),
            files(tmp_path / "out"),
            bridge="spark",
            checkpoint=tmp_path / "state",
            late=files(tmp_path / "late"),
        )
        counts = job.wait(timeout=600)
        assert found(tmp_path / "out", ["pairs", "large"]) == wanted(compilation, rows)
        late = Counter[tuple[object, ...]]()
        for table in committed(tmp_path / "late" / "R"):
            late += multiset(table)
        assert late == multiset(tardy)
        assert not any(table.num_rows for table in committed(tmp_path / "late" / "S"))
        if first:
            assert counts.results == results
            assert counts.late["R"] == 30
            assert counts.rows["R"] == rows["R"].num_rows
        else:
            assert not any(counts.results.values())
            assert not any(counts.rows.values())
    with pytest.raises(FeedError, match="is the checkpoint of a job inside Spark"):
        run(
            compilation,
            frames(spark, compilation, tmp_path / "in"),
            nowhere(),
            bridge="grpc://127.0.0.1:1",
            checkpoint=tmp_path / "state",
        )


@pytest.mark.parametrize(
    ("bridge", "prefilter", "message"),
    [(("spark", "grpc://x:1"), False, "spark beside bridges"), ("spark", True, "the prefilter")],
)
def test_what_it_has_no_use_for(
    bridge: str | tuple[str, ...], prefilter: bool, message: str
) -> None:
    with pytest.raises(FeedError, match=message):
        run(compiled(), {}, nowhere(), bridge=bridge, prefilter=prefilter)
