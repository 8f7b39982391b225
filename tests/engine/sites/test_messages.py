"""The identity of a message: it matches its answer, and the same message sent again."""

from __future__ import annotations

import dataclasses

import pytest

from seustream.engine.sites import messages as m
from seustream.engine.sites.model import Stored

ROW = Stored((0, 1, 2), (5,), 1.0, 2.0, (9.0,))


def made(kind: type[m.SiteMessage], **known: object) -> m.SiteMessage:
    """Makes a message with these fields; every other field holds its own name."""
    usual: dict[str, object] = {f.name: f.name for f in dataclasses.fields(kind)}
    return kind(**{**usual, **{k: v for k, v in known.items() if k in usual}})


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (m.Delta, m.Wait), (m.Announce, m.Wait), (m.Ask, m.Changes), (m.Rebuild, m.Standing),
        (m.Fetch, m.Fetched), (m.Joined, m.Forward),
    ],
)  # fmt: skip
def test_a_question_and_its_answer_have_one_ref(
    question: type[m.SiteMessage], answer: type[m.SiteMessage]
) -> None:
    one = {
        "epoch": (1, 2),
        "stream": 3,
        "no": 4,
        "attempt": 5,
        "after": 6,
        "upto": 7,
        "block": (3, 4),
    }
    assert made(question, **one).ref == made(answer, **one).ref
    for field in question.KEY[1:]:
        assert made(question, **{**one, field: (9, 9)}).ref != made(answer, **one).ref, field


@pytest.mark.parametrize("name", m.MESSAGES)
def test_no_two_kinds_of_message_are_taken_for_each_other(name: str) -> None:
    """Exceptions are a block announced by its keys or by its numbers, and pairs of question and
    answer."""
    kind = m.MESSAGES[name]
    fields = {f.name for f in dataclasses.fields(kind)}
    assert set(kind.KEY[1:]) <= fields, "a key names fields of the message"
    same = {other for other, of in m.MESSAGES.items() if kind.KEY and of.KEY == kind.KEY}
    exchanges = [
        {"Delta", "Wait", "Announce"}, {"Ask", "Changes"}, {"Rebuild", "Standing"},
        {"Fetch", "Fetched"}, {"Joined", "Forward"},
    ]  # fmt: skip
    assert same in ([set(), {name}, *exchanges])


def test_a_message_counts_what_it_carries() -> None:
    delta = m.Delta((1, 0), 0, 1, 2.0, {(1,): 3, (2,): 4}, 0.0, 1)
    assert delta.rows == 7
    changes = m.Changes((1, 0), 0, 1, 2.0, {(1,): -1, (2,): 2}, {(2,): 1, (3,): 1})
    assert changes.entries == 3
    assert m.MESSAGES["Delta"] is m.Delta
    assert "SiteMessage" not in m.MESSAGES
