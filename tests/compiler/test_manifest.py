"""A manifest restores its compilation or is refused: it may come from an untrusted source."""

from __future__ import annotations

import json
import random

import pytest

from seustream.compiler.manifest import ManifestRefused, compilation_of, manifest
from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.compiler.plan.statistics import Statistics
from seustream.hdl.config import CONFIGURATIONS

TEXT = """
CREATE STREAM R (a int, b varchar(9));
CREATE STREAM S (d int);
SELECT * FROM R, S WHERE R.a = S.d OR R.b = 'x' WINDOW RANGE 5, ROWS 3;
"""


def compiled() -> Compilation:
    statistics = Statistics.from_json('{"R": {"rows": 500, "distinct": {"a": 100}}}')
    options = Options(CONFIGURATIONS["tiny"], "thesis", 7, statistics)
    return compile_text(TEXT, "q.xsql", options)


def test_it_comes_back() -> None:
    c = compiled()
    back = compilation_of(manifest(c, "image"), c.image)
    assert back.image == c.image
    assert back.options == c.options
    assert back.source == c.source
    assert manifest(back, "image") == manifest(c, "image")


def test_of_a_text_that_continues_a_known_one_only_the_rest_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rest = (
        "REGISTER QUERY more AS SELECT R.b FROM R WHERE R.a > 3; DROP QUERY more; SELECT d FROM S"
    )
    before, options = compiled(), compiled().options
    c = compile_text(TEXT + rest, "q.xsql", options)
    given: list[str] = []

    def noted(text: str, *rest: object, **options: object) -> Compilation:
        given.append(text)
        return compile_text(text, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("seustream.compiler.manifest.compile_text", noted)
    other = compile_text(TEXT, "q.xsql", Options())
    back = compilation_of(manifest(c, "image"), c.image, known=(other, before))
    assert given == [rest]
    assert manifest(back, "image") == manifest(c, "image")


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("SELECT a FROM R -- all;\n", "WHERE a > 1"),
        ("SELECT a FROM R; -- todo", " later: more"),
        ("SELECT a FROM R; -- c", "REGISTER QUERY z AS SELECT a FROM R; no\n; SELECT a + 1 FROM R"),
    ],
)
def test_a_text_that_continues_a_statement_or_a_comment_is_compiled_whole(
    text: str, rest: str
) -> None:
    text = f"CREATE STREAM R (a int); {text}"
    before = compile_text(text)
    c = compile_text(text + rest)
    back = compilation_of(manifest(c, "image"), c.image, known=(before,))
    assert manifest(back, "image") == manifest(c, "image")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("manifest",), 2),
        (("options", "plan"), "none"),
        (("options", "plan"), []),
        (("options", "max_terms"), 1 << 40),
        (("options", "max_terms"), True),
        (("options", "statistics"), 5),
        (("configuration", "depth"), 3),
        (("configuration", "depth"), 32),
        (("source", "text"), "SELECT"),
        (("source", "text"), None),
        (("source", "text"), TEXT.replace("RANGE 5", "RANGE 6")),
        (("image", "sha256"), "0"),
        (("image",), None),
    ],
)
def test_what_is_not_its_own_is_refused(path: tuple[str, ...], value: object) -> None:
    c = compiled()
    data = json.loads(manifest(c, "image"))
    inner = data
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    with pytest.raises(ManifestRefused):
        compilation_of(json.dumps(data), c.image)


def test_damage_is_refused_or_harmless() -> None:
    c, chance = compiled(), random.Random(1)
    text = manifest(c, "image")
    for _ in range(150):
        at = chance.randrange(len(text))
        damaged = text[:at] + chance.choice(("", "x", '"', "}", "0")) + text[at + 1 :]
        try:
            assert compilation_of(damaged, c.image).image == c.image
        except ManifestRefused:
            continue
    for image in (b"", c.image[:-1], c.image + b"x"):
        with pytest.raises(ManifestRefused, match="image"):
            compilation_of(text, image)
    for nonsense in ("", "[]", "null", "[" * 10_000):
        with pytest.raises(ManifestRefused):
            compilation_of(nonsense, c.image)
