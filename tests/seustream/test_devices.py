"""Devices by their names: which exist, how many, and that none is made before it is needed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from seustream.cosim.golden import GoldenDevice
from seustream.devices import (
    BACKENDS,
    SpareDevices,
    check_backend,
    check_devices,
    device,
    devices,
    is_remote,
)
from seustream.errors import UserError
from seustream.hdl.config import CONFIGURATIONS

TINY = CONFIGURATIONS["tiny"]


def refused(call: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(UserError) as caught:
        call()
    return str(caught.value), str(caught.value.hint)


def test_spare_devices_are_made_when_they_are_asked_for_and_once() -> None:
    made: list[GoldenDevice] = []

    def make() -> GoldenDevice:
        made.append(GoldenDevice(TINY))
        return made[-1]

    spare = SpareDevices(3, make)
    assert (len(spare), list(spare), made) == (3, [], [])
    assert spare[1] is made[1]
    assert list(spare) == made
    assert len(made) == 2
    assert list(spare[:9]) == made
    assert len(made) == 3
    assert (spare[0], spare[2]) == (made[0], made[2])
    with pytest.raises(IndexError):
        spare[3]
    assert len(made) == 3, "no more than there may be"


@pytest.mark.parametrize(
    ("backend", "remote"),
    [("grpc://h:1", True), ("grpc+tls://h:1", True), ("udp://h", False), ("golden", False),
     ("grpc", False), ("http://h", False)],
)  # fmt: skip
def test_a_bridge_is_known_by_its_scheme(backend: str, remote: bool) -> None:
    assert is_remote(backend) == remote


def test_backends_that_there_are_not() -> None:
    for known in (*BACKENDS, "grpc://h:1", "serial:///dev/ttyUSB0", "virtual:ulx3s"):
        check_backend(known)
    said, hint = refused(lambda: check_backend("goldn"))
    assert (said, hint) == ("there is no backend 'goldn'", "did you mean golden?")
    assert "grpc://HOST:PORT" in refused(lambda: check_backend("x"))[1]
    assert "grpc://HOST:PORT" not in refused(lambda: check_backend("grpc://h:1", remote=False))[1]


@pytest.mark.parametrize(
    ("backend", "given", "said", "hint"),
    [
        ("engine", "2", "--devices 2: backend engine joins", "--backend golden --devices 2"),
        ("grpc://h:1", "2", "a bridge lends one device", "seustream serve --devices"),
        ("serial:///dev/x", "auto", "a board is one device", "leave --devices out"),
    ],
)
def test_several_devices_where_there_is_one(backend: str, given: str, said: str, hint: str) -> None:
    found = refused(lambda: check_devices(backend, given))
    assert said in found[0]
    assert hint in found[1]
    check_devices(backend, None)
    check_devices("golden", given)


def test_so_many_devices_of_a_configuration() -> None:
    for backend in ("golden", "iss"):
        with devices(backend, TINY, 2) as made, device(backend, TINY) as one:
            assert [d.config for d in (*made, one)] == [TINY] * 3
            assert made[0] is not made[1]
