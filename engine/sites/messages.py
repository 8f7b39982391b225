"""The messages between sites, centre, hub and query node: a class each, with receiver and answer.

    Delta ──▶ centre            the keys of a new block             until its Plan arrives
    Plan ◀── centre             what may join, in which order       asked for again by Delta
    Probe ──▶ next site         rows joined so far                  until acknowledged
    Deliver ──▶ query node      complete combinations               until acknowledged
    Done ──▶ source             nothing of the block is under way   until acknowledged
    Expire ──▶ centre           keys deleted for good               until acknowledged
    Rebuild ──▶ sites           a new centre asks for everything    until each has answered
    Standing ──▶ centre         the answer to it                    asked for again by Rebuild
    Takeover ──▶ candidate      "the centre is silent, replace it"  until there is a new epoch

With `strategy=auto` a site sends synopses only when asked, and rows may go to a hub:

    Announce ──▶ centre         a new block, by numbers only        until its Plan arrives
    Ask ──▶ site                its synopses are wanted             until its Changes arrive
    Changes ──▶ centre          the answer to it                    asked for again by Ask
    Ship ──▶ hub                a block's rows                      until the block is Done
    Fetch ──▶ site              rows the hub lacks                  until they come
    Fetched ──▶ hub             the answer to it                    asked for again by Fetch
    Joined ──▶ centre           how many results a block has        until answered
    Forward ──▶ hub             too many to deliver from there: the hub to pass the block to
    NewEpoch ──▶ query node     a new centre leads                  until acknowledged

Messages may be lost, repeated, and overtake each other. An epoch is (counter, node): the higher one
wins, and its node is its centre.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from seustream.engine.sites.model import BlockId, Entry, Partial, Result, Stored

Epoch: TypeAlias = tuple[int, int]
Ref: TypeAlias = tuple[object, ...]
"""Identifies the message that an acknowledgement refers to. It is made of the message's own
content, so that a repeated message has the same."""


@dataclass(frozen=True, slots=True)
class SiteMessage:
    """`KEY` is the name of an exchange and the fields that identify a message in it: a question and
    its answer share them. `CENTRE` marks messages that only a centre takes."""

    KEY: ClassVar[tuple[str, ...]] = ()
    CENTRE: ClassVar[bool] = False

    @property
    def ref(self) -> Ref:
        """Identifies the message to the sender that repeats it until it is answered."""
        name, *fields = self.KEY or (type(self).__name__,)
        return (name, *(getattr(self, field) for field in fields))


@dataclass(frozen=True, slots=True)
class Delta(SiteMessage):
    KEY, CENTRE = ("delta", "stream", "no"), True
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
class AccountState:
    """The centre's account, which plans carry: a new centre continues from the latest state that
    any site has."""

    number: int
    spent: float
    hub: int | None
    hubs: dict[int, float]


@dataclass(frozen=True, slots=True)
class ToHub:
    """Sends a block to a hub instead of sites, as part of a move if `moving`. Up to `most` results
    may go out from there; a block with more goes to another hub."""

    hub: int
    most: float
    moving: bool


@dataclass(frozen=True, slots=True)
class Plan(SiteMessage):
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
    way: ToHub | None = None
    account: AccountState | None = None


@dataclass(frozen=True, slots=True)
class Probe(SiteMessage):
    KEY = ("probe", "block", "position")
    block: BlockId
    tau: float
    order: tuple[int, ...]
    position: int
    visible: tuple[int, ...]
    watermark: float
    parts: tuple[Partial, ...]
    spent: float = 0.0


@dataclass(frozen=True, slots=True)
class Deliver(SiteMessage):
    """The results of a block, on their way to the query node."""

    KEY = ("deliver", "block")
    block: BlockId
    tau: float
    watermark: float
    results: tuple[Result, ...]
    spent: float = 0.0


@dataclass(frozen=True, slots=True)
class Done(SiteMessage):
    """Nothing of a block is under way any more; `spent` is the cost of its way between the
    sites."""

    KEY = ("done", "block")
    block: BlockId
    tau: float
    spent: float = 0.0
    results: int = 0


@dataclass(frozen=True, slots=True)
class Expire(SiteMessage):
    KEY, CENTRE = ("expire", "epoch", "stream", "number"), True
    epoch: Epoch
    stream: int
    number: int
    tau: float
    counts: dict[Entry, int]


@dataclass(frozen=True, slots=True)
class Ack(SiteMessage):
    """`to` is the ref of the message that arrived."""

    to: Ref


@dataclass(frozen=True, slots=True)
class Wait(SiteMessage):
    """A Delta arrived and has to wait; the centre is alive."""

    KEY = ("delta", "stream", "no")
    epoch: Epoch
    stream: int
    no: int


@dataclass(frozen=True, slots=True)
class Rebuild(SiteMessage):
    """`attempt` tells two lives of one node apart, in case it forgets its epoch."""

    KEY = ("rebuild", "epoch", "attempt")
    epoch: Epoch
    attempt: int


@dataclass(frozen=True, slots=True)
class Standing(SiteMessage):
    """The state of a site: keys of its rows in blocks no longer pending, the pending blocks, the
    next number, the highest planned one, and its progress."""

    KEY, CENTRE = ("rebuild", "epoch", "attempt"), True
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
    account: AccountState | None = None


@dataclass(frozen=True, slots=True)
class Stale(SiteMessage):
    """The answer to a Rebuild of an epoch that is not new; `epoch` is the site's."""

    CENTRE = True
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Takeover(SiteMessage):
    """The centre of this epoch is silent or misplaced, or has to start afresh."""

    KEY, CENTRE = ("takeover", "epoch"), True
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Lost(SiteMessage):
    """A site has lost its store: results may be missing from now on."""

    KEY = ("lost", "stream")
    stream: int


@dataclass(frozen=True, slots=True)
class Announce(SiteMessage):
    """A new block. `owed` counts the entries that its site has not sent yet, including those of the
    block. `spent` and `results` are totals of all blocks before `first_open` that went between the
    sites in this epoch."""

    KEY, CENTRE = ("delta", "stream", "no"), True
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
class Ask(SiteMessage):
    """Asks for everything not sent before block `no`, and for the block itself."""

    KEY = ("ask", "epoch", "stream", "no")
    epoch: Epoch
    stream: int
    no: int
    tau: float


@dataclass(frozen=True, slots=True)
class Changes(SiteMessage):
    """The changes of a store before block `no`, deletions as negative counts; and the block."""

    KEY, CENTRE = ("ask", "epoch", "stream", "no"), True
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
class Ship(SiteMessage):
    KEY = ("ship", "block")
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
class Fetch(SiteMessage):
    """Asks for the live rows of blocks after `after` up to `upto`, except the blocks `but`."""

    KEY = ("fetch", "stream", "after", "upto")
    stream: int
    after: int
    upto: int
    but: tuple[int, ...]
    tau: float


@dataclass(frozen=True, slots=True)
class Fetched(SiteMessage):
    KEY = ("fetch", "stream", "after", "upto")
    stream: int
    after: int
    upto: int
    tau: float
    rows: tuple[Stored, ...]


@dataclass(frozen=True, slots=True)
class Joined(SiteMessage):
    """A block's results at a hub; those not `delivered` wait for a Forward."""

    KEY, CENTRE = ("joined", "block"), True
    epoch: Epoch
    block: BlockId
    tau: float
    results: int
    delivered: bool


@dataclass(frozen=True, slots=True)
class Forward(SiteMessage):
    """Passes a block that has more results than may go out from a hub on to another; or back to the
    same one, if that is the best after all."""

    KEY = ("joined", "block")
    block: BlockId
    to: int


@dataclass(frozen=True, slots=True)
class NewEpoch(SiteMessage):
    """Informs a query node that is not a site: a node leads a new epoch."""

    KEY = ("led", "epoch")
    epoch: Epoch


MESSAGES: dict[str, type[SiteMessage]] = {
    name: kind
    for name, kind in globals().copy().items()
    if isinstance(kind, type) and issubclass(kind, SiteMessage) and kind is not SiteMessage
}
"""Every message by its name."""
