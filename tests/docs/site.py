"""Builds the pages as a site: the hooks of MkDocs (`mkdocs.yml`), run by `nox -s docs`.

docs/index.md        its lists are the navigation, so that a page is entered in one place
../examples/x.md     what pages name outside of `docs/` becomes a part of the site
docs/notebooks/      notebooks are pages, with the outputs that the tests have compared
"""

from __future__ import annotations

import os
import posixpath
import re
from typing import Any

from tests.docs.blocks import ROOT
from tests.docs.notebooks import as_page

BESIDE = "beside"
"""The folder of the site for repository files outside of `docs/`."""
_LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
_EXAMPLE = re.compile(r"^>>> (?:.+\n?)+", re.MULTILINE)
_FENCED = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)


def links(page: str) -> list[str]:
    """Returns the targets of a page's links and pictures."""
    prose = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    return re.findall(r"\]\(([^)\s]+)\)", prose)


def slug(head: str, separator: str = "-") -> str:
    """Returns the anchor of a heading, as code hosts make it."""
    return re.sub(r"[^\w\- ]", "", head).lower().replace(" ", separator)


def fenced(docstring: str) -> str:
    """Returns the docstring with fences around its examples."""
    return _EXAMPLE.sub(lambda example: f"```pycon\n{example[0].rstrip()}\n```\n", docstring)


def navigation(index: str) -> list[dict[str, Any]]:
    """Returns the lists of the first page by their headings."""
    found: list[dict[str, Any]] = [{"Home": "index.md"}]
    for part in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        pages = re.findall(r"\[([^\]]+)\]\(([^)\s#]+\.(?:md|ipynb))\)", body)
        listed = [(" ".join(name.split()), place("index.md", target)) for name, target in pages]
        # The reading path only repeats pages that are listed further down.
        if listed and head != "Where to begin":
            found.append({head: [{name[0].upper() + name[1:]: target} for name, target in listed]})
    return found


def place(source: str, target: str) -> str:
    """Returns the place in the site of a link's target; both paths start at the site's root."""
    inside = source.removeprefix(f"{BESIDE}/")
    start = f"docs/{source}" if inside == source else inside
    path = posixpath.normpath(posixpath.join(posixpath.dirname(start), target))
    if path.startswith("docs/"):
        return path.removeprefix("docs/").replace(".ipynb", ".md")
    return f"{BESIDE}/{path}"


def moved(source: str, page: str) -> str:
    """Returns a page whose links point to their targets in the site."""

    def one(link: re.Match[str]) -> str:
        before, target, after = link.groups()
        if re.match(r"[a-z]+:", target):
            return link[0]
        there = posixpath.relpath(place(source, target), posixpath.dirname(source) or ".")
        return f"{before}{there}{after}"

    parts = _FENCED.split(page)
    return "".join(part if i % 2 else _LINK.sub(one, part) for i, part in enumerate(parts))


def beside() -> list[str]:
    """Returns the files outside `docs/` that its pages name, and the files that these name in
    turn."""
    found: list[str] = []
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    for source in pages:  # the list grows in the loop
        path = ROOT / source.removeprefix(f"{BESIDE}/")
        text = (path if source.startswith(BESIDE) else ROOT / "docs" / source).read_text("utf-8")
        for target in links(text):
            there = place(source, target.partition("#")[0])
            if re.match(r"[a-z]+:", target) or not there.startswith(f"{BESIDE}/"):
                continue
            file = ROOT / there.removeprefix(f"{BESIDE}/")
            if there not in found and file.is_file():
                found.append(there)
                pages += [there] if there.endswith(".md") else []
    return found


# --- what MkDocs calls ----------------------------------------------------------


def on_config(config: Any) -> Any:
    config.nav = navigation((ROOT / "docs" / "index.md").read_text("utf-8"))
    config.mdx_configs.setdefault("toc", {})["slugify"] = slug
    return config


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    for there in beside():
        source = os.fspath(ROOT / there.removeprefix(f"{BESIDE}/"))
        files.append(File.generated(config, there, abs_src_path=source))
    for notebook in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        text = as_page(notebook.read_text("utf-8"))
        files.append(File.generated(config, f"notebooks/{notebook.stem}.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    return moved(page.file.src_uri, markdown)
