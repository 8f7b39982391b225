"""Makes names that yosys can tell apart."""

from __future__ import annotations

import re

_NAME = re.compile(r"\\[^\s\"]*\[[^\s\"]*")
_ROUND = str.maketrans("[]", "()")


def plain(rtlil: str) -> str:
    """Replaces square brackets in all names of RTLIL. Amaranth names the first field of an array `keys`
    `keys[0]`, which is a word; to yosys, when it maps to LUTs, this is the first bit of `keys`. It then stops
    with an assertion about widths, as it did for the join areas of `tiny`."""
    return _NAME.sub(lambda name: name[0].translate(_ROUND), rtlil)
