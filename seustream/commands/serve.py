"""`seustream serve`: the engine, or devices, on a socket, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import re
import shutil
import ssl
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from seustream.boards import SHAPES
from seustream.commands.common import (
    add_config_argument,
    add_strict_argument,
    device_count,
    duration,
)
from seustream.commands.signals import EndSignal
from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.pipeline import FITS
from seustream.compiler.plan.place import MOST_DEVICES
from seustream.cosim.bridge.bridge import MOST_CALLS, Bridge
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.journal_errors import JournalDamaged, JournalHeld, JournalRefused
from seustream.cosim.bridge.limits import Limits
from seustream.cosim.bridge.metrics import MetricsServer, prometheus
from seustream.cosim.bridge.security import Address, AddressRefused, check_listening, read_token
from seustream.cosim.bridge.service import IDLE, Service
from seustream.cosim.bridge.sources import source_address
from seustream.cosim.sites.service import SiteService
from seustream.devices import (
    BACKENDS,
    ENGINE,
    SpareDevices,
    check_backend,
    check_devices,
    configuration,
    device,
    devices,
)
from seustream.errors import UserError
from seustream.hdl.config import DeviceConfig
from seustream.hdl.device import Device
from seustream.libraries import add_library_argument, load_libraries
from seustream.sites import site_sources

_LEAST = 256 << 20
"""The least number of bytes with which the server can work."""
_GRACE = 5.0
"""Seconds for calls and exchanges to end when the bridge shuts down, and then for its session."""
_NOTED = (
    "source refused", "header refused", "source failed", "failed", "shed", "back", "late", "stuck",
)  # fmt: skip
"""The events that are printed."""


EXAMPLES = """\
examples:
  seustream serve --journal state
  seustream serve --backend verilated --listen grpc://127.0.0.1:0
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    usual = Limits()
    parser.add_argument(
        "--backend",
        default=ENGINE,
        metavar="BACKEND",
        help="what joins: the engine by itself, or a device:"
        f" {', '.join((*BACKENDS, *SHAPES))} (default: %(default)s)",
    )
    parser.add_argument(
        "--devices",
        metavar="auto|N",
        help="simulated devices of a backend, which query sets are spread over (default: 1), or as many"
        " as they need",
    )
    parser.add_argument(
        "--fit",
        choices=FITS,
        default="auto",
        help="statements no device has room for: the engine joins, or they are refused (default: %(default)s)",
    )
    add_config_argument(parser)
    parser.add_argument(
        "--listen",
        default="grpc://127.0.0.1:8815",
        metavar="grpc://HOST:PORT",
        help="where (default: %(default)s); port 0: any that is free",
    )
    parser.add_argument(
        "--site",
        action="append",
        default=[],
        metavar="STREAM=FILE",
        help="serve streams to `seustream run --site`, instead of a device; once for each stream",
    )
    parser.add_argument(
        "--journal",
        type=Path,
        metavar="DIR",
        help="keep accepted rows there, so that a killed bridge goes on (default: until it stops)",
    )
    add_strict_argument(parser)
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="F",
        help="refuse clients that do not know the token in this file",
    )
    parser.add_argument("--tls-cert", type=Path, metavar="F", help="certificate, PEM")
    parser.add_argument(
        "--tls-key",
        type=Path,
        metavar="F",
        help="read the certificate's private key from this file",
    )
    parser.add_argument(
        "--tls-client-ca",
        type=Path,
        metavar="F",
        help="refuse clients without a certificate that this authority signed",
    )
    parser.add_argument(
        "--max-memory",
        metavar="SIZE",
        help="memory of the process, such as 2GB, above which it takes no more rows (default: none)",
    )
    parser.add_argument(
        "--metrics",
        metavar="HOST:PORT",
        help="Prometheus text over HTTP there, at /metrics (default: as an action only)",
    )
    parser.add_argument(
        "--sources",
        metavar="tcp://127.0.0.1:PORT",
        help="take live sources there; loopback only (default: none)",
    )
    parser.add_argument(
        "--max-latency",
        type=duration,
        default=usual.max_latency,
        metavar="TIME",
        help="how long rows of live sources may wait to be processed together: 20ms, 1s; under load a half of it"
        " (default: %(default)s ms)",
    )
    add_library_argument(parser)
    for name, what in (
        ("batch-rows", "rows of one record batch"),
        ("epoch-rows", "rows of one epoch"),
        ("epoch-bytes", "bytes of one epoch, as they are on disk"),
        ("waiting-rows", "rows committed and not yet processed, before writers wait"),
        ("result-rows", "rows of results kept for readers, before processing waits"),
        ("result-bytes", "bytes of results kept for readers, before processing waits"),
        ("call-seconds", "seconds a function of a library may take, before its query fails"),
    ):
        parser.add_argument(
            f"--most-{name}",
            type=int,
            default=getattr(usual, name.replace("-", "_")),
            metavar="N",
            help=f"{what} (default: %(default)s)",
        )
    parser.add_argument(
        "--most-calls",
        type=float,
        default=MOST_CALLS,
        metavar="N",
        help="calls a second of one client (default: %(default)s)",
    )
    parser.add_argument(
        "--idle-timeout",
        type=float,
        default=IDLE,
        metavar="SECONDS",
        help="end a connection when nothing has come of an exchange for so long"
        " (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    check_backend(arguments.backend, remote=False)
    check_devices(arguments.backend, arguments.devices)
    count = 0 if arguments.backend == ENGINE else device_count(arguments.devices)
    if arguments.fit == "strict" and arguments.backend == ENGINE:
        hint = "--backend golden, or leave --fit out"
        raise UserError(["--fit strict: backend engine has no device"], hint=hint)
    if arguments.site:
        _check_site(arguments)
    libraries = load_libraries(arguments.library)
    config = configuration(arguments.config)
    limits = _limits(arguments)
    try:
        address = Address.parse(arguments.listen)
        token = read_token(arguments.token_file) if arguments.token_file else None
        check_listening(address, token)
        tls = _tls(arguments, address)
        client_ca = _client_ca(arguments, tls)
        metrics = _metrics_address(arguments.metrics, token)
        sources = None if arguments.sources is None else source_address(arguments.sources)
    except AddressRefused as error:
        raise UserError([str(error)], hint=error.hint) from None
    if arguments.site:
        return _serve_site(arguments, address, token, tls)
    with contextlib.ExitStack() as stack:
        made: Sequence[Device]
        if count is None:
            one = functools.partial(device, arguments.backend, config)
            made = SpareDevices(MOST_DEVICES, lambda: stack.enter_context(one()))
        else:
            made = stack.enter_context(devices(arguments.backend, config, count))
        folder = arguments.journal
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="seustream-")))
        not_begun = stack.enter_context(contextlib.ExitStack())
        if not folder.exists():  # a bridge that cannot begin leaves no journal of nothing
            not_begun.callback(shutil.rmtree, folder, ignore_errors=True)
        try:
            bridge = _bridge(made, config, folder, limits, arguments, libraries)
        except JournalHeld as error:  # it has come into being since, and is another bridge's
            not_begun.pop_all()
            raise UserError([str(error)]) from None
        stack.callback(bridge.close)
        try:
            service = Service(bridge, str(address), token, tls, arguments.idle_timeout, client_ca)
        except (OSError, pa.ArrowException):
            raise _no_start(arguments, address) from None
        if metrics is not None:
            try:
                server = MetricsServer(
                    metrics.host, metrics.port, token, lambda: prometheus(bridge.samples())
                )
            except OSError as error:
                raise UserError([f"--metrics {arguments.metrics}: {error.strerror}"]) from None
            stack.callback(server.close)
            host = f"[{metrics.host}]" if ":" in metrics.host else metrics.host
            print(f"metrics on http://{host}:{server.port}/metrics", file=sys.stderr)
        if sources is not None:
            try:
                port = bridge.listen(sources).port
            except OSError as error:
                raise UserError([f"--sources {arguments.sources}: {error.strerror}"]) from None
            print(f"sources on tcp://{sources.host}:{port}", file=sys.stderr)
        not_begun.pop_all()
        at = Address(address.host, service.port, address.tls)
        end = stack.enter_context(EndSignal())
        print(f"serving {arguments.backend}, configuration {config.name}, on {at}", flush=True)
        if not address.loopback and tls is None:
            print("warning: without TLS the token can be read on the way", file=sys.stderr)
        if not _serve(service, bridge, end, save=arguments.journal is not None):
            # A computation is running that cannot be stopped. It may be abandoned without loss:
            # everything accepted is in the journal, and is processed when the bridge starts again.
            if arguments.journal is None:
                shutil.rmtree(folder, ignore_errors=True)
            print("stopped while an epoch was processed", file=sys.stderr, flush=True)
            os._exit(0)
    print("stopped", file=sys.stderr)
    return 0


def _serve(service: Service, bridge: Bridge, end: EndSignal, save: bool) -> bool:
    """Serves until a signal; then gives open work some time to end, and with `save` takes a
    snapshot. Returns False if some of the work did not end."""
    # The service answers from the moment it is created; its own serve() only waits, and would
    # replace these signal handlers by Flight's.
    end.wait()
    print("stopping", file=sys.stderr, flush=True)
    ended = service.stop(_GRACE)
    return bridge.close(_GRACE, save) and ended


_OF_SITES = ("site", "listen", "token_file", "tls_cert", "tls_key")
"""The options that have an effect with --site."""


def _check_site(arguments: argparse.Namespace) -> None:
    """Refuses the options of a bridge, which would have no effect."""
    for name, usual in vars(arguments.usual()).items():
        if name not in _OF_SITES and getattr(arguments, name) != usual:
            option = f"--{name.replace('_', '-')}"
            raise UserError(
                [f"{option} has no effect with --site"],
                hint="leave it out: streams are served, and no queries run",
            )


def _serve_site(
    arguments: argparse.Namespace,
    address: Address,
    token: str | None,
    tls: tuple[bytes, bytes] | None,
) -> int:
    """Serves streams from files until a signal."""
    sources = site_sources(arguments.site)
    try:
        service = SiteService(str(address), sources, token, tls)
    except (OSError, pa.ArrowException):
        raise _no_start(arguments, address) from None
    with service, EndSignal() as end:
        at = Address(address.host, service.port, address.tls)
        print(f"serving stream {', '.join(sources)} on {at}", flush=True)
        end.wait()
    print("stopped", file=sys.stderr)
    return 0


def _limits(arguments: argparse.Namespace) -> Limits:
    if arguments.max_latency < 1:
        raise UserError([f"--max-latency {arguments.max_latency}ms: want 1ms or more"])
    given = {"max_latency": arguments.max_latency}
    for name in (
        "batch_rows",
        "epoch_rows",
        "epoch_bytes",
        "waiting_rows",
        "result_rows",
        "result_bytes",
        "call_seconds",
    ):
        value = getattr(arguments, f"most_{name}")
        if value < 1:
            raise UserError([f"--most-{name.replace('_', '-')} {value}: want 1 or more"])
        given[name] = value
    if not arguments.most_calls >= 1:
        raise UserError([f"--most-calls {arguments.most_calls:g}: want 1 or more"])
    if not arguments.idle_timeout > 0:
        raise UserError([f"--idle-timeout {arguments.idle_timeout:g}: want more than 0"])
    limits = Limits(**given)
    return limits if arguments.max_memory is None else limits.within(_size(arguments.max_memory))


def _size(text: str) -> int:
    """Parses a size such as 512MB into bytes."""
    match = re.fullmatch(r"(\d+)\s*(MB|GB|TB)", text, re.IGNORECASE | re.ASCII)
    unit = {"MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
    size = int(match[1]) * unit[match[2].upper()] if match else 0
    if size < _LEAST:
        raise UserError([f"--max-memory {text}: want {_LEAST >> 20}MB or more, such as 2GB"])
    return size


def _client_ca(arguments: argparse.Namespace, tls: tuple[bytes, bytes] | None) -> bytes | None:
    path: Path | None = arguments.tls_client_ca
    if path is None:
        return None
    if tls is None:
        raise UserError(
            ["--tls-client-ca wants a bridge with TLS"], hint="give --tls-cert and --tls-key"
        )
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError([f"{path}: {error.strerror}"]) from None


def _tls(arguments: argparse.Namespace, address: Address) -> tuple[bytes, bytes] | None:
    paths = (arguments.tls_cert, arguments.tls_key)
    if paths == (None, None) and not address.tls:
        return None
    if None in paths or not address.tls:
        raise UserError(
            ["TLS takes --tls-cert, --tls-key and --listen grpc+tls://…"],
            hint="give all three, or none",
        )
    try:
        return paths[0].read_bytes(), paths[1].read_bytes()
    except OSError as error:
        raise UserError([f"{error.filename}: {error.strerror}"]) from None


def _no_start(arguments: argparse.Namespace, address: Address) -> UserError:
    """Returns the reason why a service does not start, which Flight keeps to itself."""
    cert, key, authority = arguments.tls_cert, arguments.tls_key, arguments.tls_client_ca
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        if cert is not None:
            context.load_cert_chain(cert, key, password=lambda: "")  # asks nobody
    except (OSError, ValueError):
        hint = "want PEM, the key that belongs to the certificate, and no password"
        return UserError([f"{cert}, {key}: no certificate and its key"], hint=hint)
    try:
        if authority is not None:
            context.load_verify_locations(authority)
    except (OSError, ValueError):
        return UserError([f"{authority}: no certificate"], hint="want PEM")
    return UserError([f"{address}: nothing can listen there"], hint="is the port taken?")


def _metrics_address(text: str | None, token: str | None) -> Address | None:
    if text is None:
        return None
    refused = UserError([f"--metrics {text}: want HOST:PORT"], hint="such as 127.0.0.1:9815")
    if not re.search(r":\d+$", text):  # without a port it would be the bridge's own
        raise refused
    try:
        address = Address.parse(f"grpc://{text}")
    except AddressRefused:
        raise refused from None
    check_listening(address, token)
    return address


def _note(event: str, detail: str) -> None:
    """Prints refused sources, which get no reason themselves, what fails, and queries that give
    way."""
    if event in _NOTED:
        print(f"{event}: {detail}", file=sys.stderr, flush=True)


def _bridge(
    made: Sequence[Device],
    config: DeviceConfig,
    folder: Path,
    limits: Limits,
    arguments: argparse.Namespace,
    libraries: Libraries,
) -> Bridge:
    most_calls = arguments.most_calls
    try:
        bridge = Bridge(
            made,
            folder,
            arguments.backend,
            limits,
            most_calls=most_calls,
            libraries=libraries,
            note=_note,
            strict=arguments.strict,
            config=config,
            fit=arguments.fit,
        )
    except JournalDamaged as error:
        hint = f"seustream journal check {folder}: says what is there and what can be saved"
        raise UserError([str(error)], hint=hint) from None
    except JournalRefused as error:
        raise UserError([str(error)], hint=error.hint) from None
    except OSError as error:
        raise UserError([f"{folder}: {error.strerror}"]) from None
    except BridgeError as error:
        hint = "serve the device the journal was begun with, or give another folder"
        if error.kind == "storage":
            hint = "is there room, and may this user write there?"
        raise UserError([f"{folder}: {error}"], hint=hint) from None
    for note in bridge.journal.notes:
        print(f"journal: made good: {note}", file=sys.stderr)
    if arguments.journal is not None and bridge.has_session:
        print(
            f"going on from {folder}: {bridge.session.replayed} records to replay",
            file=sys.stderr,
        )
        if arguments.strict and not bridge.session.load.run.strict:
            print(
                "warning: --strict has no effect on queries that were begun without it;"
                " another journal begins new ones",
                file=sys.stderr,
            )
    return bridge
