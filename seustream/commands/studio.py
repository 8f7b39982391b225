"""`seustream studio`: a page that shows how queries are compiled and run, in the browser."""

from __future__ import annotations

import argparse
import logging
import os
import secrets
import socket
import sys
import threading
import webbrowser
from pathlib import Path

from seustream.commands.common import access, add_access_arguments, read_text
from seustream.commands.signals import EndSignal
from seustream.devices import unasked
from seustream.errors import UserError

_SHARE = "share="
"""Prefix of a share link's content, which the page writes and reads."""
_GRACE = 2
"""Seconds that requests under way have to finish."""
EXAMPLES = """\
examples:
  seustream studio
  seustream studio q.xsql --bridge grpc://127.0.0.1:8815
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        nargs="*",
        metavar="FILE|LINK",
        help="texts of queries to open, or a link that was shared",
    )
    parser.add_argument("--bridge", metavar="grpc://HOST:PORT", help="the bridge to look at")
    add_access_arguments(parser)
    parser.add_argument(
        "--listen",
        default="127.0.0.1:0",
        metavar="HOST:PORT",
        help="where the page is; port 0 is a free one (default: %(default)s)",
    )
    parser.add_argument("--no-browser", action="store_true", help="print the link and open nothing")


def run(arguments: argparse.Namespace) -> int:
    try:
        import uvicorn

        from seustream.studio.server import Studio, application
    except ModuleNotFoundError as error:
        if error.name not in ("uvicorn", "starlette"):
            raise
        raise UserError(
            ["the studio's packages are not installed"], hint="pip install 'seustream[studio]'"
        ) from None
    host, _, port = arguments.listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise UserError([f"--listen {arguments.listen}: want HOST:PORT"], hint="127.0.0.1:8000")
    links = [one for one in arguments.file if "://" in one and _SHARE in one]
    if len(links) > 1:
        raise UserError(["two links are given"], hint="open one of them")
    if arguments.bridge is not None:
        unasked(arguments.bridge, access(arguments), patience=0).close()
    named = {name: read_text(Path(name)) for name in arguments.file if name not in links}
    studio = Studio(
        secrets.token_urlsafe(16),
        named,
        arguments.bridge,
        access(arguments),
    )
    hosts: tuple[str, ...] = ("127.0.0.1", "localhost", "[::1]", host.strip("[]"))
    if host in ("0.0.0.0", "[::]"):
        hosts = ("*",)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host.strip("[]"), int(port)), family=family)
    except OSError as error:
        raise UserError([f"--listen {arguments.listen}: {error.strerror}"]) from None
    config = uvicorn.Config(
        application(studio, hosts), log_level="warning", timeout_graceful_shutdown=_GRACE
    )
    server = uvicorn.Server(config)
    shown = f"{host}:{listening.getsockname()[1]}"
    link = f"http://{shown}/#token={studio.token}"
    if links:
        link += f"&{_SHARE}{links[0].partition(_SHARE)[2]}"
    with EndSignal() as end:
        # A run that is computing when the signal comes is not waited for.
        serving = threading.Thread(target=server.run, args=([listening],), daemon=True)
        serving.start()
        print(f"the studio is at {link}", flush=True)
        if not arguments.no_browser:
            webbrowser.open(link)
        end.wait()
        # A run that is cut off is no error of the server, which would log where.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        server.should_exit = True
        serving.join(2 * _GRACE)
    print("stopped", file=sys.stderr, flush=True)
    if serving.is_alive():
        os._exit(0)
    return 0
