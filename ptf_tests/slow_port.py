# SPDX-License-Identifier: Apache-2.0
"""A queue that is not empty: the slow port of the test bed, and the checks that it was full enough at the
time.

The native switch is started with a rate on that port. BMv2 takes rates over its Thrift server only.
"""

from __future__ import annotations

from typing import Any

from ptf import testutils

from ptf_tests.fabric import OTHER_HOST, OTHER_HOST_PORT, SLOW_REMOTE, FabricTest
from ptf_tests.frames import Flow, roce
from tailrace.bmv2.thrift import ThriftClient

FILLERS = 8
ATTEMPTS = 20
FILLER_FLOW = Flow(OTHER_HOST, SLOW_REMOTE, sport=49160)
"""Its source port is no other flow's, for tests tell the flows in a switch's tables by that."""
FILLER = roce(FILLER_FLOW)
FILLER_BYTES = len(FILLER)


class SlowPortTest(FabricTest):
    """Tests that need bytes in the queue of the slow port."""

    def setUp(self) -> None:
        on_bmv2 = testutils.test_param_get("target") == "bmv2"
        thrift_port = int(testutils.test_param_get("thrift_port"))
        if on_bmv2 and not thrift_port:
            self.skipTest("BMv2 is built without Thrift, over which alone it takes rates")
        super().setUp()
        if on_bmv2:
            with ThriftClient(thrift_port) as client:
                client.set_port_rate(self.slow_port, int(testutils.test_param_get("slow_rate_pps")))

    def drain(self, packets: int) -> list[bytes]:
        """Take so many frames off the slow port, which leaves it empty."""
        frames = [self.receive(self.slow_port)[1] for _ in range(packets)]
        self.eventually((0, 0), lambda: self.port_queues(self.slow_port))
        return frames

    def waiting(self) -> int:
        """Bytes that wait for the slow port."""
        return self.port_queues(self.slow_port)[0]

    def fill(self) -> None:
        """Put data of the other host into the queue."""
        before = self.count("port_rx", OTHER_HOST_PORT)
        for _ in range(FILLERS):
            self.send(OTHER_HOST_PORT, FILLER)
        self.expect_count("port_rx", before + FILLERS, OTHER_HOST_PORT)

    def behind_fillers(self, port: int, frame: Any) -> list[bytes]:
        """A frame that goes to the slow port comes in by `port` while at least one filler waits.

        Returns:
            what the slow port sent, fillers and the frame, oldest first.
        """
        for _ in range(ATTEMPTS):
            self.fill()
            before = self.count("port_rx", port)
            self.send(port, frame)
            self.expect_count("port_rx", before + 1, port)
            # A filler that waits now has waited before the frame, too.
            was_loaded = self.waiting() >= FILLER_BYTES + len(frame)
            frames = self.drain(FILLERS + 1)
            if was_loaded:
                return frames
        raise AssertionError("the machine is too slow: the slow port was never loaded at the right time")
