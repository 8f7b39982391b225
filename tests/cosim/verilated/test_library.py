"""Tests the shim's C interface: what is passed to it and what its answers mean; the library is
played here."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seustream.cosim.verilated import library
from seustream.cosim.verilated.library import CompiledProcessor, Stuck


class Shim:
    """Plays the library of one processor."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.answered, self.answer, self.runs = 99, [0] * 8, 1
        self.out = [1, 2, 3, 4, 5, 6]
        self.handle: int | None = 7

    def device_new(self, name: bytes) -> int | None:
        self.calls.append(("new", name))
        return self.handle

    def device_delete(self, device: int) -> None:
        self.calls.append(("delete", device))

    def device_hold(self, device: int, seed: int, inputs: int, outputs: int) -> None:
        self.calls.append(("hold", seed, inputs, outputs))

    def device_commands(
        self, device: int, rows: Any, count: int, words: int, answer: Any, patience: int
    ) -> int:
        given = ctypes.cast(rows, ctypes.POINTER(ctypes.c_uint32 * (count * words))).contents
        self.calls.append(("commands", list(given), words, patience))
        found = ctypes.cast(answer, ctypes.POINTER(ctypes.c_uint32 * 8)).contents
        found[:] = self.answer
        return min(self.answered, count)

    def device_run(self, device: int, raws: Any, rows: int, words: int, patience: int) -> int:
        self.calls.append(("run", rows, words))
        return self.runs

    def device_count(self, device: int, what: int) -> int:
        return len(self.out)

    def device_take(self, device: int, what: int, into: Any) -> None:
        found = ctypes.cast(into, ctypes.POINTER(ctypes.c_uint32 * len(self.out))).contents
        found[:] = self.out

    def device_cycles(self, device: int) -> int:
        return 1 << 40


@pytest.fixture
def shim(monkeypatch: pytest.MonkeyPatch) -> Shim:
    made = Shim()
    monkeypatch.setattr(library, "_functions", lambda path: made)
    return made


def test_commands_go_in_rows_and_the_last_answer_comes_back(shim: Shim) -> None:
    one = CompiledProcessor(Path("x.so"))
    rows = np.arange(12, dtype=np.uint32).reshape(2, 6)[:, ::2]
    shim.answer = [3, 1, 2, 0, 0, 0, 0, 8]
    answered, answer = one.commands(rows, 500)
    assert shim.calls[-1] == ("commands", [0, 2, 4, 6, 8, 10], 3, 500)
    assert (answered, answer.tolist()) == (2, shim.answer)
    shim.answered = 1
    assert one.commands(rows, 500)[0] == 1, "the first was refused, and says so"
    shim.answer = [0] * 8
    with pytest.raises(Stuck, match="no answer within 500 cycles"):
        one.commands(rows, 500)


def test_rows_come_out_and_a_run_that_stands_still_says_so(shim: Shim) -> None:
    one = CompiledProcessor(Path("x.so"))
    assert one.take(0, 3).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert one.cycles == 1 << 40
    one.run(np.zeros((4, 2), np.uint32), 9)
    assert shim.calls[-1] == ("run", 4, 2)
    shim.runs = 0
    with pytest.raises(Stuck, match="nothing went in or came out for 9 cycles"):
        one.run(np.zeros((4, 2), np.uint32), 9)


def test_chances_are_shares_of_32_bits_and_never_one(shim: Shim) -> None:
    CompiledProcessor(Path("x.so")).hold(5, 0.5, 1.0)
    assert ("hold", 5, 1 << 31, int(0.99 * (1 << 32))) in shim.calls


def test_it_is_deleted_once(shim: Shim) -> None:
    one = CompiledProcessor(Path("x.so"))
    one.close()
    one.close()
    del one
    assert [call for call in shim.calls if call[0] == "delete"] == [("delete", 7)]


def test_waves_where_none_can_be_written_or_recorded(shim: Shim, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        CompiledProcessor(Path("x.so"), tmp_path / "none" / "w.fst")
    CompiledProcessor(Path("x.so"), tmp_path / "w.fst")
    assert ("new", str(tmp_path / "w.fst").encode()) in shim.calls
    shim.handle = None
    with pytest.raises(RuntimeError, match="records no waves"):
        CompiledProcessor(Path("x.so"), tmp_path / "w.fst")
