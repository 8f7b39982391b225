"""Errors of the host form one family and carry a hint apart from the message."""

from __future__ import annotations

import pytest

from seustream.engine.host.errors import (
    EvaluationError,
    RowsRefused,
    WindowOverflow,
)
from seustream.engine.stream.errors import EngineError


@pytest.mark.parametrize("kind", [EvaluationError, RowsRefused, WindowOverflow])
def test_message_and_hint(kind: type[EngineError]) -> None:
    with pytest.raises(EngineError) as caught:
        raise kind("what is wrong", "what might help")
    assert str(caught.value) == "what is wrong"
    assert caught.value.hint == "what might help"
    assert kind("what is wrong").hint is None
