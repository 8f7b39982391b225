"""Tests calls of users' functions that do not return."""

from __future__ import annotations

import threading
import time

from seustream.compiler.apas.functions import Scalar
from seustream.compiler.apas.libraries import Libraries
from seustream.cosim.bridge.stuck import CallTooLong, Watch


class Endless(Scalar):
    goes_on, inside = True, False

    def call(self, *values: object) -> object:
        while self.goes_on:
            self.inside = True
        return 1


def watched(call: Endless) -> tuple[Watch, threading.Thread, list[BaseException]]:
    libraries = Libraries()
    libraries.libraries["mine"] = {"endless": call}
    caught: list[BaseException] = []

    def work() -> None:
        try:
            call.call()
        except CallTooLong as error:
            caught.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return Watch(libraries, 30), thread, caught


def test_a_call_that_takes_too_long_is_ended_and_named() -> None:
    endless = Endless.__new__(Endless)
    watch, thread, caught = watched(endless)
    while not endless.inside:
        time.sleep(0.001)
    assert watch.look(thread, 0.0) is None
    assert watch.look(thread, 30.0) is None, "it may take so long"
    assert "test_stuck.py" in str(watch.look(thread, 30.1))
    thread.join(10)
    assert [str(error) for error in caught] == ["it did not return within the time a call may take"]
    assert watch.look(thread, 31.0) is None


def test_a_call_that_returns_is_left_alone() -> None:
    endless = Endless.__new__(Endless)
    watch, thread, caught = watched(endless)
    watch.look(thread, 0.0)
    endless.goes_on = False
    thread.join(10)
    assert watch.look(thread, 99.0) is None
    assert not caught
    assert Watch(Libraries(), 1).look(threading.current_thread(), 5.0) is None
