"""Errors of the bridge within Spark's messages."""

from __future__ import annotations

import pytest

from seustream.cosim.bridge.errors import BridgeError
from seustream.spark_feeder.errors import FeedError, as_feed_errors, cause

SPARK = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: boom
  File "source.py", line 1, in write
seustream.spark_feeder.errors.FeedError: gap: epoch 3 of writer w, but 0 is next (a hint: perhaps)
"""


def test_the_kind_is_found_in_what_spark_says() -> None:
    kind, message = cause(SPARK)
    assert kind == "gap"
    assert message == "gap: epoch 3 of writer w, but 0 is next (a hint: perhaps)"
    assert cause("Python worker exited\nmore") == (None, "Python worker exited")
    assert cause("") == (None, "")


def test_kinds_are_told() -> None:
    with pytest.raises(FeedError, match=r"^busy: no room \(read\)$"), as_feed_errors():
        raise BridgeError("busy", "no room", "read")
    with pytest.raises(ZeroDivisionError), as_feed_errors():
        raise ZeroDivisionError
