"""Work ends when its client goes."""

from __future__ import annotations

import asyncio
import json
from itertools import count
from threading import Event
from time import sleep
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the studio's packages are an extra")
from seustream.studio.server import Studio, application
from seustream.studio.wanted import Unwanted, check_wanted, while_wanted


def test_work_without_a_client_goes_on() -> None:
    check_wanted()
    assert list(while_wanted([1, 2])) == [1, 2]


@pytest.mark.parametrize("goes", [True, False])
def test_work_ends_when_its_client_goes(goes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended, answers = Event(), Event(), []

    def work(studio: Studio, asked: Any) -> dict[str, Any]:
        begun.set()
        try:
            for _ in while_wanted(count() if goes else range(3)):
                sleep(0.01)
        except Unwanted:
            ended.set()
            raise
        return {"came": "to its end"}

    monkeypatch.setattr(Studio, "start", work)
    body = [{"type": "http.request", "body": json.dumps({}).encode()}]

    async def receive() -> dict[str, Any]:
        if body:
            return body.pop()
        await asyncio.to_thread(begun.wait)
        if not goes:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        answers.append(message)

    head = [(b"host", b"127.0.0.1"), (b"x-studio-token", b"secret")]
    scope = {"type": "http", "method": "POST", "path": "/ask/start", "headers": head}
    scope |= {"query_string": b"", "root_path": "", "scheme": "http"}
    asyncio.run(application(Studio("secret"))(scope, receive, send))
    assert ended.is_set() == goes
    assert answers[0]["status"] == (499 if goes else 200)
