"""The manifest beside an image: what it is for, in JSON, for people and for the host driver.

It holds the source text and the options; compiling them again must yield the same image, as its
digest shows. A host therefore needs only the manifest to complete the device's results.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace

from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.errors import CompileError, Problems
from seustream.compiler.language import expressions as x
from seustream.compiler.language.bind import ParameterValue
from seustream.compiler.pipeline import FITS, PLANS, Compilation, Options, compile_text
from seustream.compiler.plan.normalise import Normalised
from seustream.compiler.plan.statistics import Statistics, StatisticsError
from seustream.compiler.xsql.statements import split
from seustream.hdl.config import ConfigError, DeviceConfig

VERSION = 1
MOST_TERMS = 4096
"""A manifest may be untrusted, and expanding terms takes time."""
_VALUES = (int, float, str, bool, type(None))


class ManifestRefused(ValueError):
    """A manifest, or the image beside it, that no compilation writes."""


class ImageDiffers(ManifestRefused):
    """An image that another version compiled from the same text."""


def manifest(c: Compilation, image_name: str, brief: bool = False) -> str:
    """Returns the manifest's text; a brief one is for a host alone and omits what is for people."""
    data = {
        "manifest": VERSION,
        "image": {
            "file": image_name,
            "bytes": len(c.image),
            "sha256": hashlib.sha256(c.image).hexdigest(),
        },
        "configuration": c.options.config.to_json(),
        "options": {
            "plan": c.options.plan,
            "max_terms": c.options.max_terms,
            "fit": c.options.fit,
            "devices": c.options.devices,
            "statistics": c.options.statistics.to_json(),
            "parameters": dict(c.options.parameters),
        },
        "source": {"name": c.source.name, "text": c.source.text}
        | ({"parts": list(c.source.parts)} if c.source.parts else {}),
    }
    if brief:
        return json.dumps(data)
    data |= {
        "streams": [
            {
                "name": stream.name,
                "columns": [
                    {"name": column.name, "type": str(column.type), "nullable": column.nullable}
                    for column in stream.columns
                ],
            }
            for stream in c.streams
        ],
        "slots": [_slot(c, number) for number in range(len(c.layout.slots))],
        "queries": [_query(c, one) for one in c.normalised],
    }
    return json.dumps(data, indent=2) + "\n"


def compilation_of(
    text: str,
    image: bytes,
    devices: int | None = None,
    libraries: Libraries | None = None,
    known: Iterable[Compilation] = (),
) -> Compilation:
    """Returns the compilation that a manifest and its image came from, or one of its text for
    another number of `devices`. Raises `ManifestRefused`. A manifest does not contain the functions
    of `libraries`: the bridge that runs it has them. If its text continues that of a compilation
    that is `known`, only the rest is compiled."""
    try:
        data = json.loads(text)
        if data["manifest"] != VERSION:
            raise ManifestRefused(f"manifest of version {data['manifest']!r}, want {VERSION}")
        plan, terms = data["options"]["plan"], data["options"]["max_terms"]
        fit, wanted = data["options"].get("fit", "auto"), data["options"].get("devices", 1)
        if fit not in FITS or not (wanted is None or type(wanted) is int):
            raise ManifestRefused(f"fit {fit!r:.20}, {wanted!r:.20} devices: no such options")
        if plan not in PLANS or type(terms) is not int or not 0 < terms <= MOST_TERMS:
            raise ManifestRefused(f"plan {plan!r:.20}, {terms!r:.20} terms: no such options")
        options = Options(
            DeviceConfig.from_json(json.dumps(data["configuration"])),
            plan,
            terms,
            Statistics.from_json(json.dumps(data["options"]["statistics"])),
            _parameters(data["options"]["parameters"]),
            libraries or Libraries(),
            fit=fit,
            devices=wanted if devices is None else devices,
        )
        name, source = str(data["source"]["name"]), data["source"]["text"]
        parts = tuple(int(part) for part in data["source"].get("parts", ()))
        digest = data["image"]["sha256"]
        if hashlib.sha256(image).hexdigest() != digest:
            raise ManifestRefused("the image is not the one the manifest describes")
        after = _continued(source, [c for c in known if c.options == options])
        rest = source if after is None else source[len(after.source.text) :]
        compilation = compile_text(rest, name, options, after=after)
        compilation = replace(compilation, source=replace(compilation.source, parts=parts))
    except ManifestRefused:
        raise
    except (ConfigError, StatisticsError, CompileError) as error:
        raise ManifestRefused(str(error)) from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ManifestRefused(f"no manifest: {type(error).__name__}: {error}") from None
    if compilation.options.devices == wanted and compilation.image != image:
        raise ImageDiffers("the image is not what this version compiles from the manifest")
    return compilation


def _continued(source: str, known: Iterable[Compilation]) -> Compilation | None:
    """Returns the compilation that a text continues, behind a whole statement."""
    before = [c for c in known if source.startswith(c.source.text)]
    after = max(before, key=lambda c: len(c.source.text), default=None)
    if after is None:
        return None
    known_text = after.source.text
    whole, done, rest = (
        [text[span.start : span.end].strip() for span in split(text, Problems())]
        for text in (source, known_text, source[len(known_text) :])
    )
    return after if whole == done + rest else None


def _parameters(data: object) -> dict[str, ParameterValue]:
    """Returns the values of patterns' parameters: numbers and texts by name."""
    if isinstance(data, dict) and all(isinstance(v, _VALUES) for v in data.values()):
        return data
    raise ManifestRefused("parameters: want numbers and texts by name")


def _slot(c: Compilation, number: int) -> dict[str, object]:
    slot = c.layout.slots[number]
    return {
        "slot": number,
        "stream": slot.stream.name,
        "copy": slot.copy,
        "attributes": [
            {
                "attribute": attribute,
                "column": name,
                "encoding": str(c.layout.encodings[slot.stream.name, name]),
            }
            for attribute, name in enumerate(c.requests.attributes[number])
        ],
    }


def _query(c: Compilation, one: Normalised) -> dict[str, object]:
    division = one.division
    query = division.query
    row: dict[str, object] = {
        "name": query.name,
        "text": query.text,
        "runs": "device and host" if division.on_device else "host",
        "why": division.why,
        "streams": [
            {
                "alias": source.alias,
                "stream": source.stream.name,
                "window": str(source.window),
                **({"slot": division.slots[index]} if division.on_device else {}),
            }
            for index, source in enumerate(query.sources)
        ],
        "columns": [
            {"name": item.name, "type": str(item.expression.type), "is": x.show(item.expression)}
            for item in query.items
        ],
        "condition": x.show(query.where),
        "residual": [x.show(condition) for condition in one.residual],
    }
    if division.on_device:
        row["number"] = c.device_queries.index(one)
    return row
