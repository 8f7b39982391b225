"""Query sets for Spark: their texts, the configuration they are compiled for, the keys they go by."""

from __future__ import annotations

import json
from pathlib import Path

from seustream.compiler.logical.program import Program
from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.compiler.plan.keys import Keys, keys_of_each
from seustream.cosim.bridge.client import BridgeClient
from seustream.hdl.config import DeviceConfig
from seustream.spark_feeder.errors import FeedError


def compiled_for(client: BridgeClient, queries: str | Path) -> Compilation:
    """Compiles a text, or a file of it, for the configuration that a bridge serves."""
    return compile_text(*text_of_file(queries), Options(config_of(client)))


def text_of_file(queries: str | Path) -> tuple[str, str]:
    """Returns a text, or that of a file, with its name."""
    if not isinstance(queries, Path) and not queries.endswith(".xsql"):
        return queries, "<sql>"
    name = str(queries)
    try:
        return Path(queries).read_text(encoding="utf-8-sig"), name
    except (OSError, UnicodeDecodeError) as error:
        raise FeedError(f"{name}: cannot be read: {error}") from None


def config_of(client: BridgeClient) -> DeviceConfig:
    """Returns the configuration for which a bridge accepts programs."""
    return DeviceConfig.from_json(json.dumps(client.health()["config"]))


def keys_inside(program: Program) -> dict[str, Keys]:
    """Returns the keys of each query inside Spark; raises `FeedError` if one has none."""
    found = keys_of_each(program)
    for one in found.values():
        if one.columns is None:
            raise FeedError(
                f"inside Spark queries go by key: {one.why}",
                "run it at a bridge: `seustream serve`, and its address grpc://HOST:8815 in place of spark;"
                " `seustream explain` shows the keys",
            )
    return found
