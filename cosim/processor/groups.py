"""Groups as a processor outputs them: results of no query, whose sequence numbers hold a group's
bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from seustream.cosim.processor.bits import Column, flatten, pack, unpack
from seustream.hdl.config import DeviceConfig
from seustream.hdl.device import Groups, Ints


class GroupReader:
    """Assembles groups from their parts."""

    def __init__(self, config: DeviceConfig) -> None:
        from seustream.hdl.layouts import Layouts

        layouts = Layouts(config)
        self.parts, self.width = layouts.group_parts, config.sequence_width
        self._streams = config.streams
        self._group = flatten(layouts.group)
        self._words = {
            str(number): (number * self.width, self.width)
            for number in range(self.parts * self._streams)
        }

    def read(self, parts: Mapping[str, Column], time: Callable[[Column], Ints]) -> Groups:
        """Returns the groups that these results encode; `time` completes the bits of times."""
        count = len(parts["queries"]) // self.parts
        if not count:
            return Groups()
        words = {}
        for name in self._words:
            part, stream = divmod(int(name), self._streams)
            words[name] = parts[f"sequences.{stream}"][part :: self.parts]
        found = unpack(self._group, pack(self._words, words, count))
        names = ("query", "key", "count", "total", "least", "greatest")
        times = (time(parts[name][:: self.parts]) for name in ("oldest", "newest"))
        return Groups(*(found[name].astype(np.int64) for name in names), *times)
