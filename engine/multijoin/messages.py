"""What sites, centre and sink say to each other, and what of it is answered by what.

    Delta ──▶ centre            the keys of a new block             until its Plan arrives
    Plan ◀── centre             what may join, in which order       asked for again by Delta
    Probe ──▶ next site         rows joined so far                  until acknowledged
    Result ──▶ sink             complete combinations               until acknowledged
    Done ──▶ source             nothing of the block is under way   until acknowledged
    Expire ──▶ centre           keys deleted for good               until acknowledged
    Rebuild ──▶ sites           a new centre asks for everything    until each has answered
    Standing ──▶ centre         the answer to it                    asked for again by Rebuild
    Takeover ──▶ candidate      "the centre is silent, be it"       until there is a new epoch

Messages may be lost, repeated and overtake each other. An epoch is (counter, node): the higher
one wins, and the node in it is its centre.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from engine.multijoin.model import BlockId, Entry, Partial, Result

Epoch: TypeAlias = tuple[int, int]
Ref: TypeAlias = tuple[object, ...]
"""What an acknowledgement refers to; made of the message's own content, so that a repeated
message gets the same."""


@dataclass(frozen=True, slots=True)
class Delta:
    epoch: Epoch
    stream: int
    no: int
    tau: float
    counts: dict[Entry, int]
    low: float
    first_open: int


@dataclass(frozen=True, slots=True)
class Plan:
    epoch: Epoch
    stream: int
    no: int
    tau: float
    keep: dict[Entry, int]
    order: tuple[int, ...]
    visible: tuple[int, ...]
    watermark: float
    members: tuple[bool, ...]
    predicted: float


@dataclass(frozen=True, slots=True)
class Probe:
    block: BlockId
    tau: float
    order: tuple[int, ...]
    position: int
    visible: tuple[int, ...]
    watermark: float
    parts: tuple[Partial, ...]


@dataclass(frozen=True, slots=True)
class Deliver:
    """The results of a block, on their way to the sink."""

    block: BlockId
    tau: float
    watermark: float
    results: tuple[Result, ...]


@dataclass(frozen=True, slots=True)
class Done:
    block: BlockId
    tau: float


@dataclass(frozen=True, slots=True)
class Expire:
    epoch: Epoch
    stream: int
    number: int
    tau: float
    counts: dict[Entry, int]


@dataclass(frozen=True, slots=True)
class Ack:
    """`ref` of the message that arrived."""

    ref: Ref


@dataclass(frozen=True, slots=True)
class Wait:
    """A Delta arrived and has to wait; the centre is alive."""

    epoch: Epoch
    stream: int
    no: int


@dataclass(frozen=True, slots=True)
class Rebuild:
    """`attempt` tells two lives of one node apart, should it forget its epoch."""

    epoch: Epoch
    attempt: int


@dataclass(frozen=True, slots=True)
class Standing:
    """What a site holds: keys of its rows in blocks no longer pending, the pending blocks, the
    next number, the highest planned one, and how far it is."""

    epoch: Epoch
    attempt: int
    stream: int
    counts: dict[Entry, int]
    pending: tuple[int, ...]
    next: int
    planned: int
    low: float
    first_open: int
    next_expire: int


@dataclass(frozen=True, slots=True)
class Stale:
    """A Rebuild of an epoch that is not new; `epoch` is what the site is in."""

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Takeover:
    """The centre of this epoch is silent or misplaced, or has to start anew."""

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Lost:
    """A site has lost its store: results may be missing from now on."""

    stream: int


Message: TypeAlias = (
    Delta
    | Plan
    | Probe
    | Deliver
    | Done
    | Expire
    | Ack
    | Wait
    | Rebuild
    | Standing
    | Stale
    | Takeover
    | Lost
)


def ref(message: Message) -> Ref:
    """What identifies a message to whoever repeats it until it is answered."""
    match message:
        case Delta(_, stream, no):
            return ("delta", stream, no)
        case Probe(block, _, _, position):
            return ("probe", *block, position)
        case Deliver(block):
            return ("deliver", *block)
        case Done(block):
            return ("done", *block)
        case Expire(epoch, stream, number):
            return ("expire", *epoch, stream, number)
        case Rebuild(epoch, attempt):
            return ("rebuild", *epoch, attempt)
        case Takeover(epoch):
            return ("takeover", *epoch)
        case Lost(stream):
            return ("lost", stream)
    return (type(message).__name__,)
