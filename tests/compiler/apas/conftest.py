from __future__ import annotations

import pytest

from seustream.compiler.apas.libraries import Libraries
from tests.compiler.apas.schemas import Halves, Stats


@pytest.fixture
def libraries() -> Libraries:
    found = Libraries()
    found.register("mine", {"stats": Stats(), "halves": Halves()})
    return found
