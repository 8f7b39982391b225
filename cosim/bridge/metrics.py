"""Counters of a bridge, as an object and as Prometheus text, and a small HTTP server for that text.

Counters end in `_total` and only grow while the session lives; all other figures are current
values.
"""

from __future__ import annotations

import copy
import hmac
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from seustream.cosim.bridge.exchanges import Exchanges
from seustream.cosim.bridge.living import FAILED
from seustream.cosim.bridge.quality import BOUNDS, Histogram
from seustream.cosim.bridge.session import Session
from seustream.cosim.bridge.sources import Sources

if TYPE_CHECKING:
    from prometheus_client.core import Metric

PREFIX = "seustream_bridge_"

METRICS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "up": ("gauge", "1 while the bridge answers", ()),
    "info": ("gauge", "1; the device and its configuration as labels", ("backend", "config")),
    "session": ("gauge", "1 if a query set is loaded", ()),
    "failed": ("gauge", "1 if the run stopped for an error", ()),
    "storage_failed": ("gauge", "1 while the journal cannot be written", ()),
    "over": ("gauge", "1 if all input has ended and is processed", ()),
    "exchanges": ("gauge", "exchanges open now", ()),
    "calls_total": ("counter", "calls, by action or exchange", ("call",)),
    "errors_total": ("counter", "errors given to clients, by kind", ("kind",)),
    "vanished_total": ("counter", "exchanges whose client went without an end message", ()),
    "idle_total": ("counter", "connections ended, for in an exchange nothing came", ()),
    "rows_staged_total": ("counter", "rows received, also of attempts that were given up", ()),
    "bytes_staged_total": ("counter", "and their bytes", ()),
    "results_sent_total": ("counter", "result rows sent to readers, repetitions included", ()),
    "epochs_total": ("counter", "epochs committed", ()),
    "rows_total": ("counter", "rows processed, by stream", ("stream",)),
    "late_total": ("counter", "late rows, by stream", ("stream",)),
    "timeless_total": ("counter", "rows without a time, left out, by stream", ("stream",)),
    "untimed_total": ("counter", "rows without a time patterns can use, by stream", ("stream",)),
    "results_total": ("counter", "results, by query", ("query",)),
    "faults_total": (
        "counter",
        "evaluations without a value, by query and place",
        ("query", "place"),
    ),
    "results_kept": ("gauge", "results that wait for readers, by query", ("query",)),
    "rows_waiting": ("gauge", "rows committed and not yet processed", ()),
    "busy_seconds_total": ("counter", "seconds at work on rows, the device's included", ()),
    "rows_held": ("gauge", "rows held back for other streams, by stream", ("stream",)),
    "stream_watermark_ms": ("gauge", "time up to which a stream is complete", ("stream",)),
    "writer_epoch": ("gauge", "the last epoch committed, by writer", ("writer",)),
    "replayed": ("gauge", "records replayed from the journal at the start", ()),
    "journal_bytes": ("gauge", "journal and its inputs since the last snapshot", ()),
    "device_taken_total": ("counter", "raw tuples the device took, ticks included", ()),
    "device_pairs_total": ("counter", "pairs the device compared", ()),
    "device_circulated_total": ("counter", "joined tuples that circulated in the device", ()),
    "device_delivered_total": ("counter", "results the device delivered", ()),
    "device_handed_over_total": ("counter", "tuples that left their window early", ()),
    "device_occupancy": ("gauge", "tuples in the device's windows, by area", ("area",)),
    "device_cycles_total": ("counter", "clock cycles, of a device with a clock", ()),
    "queries": ("gauge", "queries that run", ()),
    "query_failed": ("gauge", "1 for a query that has failed", ("query",)),
    "query_shed": ("gauge", "1 for a query that gives way to others now", ("query",)),
    "query_latency_seconds": ("histogram", "from a row's arrival to its result", ("query",)),
    "query_selectivity": ("gauge", "results for each row its streams brought", ("query",)),
    "query_time_share": ("gauge", "share of the operators' time since it began", ("query",)),
    "query_cycle_share": ("gauge", "share of the devices' clock cycles since it began", ("query",)),
    "query_state_bytes": ("gauge", "its part of the last snapshot's bytes", ("query",)),
    "query_lag_ms": ("gauge", "how far its slowest stream is behind the foremost", ("query",)),
    "source_accepted_total": ("counter", "tuples accepted of sources, by stream", ("stream",)),
    "source_rejected_total": ("counter", "elements rejected, by stream", ("stream", "reason")),
    "source_events_total": ("counter", "what sources did, rejections included", ("event",)),
}
"""By name: kind, description, labels."""


@dataclass(slots=True)
class ServiceCounts:
    """Counters of the service itself; thread-safe."""

    calls: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    vanished: int = 0
    rows: int = 0
    bytes: int = 0
    sent: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def call(self, what: str) -> None:
        with self.lock:
            self.calls[what] += 1

    def error(self, kind: str) -> None:
        with self.lock:
            self.errors[kind] += 1

    def staged(self, rows: int, size: int) -> None:
        with self.lock:
            self.rows += rows
            self.bytes += size


Samples = list[tuple[str, tuple[str, ...], float | Histogram]]


def samples(
    counts: ServiceCounts,
    exchanges: Exchanges,
    session: Session | None,
    backend: str,
    config: str,
    sources: Sources | None = None,
) -> Samples:
    """Returns every metric's current values: name, label values, value."""
    found: Samples = [
        ("up", (), 1),
        ("info", (backend, config), 1),
        ("session", (), int(session is not None)),
    ]
    with counts.lock:
        found += [("calls_total", (call,), n) for call, n in sorted(counts.calls.items())]
        found += [("errors_total", (kind,), n) for kind, n in sorted(counts.errors.items())]
        found += [
            ("exchanges", (), len(exchanges)),
            ("idle_total", (), exchanges.idle_ended),
            ("vanished_total", (), counts.vanished),
            ("rows_staged_total", (), counts.rows),
            ("bytes_staged_total", (), counts.bytes),
            ("results_sent_total", (), counts.sent),
        ]
    if sources is not None:
        found += [("source_events_total", (e,), n) for e, n in sorted(sources.events.items())]
        for name, one in sources.states().items():
            found.append(("source_accepted_total", (name,), one["accepted"]))
            for reason, number in sorted(one["rejected"].items()):
                found.append(("source_rejected_total", (name, reason), number))
    return found if session is None else found + _of_session(session) + _of_queries(session)


def _of_queries(session: Session) -> Samples:
    with session.changed:
        session.delivery.quality.worked(session.run)
        found: Samples = [("queries", (), session.book.running)]
        for name, one in session.book.queries.items():
            quality = session.delivery.quality.of(name, session.run.taken_of(name))
            found.append(("query_failed", (name,), int(one.phase == FAILED)))
            found.append(("query_shed", (name,), int(bool(one.shed))))
            if name in session.delivery.quality.latency:
                latency = session.delivery.quality.latency[name]
                found.append(("query_latency_seconds", (name,), copy.copy(latency)))
            for what in ("selectivity", "time_share", "cycle_share", "state_bytes"):
                if quality[what] is not None:
                    found.append((f"query_{what}", (name,), quality[what]))
            if (lag := session.run.lag_of(name)) is not None:
                found.append(("query_lag_ms", (name,), lag))
        return found


def _of_session(session: Session) -> Samples:
    with session.changed:
        report = session.run.report
        found: Samples = [
            ("failed", (), int(session.failure is not None)),
            ("storage_failed", (), int(session.journal.trouble is not None)),
            ("over", (), int(session.over)),
            ("epochs_total", (), session.committed),
            ("rows_waiting", (), session.waiting_rows),
            ("replayed", (), session.replayed),
            ("busy_seconds_total", (), round(session.busy_seconds, 3)),
            ("journal_bytes", (), session.journal.size + session.input_bytes),
        ]
        found += [("writer_epoch", (n,), w.epoch) for n, w in session.epochs.writers.items()]
        found += [("results_total", (n,), log.end) for n, log in session.logs.items()]
        found += [("results_kept", (n,), len(log)) for n, log in session.logs.items()]
        waiting = session.run.waiting
        for stream in session.run.streams:
            name = (stream.name,)
            found.append(("rows_total", name, report.taken.get(stream.name, 0)))
            found.append(("late_total", name, report.late.get(stream.name, 0)))
            found.append(("timeless_total", name, report.timeless.get(stream.name, 0)))
            found.append(("rows_held", name, waiting[stream.name]))
            if (watermark := session.run.promises.get(stream.name)) is not None:
                found.append(("stream_watermark_ms", name, watermark))
        found += [("untimed_total", (name,), count) for name, count in report.untimed.items()]
        for query, lines in report.faults.items():
            found += [("faults_total", (query, place), n) for place, (n, _) in lines.items()]
        for what in ("taken", "pairs", "circulated", "delivered", "handed_over"):
            total = sum(getattr(status, what) for status in session.device_status)
            found.append((f"device_{what}_total", (), total))
        held: Counter[str] = Counter()
        for one, status in zip(session.compilation.devices, session.device_status, strict=False):
            for area, rows in zip(one.slot_names, status.occupancy, strict=False):
                held[area] += rows
        found += [("device_occupancy", (area,), rows) for area, rows in held.items()]
        if session.cycles is not None:
            found.append(("device_cycles_total", (), session.cycles))
    return found


class _Families:
    """Presents samples to the Prometheus client library, in the order of METRICS."""

    def __init__(self, found: Samples) -> None:
        self._found = found

    def collect(self) -> Iterator[Metric]:
        from prometheus_client import core

        kinds = {"gauge": core.GaugeMetricFamily, "counter": core.CounterMetricFamily}
        for name, (kind, what, labels) in METRICS.items():
            mine = [(values, value) for metric, values, value in self._found if metric == name]
            if not mine:
                continue
            family = kinds.get(kind, core.HistogramMetricFamily)(PREFIX + name, what, labels=labels)
            for values, value in mine:
                if isinstance(value, Histogram):
                    upto = zip((*map(str, BOUNDS), "+Inf"), value.counts.cumsum(), strict=True)
                    family.add_metric(values, [(le, int(n)) for le, n in upto], value.sum)
                else:
                    family.add_metric(values, value)
            yield family


def prometheus(found: Samples) -> str:
    """Returns samples in Prometheus's text format."""
    from prometheus_client import generate_latest  # imported late: it takes a moment

    return generate_latest(_Families(found)).decode()


def as_object(found: Samples) -> dict[str, Any]:
    """Returns samples for programs: a number, or numbers by label."""
    answer: dict[str, Any] = {}
    for name, values, sample in found:
        value: object = sample
        if isinstance(sample, Histogram):
            value = {"count": int(sample.counts.sum()), "sum": sample.sum}
        if values:
            answer.setdefault(name, {})[values[0] if len(values) == 1 else "/".join(values)] = value
        else:
            answer[name] = value
    return answer


class MetricsServer:
    """Serves `GET /metrics` over HTTP in a thread of its own, with the bridge's token if it has
    one."""

    def __init__(self, host: str, port: int, token: str | None, text: Callable[[], str]) -> None:
        class Handler(BaseHTTPRequestHandler):
            timeout = 10

            def do_GET(self) -> None:
                given = (self.headers.get("Authorization") or "").encode("latin-1", "replace")
                if self.path.split("?")[0] != "/metrics":
                    self.send_error(404)
                elif token is not None and not hmac.compare_digest(
                    given, f"Bearer {token}".encode()
                ):
                    self.send_error(401)
                else:
                    body = text().encode()
                    self.send_response(200)
                    self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Logs nothing, since scrapes are routine."""

        class HttpServer(ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

        self._server = HttpServer((host, port), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="metrics", daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
