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

With `strategy=auto` a site does not send its synopses unasked, and rows may go to a hub:

    Announce ──▶ centre         a new block, by numbers only        until its Plan arrives
    Tell ──▶ site               its synopses are wanted             until it has told
    Told ──▶ centre             the answer to it                    asked for again by Tell
    Ship ──▶ hub                a block's rows                      until the block is Done
    Fetch ──▶ site              rows the hub lacks                  until they come
    Fetched ──▶ hub             the answer to it                    asked for again by Fetch
    Joined ──▶ centre           how many results a block has        until answered
    Forward ──▶ hub             too many for you: to that one
    Led ──▶ query node          a new epoch                         until acknowledged

Messages may be lost, repeated and overtake each other. An epoch is (counter, node): the higher
one wins, and the node in it is its centre.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from engine.sites.model import BlockId, Entry, Partial, Result, Stored

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

    @property
    def rows(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class Books:
    """The centre's account, as a plan takes it along: should the centre die, the next one goes
    on from the latest that any site has."""

    number: int
    spent: float
    hub: int | None
    hubs: dict[int, float]


@dataclass(frozen=True, slots=True)
class Hubwards:
    """A block is not to visit sites but goes to a hub, as part of a move if `moving`. From there
    up to `most` results may go out; more are another hub's."""

    hub: int
    most: float
    moving: bool


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
    way: Hubwards | None = None
    books: Books | None = None


@dataclass(frozen=True, slots=True)
class Probe:
    block: BlockId
    tau: float
    order: tuple[int, ...]
    position: int
    visible: tuple[int, ...]
    watermark: float
    parts: tuple[Partial, ...]
    spent: float = 0.0


@dataclass(frozen=True, slots=True)
class Deliver:
    """The results of a block, on their way to the sink."""

    block: BlockId
    tau: float
    watermark: float
    results: tuple[Result, ...]
    spent: float = 0.0


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing of a block is under way; `spent` is what its way between the sites cost."""

    block: BlockId
    tau: float
    spent: float = 0.0
    results: int = 0


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
    books: Books | None = None


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


@dataclass(frozen=True, slots=True)
class Announce:
    """A new block: its rows, and `owed`, the entries its site has not told since it last did,
    those of the block among them. `spent` and `results` are of all blocks before `first_open` that
    went between the sites in this epoch."""

    epoch: Epoch
    stream: int
    no: int
    tau: float
    rows: int
    owed: int
    low: float
    first_open: int
    spent: float
    results: int


@dataclass(frozen=True, slots=True)
class Tell:
    """Wanted: everything not told before block `no`, and the block itself."""

    epoch: Epoch
    stream: int
    no: int
    tau: float


@dataclass(frozen=True, slots=True)
class Told:
    """What changed in a store before block `no`, deletions less than nothing; and the block."""

    epoch: Epoch
    stream: int
    no: int
    tau: float
    changes: dict[Entry, int]
    block: dict[Entry, int]

    @property
    def entries(self) -> int:
        return len(self.changes.keys() | self.block.keys())


@dataclass(frozen=True, slots=True)
class Ship:
    epoch: Epoch
    block: BlockId
    tau: float
    visible: tuple[int, ...]
    watermark: float
    members: tuple[bool, ...]
    most: float
    moving: bool
    rows: tuple[Stored, ...]


@dataclass(frozen=True, slots=True)
class Fetch:
    """Wanted: the living rows of blocks after one number up to another, but for some."""

    stream: int
    after: int
    upto: int
    but: tuple[int, ...]
    tau: float


@dataclass(frozen=True, slots=True)
class Fetched:
    stream: int
    after: int
    upto: int
    tau: float
    rows: tuple[Stored, ...]


@dataclass(frozen=True, slots=True)
class Joined:
    """A block's results at a hub; those not `delivered` wait to be told where to go."""

    epoch: Epoch
    block: BlockId
    tau: float
    results: int
    delivered: bool


@dataclass(frozen=True, slots=True)
class Forward:
    """A block that has more results than may go out from a hub is joined at another; the same
    one, if that is the best after all."""

    block: BlockId
    to: int


@dataclass(frozen=True, slots=True)
class Led:
    """To a query node that is no site: somebody leads a new epoch."""

    epoch: Epoch


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
    | Announce
    | Tell
    | Told
    | Ship
    | Fetch
    | Fetched
    | Joined
    | Forward
    | Led
)


def ref(message: Message) -> Ref:
    """What identifies a message to whoever repeats it until it is answered."""
    match message:
        case Delta(_, stream, no) | Announce(_, stream, no):
            return ("delta", stream, no)
        case Tell(epoch, stream, no) | Told(epoch, stream, no):
            return ("tell", *epoch, stream, no)
        case Ship(_, block):
            return ("ship", *block)
        case Fetch(stream, after, upto) | Fetched(stream, after, upto):
            return ("fetch", stream, after, upto)
        case Joined(_, block):
            return ("joined", *block)
        case Led(epoch):
            return ("led", *epoch)
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
