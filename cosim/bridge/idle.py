"""Streams that bring nothing for their `idle_timeout`: from then on they hold no other stream back.

Their promises go into the journal like those of a client, so that a replay needs no clock.
"""

from __future__ import annotations

from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.session import Session


def let_idle_streams_follow(session: Session) -> None:
    """Lets streams that are idle promise what the others have promised. A stream is active when it
    brings rows, whatever their times, or a promise, and while any of these waits."""
    with session.changed:
        now, promises = session.world.now(), session.run.promises
        idle = []
        for stream in session.run.streams:
            if stream.idle_timeout is None or stream.name in session.ended:
                continue
            since = session.active_at.setdefault(stream.name, now)
            if not session.pending[stream.name] and 1000 * (now - since) >= stream.idle_timeout:
                idle.append(stream.name)
        live = [promise for name, promise in promises.items() if name not in idle]
        for name in idle if live else ():
            known = [of[name] for of in (promises, session.followed) if of.get(name) is not None]
            if not known or max(known) < min(live):
                session.promise(p.Promise(name, min(live)), is_idle=True)
