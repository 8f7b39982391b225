"""The wishes of a reader and the answers of the feed, exchanged through a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from seustream.spark_feeder.draining import Drain
from seustream.spark_feeder.errors import FeedError


def test_wishes_answers_and_failures(tmp_path: Path) -> None:
    reader, feed = Drain(str(tmp_path)), Drain(str(tmp_path))
    assert not any((feed.wanted, feed.all_wanted, reader.answered()))
    reader.ask(all_there=False)
    assert feed.wanted
    assert not feed.all_wanted
    reader.ask(all_there=True)
    assert feed.all_wanted
    feed.answer()
    assert reader.answered()
    reader.check()
    feed.fail("stream R: boom")
    with pytest.raises(FeedError, match="stream R: boom"):
        reader.check()
