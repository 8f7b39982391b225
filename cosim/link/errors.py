"""Errors between a host and a board."""

from __future__ import annotations


class LinkError(RuntimeError):
    """`hint` says what to do about it."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.hint = hint
        super().__init__(message)


class NoPort(LinkError):
    """The port cannot be opened, or went away."""


class NoAnswer(LinkError):
    """Nothing that makes sense comes from the other end."""


class SessionLost(LinkError):
    """The board was reset, or another host opened it: what it held is gone."""


class BoardRefused(LinkError):
    """The board holds another bitstream than the host wants."""


class BoardStuck(LinkError):
    """The board answers, but does not get on."""


def said_by(error: Exception) -> str:
    """Returns what the system says of a port, without numbers."""
    return getattr(error, "strerror", None) or str(error)
