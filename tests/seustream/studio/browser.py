"""A studio and a bridge in processes of their own, and Chromium pages that fail on any error in
their console."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.docs.blocks import ROOT

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")


@contextlib.contextmanager
def started(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Starts a command that serves; yields the process and the address it prints."""
    command = [sys.executable, "-m", "seustream", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"(http|grpc)://\S+", process.stdout.readline())
            assert found is not None
            yield process, found[0]
        finally:
            process.kill()


@contextlib.contextmanager
def studio(*arguments: str) -> Iterator[str]:
    """Starts a studio in its own process; yields its link."""
    with started("studio", "--no-browser", *arguments) as (_, link):
        yield link


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api")
    options = {"executable_path": CHROMIUM, "args": ["--no-sandbox"]}
    with api.sync_playwright() as playwright, playwright.chromium.launch(**options) as browser:
        yield browser


@contextlib.contextmanager
def opened(chromium: Any, link: str, refused: bool = False) -> Iterator[Any]:
    """Opens a page in a profile of its own. Any console error fails the test, except requests that
    the server refuses if the test is about them."""
    with chromium.new_context(viewport={"width": 1280, "height": 720}) as profile:
        page = profile.new_page()
        said: list[str] = []
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("console", lambda line: said.append(line.text) if line.type == "error" else None)
        page.goto(link)
        yield page
        assert [line for line in said if not refused or "status of 422" not in line] == []


def write(page: Any, text: str) -> None:
    """Replaces the content of the editor by the text."""
    page.click(".cm-content")
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)
