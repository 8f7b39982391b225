"""Metrics: what is counted is what happened, in a text Prometheus reads."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.metrics import METRICS, PREFIX, MetricsServer
from tests.cosim.bridge.serving import bridge, compiled, feed_epoch, streams, wanted

LINE = re.compile(r'^([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\]|\\.)*",?)*)\})? (-?[0-9.e+]+)$')


def test_counts_and_text(tmp_path: Path) -> None:
    rows, want = streams(100, 1), wanted(compiled(), streams(100, 1))
    with bridge(tmp_path) as (_, url), BridgeClient(url) as client:
        client.load(compiled())
        feed_epoch(client, 0, rows, writer='w"\\')
        client.end()
        client.flush()
        text, status = client.metrics(), client.status()
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = LINE.match(line)
            assert match, line
            found[match[1].removeprefix(PREFIX), match[2]] = float(match[3])
    assert {name for name, _ in found} <= set(METRICS)
    assert found["rows_total", 'stream="R"'] == 100
    assert found["results_total", 'query="pairs"'] == want["pairs"].total()
    assert found["epochs_total", None] == 1
    assert found["over", None] == 1
    assert found["writer_epoch", 'writer="w\\"\\\\"'] == 0
    assert found["device_taken_total", None] == status["device_taken_total"] > 0
    assert status["results_total"]["pairs"] == want["pairs"].total()
    for name, (kind, _, _) in METRICS.items():
        assert (kind == "counter") == name.endswith("_total")
        if any(known == name for known, _ in found):
            assert f"# TYPE {PREFIX}{name} {kind}\n" in text


def test_over_http_with_the_bridges_token() -> None:
    server = MetricsServer("127.0.0.1", 0, "secret", lambda: "text\n")
    url = f"http://127.0.0.1:{server.port}"
    try:
        for path, headers, status in (
            ("/metrics", {}, 401),
            ("/metrics", {"Authorization": "Bearer wrong"}, 401),
            ("/other", {"Authorization": "Bearer secret"}, 404),
        ):
            request = urllib.request.Request(url + path, headers=headers)
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(request, timeout=5)
            assert caught.value.code == status
            caught.value.close()
        good = urllib.request.Request(f"{url}/metrics", headers={"Authorization": "Bearer secret"})
        with urllib.request.urlopen(good, timeout=5) as answer:
            assert answer.read() == b"text\n"
    finally:
        server.close()
