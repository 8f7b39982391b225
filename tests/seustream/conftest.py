from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in: messages name files as they are given."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
