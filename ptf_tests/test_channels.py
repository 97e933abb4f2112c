# SPDX-License-Identifier: Apache-2.0
"""Channels of PFC: the priority with which a packet waits is the number of links that it has passed, by its
TTL.

Run one case: scripts/run_ptf.py --target native test_channels.DragonflyTest
"""

from __future__ import annotations

from ptf.testutils import group

from ptf_tests.fabric import HOST, HOST_PORT, OTHER_HOST, OTHER_HOST_PORT, REMOTE, SLOW_REMOTE, UPLINKS
from ptf_tests.frames import Flow, roce, tagged
from ptf_tests.slow_port import FILLER_FLOW, FILLERS, SlowPortTest

FIRST_TTL, LAST = 64, 3
FOREIGN_TTL = 9
FROM_HOST, FROM_SWITCH = Flow(HOST, SLOW_REMOTE), Flow(REMOTE, SLOW_REMOTE)


@group("channels")
class DragonflyTest(SlowPortTest):
    """A switch with channels; what a host of its own sends waits with the lowest priority."""

    program = "dragonfly"

    def runTest(self) -> None:
        self.set_default("channel_config", self.action("set_channels", first_ttl=FIRST_TTL, last=LAST))
        filler = bytes(roce(FILLER_FLOW, ttl=FIRST_TTL - 1, tag=tagged(0, self.slow_port)))
        self.farther_goes_first(filler)
        self.hosts_begin_anew(filler)
        self.too_far()
        self.to_a_host()

    def farther_goes_first(self, filler: bytes) -> None:
        """Each link passed is a priority more than that of what waits from a host."""
        for passed in range(1, LAST + 1):
            frames = self.behind_fillers(UPLINKS[0], roce(FROM_SWITCH, ttl=FIRST_TTL - passed))
            self.assertEqual(filler, frames[-1])
        frames = self.behind_fillers(UPLINKS[0], roce(FROM_SWITCH, ttl=FIRST_TTL))
        self.assertEqual([filler] * FILLERS, frames[:-1])

    def hosts_begin_anew(self, filler: bytes) -> None:
        """Whatever TTL a host says, it gets that of the first channel."""
        frames = self.behind_fillers(HOST_PORT, roce(FROM_HOST, ttl=FOREIGN_TTL))
        sent = roce(FROM_HOST, ttl=FIRST_TTL - 1, tag=tagged(0, self.slow_port))
        self.assertEqual([*[filler] * FILLERS, bytes(sent)], frames)

    def too_far(self) -> None:
        """What has passed more links than there are channels is dropped, and charged to nobody."""
        self.send(UPLINKS[0], roce(FROM_SWITCH, ttl=FIRST_TTL - LAST - 1))
        self.expect_drops(TTL_EXPIRED=1)
        self.assertEqual((0, 0), self.port_queues(self.slow_port))

    def to_a_host(self) -> None:
        """The last channel leads to a host, too, and nothing else changes."""
        flow = Flow(REMOTE, OTHER_HOST)
        self.send(UPLINKS[0], roce(flow, ttl=FIRST_TTL - LAST))
        port, frame = self.receive()
        self.assertEqual(OTHER_HOST_PORT, port)
        self.assertEqual(FIRST_TTL - LAST - 1, frame[14 + 8])


@group("channels")
class FlowcutTest(DragonflyTest):
    """Flowcut in a Dragonfly."""

    program = "flowcut_dragonfly"


@group("channels")
class SpritzTest(DragonflyTest):
    """Spritz, and routing hop by hop."""

    program = "spritz"

    def setUp(self) -> None:
        super().setUp()
        self.add_entry(
            "destinations",
            {"dst": (0x0A000300, 24)},
            self.action("destination", near=1, links=1, port=self.slow_port),
        )


@group("channels")
class OffTest(SlowPortTest):
    """Without channels the TTL says nothing."""

    program = "dragonfly"

    def runTest(self) -> None:
        filler = bytes(roce(FILLER_FLOW, ttl=FIRST_TTL - 1, tag=tagged(0, self.slow_port)))
        frames = self.behind_fillers(UPLINKS[0], roce(FROM_SWITCH, ttl=FOREIGN_TTL))
        self.assertEqual([filler] * FILLERS, frames[:-1])
