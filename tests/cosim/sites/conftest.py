from __future__ import annotations

from collections.abc import Iterator

import pytest

from seustream.cosim.sites.service import SiteService
from tests.cosim.sites.services import service


@pytest.fixture
def services() -> Iterator[list[SiteService]]:
    made = [service("R"), service("S")]
    yield made
    for one in made:
        one.close()
