"""Tests receiver and sender: rings of bytes against plain lists."""

from __future__ import annotations

import cocotb
import pytest

from seustream.hdl.boards.protocol import LEAST, MOST, PLACES, longer, shorter
from seustream.hdl.boards.receiver import Receiver
from seustream.hdl.boards.sender import Sender
from tests.hdl.bench import MUCH, NONE, SOME, Bench, Driver, Monitor, simulate

DEPTH = 512
CASES = {"receiver": lambda: Receiver(DEPTH), "sender": lambda: Sender(DEPTH)}
_TESTS = {
    "receiver": ["in_order_and_once"],
    "sender": ["until_it_is_acknowledged", "shorter_when_lost"],
}


@pytest.mark.parametrize("case", CASES)
def test_rings(case: str) -> None:
    simulate(__name__, CASES, case, _TESTS[case])


@cocotb.test()
async def in_order_and_once(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance = bench.chance
    refused = wrapped = 0
    for pressure in (NONE, SOME, MUCH):
        await bench.reset()
        bench.set("clear", 1)
        await bench.tick()
        bench.set("clear", 0)
        monitor = Monitor(bench, "bytes", pressure)
        stream = bytes(chance.getrandbits(8) for _ in range(4000))
        at = gaps = wanted_gaps = 0
        told = False
        while at < len(stream) - MOST:
            await bench.settle()
            ack, credit = bench.bits("ack"), bench.bits("credit")
            assert ack == at
            # Places between the bytes taken, the last of which may be taken in this cycle, and the
            # ring's end.
            assert credit in (DEPTH - at + len(monitor.got) - 1, DEPTH - at + len(monitor.got))
            await bench.clock()
            kind = chance.choice(["next", "next", "next", "again", "later", "bad", "too much"])
            length = chance.randrange(1, MOST)
            begin = {"again": max(0, at - length), "later": at + 1}.get(kind, at)
            payload = stream[begin : begin + length]
            if kind == "bad":
                payload = chance.randbytes(length)
            for place, byte in enumerate(payload):
                bench.set("payload.payload", {"byte": byte, "place": place})
                bench.set("payload.valid", 1)
                await bench.tick()
            bench.set("payload.valid", 0)
            room = bench.bits("credit")
            bench.set("keep", kind != "bad")
            bench.set("sequence", begin)
            bench.set("length", len(payload))
            bench.set("sent", 1)
            await bench.settle()
            room = bench.bits("credit")
            await bench.clock()
            bench.set("keep", 0)
            bench.set("sent", 0)
            wanted_gaps += kind == "later" and not told
            told = told or kind == "later"
            if kind in ("next", "too much") or (kind == "again" and begin == at):
                if len(payload) <= room:
                    at += len(payload)
                    told = False
                else:
                    refused += 1
            wrapped += at // DEPTH > (at - len(payload)) // DEPTH
            await bench.settle()
            gaps += bench.bits("gap")
            await bench.clock()
        await bench.until(lambda want=at, m=monitor: len(m.got) == want, 60_000)
        assert bytes(monitor.got) == stream[:at]
        assert gaps == wanted_gaps > 0, "said once, until something was next"
    assert refused > 3
    assert wrapped > 10


@cocotb.test()
async def until_it_is_acknowledged(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance = bench.chance
    went_back = held = 0
    for idle in (NONE, SOME, MUCH):
        await bench.reset()
        driver = Driver(bench, "bytes", idle)
        stream = bytes(chance.getrandbits(8) for _ in range(3000))
        driver.queue.extend(stream)
        got = bytearray()  # at the other side
        cycles = 0
        limit = 0
        while len(got) < len(stream):
            cycles += 1
            assert cycles < 120_000, "it does not get on"
            # The framer looks now and then, and reads what it takes.
            await bench.settle()
            length, sequence = bench.bits("length"), bench.bits("sequence")
            held += not length and sequence == limit
            await bench.clock()
            if length and chance.random() < 0.5:
                assert sequence + length <= limit, "more than there is room for"
                bench.set("taken", 1)
                await bench.tick()
                bench.set("taken", 0)
                read = bytearray()
                for i in range(length):
                    bench.set("place", (sequence + i) % PLACES)
                    await bench.tick()
                    await bench.settle()
                    read.append(bench.bits("byte"))
                    await bench.clock()
                assert bytes(read) == stream[sequence : sequence + length]
                if chance.random() < 0.7 and sequence == len(got):
                    got += read
            told = chance.random() < 0.2
            again = told and chance.random() < 0.3
            # A credit that was once granted is kept.
            credit = max(chance.choice([0, 5, 400, 2000]), limit - len(got))
            bench.set("acknowledged", told)
            bench.set("again", again)
            # Now and then an acknowledgement is very old, or was never given.
            stale = chance.random() < 0.1
            ack = (len(got) + 30_000) % PLACES if stale else len(got)
            bench.set("ack", ack)
            bench.set("credit", credit)
            await bench.tick()
            bench.set("acknowledged", 0)
            if told and not stale:
                limit = len(got) + credit
            went_back += again
            for _ in range(4):
                await bench.tick()
        assert driver.queue == type(driver.queue)()
        bench.set("ack", len(got))
        bench.set("acknowledged", 1)
        await bench.tick()
        bench.set("acknowledged", 0)
        for _ in range(4):
            await bench.tick()
        assert bench.bits("empty")
    assert went_back > 20
    assert held > 5


@cocotb.test()
async def shorter_when_lost(dut: object) -> None:
    """They get half as long each time something was lost, longer with each one that arrived, and
    stay as long as they are when the other side asks although all of it came."""
    bench = Bench(dut, CASES)
    await bench.reset()
    Driver(bench, "bytes", NONE).queue.extend(bytes(9000))
    first = 0  # place of the first byte that is not acknowledged
    most = MOST

    async def tell(ack: int, again: bool) -> None:
        values = {"acknowledged": 1, "ack": ack, "credit": 2000, "again": again}
        for name, value in values.items():
            bench.set(name, value)
        await bench.tick()
        bench.set("acknowledged", 0)
        for _ in range(300):  # until the ring is full again
            await bench.tick()

    async def take() -> int:
        length = int(bench.bits("length"))
        bench.set("taken", 1)
        await bench.tick()
        bench.set("taken", 0)
        for _ in range(9):
            await bench.tick()
        return length

    await tell(0, False)
    seen = set()
    for kind in ("lost",) * 6 + ("came",) * 40 + ("lost", "asked", "came", "lost", "came") * 4:
        assert await take() == most
        if kind == "lost":
            await tell(first, True)
            most = shorter(most)
        else:
            first += most
            await tell(first % PLACES, kind == "asked")
            most = longer(most)
            if first > 8000:
                break
        seen.add(most)
    assert {LEAST, MOST} <= seen
    bench.set("clear", 1)
    await bench.tick()
