"""Errors of the host are of one family and carry a hint apart from the message."""

from __future__ import annotations

import pytest

from seustream.engine.host.errors import (
    EvaluationError,
    HostError,
    RowsRefused,
    WindowOverflow,
)


@pytest.mark.parametrize("kind", [EvaluationError, RowsRefused, WindowOverflow])
def test_message_and_hint(kind: type[HostError]) -> None:
    with pytest.raises(HostError) as caught:
        raise kind("what is wrong", "what might help")
    assert str(caught.value) == "what is wrong"
    assert caught.value.hint == "what might help"
    assert kind("what is wrong").hint is None
