"""Logs only grow."""

from __future__ import annotations

from seustream.engine.supervisor.history import Event, History


def test_events_stay_in_order() -> None:
    history = History()
    for t in (1, 2):
        history.append(Event(t, 1, "info", "RUNNING", "I"))
    assert [event.time for event in history.events] == [1, 2]
    assert str(history.events[0]) == "1 run 1 info    RUNNING: I"
