"""Floor plan: places the block RAM of each join area.

nextpnr spreads the block RAM of an area over the whole chip, and its logic with it, so that routing takes most
of a cycle. If each area's block RAM has fixed places close together, the placer puts the rest around it.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

RAM = ("DP16KD", "PDPW16KD")

# Of an LFE5-85, with or without SERDES: four rows of block RAM, in groups of four blocks nine tiles
# apart; the clock spine is in the middle.
_ROWS = (22, 46, 70, 82)
_GROUPS = (*(4 + 9 * i for i in range(7)), *(69 + 9 * i for i in range(6)))
_LARGE = [(x + 2 * i, y, i) for y in _ROWS for x in _GROUPS for i in range(4)]
GRIDS = {"--85k": _LARGE, "--um5g-85k": _LARGE}
"""Places of block RAM by nextpnr's option for the part: column, row, number in its group."""

# By the number of areas: centres of the areas; centres of their banks, which lie to one side, by the factor
# array; and the centre of the common block RAM, which lies between the areas.
_MIDDLES = {
    2: ([(30, 40), (93, 40)], [(20, 40), (105, 40)], (62, 46)),
    3: ([(28, 34), (97, 34), (60, 80)], [(20, 34), (105, 34), (35, 78)], (64, 46)),
    4: (
        [(30, 34), (93, 34), (30, 76), (93, 76)],
        [(20, 34), (105, 34), (20, 76), (105, 76)],
        (62, 46),
    ),
}

# In an area, memories that are read together are placed together: near the middle of the chip those that the
# fetch and the router read, then those on a probe's path through the area.
_ORDER = ("destinations", "stamps", "newest", "older", "long", "probes", "plans", "terms",
          "selections", "instructions", "rows")  # fmt: skip


def plan(netlist: Path, part: str) -> int:
    """Places every block RAM of a yosys netlist, and returns their number. On a part without a grid
    here, or if they do not fit, returns 0 and leaves the placement to nextpnr."""
    design = json.loads(netlist.read_text())
    cells: dict[str, Any] = design["modules"]["top"]["cells"]
    places = arrange([name for name, cell in cells.items() if cell["type"] in RAM], part)
    for name, (column, row, number) in places.items():
        cells[name]["attributes"]["BEL"] = f"X{column}/Y{row}/EBR{number}"
    if places:
        netlist.write_text(json.dumps(design))
    return len(places)


def arrange(names: list[str], part: str) -> dict[str, tuple[int, int, int]]:
    """Finds a place for each block RAM, by its name in the netlist."""
    free = list(GRIDS.get(part, ()))
    of_area: dict[int | None, list[str]] = defaultdict(list)
    for name in names:
        found = re.search(r"\barea(\d)", name)
        of_area[int(found[1]) if found else None].append(name)
    areas = sorted(area for area in of_area if area is not None)
    if len(names) > len(free) or len(areas) not in _MIDDLES:
        return {}
    own, of_banks, common = _MIDDLES[len(areas)]
    middles: dict[int | None, tuple[int, int]] = dict(zip(areas, own, strict=True))
    middles[None] = common
    by_banks: dict[int | None, tuple[int, int]] = dict(zip(areas, of_banks, strict=True))
    by_banks[None] = common

    def far(place: tuple[int, int, int], area: int | None) -> int:
        x, y = middles[area]
        return abs(place[0] - x) + abs(place[1] - y)

    # The areas choose in turns, so that none gets only the leftovers of the others.
    taken: dict[int | None, list[tuple[int, int, int]]] = defaultdict(list)
    while len(taken[None]) < len(of_area[None]) or any(
        len(taken[area]) < len(of_area[area]) for area in areas
    ):
        for area in middles:
            if len(taken[area]) < len(of_area[area]):
                near = min(free, key=lambda at: (far(at, area), at))
                free.remove(near)
                taken[area].append(near)
    places: dict[str, tuple[int, int, int]] = {}
    for area, mine in of_area.items():
        banks = sorted(name for name in mine if area is None or "bank" in name)
        rest = sorted(set(mine) - set(banks), key=_kind)
        outward = _outward(taken[area], by_banks[area])
        places.update(zip(banks, outward, strict=False))
        left = sorted(outward[len(banks) :], key=lambda at: (far(at, None), at))
        places.update(zip(rest, left, strict=True))
    return places


def _outward(
    taken: list[tuple[int, int, int]], middle: tuple[int, int]
) -> list[tuple[int, int, int]]:
    """Orders places group by group: whole groups first, then by distance from the middle. A bank of a
    window fills a group, and the factor array reads the banks."""
    groups: dict[tuple[int, int], list[tuple[int, int, int]]] = defaultdict(list)
    for column, row, number in sorted(taken):
        groups[column - 2 * number, row].append((column, row, number))

    def order(group: tuple[int, int]) -> tuple[bool, int, tuple[int, int]]:
        off = abs(group[0] + 3 - middle[0]) + abs(group[1] - middle[1])
        return len(groups[group]) < 4, off, group

    return [place for group in sorted(groups, key=order) for place in groups[group]]


def _kind(name: str) -> tuple[int, str]:
    for number, kind in enumerate(_ORDER):
        if kind in name:
            return number, name
    return len(_ORDER), name
