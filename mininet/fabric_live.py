# SPDX-License-Identifier: Apache-2.0
"""What commands in other terminals see and change of a running fabric."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path

from fabric_capture import open_tap, read_frame
from fabric_links import FabricLinks
from fabric_net import FabricNet
from fabric_report import FabricError, FabricReport

from tailrace.controller.control import ControlServer, Messages, Stream
from tailrace.controller.inband.relay import RelayError
from tailrace.p4rt.events import LINK_SET

_MOST_FRAMES = 1024
"""Frames that are read from an interface at once."""


class FabricControl(ControlServer):
    """Serves the commands."""

    def __init__(
        self, path: Path, time_scale: float, net: FabricNet, links: FabricLinks, report: FabricReport
    ) -> None:
        super().__init__(path, net.plan.topology, time_scale)
        self._net, self._plan, self._of_links, self._report = net, net.plan, links, report

    def status(self) -> str:
        return "running"

    def events(self, start: int) -> Messages:
        return self._report.events[start:]

    def link(self, a: str, b: str) -> tuple[bool, float]:
        link = self._plan.between(a, b)[0]
        return self._of_links.is_up(link), self._of_links.shares.get(link.name, 1.0)

    def set_link(self, a: str, b: str, to: bool | float, text: str) -> None:
        try:
            self._of_links.change(a, b, to, text)
        except FabricError as error:
            raise RelayError(str(error)) from error
        self._report.event(LINK_SET, text, f"{a}-{b}")

    def capture(self, a: str, b: str) -> Stream:
        with ExitStack() as stack:
            ends = [end for link in self._plan.between(a, b) for end in (link.a, link.b)]
            taps = [stack.enter_context(open_tap(end.interface, self._net.pid(end.node))) for end in ends]
            yield [{}]
            while True:
                reads = [islice(iter(partial(read_frame, tap), None), _MOST_FRAMES) for tap in taps]
                frames = sorted(frame for read in reads for frame in read)
                yield [{"time_ns": at, "frame": data.hex(), "length": len(data)} for at, data in frames]
