"""Tests how query sets are loaded: one that is not what it claims to be is refused."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import pytest

from seustream.compiler.pipeline import Options, compile_text
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.client import BridgeClient, message_of
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.loading import check_config
from seustream.cosim.golden import GoldenDevice
from tests.cosim.bridge.serving import QUERIES, bridge, compiled, goes_on, refused


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("other image", "refused"),
        ("cut image", "refused"),
        ("other text", "refused"),
        ("other configuration", "refused"),
        ("no base 64", "malformed"),
        ("no ASCII", "malformed"),
        ("no manifest", "refused"),
        ("unknown overflow", "refused"),
        ("negative slack", "refused"),
        ("unknown query kept", "refused"),
    ],
)
def test_a_wrong_query_set_is_refused(fault: str, kind: str, tmp_path: Path) -> None:
    good = message_of(compiled())
    image = base64.b64decode(good.image)
    changed = bytearray(image)
    changed[len(image) // 2] ^= 1
    default = message_of(compile_text(QUERIES, "q", Options()))
    load = {
        "other image": replace(good, image=base64.b64encode(bytes(changed)).decode()),
        "cut image": replace(good, image=base64.b64encode(image[:-9]).decode()),
        "other text": replace(good, manifest=good.manifest.replace("RANGE 30", "RANGE 31")),
        "other configuration": default,
        "no base 64": replace(good, image="%%%"),
        "no ASCII": replace(good, image="\u2620"),
        "no manifest": replace(good, manifest='{"manifest": 1}'),
        "unknown overflow": replace(good, run=p.Run(overflow="x")),
        "negative slack": replace(good, run=p.Run(slack=-1)),
        "unknown query kept": replace(good, run=p.Run(keep=("none",))),
    }[fault]
    with bridge(tmp_path) as (_, url), BridgeClient(url, patience=0) as client:
        assert refused(lambda: client.act("load", load)).kind == kind
        client.load(compiled())
        goes_on(client)


def test_a_device_may_differ_in_its_own_affairs() -> None:
    compilation = compiled()
    config = compilation.options.config
    check_config(compilation, [GoldenDevice(replace(config, lanes=8, comparators=8, selectors=1))])
    with pytest.raises(BridgeError) as caught:
        check_config(compilation, [GoldenDevice(replace(config, name="other", depth=8))])
    assert str(caught.value) == (
        f"the image is for configuration {config.name}, the device is other:"
        f" depth {config.depth} (device: 8)"
    )
