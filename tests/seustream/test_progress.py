"""Progress is shown to users at a terminal only."""

from __future__ import annotations

import io

import pytest

from seustream.progress import Notes, Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("total", "done", "share"),
    [(10, 10, "100%"), (10, 5, " 50%"), (0, 0, "100%"), (10, 20, "100%")],
)
def test_a_bar_ends_at_what_was_done(total: int, done: int, share: str) -> None:
    out = Terminal()
    with Progress("run", total, "tuples", out) as progress:
        progress.add(done)
    last = out.getvalue().rpartition("\r")[2]
    assert f"{share} {done} tuples" in last
    assert last.endswith("\n")


def test_into_a_file_nothing_is_written() -> None:
    out = io.StringIO()
    with Progress("run", 10, "tuples", out) as progress:
        progress.add(10)
    with Notes(out) as note:
        note("building")
    assert out.getvalue() == ""


def test_a_note_gives_way_to_the_next_and_to_the_end() -> None:
    out = Terminal()
    with Notes(out) as note:
        note("one")
        note("two")
    assert out.getvalue().split("\r") == ["", "one …\x1b[K", "two …\x1b[K", "\x1b[K"]


@pytest.mark.parametrize(("out", "before"), [(Terminal(), "\r\x1b[K"), (io.StringIO(), "")])
def test_a_warning_stays_and_is_written_into_a_file(out: io.StringIO, before: str) -> None:
    Notes(out).warn("nobody reads")
    assert out.getvalue() == f"{before}warning: nobody reads\n"
