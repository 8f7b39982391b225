"""Tests Router: everything granted goes where its destination says, once, and to no place without
room."""

from __future__ import annotations

import dataclasses
from collections import deque

import cocotb
import pytest

from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.layouts import CONTEXTS, FOLLOWING, OFFERS
from seustream.hdl.router import Router
from tests.hdl.bench import PACES, Bench, Scoreboard, simulate

_LATE = 3
"""Cycles from a look at the rooms to a grant."""

CASES = {
    f"{n} areas": (lambda n=n: Router(dataclasses.replace(CONFIGURATIONS["tiny"], streams=n)))
    for n in (2, 4)
}


@pytest.mark.parametrize("case", CASES)
def test_router(case: str) -> None:
    simulate(__name__, CASES, case)


@cocotb.test()
async def to_all_destinations_once(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance, router = bench.chance, bench.component
    n, levels = router.config.streams, router.layouts.levels
    senders = n + OFFERS
    used = set()
    soonest = [9] * senders  # cycles after the grant before, at least
    withdrawn = 0
    alone = [0] * n  # followed where there was no offer

    def offer(sender: int, level: int | None = None) -> dict:
        if level is None:
            level = chance.randrange(levels)
        places = chance.randrange(1, 2 << n)
        # Tuples made by the highest level go to the output, and so do the raw tuples that come
        # here.
        if level == levels - 1 or sender >= n:
            places = 1 << n
        return {
            "reference": {
                "context": chance.randrange(CONTEXTS),
                "tag": chance.getrandbits(8),
                "stream": chance.randrange(n),
                "carries": chance.getrandbits(n),
                "slots": [chance.getrandbits(4) for _ in range(n)],
            },
            "level": level,
            "areas": places & (1 << n) - 1,
            "output": places >> n,
        }

    def room(offered: dict, rooms: list[int], output: bool) -> bool:
        places = [area for area in range(n) if offered["areas"] >> area & 1]
        there = all(rooms[area] >> offered["level"] + 1 & 1 for area in places)
        return there and (output or not offered["output"])

    for idle, pressure in PACES:
        await bench.reset()
        offers = [offer(sender) for sender in range(senders)]
        following: list[list[dict]] = [[] for _ in range(n)]  # what areas announce as the next ones
        last_grant = [-9] * senders
        emit = [False] * senders
        resting = [0] * senders  # cycles, after it was taken back
        waited = [0] * senders
        looks: deque[tuple[list[int], bool]] = deque(maxlen=_LATE + 1)
        pushes, sends = Scoreboard("pushed"), Scoreboard("sent")
        taking = 0
        for cycle in range(1_000):
            calm = cycle > 950
            # For a while only one sender has something to send.
            lone = cycle // 40 % senders if 500 < cycle < 900 else None
            for sender in range(senders):
                if emit[sender] or resting[sender]:
                    continue
                if sender < n and following[sender]:
                    offers[sender], emit[sender] = following[sender].pop(0), True
                    alone[sender] += 1
                else:
                    offers[sender] = offer(sender)
                    may = not calm and lone in (None, sender)
                    emit[sender] = may and chance.random() >= idle
            for sender in range(n):
                if resting[sender] == 1:  # the announced ones are forgotten, too
                    following[sender].clear()
                elif not resting[sender] and len(following[sender]) < FOLLOWING and not calm:
                    level = offers[sender]["level"]
                    following[sender] += [offer(sender, level)] * (chance.random() >= idle)
            rooms = [
                sum((calm or chance.random() >= pressure) << level for level in range(levels))
                for _ in range(n)
            ]
            output_room = calm or chance.random() >= pressure
            looks.append((rooms, output_room))
            bench.set_each("offers", "emit", emit[:n])
            bench.set_each("offers", "emitted", [each["reference"] for each in offers[:n]])
            bench.set_each("offers", "level", [each["level"] for each in offers[:n]])
            bench.set_each(
                "offers",
                "destination",
                [{"areas": each["areas"], "output": each["output"]} for each in offers[:n]],
            )
            bench.set_each("offers", "follows", [(1 << len(those)) - 1 for those in following])
            bench.set_each(
                "offers",
                "follows_to",
                [
                    [
                        {"areas": each["areas"], "output": each["output"]}
                        for each in [*those, *offers][:FOLLOWING]
                    ]
                    for those in following
                ],
            )
            bench.set("raws.emit", sum(bit << i for i, bit in enumerate(emit[n:])))
            bench.set("raws.emitted", [each["reference"] for each in offers[n:]])
            bench.set_each("probes", "room", rooms)
            bench.set("output_room", output_room)
            await bench.settle()
            # Areas hear of it a cycle before.
            granted = taking | bench.bits("raws.granted") << n
            assert granted & (granted - 1) == 0
            assert bench.bits("circulated") == bool(taking)
            taking = bench.bits_each("offers", "taking")
            roomy = bench.bits_each("offers", "roomy")
            for sender, each in enumerate(offers):
                resting[sender] = max(resting[sender] - 1, 0)
                if not granted >> sender & 1:
                    free = all(room(each, *look) for look in looks)
                    waited[sender] = waited[sender] + 1 if emit[sender] and free else 0
                    assert waited[sender] <= senders + _LATE, "others are served again and again"
                    # An area that is stuck may withdraw its offer, while it cannot be its turn.
                    if (
                        sender < n
                        and emit[sender]
                        and not roomy >> sender & 1
                        and chance.random() < 0.05
                    ):
                        emit[sender], resting[sender], waited[sender] = False, 2, 0
                        withdrawn += 1
                    continue
                assert emit[sender], "granted, but nothing was offered"
                assert room(each, *looks[0]), "granted without room"
                emit[sender], waited[sender] = False, 0
                soonest[sender] = min(soonest[sender], cycle - last_grant[sender])
                last_grant[sender] = cycle
                pushes.expect((each["areas"], each["output"], each["reference"], each["level"] + 1))
                places = each["areas"].bit_count() + each["output"]
                if sender < n:  # the sender of a raw tuple counts it
                    sends.expect((places, each["reference"]["context"]))
                used.add(sender)
                if sender < n and following[sender]:
                    offers[sender], emit[sender] = following[sender].pop(0), True
            push = bench.bits_each("probes", "push")
            if push or bench.bits("output"):
                pushed = (push, bench.bits("output"), bench.get("pushed"))
                assert bench.get_same("probes", "pushed") == pushed[-1]
                # The level of a tuple that goes to the output alone means nothing.
                level = (
                    bench.get_same("probes", "level") if pushed[0] else pushes.waiting[None][0][3]
                )
                pushes.came((*pushed, level))
            if bench.bits("sent"):
                sends.came((bench.bits("sent"), bench.bits("context")))
            await bench.clock()
        assert not any(emit)
        pushes.finish()
        sends.finish()
        assert pushes.seen > sends.seen > 5
    assert used == set(range(senders))
    assert soonest == [1] * n + [3] * OFFERS, "what follows is granted at once"
    assert min(alone) > 10
    assert withdrawn > 10
