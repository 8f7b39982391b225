"""Tests the host port: messages to streams and back, and an end to whatever a host left behind."""

from __future__ import annotations

from collections import deque
from typing import Any

import cocotb
import pytest

from seustream.hdl.boards.messages import (
    OUTGOING,
    REPLIES,
    bytes_of,
)
from seustream.hdl.boards.port import HostPort
from seustream.hdl.boards.protocol import COUNTERS, LinkCounter, Opcode, Reply
from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.control import COMMAND, RESPONSE
from seustream.hdl.control_words import (
    OPERATION_BITS,
    TARGET_BITS,
    UNIT_BITS,
    ControlOperation,
)
from tests.hdl.bench import MUCH, NONE, PACES, Agent, Bench, Driver, Monitor, pack, simulate, unpack
from tests.hdl.boards.written import WIDTHS, Written

READ = ControlOperation.READ
_AT = OPERATION_BITS + TARGET_BITS + UNIT_BITS
"""Position of an address in a command."""
_COUNT = 1000
CASES = {"tiny": lambda: HostPort(CONFIGURATIONS["tiny"])}
TESTS = ["messages_both_ways", "clear_ends_everything"]


@pytest.mark.parametrize("test", TESTS)
def test_port(test: str) -> None:
    simulate(__name__, CASES, "tiny", [test])


def _random(shape: object, chance: object) -> int:
    from amaranth.hdl import Shape

    return chance.getrandbits(Shape.cast(shape).width)


def _replies(data: bytes) -> list[tuple[Reply, dict[str, int]]]:
    """Decodes every message of a stream, with all its fields and its full times."""
    at, newest, found = 0, 0, []
    while at < len(data):
        head = int.from_bytes(data[at : at + 2], "little")
        reply = Reply(head & 7)
        message = REPLIES[reply]
        values = {
            name: head >> message.at(name) & (1 << bits) - 1 for name, bits in message.head.items()
        }
        at += 2
        for name in OUTGOING:
            if name in message.has(head):
                end = at + bytes_of(WIDTHS[name])
                values[name], at = int.from_bytes(data[at:end], "little"), end
        if reply in (Reply.RESULT, Reply.RESULTS):
            values.setdefault("queries", 1 << values.get("query", 0))
            reply = Reply.RESULT
            newest = values.get("newest", newest + values["step"]) % (1 << WIDTHS["newest"])
            values["newest"] = newest
            old = (newest - values.get("age", 0)) % (1 << WIDTHS["newest"])
            values.setdefault("oldest", old)
        found.append((reply, values))
    return found


class Answers(Agent):
    """A control unit that answers each command some cycles later, and notes the commands."""

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
        of_whom: list[int | None] = []  # by command: a counter of the link's
        want_results, want_handed = [], []
        written, newest = Written(chance), 0
        for _ in range(24):
            opcode = chance.choice([*Opcode])
            if opcode is Opcode.COMMAND:
                value = _random(COMMAND, chance)
                if chance.random() < 0.2:
                    value = READ | (COUNTERS + chance.randrange(len(LinkCounter))) << _AT
                of_link = value & 7 == READ and value >> _AT & 1023 >= COUNTERS
                of_whom.append((value >> _AT) % 16 if of_link else None)
                want_commands += [] if of_link else [value]
                to_port.queue.extend(written.command(value))
            elif opcode is Opcode.RAW:
                value = written.random_raw()
                want_raws.append(pack(layouts.raw, value))
                to_port.queue.extend(written.raw(value))
                # Its results, later.
                if chance.random() < 0.7:
                    newest += chance.choice([0, 3, 255, 256, chance.getrandbits(23)])
                    newest %= 1 << WIDTHS["newest"]
                    age = chance.choice([0, 1, 65535, 65536, chance.getrandbits(23)])
                    carries = chance.getrandbits(4)
                    want_results.append(
                        {
                            "queries": chance.choice(
                                # One query, several, or none: a part of a group.
                                [1 << chance.randrange(64), chance.getrandbits(64) | 3 << 7, 0]
                            ),
                            "carries": carries,
                            "newest": newest,
                            "oldest": (newest - age) % (1 << WIDTHS["newest"]),
                            "sequences": [
                                chance.getrandbits(16) if carries >> i & 1 else 0 for i in range(4)
                            ],
                        }
                    )
                    results.queue.append(want_results[-1])
                if chance.random() < 0.3:
                    want_handed.append(
                        unpack(layouts.handed_over, _random(layouts.handed_over, chance))
                    )
                    handed.queue.append(want_handed[-1])
            else:
                marks.append(chance.getrandbits(8))
                to_port.queue.extend(written.mark(marks[-1]))
        for _ in range(12_000):
            # Idle only when nothing waits to come out.
            bench.set("idle", not (results.queue or handed.queue))
            bench.set("count", _COUNT + bench.bits("counter"))
            await bench.tick()
            if not to_port.queue and len(answers.given) == len(want_commands):
                break
        else:
            raise AssertionError("it does not get on")
        bench.set("idle", 1)
        for _ in range(1500):
            bench.set("count", _COUNT + bench.bits("counter"))
            await bench.tick()
        assert [pack(COMMAND, item) for item in answers.commands.got] == want_commands
        assert [pack(layouts.raw, item) for item in raws.got] == want_raws
        came = _replies(bytes(from_port.got))
        order = [reply for reply, _ in came]

        def of(kind: Reply, came: Any = came) -> list[dict[str, int]]:
            return [values for reply, values in came if reply is kind]

        assert [pack(RESPONSE, values) for values in of(Reply.RESPONSE)] == [
            answers.given.popleft()
            if counter is None
            else pack(RESPONSE, {"verdict": 0, "data": _COUNT + counter})
            for counter in of_whom
        ]
        assert not answers.given
        assert [values["step"] for values in of(Reply.MARK)] == marks
        for values, want in zip(of(Reply.RESULT), want_results, strict=True):
            numbers = [values.get(f"sequence{i}") for i in range(4)]
            carries = want["carries"]
            assert [n is not None for n in numbers] == [bool(carries >> i & 1) for i in range(4)]
            assert [n or 0 for n in numbers] == want["sequences"]
            assert ("query" in values) == (want["queries"].bit_count() == 1)
            assert [values[n] for n in ("queries", "newest", "oldest")] == [
                want[n] for n in ("queries", "newest", "oldest")
            ]
        assert [
            (v["stream"], v["sequence0"], v["taker"], v["sequence1"]) for v in of(Reply.HANDED_OVER)
        ] == [(w["stream"], w["sequence"], w["taker"], w["taken_by"]) for w in want_handed]
        # The processor was not idle before the last of them was gone.
        late = [i for i, reply in enumerate(order) if reply in (Reply.RESULT, Reply.HANDED_OVER)]
        assert not marks or not late or late[-1] < order.index(Reply.MARK)


@cocotb.test()
async def clear_ends_everything(dut: object) -> None:
    """Clears in the middle of a message, with a raw tuple that is not taken and results on their
    way."""
    bench = Bench(dut, CASES)
    chance = bench.chance
    cleared_with = {"answer": 0, "raw": 0, "middle": 0}
    for number in range(30):
        await bench.reset(idle=1)
        answers = Answers(bench, 0.95)
        to_port = Driver(bench, "from_host", NONE)
        out = Monitor(bench, "to_host", MUCH, firm=False)
        results = Driver(bench, "results", 0.2)
        results.queue.extend([{"newest": i} for i in range(5)])
        written = Written(chance)
        to_port.queue.extend(written.command(READ))
        to_port.queue.extend(written.command(READ | COUNTERS << _AT))
        to_port.queue.extend(written.raw(written.random_raw()))
        to_port.queue.extend(written.command(7)[:5])
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
        to_port.queue.extend(written.mark(number))
        await bench.until(lambda out=out: len(out.got) == 3, 2_000)
        assert out.got == [Reply.MARK, 0, number]
    assert all(cleared_with.values()), cleared_with
