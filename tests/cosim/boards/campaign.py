"""What comes to an Ethernet port: a million hostile packets among tuples and their results, and random
cases over real sockets, of whose datagrams up to a tenth each are lost, late, damaged, or come twice. And
random cases over the wires of a USB port, of whose packets up to a tenth are damaged.

    python -m tests.cosim.boards.campaign --seconds 600 --record
"""

from __future__ import annotations

import argparse
import random

from tests.campaigns import Work, add_options
from tests.cosim.boards.test_datagrams import networked
from tests.cosim.boards.test_usb import case
from tests.cosim.link.test_device_faults import same_as_golden
from tests.hdl.boards.test_mac_and_packets_and_network import among_strangers

PACKETS, A_SEED = 1_000_000, 1_000
CASES = 200
SHARES = (0.0, 0.001, 0.01, 0.1)


def packets(options: argparse.Namespace) -> None:
    work = Work("hostile packets", options)
    for first in work.cases(PACKETS, A_SEED):
        for counter, count in among_strangers(first // A_SEED, 10, A_SEED // 10).items():
            work.found[counter.name.lower()] += count
    work.close(PACKETS)


def cases(options: argparse.Namespace) -> None:
    work = Work("network cases", options)
    for seed in work.cases(CASES):
        with networked(seed, SHARES[seed % len(SHARES)], 0.1) as (device, network):
            same_as_golden(device, random.Random(seed))
            work.found.update(network.happened)
            work.found["sent again"] += device.session.resent
    work.close(CASES)


def wires(options: argparse.Namespace) -> None:
    work = Work("usb cases", options)
    for seed in work.cases(CASES):
        try:
            work.found.update(case(seed, SHARES[seed % len(SHARES)]))
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
    work.close(CASES)


PARTS = {"packets": packets, "cases": cases, "usb": wires}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=list(PARTS))
    add_options(parser)
    options = parser.parse_args()
    for part in options.parts:
        PARTS[part](options)


if __name__ == "__main__":
    main()
