"""Signatures that components share: what travels between them, and when it is valid.

Each is written from the side of the sender, which the component's docstring names. A component has such a port
as `Out` if it is that sender, otherwise as `In`.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.config import DeviceConfig
from seustream.hdl.control_words import ADDRESS_BITS, DATA_BITS, TARGET_BITS, UNIT_BITS
from seustream.hdl.layouts import CONTEXT_BITS, FOLLOWING, OFFERS, SELECTIONS, STREAM_BITS, Layouts

WORD = ("valid", "target", "unit", "address", "data")
"""Members of the table bus that are valid for one cycle."""


class TableBus(wiring.Signature):
    """From the control unit to the tables of all other units.

    valid      out: a word for a table, whose checks it has passed; for one cycle. The unit addressed takes it
    target, unit, address, data   out: the word, as in its command (`COMMAND`); valid with `valid`
    half       out: the half of all tables that is in use, held; words go to the other one. It changes only while
               nothing is in flight
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "valid": Out(1),
                "target": Out(TARGET_BITS),
                "unit": Out(UNIT_BITS),
                "address": Out(ADDRESS_BITS),
                "data": Out(DATA_BITS),
                "half": Out(1),
            }
        )


class TupleArrivals(wiring.Signature):
    """From the sequencer to a window buffer: raw tuples, each in two phases.

    First the next tuple is announced, and a check lets the window drop what is dead by then and make room; then
    the tuple is stored, or its view is recorded, or both.

    now, counter   out: clock and the stream's last sequence number, all of the next check; valid in the three
                   cycles before `check`
    wanted         out: a tuple is to be stored in this window; valid as `now` is
    check          out: pulse, at the earliest two cycles after the window was settled
    flow           out: the checked tuple does not wait for the window, and is stored in any case
    rests, passes  in: the window is settled if it passes, or if it rests and no check has reached it. Both come
                   from registers, because the sequencer is far away
    calm           in: a few more tuples may flow: nothing leaves early, and there is room
    store          out: pulse, once after a check with `wanted` has settled, at the latest with the next check
    tuple, bits    out: the tuple (`Layouts.component`) and its selection bits; valid with `store`
    snapshot       out: pulse: record what is stored as the view of `context`
    context        out: number of the view, valid with `snapshot`
    busy           out: raw tuples are in flight; may be late
    oldest         out: context of the oldest, valid with `busy`; may be late
    """

    def __init__(self, config: DeviceConfig) -> None:
        layouts = Layouts(config)
        super().__init__(
            {
                "now": Out(layouts.timestamp),
                "counter": Out(layouts.sequence),
                "wanted": Out(1),
                "check": Out(1),
                "flow": Out(1),
                "rests": In(1),
                "passes": In(1),
                "calm": In(1),
                "store": Out(1),
                "tuple": Out(layouts.component),
                "bits": Out(SELECTIONS),
                "snapshot": Out(1),
                "context": Out(CONTEXT_BITS),
                "busy": Out(1),
                "oldest": Out(CONTEXT_BITS),
            }
        )


class RawProbes(wiring.Signature):
    """From the sequencer to the probe FIFO of an area: raw tuples with the data that they bring.

    push     out: pulse: a probe
    pushed   out: it (`Layouts.raw_probe`), valid with `push`
    room     in: there is room for one more; may be late by `IN_FLIGHT` probes
    """

    def __init__(self, config: DeviceConfig) -> None:
        super().__init__({"push": Out(1), "pushed": Out(Layouts(config).raw_probe), "room": In(1)})


class JoinedProbes(wiring.Signature):
    """From the router to the probe FIFO of an area: joined tuples.

    push            out: pulse: a probe
    pushed, level   out: its reference and its level, valid with `push`
    room            in: by level, there is room for one more; may be late by `IN_FLIGHT` probes
    """

    def __init__(self, config: DeviceConfig) -> None:
        layouts = Layouts(config)
        super().__init__(
            {
                "push": Out(1),
                "pushed": Out(layouts.reference),
                "level": Out(layouts.level_bits),
                "room": In(layouts.levels),
            }
        )


class IndexLookup(wiring.Signature):
    """From a chain walker to an equality index: steps along the chains of its buckets.

    ask      out: look up the newest slot of a bucket
    bucket   out: it, valid with `ask`
    ready    in: an ask is accepted in the next cycle
    newest   in: the newest slot of the bucket, 2 cycles after the ask
    after    out: a slot
    older    in: the next older slot of its chain and the mark of `after` (`Layouts.link`), 2 cycles later
    """

    def __init__(self, config: DeviceConfig) -> None:
        layouts = Layouts(config)
        super().__init__(
            {
                "ask": Out(1),
                "bucket": Out(layouts.bucket_bits),
                "ready": In(1),
                "newest": In(layouts.slot_bits),
                "after": Out(layouts.slot_bits),
                "older": In(layouts.link),
            }
        )


class JoinedOffer(wiring.Signature):
    """From an area to the router: the joined tuple that is sent next.

    emit          out: a tuple is offered. It stays until the cycle after `taking`, or until the area gives up its
                  probe, which it does only while the tuple is not `roomy`
    emitted       out: its reference, valid with `emit`
    level         out: level of the probe that it was made of, valid with `emit`
    destination   out: where it goes, valid with `emit`
    follows       out: for the next one and the one after it, whether it is ready already and of the same level;
                  without `emit`, the first is the next one
    follows_to    out: where these go, each valid with its bit of `follows`
    taking        in: it is taken: this is the last cycle but one in which it is offered
    roomy         in: it may be taken in this cycle, for there is room; if `taking` was set in the cycle before,
                  the next one
    """

    def __init__(self, config: DeviceConfig) -> None:
        layouts = Layouts(config)
        super().__init__(
            {
                "emit": Out(1),
                "emitted": Out(layouts.reference),
                "level": Out(layouts.level_bits),
                "destination": Out(layouts.destination),
                "follows": Out(FOLLOWING),
                "follows_to": Out(data.ArrayLayout(layouts.destination, FOLLOWING)),
                "taking": In(1),
                "roomy": In(1),
            }
        )


class RawOffers(wiring.Signature):
    """From the sequencer to the router: raw tuples for the output, by several offers in turn.

    emit      out, a bit per offer: a tuple is offered; stays until `granted`
    emitted   out: their references, each valid with its bit of `emit`
    granted   in, a bit per offer: the tuple was taken in the cycle before; another may follow in the next one
    """

    def __init__(self, config: DeviceConfig) -> None:
        super().__init__(
            {
                "emit": Out(OFFERS),
                "emitted": Out(data.ArrayLayout(Layouts(config).reference, OFFERS)),
                "granted": In(OFFERS),
            }
        )


class Fetching(wiring.Signature):
    """From one that needs the data of tuples to the tuple fetch.

    request     out: stream of references
    answering   in: pulse: the answer to a request comes in the next cycle; answers keep the order of requests
    response    in: pulse, a cycle after `answering`
    data        in: what the reference stands for (`Layouts.fetched`), valid with `response`
    """

    def __init__(self, config: DeviceConfig) -> None:
        layouts = Layouts(config)
        super().__init__(
            {
                "request": Out(stream.Signature(layouts.reference)),
                "answering": In(1),
                "response": In(1),
                "data": In(layouts.fetched),
            }
        )


class WindowReading(wiring.Signature):
    """From the tuple fetch to a window buffer. While it does not read, the window reads for itself.

    coming      out: attributes are read in the next cycle, so that no row can be
    fetching    out: the stamp of the tuple at `slot` is read
    whole       out: its attributes are read, too
    slot        out: slot number, valid with `fetching`
    component   in: the tuple, 3 cycles later (`Layouts.component`); its attributes are valid after `whole`
    """

    def __init__(self, config: DeviceConfig) -> None:
        layouts = Layouts(config)
        super().__init__(
            {
                "coming": Out(1),
                "fetching": Out(1),
                "whole": Out(1),
                "slot": Out(layouts.slot_bits),
                "component": In(layouts.component),
            }
        )


class Rewriting(wiring.Signature):
    """From the replay to a window buffer: new selection bits of its tuples.

    first, end   in: pointers to the oldest tuple, and behind the newest one
    rewrite      out: pulse: new bits for the tuple at `slot`
    slot, bits   out: slot number and selection bits, valid with `rewrite`
    """

    def __init__(self, config: DeviceConfig) -> None:
        layouts = Layouts(config)
        super().__init__(
            {
                "first": In(layouts.pointer_bits),
                "end": In(layouts.pointer_bits),
                "rewrite": Out(1),
                "slot": Out(layouts.slot_bits),
                "bits": Out(SELECTIONS),
            }
        )


class Reselecting(wiring.Signature):
    """From the replay to the selection unit: stored tuples, whose selection bits are computed anew.

    again                out: pulse while the unit is idle: a tuple
    stream, attributes   out: its stream and attributes, valid with `again`
    known                in: pulse, a cycle after the unit is idle again
    bits                 in: the tuple's bits, valid with `known`
    """

    def __init__(self, config: DeviceConfig) -> None:
        super().__init__(
            {
                "again": Out(1),
                "stream": Out(STREAM_BITS),
                "attributes": Out(Layouts(config).attributes),
                "known": In(1),
                "bits": In(SELECTIONS),
            }
        )


class TupleDone(wiring.Signature):
    """From an area, or the output, to the sequencer: what is no longer in flight.

    commit    out: pulse: a tuple is done
    context   out: its context, valid with `commit`
    """

    def __init__(self) -> None:
        super().__init__({"commit": Out(1), "context": Out(CONTEXT_BITS)})


class Meter(wiring.Signature):
    """From a unit to the counters of its activity, in every cycle. A unit that is neither is starved.

    working   out: it has work and does it
    blocked   out: it has work, but waits for others
    """

    def __init__(self) -> None:
        super().__init__({"working": Out(1), "blocked": Out(1)})


def registered(m: Module, source: Any, sink: Any, *names: str) -> None:
    """Connects a sender's port to a receiver's, with a register behind what the sender drives: behind all of it,
    or behind the members named. What the receiver drives is connected directly."""
    ends = zip(source.signature.flatten(source), sink.signature.flatten(sink), strict=True)
    for (path, member, at_source), (_, _, at_sink) in ends:
        if member.flow is not Out:
            m.d.comb += at_source.eq(at_sink)
        elif not names or path[0] in names:
            m.d.sync += at_sink.eq(at_source)
        else:
            m.d.comb += at_sink.eq(at_source)
