"""Connections to bridges, by options of the data source."""

from __future__ import annotations

from pathlib import Path

from seustream.cosim.bridge.access import Access
from seustream.spark_feeder.connection import Connection
from seustream.spark_feeder.source import Seustream


def test_the_files_that_open_a_bridge_are_options(tmp_path: Path) -> None:
    """The source gets them from a job as options, and passes them to the client."""
    for name in ("token", "ca", "cert", "key"):
        (tmp_path / name).write_text(name)
    access = Access(*(str(tmp_path / name) for name in ("token", "ca", "cert", "key")))
    made = Connection(("grpc+tls://127.0.0.1:1",), access)
    found = Seustream({k: v for k, v in made.options.items() if v is not None})._connection()
    assert found.access == access
    with found.client() as client:
        assert client._options["cert_chain"] == b"cert"
        assert client._options["private_key"] == b"key"


def test_a_connection_and_its_options_are_the_same() -> None:
    made = Connection(("grpc://a:1", "grpc://b:2"), patience=2.5)
    given = {name: value for name, value in made.options.items() if value is not None}
    assert Connection.of(given["bridge"], given) == made
    assert Connection.of(" grpc://a:1 , grpc://b:2", {}).patience == 60
