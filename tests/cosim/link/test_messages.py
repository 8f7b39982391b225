"""Messages cut out of a stream of bytes."""

from __future__ import annotations

import pytest

from seustream.cosim.link.errors import LinkError
from seustream.cosim.link.messages import Messages
from seustream.hdl.boards.protocol import Reply


def test_messages_come_when_they_are_whole() -> None:
    messages = Messages({Reply.MARK: 8, Reply.RESPONSE: 12})
    assert messages.add(bytes([Reply.RESPONSE, 5])) == []
    assert messages.add(bytes([6, Reply.MARK, 7, Reply.MARK])) == [
        (Reply.RESPONSE, bytes([5, 6])),
        (Reply.MARK, bytes([7])),
    ]


def test_a_kind_no_board_sends_is_told() -> None:
    with pytest.raises(LinkError, match="unknown kind 9"):
        Messages({Reply.MARK: 8}).add(bytes([9]))
