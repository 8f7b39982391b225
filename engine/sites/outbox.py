"""The outbox of a node: messages on their way out, and those to repeat until answered. The caller
sets the time."""

from __future__ import annotations

from dataclasses import dataclass

from seustream.engine.sites.messages import Ack, Ref, SiteMessage


@dataclass(slots=True)
class _Unanswered:
    to: int
    message: SiteMessage
    due: float
    tries: int = 0


class Outbox:
    """The messages that one node sends. The caller that moves messages drains `out`."""

    def __init__(self, interval: float) -> None:
        self.interval = interval
        self.now = 0.0
        self.out: list[tuple[int, SiteMessage]] = []
        self.unanswered: dict[tuple[int, Ref], _Unanswered] = {}

    def send(self, to: int, message: SiteMessage) -> None:
        """Sends a message once."""
        self.out.append((to, message))

    def ack(self, to: int, message: SiteMessage) -> None:
        self.send(to, Ack(message.ref))

    def repeat(self, to: int, message: SiteMessage) -> None:
        """Sends a message until it is answered."""
        self.unanswered[to, message.ref] = _Unanswered(to, message, self.now + self.interval)
        self.out.append((to, message))

    def answered(self, reference: Ref, by: int | None = None) -> None:
        """Stops repeating a message; `by` limits it to one receiver."""
        if by is not None:
            self.unanswered.pop((by, reference), None)
            return
        for key in [key for key in self.unanswered if key[1] == reference]:
            del self.unanswered[key]

    def forget(self, *kinds: type) -> None:
        """Stops repeating messages of some kinds."""
        for key in [key for key, u in self.unanswered.items() if isinstance(u.message, kinds)]:
            del self.unanswered[key]

    def tries(self, *kinds: type) -> int:
        """Returns the most repetitions of any message of some kinds."""
        return max(
            (u.tries for u in self.unanswered.values() if isinstance(u.message, kinds)), default=0
        )

    def reset_tries(self, reference: Ref | None = None) -> None:
        """Restarts the count of repetitions, for one message or all: the node that should answer is
        alive."""
        for key, unanswered in self.unanswered.items():
            if reference is None or key[1] == reference:
                unanswered.tries = 0

    def tick(self, now: float) -> None:
        self.now = now
        for unanswered in self.unanswered.values():
            if unanswered.due <= now:
                unanswered.tries += 1
                unanswered.due = now + self.interval
                self.out.append((unanswered.to, unanswered.message))

    def drain(self) -> list[tuple[int, SiteMessage]]:
        out, self.out = self.out, []
        return out
