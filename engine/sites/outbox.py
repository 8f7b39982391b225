"""Messages on their way out, and those to be repeated until they are answered. Time is handed in."""

from __future__ import annotations

from dataclasses import dataclass

from engine.sites.messages import Message, Ref, ref


@dataclass(slots=True)
class _Unanswered:
    to: int
    message: Message
    due: float
    tries: int = 0


class Outbox:
    """What one node sends. `out` is drained by whoever moves messages."""

    def __init__(self, interval: float) -> None:
        self.interval = interval
        self.now = 0.0
        self.out: list[tuple[int, Message]] = []
        self.unanswered: dict[tuple[int, Ref], _Unanswered] = {}

    def say(self, to: int, message: Message) -> None:
        """Once; what comes of it is somebody else's concern."""
        self.out.append((to, message))

    def insist(self, to: int, message: Message) -> None:
        """Until answered."""
        self.unanswered[to, ref(message)] = _Unanswered(to, message, self.now + self.interval)
        self.out.append((to, message))

    def answered(self, reference: Ref, by: int | None = None) -> None:
        """Nobody needs to hear this again; `by` limits it to one who was told."""
        if by is not None:
            self.unanswered.pop((by, reference), None)
            return
        for key in [key for key in self.unanswered if key[1] == reference]:
            del self.unanswered[key]

    def forget(self, *kinds: type) -> None:
        """Drops what waits for answers, by the kind of message."""
        for key in [key for key, u in self.unanswered.items() if isinstance(u.message, kinds)]:
            del self.unanswered[key]

    def tries(self, *kinds: type) -> int:
        """How often the most often repeated message of some kinds was repeated."""
        return max(
            (u.tries for u in self.unanswered.values() if isinstance(u.message, kinds)), default=0
        )

    def calm(self, reference: Ref | None = None) -> None:
        """Whoever should answer is alive: start counting anew, for one message or all."""
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

    def drain(self) -> list[tuple[int, Message]]:
        out, self.out = self.out, []
        return out
