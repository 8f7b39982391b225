"""Errors between a host and a board."""

from __future__ import annotations


class LinkError(RuntimeError):
    """Base of link errors; `hint` suggests what to do."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.hint = hint
        super().__init__(message)


class NoPort(LinkError):
    """The port cannot be opened, or went away."""


class NoAnswer(LinkError):
    """No valid answer comes from the other end."""


class SessionLost(LinkError):
    """The board was reset, or another host opened it, so its state is gone."""


class BoardRefused(LinkError):
    """The board holds another bitstream than the host needs."""


class BoardStuck(LinkError):
    """The board answers, but makes no progress."""


def said_by(error: Exception) -> str:
    """Returns the system's message about a port, without numbers."""
    return getattr(error, "strerror", None) or str(error)
