"""The version is that of the build, if there was one."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import seustream
from seustream import version


def test_a_checkout_that_was_not_built_has_no_version(tmp_path: Path) -> None:
    assert version.__file__ is not None
    copy = Path(shutil.copy(version.__file__, tmp_path))

    def found() -> str:
        spec = importlib.util.spec_from_file_location("copied", copy)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return str(module.VERSION)

    assert found() == version.UNKNOWN
    (tmp_path / "version.txt").write_text("1.2.3\n")
    assert found() == "1.2.3"
    assert seustream.__version__ == version.VERSION
