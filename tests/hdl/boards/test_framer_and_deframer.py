"""Tests deframer and framer against `seustream.hdl.boards.protocol`, which the host uses."""

from __future__ import annotations

import cocotb
import pytest

from seustream.hdl.boards.deframer import Deframer
from seustream.hdl.boards.framer import Framer
from seustream.hdl.boards.protocol import ESCAPE, FLAG, MOST, FrameKind, LinkFrame
from tests.hdl.bench import MUCH, NONE, SOME, Bench, Driver, Monitor, simulate

_IDENTITY = bytes([FLAG, ESCAPE, *range(26)])
CASES = {"deframer": Deframer, "framer": lambda: Framer(_IDENTITY)}
_TESTS = {"deframer": ["whole_frames_come_through"], "framer": ["frames_go_out"]}


@pytest.mark.parametrize("case", CASES)
def test_frames(case: str) -> None:
    simulate(__name__, CASES, case, _TESTS[case])


def _frame(chance: object, length: int) -> LinkFrame:
    special = bytes([FLAG, ESCAPE, FLAG ^ 0x20, ESCAPE ^ 0x20])
    payload = bytes(
        chance.choice(special) if chance.random() < 0.3 else chance.getrandbits(8)
        for _ in range(length)
    )
    numbers = [chance.getrandbits(16) for _ in range(4)]
    return LinkFrame(chance.choice([*FrameKind]), *numbers, payload=payload)


@cocotb.test()
async def whole_frames_come_through(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance = bench.chance
    damaged = 0
    for idle in (NONE, MUCH):
        await bench.reset()
        driver = Driver(bench, "bytes", idle)
        want: list[LinkFrame] = []
        for number in range(60):
            frame = _frame(chance, chance.choice([0, 0, 1, 30, MOST]))
            data = bytearray(frame.encode())
            match number % 5:
                case 1:  # a bit is wrong
                    data[chance.randrange(1, len(data) - 1)] ^= 1 << chance.randrange(8)
                case 2:  # a byte is missing
                    del data[chance.randrange(1, len(data) - 1)]
                case 4:  # an escape with nothing after it at the end
                    data.insert(len(data) - 1, ESCAPE)
                case 3:  # noise before it, now and then longer than any frame
                    data[:0] = chance.randbytes(chance.choice([1, 9, 400]))
            # Frames that the host's own decoder finds in it; that decoder is tested against zlib.
            found = [LinkFrame.decode(part) for part in bytes(data).split(bytes([FLAG])) if part]
            want += [one for one in found if one is not None]
            damaged += None in found
            driver.queue.extend(data)
        got: list[LinkFrame] = []
        payload = bytearray()
        while driver.queue or bench.cycle % 8:
            await bench.settle()
            if bench.bits("payload.valid"):
                part = bench.get("payload.payload")
                del payload[part["place"] :]
                payload.append(part["byte"])
            if bench.bits("good"):
                head = bench.get("head")
                length = head.pop("length")
                got.append(LinkFrame(*head.values(), payload=bytes(payload[:length])))
            await bench.clock()
        for _ in range(4):
            await bench.settle()
            if bench.bits("good"):
                head = bench.get("head")
                length = head.pop("length")
                got.append(LinkFrame(*head.values(), payload=bytes(payload[:length])))
            await bench.clock()
        assert got == want
        assert len(want) > 20
    assert damaged > 30


@cocotb.test()
async def frames_go_out(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance = bench.chance
    for pressure in (NONE, SOME, MUCH):
        await bench.reset()
        monitor = Monitor(bench, "bytes", pressure)
        ring = [chance.getrandbits(8) for _ in range(1 << 16)]
        want: list[LinkFrame] = []
        asked, place, waits = None, 0, 0
        while len(want) < 20 or waits < 100 * 20:
            if asked is None and len(want) < 20:
                asked = _frame(chance, chance.choice([0, 1, 2, 20]))
                identity = chance.random() < 0.2
                length = len(_IDENTITY) if identity else len(asked.payload)
                bench.set("head", {n: getattr(asked, n) for n in LinkFrame.__slots__[:5]}
                              | {"length": length})  # fmt: skip
                bench.set("identity", identity)
            bench.set("start", asked is not None)
            bench.set("byte", ring[place])
            await bench.settle()
            place = bench.bits("place")
            taken = bench.bits("taken")
            await bench.clock()
            if taken:
                assert asked is not None
                stream = bytes(ring[(asked.sequence + i) % (1 << 16)] for i in range(length))
                numbers = (asked.kind, asked.session, asked.sequence, asked.ack, asked.credit)
                want.append(LinkFrame(*numbers, payload=_IDENTITY if identity else stream))
                asked = None
            waits = waits + 1 if len(want) == 20 else 0
        data = bytes(monitor.got)
        assert data[0] == data[-1] == FLAG
        assert [LinkFrame.decode(part) for part in data.split(bytes([FLAG])) if part] == want
