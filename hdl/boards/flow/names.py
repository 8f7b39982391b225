"""Names that yosys can tell apart."""

from __future__ import annotations

import re

_NAME = re.compile(r"\\[^\s\"]*\[[^\s\"]*")
_ROUND = str.maketrans("[]", "()")


def plain(rtlil: str) -> str:
    """RTLIL in which no name has square brackets. Amaranth calls the first field of an array `keys`
    `keys[0]`, a word; to yosys, when it maps to LUTs, that is the first bit of `keys`. It then stops
    with an assertion about widths: it did at the join areas of `tiny`."""
    return _NAME.sub(lambda name: name[0].translate(_ROUND), rtlil)
