"""The arguments of seustream feed that are refused before Spark is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from seustream.cli import main
from tests.cosim.bridge.serving import QUERIES

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
