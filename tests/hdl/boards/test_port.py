"""Host port: messages to streams and back, and an end to whatever a host left behind."""

from __future__ import annotations

from collections import deque

import cocotb
import pytest

from seustream.hdl.boards.port import HostPort, bytes_of
from seustream.hdl.boards.protocol import Opcode, Reply
from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.control import COMMAND, RESPONSE
from tests.hdl.bench import MUCH, NONE, PACES, Agent, Bench, Driver, Monitor, pack, simulate

CASES = {"tiny": lambda: HostPort(CONFIGURATIONS["tiny"])}
TESTS = ["messages_both_ways", "clear_ends_everything"]


@pytest.mark.parametrize("test", TESTS)
def test_port(test: str) -> None:
    simulate(__name__, CASES, "tiny", [test])


def _random(shape: object, chance: object) -> int:
    from amaranth.hdl import Shape

    return chance.getrandbits(Shape.cast(shape).width)


def _message(opcode: int, bits: int, value: int) -> bytes:
    return bytes([opcode]) + value.to_bytes(bytes_of(bits), "little")


class Answers(Agent):
    """A control unit that answers each command some cycles later, and notes what it was told."""

    def __init__(self, bench: Bench, idle: float = 0.3) -> None:
        self.bench = bench
        self.commands = Monitor(bench, "commands", 0.3, self._asked, firm=False)
        self.answers = Driver(bench, "responses", idle)
        self.given: deque[int] = deque()

    def _asked(self, item: object) -> None:
        assert len(self.answers.queue) == 0, "a command before the last one was answered"
        value = {
            "verdict": self.bench.chance.getrandbits(4),
            "data": self.bench.chance.getrandbits(64),
        }
        self.answers.queue.append(value)
        self.given.append(pack(RESPONSE, value))


@cocotb.test()
async def messages_both_ways(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance, layouts = bench.chance, bench.component.layouts
    for idle, pressure in PACES:
        await bench.reset(idle=1)
        answers = Answers(bench)
        to_port = Driver(bench, "from_host", idle)
        from_port = Monitor(bench, "to_host", pressure)
        raws = Monitor(bench, "raw", pressure)
        results = Driver(bench, "results", chance.choice([0.5, 0.98]))
        handed = Driver(bench, "handed_over", chance.choice([0.5, 0.98]))
        want_commands, want_raws, marks = [], [], []
        for _ in range(24):
            opcode = chance.choice([*Opcode])
            if opcode is Opcode.COMMAND:
                value = _random(COMMAND, chance)
                want_commands.append(value)
                to_port.queue.extend(_message(opcode, COMMAND.size, value))
            elif opcode is Opcode.RAW:
                value = _random(layouts.raw, chance)
                want_raws.append(value)
                to_port.queue.extend(_message(opcode, layouts.raw.size, value))
                # What comes of it, later.
                if chance.random() < 0.7:
                    results.queue.append({"query": chance.getrandbits(6), "newest": len(want_raws)})
                if chance.random() < 0.3:
                    handed.queue.append({"sequence": len(want_raws)})
            else:
                marks.append(chance.getrandbits(8))
                to_port.queue.extend(_message(opcode, 8, marks[-1]))
        want_results, want_handed = len(results.queue), len(handed.queue)
        for _ in range(12_000):
            # Idle only when nothing waits to come out.
            bench.set("idle", not (results.queue or handed.queue))
            await bench.tick()
            if not to_port.queue and len(answers.given) == len(want_commands):
                break
        else:
            raise AssertionError("it does not get on")
        bench.set("idle", 1)
        for _ in range(1500):
            await bench.tick()
        assert [pack(COMMAND, item) for item in answers.commands.got] == want_commands
        assert [pack(layouts.raw, item) for item in raws.got] == want_raws
        sizes = {Reply.RESPONSE: RESPONSE.size, Reply.RESULT: layouts.result.size,
                 Reply.HANDED_OVER: layouts.handed_over.size, Reply.MARK: 8}  # fmt: skip
        data, at = bytes(from_port.got), 0
        came: dict[Reply, list[int]] = {reply: [] for reply in Reply}
        order: list[Reply] = []
        while at < len(data):
            reply = Reply(data[at])
            order.append(reply)
            length = bytes_of(sizes[reply])
            came[reply].append(int.from_bytes(data[at + 1 : at + 1 + length], "little"))
            at += 1 + length
        assert came[Reply.RESPONSE] == [*answers.given]
        assert came[Reply.MARK] == marks
        # The processor was not idle before the last of them was gone.
        late = [i for i, reply in enumerate(order) if reply in (Reply.RESULT, Reply.HANDED_OVER)]
        assert not marks or not late or late[-1] < order.index(Reply.MARK)
        assert len(came[Reply.RESULT]) == want_results
        assert len(came[Reply.HANDED_OVER]) == want_handed


@cocotb.test()
async def clear_ends_everything(dut: object) -> None:
    """In the middle of a message, with a raw tuple that nobody takes and results on their way."""
    bench = Bench(dut, CASES)
    chance, layouts = bench.chance, bench.component.layouts
    cleared_with = {"answer": 0, "raw": 0, "middle": 0}
    for number in range(30):
        await bench.reset(idle=1)
        answers = Answers(bench, 0.95)
        to_port = Driver(bench, "from_host", NONE)
        out = Monitor(bench, "to_host", MUCH, firm=False)
        results = Driver(bench, "results", 0.2)
        results.queue.extend([{"newest": i} for i in range(5)])
        to_port.queue.extend(_message(Opcode.COMMAND, COMMAND.size, 7))
        to_port.queue.extend(_message(Opcode.RAW, layouts.raw.size, 7))
        to_port.queue.extend(_message(Opcode.COMMAND, COMMAND.size, 7)[:5])
        for _ in range(chance.randrange(5, 80)):
            bench.set("idle", not results.queue)
            await bench.tick()
        cleared_with["raw"] += bench.bits("raw.valid")
        cleared_with["answer"] += len(answers.commands.got) > len(answers.answers.sent)
        cleared_with["middle"] += len(to_port.queue) > 0
        to_port.queue.clear()
        to_port.offered = False
        bench.set("clear", 1)
        for _ in range(400):
            bench.set("idle", not results.queue)
            await bench.settle()
            done = bench.bits("cleared")
            assert not (done and (results.queue or answers.answers.queue)), "too early"
            await bench.clock()
            if done:
                break
        else:
            raise AssertionError("never cleared")
        bench.set("clear", 0)
        out.got.clear()
        to_port.queue.extend(_message(Opcode.MARK, 8, number))
        await bench.until(lambda out=out: len(out.got) == 2, 2_000)
        assert out.got == [Reply.MARK, number]
    assert all(cleared_with.values()), cleared_with
