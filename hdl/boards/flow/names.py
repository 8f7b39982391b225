"""Names that yosys can tell apart."""

from __future__ import annotations

import re

_NAME = re.compile(r"\\[^\s\"]*\[[^\s\"]*")
_ROUND = str.maketrans("[]", "()")


def plain(rtlil: str) -> str:
    """RTLIL in which no name has square brackets. Amaranth gives the first field of an array `keys`
    the name `keys[0]`; so does yosys, when it maps to LUTs, to the first bit of a port `keys`, and
    then stops because the two are not of one width."""
    return _NAME.sub(lambda name: name[0].translate(_ROUND), rtlil)
