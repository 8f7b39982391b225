"""A board behind the device contract."""

from __future__ import annotations

from seustream.cosim.link.processor import LinkProcessor
from seustream.cosim.link.session import LinkSession
from seustream.cosim.processor.device import ProcessorDevice
from seustream.hdl.boards.identity import Identity
from seustream.hdl.boards.protocol import COUNTERS, LinkCounter
from seustream.hdl.config import DeviceConfig


class BoardDevice(ProcessorDevice):
    """A WJASIP at the other end of a session, which it opens. The board is then as new: no image,
    no tuples, whatever another host left behind."""

    def __init__(self, session: LinkSession, config: DeviceConfig, stall: float = 60.0) -> None:
        processor = LinkProcessor(session, config, stall)
        self.identity: Identity = processor.identity
        self.session = session
        super().__init__(config, processor)

    def counts(self) -> dict[LinkCounter, int]:
        """Returns counters of everything that has reached the board since it was switched on."""
        return {counter: self._counter(COUNTERS + counter) for counter in LinkCounter}
