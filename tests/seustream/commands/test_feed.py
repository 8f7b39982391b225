"""Arguments of seustream feed that are refused before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from seustream.cli import main
from tests.cosim.bridge.serving import QUERIES

INSIDE = ("--bridge", "spark", "--source", "R=r.csv", "--source", "S=s.csv")
FED = ("--bridge", "grpc://x:1", "--source", "R=r.csv", "--source", "S=s.csv")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ([], "--bridge is missing"),
        (["--bridge", "grpc://x:1", "--source", "R=r.csv"], "no source for stream S"),
        (["--bridge", "grpc://x:1", "--source", "Q=r.csv"], "there is no stream Q"),
        (["--bridge", "grpc://x:1", "--source", "R"], "want STREAM="),
        (["--slack", "-1"], "--slack -1"),
        (["--lag", "-1"], "--lag -1"),
        (["--files-a-batch", "0"], "--files-a-batch 0"),
        (["--bridge", "spark", *FED], "--bridge spark: either bridges, or spark alone"),
        ([*INSIDE, "--prefilter"], "--prefilter saves ways to a bridge"),
        ([*FED, "-o", "out", "--late", "./out"], "--late ./out: results go there"),
        ([*FED, "--format", "none", "--late", "late"], "--format none writes no files"),
    ],
)
def test_what_feed_refuses(
    options: list[str], complaint: str, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "q.xsql").write_text(QUERIES)
    assert main(["feed", "q.xsql", *options]) == 2
    assert complaint in capfd.readouterr().err


def test_a_query_without_a_key_is_refused_before_spark_starts(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "q.xsql").write_text(QUERIES.replace("R.a = S.d", "R.a < S.d"))
    assert main(["feed", "q.xsql", *INSIDE]) == 2
    said = capfd.readouterr().err
    assert "inside Spark queries go by key: query pairs does not equate a column of each" in said
    assert "hint: run it at a bridge: `seustream serve`" in said
    assert not (here / "results").exists()
