"""Streams that bring nothing for their `idle_timeout`: from then on they hold no other stream back.

Their promises go into the journal like those of a client, so that a replay needs no clock.
"""

from __future__ import annotations

from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.session import Session


class IdleStreams:
    """Watches the streams of a session. A stream is active when its promise changes."""

    def __init__(self) -> None:
        self.seen: dict[str, tuple[int | None, float]] = {}

    def look(self, session: Session) -> None:
        """Lets idle streams promise what the others have promised."""
        with session.changed:
            now, promises = session.world.now(), session.run.promises
            idle = []
            for stream in session.run.streams:
                if stream.idle_timeout is None or stream.name in session.ended:
                    continue
                promise = promises.get(stream.name)
                before, since = self.seen.get(stream.name, (promise, now))
                since = since if before == promise else now
                self.seen[stream.name] = (promise, since)
                if 1000 * (now - since) >= stream.idle_timeout:
                    idle.append(stream.name)
            live = [promise for name, promise in promises.items() if name not in idle]
            for name in idle if live else ():
                known = promises.get(name)
                if known is None or known < min(live):
                    session.promise(p.Promise(name, min(live)))
                    self.seen[name] = (min(live), self.seen[name][1])
