"""Tests metrics: what is counted is what happened, in a text that Prometheus reads."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.limits import Limits
from seustream.cosim.bridge.metrics import METRICS, PREFIX, MetricsServer
from seustream.cosim.bridge.quality import BOUNDS
from tests.cosim.bridge.serving import bridge, compiled, feed_epoch, streams, wanted
from tests.docs.blocks import ROOT


def test_counts_and_text(tmp_path: Path) -> None:
    rows, want = streams(100, 1), wanted(compiled(), streams(100, 1))
    with bridge(tmp_path) as (_, url), BridgeClient(url) as client:
        client.load(compiled())
        feed_epoch(client, 0, rows, writer='w"\\')
        client.end()
        client.flush()
        text, status = client.metrics(), client.status()
    families = list(text_string_to_metric_families(text))
    found = {
        (one.name.removeprefix(PREFIX), *one.labels.values()): one.value
        for family in families
        for one in family.samples
    }
    pairs = want["pairs"].total()
    assert found["rows_total", "R"] == 100
    assert found["results_total", "pairs"] == status["results_total"]["pairs"] == pairs > 0
    assert found["epochs_total",] == found["over",] == 1
    assert found["writer_epoch", 'w"\\'] == 0
    assert found["device_taken_total",] == status["device_taken_total"] > 0
    named = {f.name.removeprefix(PREFIX) + "_total" * (f.type == "counter"): f for f in families}
    assert named.keys() <= METRICS.keys()
    assert all(named[name].type == METRICS[name][0] for name in named)
    assert all(
        name.endswith("_total") == (kind == "counter") for name, (kind, *_) in METRICS.items()
    )


def test_latency_is_a_histogram(tmp_path: Path) -> None:
    with bridge(tmp_path) as (_, url), BridgeClient(url) as client:
        client.load(compiled())
        feed_epoch(client, 0, streams(100, 1))
        client.end()
        client.flush()
        text, status = client.metrics(), client.status()
    families = text_string_to_metric_families(text)
    (family,) = (f for f in families if f.name == f"{PREFIX}query_latency_seconds")
    mine = [one for one in family.samples if one.labels["query"] == "pairs"]
    counts = [one.value for one in mine if one.name.endswith("_bucket")]
    assert counts == sorted(counts)
    assert len(counts) == len(BOUNDS) + 1
    (total,) = (one.value for one in mine if one.name.endswith("_count"))
    assert counts[-1] == total == status["results_total"]["pairs"] > 0
    (seconds,) = (one.value for one in mine if one.name.endswith("_sum"))
    assert status["query_latency_seconds"]["pairs"] == {"count": total, "sum": seconds}
    assert 0 < seconds < 60 * total


def test_time_at_work_goes_on_over_snapshots(tmp_path: Path) -> None:
    often = Limits(replay_seconds=0.0)
    with bridge(tmp_path, limits=often) as (made, url), BridgeClient(url) as client:
        client.load(compiled())
        seen = []
        for epoch in range(3):
            feed_epoch(client, epoch, streams(100, epoch))
            client.flush()
            seen.append(client.status()["busy_seconds_total"])
        assert made.session.saving.seconds < made.session.busy_seconds
    assert 0 < seen[0] < seen[1] < seen[2]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_over_http_with_the_bridges_token(host: str) -> None:
    server = MetricsServer(host, 0, "secret", lambda: "text\n")
    url = f"http://{f'[{host}]' if ':' in host else host}:{server.port}"
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


def test_every_metric_is_documented() -> None:
    said = (ROOT / "docs/reference/bridge.md").read_text(encoding="utf-8")
    rows = {name: f"| `{name}` | {kind} |" for name, (kind, *_) in METRICS.items()}
    assert [name for name, row in rows.items() if row not in said] == []
