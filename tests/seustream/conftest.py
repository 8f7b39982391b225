from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes an empty folder the working directory: messages name files as they were given."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
