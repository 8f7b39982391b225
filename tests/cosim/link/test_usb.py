"""Tests addresses of boards on USB, and the error where there is none. A board that answers is in
`tests/cosim/boards/test_usb.py`."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from seustream.cosim.link.errors import LinkError, NoPort
from seustream.cosim.link.usb import UsbAddress, UsbLine

usb_core = pytest.importorskip("usb.core", reason="without pyusb; nox -s tests installs it")
usb_backend = pytest.importorskip("usb.backend")


def device(address: int, product: str = "WJASIP", trouble: Exception | None = None) -> object:
    """Returns a device as pyusb presents it, as far as the code looks at it."""

    def configure() -> None:
        if trouble:
            raise trouble

    return SimpleNamespace(
        bus=1, address=address, manufacturer="SEUSTREAM", product=product,
        set_configuration=configure,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "want"), [("usb://", UsbAddress()), ("usb://1:14", UsbAddress((1, 14)))]
)
def test_addresses(text: str, want: UsbAddress) -> None:
    assert UsbAddress.parse(text) == want
    assert str(want) == text


@pytest.mark.parametrize("text", ["usb:", "usb", "usb://1", "usb://1:", "usb://a:b", "usb://1:2:3"])
def test_addresses_are_checked(text: str) -> None:
    with pytest.raises(LinkError) as refused:
        UsbAddress.parse(text)
    assert text in str(refused.value)
    assert "usb://1:4" in str(refused.value.hint)


def test_a_bus_without_a_board(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usb_core, "find", lambda **how: [device(3, product="something else")])
    with pytest.raises(NoPort, match="usb://: no board of ours is there") as refused:
        UsbLine(UsbAddress())
    assert "is it plugged in at that port?" in str(refused.value.hint)


def test_one_of_several_has_to_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usb_core, "find", lambda **how: [device(3), device(5)])
    with pytest.raises(NoPort, match="there are 2 boards") as refused:
        UsbLine(UsbAddress())
    assert refused.value.hint == "name one: usb://1:3, usb://1:5"


@pytest.mark.parametrize(
    "trouble",
    [
        usb_core.USBError("Access denied (insufficient permissions)", -3, 13),
        ValueError("The device has no langid (permission issue, no string descriptors supported)"),
    ],
)
def test_who_may_not_open_it_is_told_how(
    trouble: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name cannot be read either, for which pyusb raises another error."""
    monkeypatch.setattr(usb_core, "find", lambda **how: [device(3, trouble=trouble)])
    with pytest.raises(
        NoPort, match=r"usb://: (Access denied|The device has no langid)"
    ) as refused:
        UsbLine(UsbAddress())
    assert 'ATTRS{idVendor}=="1209"' in str(refused.value.hint)


def test_a_machine_without_libusb(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(**how: object) -> object:
        raise usb_core.NoBackendError("No backend available")

    monkeypatch.setattr(usb_core, "find", find)
    with pytest.raises(NoPort, match="there is no libusb"):
        UsbLine(UsbAddress())
