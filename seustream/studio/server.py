"""The studio's server: serves the page, and answers requests about texts and runs as JSON.

It answers a request only with the token of its link. It reads no file but the page's own, those
named on the command line, and the reports of bitstreams made here.
"""

from __future__ import annotations

import hmac
import io
import json
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import pyarrow as pa
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from seustream import __version__
from seustream.compiler.errors import CompileError
from seustream.compiler.pipeline import Compilation
from seustream.cosim.bridge.access import NONE, Access
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.protocol import Statement
from seustream.devices import SIMULATED, client
from seustream.engine.stream.errors import EngineError
from seustream.errors import Error, InputError
from seustream.frames import Rows, declarations, stream_of
from seustream.hdl.config import CONFIGURATIONS
from seustream.studio.boards import bitstreams, identity, known, ports
from seustream.studio.compiled import Settings, compilation, shown, words
from seustream.studio.data import MOST_ROWS
from seustream.studio.data import rows as rows_of
from seustream.studio.intervals import flowing
from seustream.studio.machine import story
from seustream.studio.patterns import kinds, watched
from seustream.studio.sites import crossing
from seustream.studio.wanted import Unwanted, while_connected

MOST_BYTES = 8 << 20
"""The most bytes of one request; a text and some dropped files are far less."""
_ROWS = 1 << 15
"""The most rows of one answer about results; the page asks for more when it has taken these."""
_SLICE = 1 << 11
"""The most rows of a slice of that answer, so that a click on the page waits for one slice at most."""
_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline';"
    " img-src 'self' data:; font-src 'self'; connect-src 'self'; worker-src 'self' blob:;"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

Answer: TypeAlias = Callable[[Mapping[str, Any]], dict[str, Any] | Response]


@dataclass
class Studio:
    """One studio: the texts it was started with, and the bridge it watches."""

    token: str
    named: Mapping[str, str] = field(default_factory=dict)  # texts by their files' names
    bridge: str | None = None
    access: Access = NONE

    def start(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the choices of the page, before anything is typed."""
        return {
            "version": __version__,
            "backends": list(SIMULATED),
            "configurations": list(CONFIGURATIONS),
            "words": words(),
            "gallery": gallery(),
            "named": [{"name": name, "text": text} for name, text in self.named.items()],
            "bridge": self.bridge,
        }

    def compile(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Returns everything that is known of a text."""
        with _dropped(asked) as dropped:
            return shown(_text(asked), _settings(asked, dropped))

    def run(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Runs the text on a device, over dropped files or the rows of a seed."""
        backend, waves = str(asked.get("backend", "golden")), asked.get("waves") is True
        with _compiled(asked) as (c, rows):
            return story(c, rows, backend, waves)

    def watch(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Watches a pattern of the text, event by event, over the same rows."""
        query, engine = str(asked.get("query", "")), str(asked.get("engine", "auto"))
        with _compiled(asked) as (c, rows):
            return watched(c, rows, query, engine)

    def flow(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Watches an APAS query of the text, moment by moment, over the same rows."""
        with _compiled(asked) as (c, rows):
            return flowing(c, rows, str(asked.get("query", "")))

    def sites(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Runs the joins of the text with each stream at a site of its own, message by message."""
        with _compiled(asked) as (c, rows):
            return crossing(c, rows)

    def boards(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the boards that have bitstreams, those that were made here, and the serial ports."""
        return {"boards": known(), "bitstreams": bitstreams(), "ports": ports()}

    def identify(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Asks the board at one of these ports for its identity."""
        return identity(str(asked.get("port", "")))

    def live(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the current state of the bridge."""
        with self._client() as bridge:
            return {"status": bridge.status(), **bridge.act("query-list")}

    def rows(self, asked: Mapping[str, Any]) -> Response:
        """Streams results of a query of the bridge from an offset of a run on, as one Arrow stream after
        another. Results of a later run, or behind a gap, are the newest."""
        query, start = str(asked.get("query", "")), _number(asked, "from", -1, 1 << 53, -1)
        known_run = _number(asked, "run", -1, 1 << 53, -1)
        with self._client() as bridge:
            kept = bridge.latest(query)
            run = kept["run"]
            if run != known_run or not kept["first"] <= start <= kept["end"]:
                start = max(kept["first"], kept["end"] - _ROWS)
            end = min(kept["end"], start + _ROWS)
            table = bridge.read(query, start, end, run)
        sink, slices = io.BytesIO(), []
        for at in range(0, table.num_rows, _SLICE):
            some = table.slice(at, _SLICE)
            with pa.ipc.new_stream(sink, table.schema) as stream:
                stream.write_table(some)
            slices.append([start + at + some.num_rows, sink.tell()])
        offsets = {"x-first": start, "x-end": end, "x-run": run, "x-slices": slices}
        headers = _HEADERS | {name: json.dumps(value) for name, value in offsets.items()}
        return Response(sink.getvalue(), headers=headers)

    def statement(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Has the bridge execute statements: queries registered, replaced, dropped."""
        with self._client() as bridge:
            return dict(bridge.act("statement", Statement(_text(asked), "<studio>"), patience=0))

    def _client(self) -> BridgeClient:
        if self.bridge is None:
            raise InputError("no bridge is named", "seustream studio --bridge grpc://HOST:PORT")
        return client(self.bridge, self.access, patience=2)


def gallery() -> list[dict[str, str]]:
    """Returns the texts that come with the studio; the first line of each describes it."""
    texts = sorted((files("seustream.studio") / "gallery").iterdir(), key=lambda one: one.name)
    found = [(one.name.removesuffix(".xsql"), one.read_text("utf-8")) for one in texts]
    return [
        {"name": name, "said": text.partition("\n")[0].removeprefix("-- "), "text": text}
        for name, text in found
    ]


def application(
    studio: Studio, hosts: tuple[str, ...] = ("127.0.0.1", "localhost", "[::1]")
) -> Starlette:
    """Returns the server's application; `hosts` are the names by which it may be addressed."""
    answers: dict[str, Answer] = {
        "start": studio.start,
        "compile": studio.compile,
        "run": studio.run,
        "watch": studio.watch,
        "flow": studio.flow,
        "sites": studio.sites,
        "boards": studio.boards,
        "identify": studio.identify,
        "live": studio.live,
        "rows": studio.rows,
        "statement": studio.statement,
    }

    def answering(answer: Answer) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            given = request.headers.get("x-studio-token", "")
            if not hmac.compare_digest(given.encode(), studio.token.encode()):
                return _refused(
                    "the link's token is wrong: open the link that the studio printed", 403
                )
            body = bytearray()
            async for piece in request.stream():  # its length may not be given
                body += piece
                if len(body) > MOST_BYTES:
                    return _refused(f"more than {MOST_BYTES >> 20} MiB at once", 413)
            try:
                asked = json.loads(body)
            except (ValueError, RecursionError):  # nested too deeply
                return _refused("want JSON", 400)
            if not isinstance(asked, dict):
                return _refused("want a JSON object", 400)
            try:
                found = await while_connected(request, partial(answer, asked))
            except Unwanted:
                return _refused("the client is gone", 499)
            except (Error, CompileError, BridgeError, EngineError) as error:
                return _refused(str(error), 422, getattr(error, "hint", None))
            return found if isinstance(found, Response) else JSONResponse(found, headers=_HEADERS)

        return respond

    page = StaticFiles(packages=[("seustream.studio", "page")], html=True)

    async def with_headers(scope: Any, receive: Any, send: Any) -> None:
        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                extra = [(k.lower().encode(), v.encode()) for k, v in _HEADERS.items()]
                message["headers"] = [*message.get("headers", []), *extra]
            await send(message)

        await page(scope, receive, sending)

    routes = [
        *(Route(f"/ask/{name}", answering(one), methods=["POST"]) for name, one in answers.items()),
        Mount("/", with_headers),
    ]
    return Starlette(
        routes=routes, middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))]
    )


def _refused(message: str, status: int, hint: str | None = None) -> Response:
    said = message.encode(errors="backslashreplace").decode()  # it may have half a character
    return JSONResponse({"error": said, "hint": hint}, status, headers=_HEADERS)


def _text(asked: Mapping[str, Any]) -> str:
    text = asked.get("text", "")
    if not isinstance(text, str):
        raise InputError("want a text")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise InputError(f"line {line}: half of a character") from None
    return text


def _number(asked: Mapping[str, Any], name: str, usual: int, most: int, least: int = 0) -> int:
    given = asked.get(name, usual)
    if not isinstance(given, int) or isinstance(given, bool) or not least <= given <= most:
        raise InputError(f"{name} = {given!r}: want a number from {least} to {most:,}")
    return given


def _settings(asked: Mapping[str, Any], dropped: Mapping[str, Path]) -> Settings:
    """Returns the settings, with the streams of dropped files for names that the text does not
    create."""
    try:
        known = declarations(_text(asked))
    except CompileError:
        known = set()
    described = [path for folded, path in dropped.items() if folded not in known]
    for path in described:
        if not path.stem.isidentifier():
            raise _misnamed(path.stem)
    streams = [stream_of(path.stem, path) for path in described]
    plan, config = asked.get("plan", "cost"), asked.get("config", "default")
    if plan not in ("cost", "thesis"):
        raise InputError(f"there is no plan {plan!r}", "cost, thesis")
    return Settings(str(config), plan, tuple(streams))


def _misnamed(name: str) -> InputError:
    return InputError(f"{name:.40}.csv: want a file named after a stream, such as R.csv")


@contextmanager
def _dropped(asked: Mapping[str, Any]) -> Iterator[dict[str, Path]]:
    """Writes the dropped files into a folder for the duration of the context, because a run reads files;
    yields them by the folded name of their stream. Errors in them name the file as it was dropped."""
    given = asked.get("files") or {}
    if not isinstance(given, dict):
        raise InputError("want files by stream")
    found: dict[str, Path] = {}
    with TemporaryDirectory(prefix="seustream-") as folder:
        for name, text in given.items():
            if not isinstance(text, str) or Path(name).name != name:
                raise _misnamed(name)
            if (other := found.get(name.lower())) is not None:
                raise InputError(
                    f"{other.name} and {name}.csv are of one stream", "drop one of them"
                )
            path = found[name.lower()] = Path(folder, f"{name}.csv")
            try:
                path.write_bytes(text.encode())
            except OSError as error:  # too long a name
                raise InputError(f"{name:.40}.csv: {error.strerror}") from None
            except ValueError as error:  # half of a character
                raise InputError(f"{name:.40}.csv: {error}") from None
        try:
            yield found
        except InputError as error:
            said = [message.replace(f"{folder}{os.sep}", "") for message in error.messages]
            raise InputError(said, error.hint, error.total) from None


@contextmanager
def _compiled(asked: Mapping[str, Any]) -> Iterator[tuple[Compilation, Mapping[str, Rows]]]:
    """Compiles the text, with the dropped files or the rows of a seed, which are there for the
    duration of the context."""
    with _dropped(asked) as dropped:
        c = compilation(_text(asked), _settings(asked, dropped))
        base = c.program.base
        if dropped:
            yield c, {s.name: dropped[s.name.lower()] for s in base if s.name.lower() in dropped}
            return
        count = _number(asked, "count", 120, MOST_ROWS)
        seed = _number(asked, "seed", 1, 1 << 53)
        made = rows_of(base, seed, count, kinds(c))
        yield c, {stream.name: made[stream.name] or _nothing(stream) for stream in base}


def _nothing(stream: Any) -> dict[str, list[Any]]:
    return {"ts": [], **{column.name: [] for column in stream.columns}}
