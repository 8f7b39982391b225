"""Tests TupleFetch between window memories that answer three cycles late, and only for what it
fetches."""

from __future__ import annotations

import dataclasses
from collections import deque

import cocotb
import pytest

from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.fetch import TupleFetch
from seustream.hdl.layouts import CONTEXTS
from tests.hdl.bench import MUCH, NONE, SOME, Bench, Driver, Scoreboard, simulate

_REQUESTERS = 4
_EACH = 180
CASES = {
    f"{n} windows": (
        lambda n=n: TupleFetch(dataclasses.replace(CONFIGURATIONS["tiny"], streams=n), _REQUESTERS)
    )
    for n in (2, 4)
}


@pytest.mark.parametrize("case", CASES)
def test_tuple_fetch(case: str) -> None:
    simulate(__name__, CASES, case)


@cocotb.test()
async def every_request_is_answered_with_its_tuple(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance, fetch = bench.chance, bench.component
    n, depth = fetch.config.streams, fetch.config.depth

    def component() -> dict:
        return {
            "timestamp": chance.getrandbits(24),
            "sequence": chance.getrandbits(16),
            "attributes": [chance.getrandbits(16) for _ in range(4)],
        }

    all_ask, one_asks = range(_REQUESTERS), range(1, 2)
    for idle, asking, all_whole in (
        (NONE, all_ask, False),
        (SOME, all_ask, True),
        (MUCH, all_ask, False),
        (NONE, one_asks, False),
        (NONE, all_ask, True),
    ):
        await bench.reset(whole_results=all_whole)
        windows = [[component() for _ in range(depth)] for _ in range(n)]
        raws = []
        for context in range(CONTEXTS):
            stream, raw = chance.randrange(n), component()
            counters = [chance.getrandbits(16) for _ in range(n)]
            counters[stream] = raw["sequence"]
            raws.append(
                {
                    "stream": stream,
                    "bits": chance.getrandbits(16),
                    "component": raw,
                    "counters": counters,
                }
            )
            bench.set("context", context)
            bench.set("raw", raws[-1])
            bench.set("remember", 1)
            await bench.tick()
        bench.set("remember", 0)
        board = Scoreboard("responses", key=lambda answer: answer[0])

        def asked_for(who: int, reference: dict) -> list[int]:
            """Returns the windows that are read: those of the joined streams, but for the last
            requester all."""
            if who == _REQUESTERS - 1:
                return list(range(n))
            own = reference["stream"]
            return [s for s in range(n) if reference["carries"] >> s & 1 and s != own]

        def promised(
            who: int, reference: dict, parts: list[dict], all_whole: bool = all_whole
        ) -> dict[int, dict]:
            """Returns what the requester may look at, by window: the raw tuple, and what was read
            of the others."""
            shown = {s: parts[s] for s in asked_for(who, reference)}
            if who == _REQUESTERS - 1:
                return shown
            if who == _REQUESTERS - 2 and not all_whole:  # only the stamps of stored tuples
                names = ("timestamp", "sequence")
                shown = {s: {name: part[name] for name in names} for s, part in shown.items()}
            own = reference["stream"]
            return shown | {own: parts[own]}

        def answer(who: int, reference: dict, windows=windows, raws=raws) -> tuple:
            raw = raws[reference["context"]]
            parts = [windows[s][reference["slots"][s]] for s in range(n)]
            if who != _REQUESTERS - 1:  # the last one asks for stored tuples
                parts[raw["stream"]] = raw["component"]
            return who, {
                "reference": reference,
                "components": promised(who, reference, parts),
                "stream": raw["stream"],
                "bits": raw["bits"],
                "now": raw["component"]["timestamp"],
                "counters": raw["counters"],
            }

        # By window: number of reads, and of reads of attributes.
        reads, whole_reads = [0] * n, [0] * n
        since = [deque() for _ in range(_REQUESTERS)]
        drivers = [Driver(bench, f"requesters.{who}.request", idle) for who in range(_REQUESTERS)]
        for who, driver in enumerate(drivers):
            for _ in range(_EACH if who in asking else 0):
                context = chance.randrange(CONTEXTS)
                own = raws[context]["stream"]
                carries = 1 << own
                # A tuple that an area asks for has joined something. The output may also be sent a
                # raw tuple.
                others = [s for s in range(n) if s != own]
                fewest = int(who < _REQUESTERS - 2)
                for s in chance.sample(others, chance.randrange(fewest, n)):
                    carries |= 1 << s
                driver.queue.append(
                    {
                        "context": context,
                        "tag": chance.getrandbits(8),
                        "stream": own,
                        # Replay does not say what is carried.
                        "carries": carries if who < _REQUESTERS - 1 else chance.getrandbits(n),
                        "slots": [chance.randrange(depth) for _ in range(n)],
                    }
                )

            def taken_now(reference, who=who, board=board, answer=answer, since=since,
                          asked_for=asked_for, reads=reads, whole_reads=whole_reads,
                          all_whole=all_whole) -> None:  # fmt: skip
                for s in asked_for(who, reference):
                    reads[s] += 1
                    whole_reads[s] += all_whole or who != _REQUESTERS - 2
                board.expect(answer(who, reference))
                since[who].append(bench.cycle)

            driver.taken = taken_now

        pipe: list[list[dict]] = [[{}] * n for _ in range(3)]
        garbage = [component() for _ in range(n)]
        fetched, fetched_whole = [0] * n, [0] * n
        asked = taken = coming = answering = 0
        for _ in range(20_000):
            bench.set_each("windows", "component", pipe[0])
            await bench.settle()
            responses = bench.bits_each("requesters", "response")
            assert responses & (responses - 1) == 0
            assert responses == answering
            answering = bench.bits_each("requesters", "answering")
            if responses:
                who = responses.bit_length() - 1
                came = bench.get_same("requesters", "data")
                came["components"] = promised(who, came["reference"], came["components"])
                board.came((who, came))
                # Every other requester may come once before each of the two that wait.
                assert 7 <= bench.cycle - since[who].popleft() <= 7 + 2 * (_REQUESTERS - 1) + 1
            slots = bench.get_each("windows", "slot")
            fetching, whole = (bench.bits_each("windows", name) for name in ("fetching", "whole"))
            assert whole == coming
            assert not whole & ~fetching
            coming = bench.bits_each("windows", "coming")
            read = []
            for s in range(n):
                here = windows[s][slots[s]] if fetching >> s & 1 else garbage[s]
                rest = {} if whole >> s & 1 else {"attributes": garbage[s]["attributes"]}
                read.append(here | rest)
                fetched[s] += fetching >> s & 1
                fetched_whole[s] += whole >> s & 1
            pipe = [*pipe[1:], read]
            asked += 1
            taken = sum(len(driver.sent) for driver in drivers)
            await bench.clock()
            if taken == _EACH * len(asking) and board.empty:
                break
        board.finish()
        assert board.seen == _EACH * len(asking)
        assert fetched == reads, "the windows' memories are taken for nothing"
        assert fetched_whole == whole_reads, "attributes are read for nothing"
        if idle == NONE:
            assert asked < _EACH * len(asking) + 10, "a tuple a cycle is promised, whoever asks"
        for _ in range(5):
            await bench.settle()
            assert not bench.bits_each("requesters", "response")
            await bench.clock()
