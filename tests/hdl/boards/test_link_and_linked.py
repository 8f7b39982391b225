"""Tests a session over a line that may damage anything: opened, used, lost; behind it, the bytes of
the host are echoed."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.sim import Simulator

from seustream.hdl.boards.identity import Identity
from seustream.hdl.boards.linked import Linked
from seustream.hdl.boards.protocol import FLAG, FrameKind, LinkFrame

OURS = Identity("here", 0x1234, 0x5678, 50_000)


class Echo(Linked):
    """A link with nothing behind it; `cleared` comes only a few cycles after it is asked for."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.link = link = self.link
        wiring.connect(m, wiring.flipped(self.received), link.received)
        wiring.connect(m, link.transmitted, wiring.flipped(self.transmitted))
        wiring.connect(m, link.from_host, link.to_host)
        m.d.sync += link.cleared.eq(link.clear)
        m.d.comb += [self.open.eq(link.open), self.bad.eq(link.bad), self.idle.eq(1)]
        return m


def talk(*says: bytes) -> list[tuple[list[LinkFrame], int, int]]:
    """Returns, after each thing that is sent, the frames that came, whether a session is open, and
    how often something was no frame."""
    dut = Echo(OURS)
    heard: list[tuple[list[LinkFrame], int, int]] = []

    async def host(ctx: Any) -> None:
        ctx.set(dut.transmitted.ready, 1)
        for said in says:
            came, bad = bytearray(), 0
            waiting, quiet = list(said), 0
            while waiting or quiet < 200:
                ctx.set(dut.received.valid, bool(waiting))
                if waiting:
                    ctx.set(dut.received.payload, waiting[0])
                *_, taken, sent, byte, noise = await ctx.tick().sample(
                    dut.received.ready, dut.transmitted.valid, dut.transmitted.payload, dut.bad
                )
                if waiting and taken:
                    waiting.pop(0)
                if sent:
                    came.append(byte)
                bad += noise
                quiet = 0 if sent or waiting else quiet + 1
            frames = [
                LinkFrame.decode(piece) for piece in bytes(came).split(bytes([FLAG])) if piece
            ]
            assert None not in frames
            heard.append(([frame for frame in frames if frame], ctx.get(dut.open), bad))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(host)
    simulator.run()
    return heard


def frame(
    kind: FrameKind, session: int, sequence: int = 0, ack: int = 0, payload: bytes = b""
) -> bytes:
    return LinkFrame(kind, session, sequence, ack, 1000, payload).encode()


def test_a_session_is_opened_used_and_lost() -> None:
    opened, echoed, asked, other, again = talk(
        frame(FrameKind.OPEN, 7),
        frame(FrameKind.DATA, 7, payload=b"hello"),
        frame(FrameKind.ASK, 7, sequence=5),
        frame(FrameKind.DATA, 8, payload=b"stranger"),
        frame(FrameKind.OPEN, 9),
    )
    (first,), is_open, bad = opened
    assert (first.kind, first.session, is_open, bad) == (FrameKind.OPENED, 7, 1, 0)
    assert Identity.decode(first.payload) == OURS
    data = [one for one in echoed[0] if one.kind == FrameKind.DATA]
    assert b"".join(one.payload for one in data) == b"hello"
    assert data[-1].ack == 5, "what came is acknowledged"
    assert b"".join(one.payload for one in asked[0]) == b"hello", (
        "what was not acknowledged comes again"
    )
    assert [(one.kind, one.session) for one in other[0]] == [(FrameKind.LOST, 8)]
    assert other[1] == 1, "a stranger ends no session"
    (anew,), is_open, _ = again
    assert (anew.kind, anew.session, anew.ack, is_open) == (FrameKind.OPENED, 9, 0, 1)


def test_before_a_session_nothing_flows_and_noise_is_no_frame() -> None:
    damaged = bytearray(frame(FrameKind.OPEN, 7))
    damaged[4] ^= 1
    data, noise = talk(frame(FrameKind.DATA, 0, payload=b"x"), bytes(damaged))
    assert [one.kind for one in data[0]] == [FrameKind.LOST]
    assert (noise[0], noise[1]) == ([], 0)
    assert noise[2] == 1


def test_the_same_opening_twice_is_one_session() -> None:
    first, second = talk(frame(FrameKind.OPEN, 7), frame(FrameKind.OPEN, 7))
    assert [one.kind for one in (*first[0], *second[0])] == [FrameKind.OPENED] * 2
