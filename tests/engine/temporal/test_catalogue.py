"""The catalogue: names, states, versions."""

from __future__ import annotations

import pytest

from seustream.compiler.apas.tree import from_lists
from seustream.engine.temporal.catalogue import Catalogue, CatalogueError, StreamState


@pytest.mark.acceptance(1)
def test_a_registered_stream_is_unconnected_and_empty() -> None:
    catalogue = Catalogue()
    catalogue.register("I")
    (entry,) = catalogue
    assert (entry.name, entry.state, entry.version, entry.tree.children) == (
        "I",
        StreamState.UNCONNECTED,
        0,
        [],
    )
    assert not catalogue.schemas()["I"].connected


@pytest.mark.acceptance(3)
def test_names_are_taken_once() -> None:
    catalogue = Catalogue()
    catalogue.register("I")
    with pytest.raises(CatalogueError, match="I is registered already"):
        catalogue.register("I")
    with pytest.raises(CatalogueError, match="there is no stream J"):
        catalogue["J"]
    with pytest.raises(CatalogueError, match="no name"):
        catalogue.register("1 2")


@pytest.mark.acceptance(2)
def test_another_schema_raises_the_version_and_an_equal_one_does_not() -> None:
    catalogue = Catalogue()
    catalogue.register("I")
    one, other = from_lists("I", [["v", "DOUBLE"]]), from_lists("I", [["w", "DOUBLE"]])
    assert [catalogue.adopt("I", tree) for tree in (one, one.copy(), other)] == [True, False, True]
    assert catalogue["I"].version == 2
    assert catalogue["I"].state is StreamState.CONNECTED
