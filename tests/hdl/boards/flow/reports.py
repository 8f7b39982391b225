"""Reports of placed designs, as nextpnr writes them."""

from __future__ import annotations

from seustream.hdl.boards.board import BOARDS
from seustream.hdl.boards.flow.placement import read
from seustream.hdl.boards.flow.report import BuildReport
from seustream.hdl.config import CONFIGURATIONS

TINY = CONFIGURATIONS["tiny"]
ULX3S = BOARDS["ulx3s"]


def _step(kind: str, begin: str, end: str, delay: float) -> dict[str, object]:
    return {"type": kind, "delay": delay, "from": {"cell": begin}, "to": {"cell": end}}


PATH = [
    _step("clk-to-q", "linked.wjasip.area0.scanner.x_FF", "linked.wjasip.area0.scanner.x_FF", 0.5),
    _step("routing", "linked.wjasip.area0.scanner.x_FF", "linked.wjasip.router.y_LUT4", 2.0),
    _step("logic", "linked.wjasip.router.y_LUT4", "linked.wjasip.router.y_LUT4", 0.25),
    _step("routing", "linked.wjasip.router.y_LUT4", "linked.wjasip.router.z_FF", 0.75),
    _step("setup", "linked.wjasip.router.z_FF", "linked.wjasip.router.z_FF", 0.0),
]
REPORT = {
    "fmax": {
        "$glbnet$clk": {"achieved": 210.0, "constraint": 50.0},
        "gate.source": {"achieved": 400.0, "constraint": 50.0},
    },
    "critical_paths": [
        {"from": "<async>", "to": "posedge $glbnet$clk", "path": []},
        {"from": "posedge $glbnet$clk", "to": "posedge $glbnet$clk", "path": PATH},
    ],
    "utilization": {
        "TRELLIS_COMB": {"used": 9000, "available": 83640},
        "TRELLIS_FF": {"used": 6000, "available": 83640},
        "DP16KD": {"used": 13, "available": 208},
        "TRELLIS_IO": {"used": 12, "available": 365},
    },
}


def made(*clocks: float) -> BuildReport:
    tried = [
        read({**REPORT, "fmax": {"$glbnet$clk": {"achieved": c, "constraint": 50.0}}}, seed, 50.0)
        for seed, c in enumerate(clocks, 1)
    ]
    best = max(tried, key=lambda placed: placed.clock)
    return BuildReport(ULX3S, TINY, 0x12345678, 1_000_000, best, tried)
