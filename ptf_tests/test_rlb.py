# SPDX-License-Identifier: Apache-2.0
"""RLB: warnings, their way through the fabric, RTTs of paths, recirculation, alerts (RLB §III, §IV, §V).

Run one case: scripts/run_ptf.py --target native test_rlb.RecirculateTest
"""

from __future__ import annotations

from ptf.testutils import group
from scapy.layers.l2 import Ether

from ptf_tests.fabric import DOWNLINK, FLOW, HOST, HOST_PORT, ROLELESS_PORT, UPLINKS
from ptf_tests.frames import mac_of, roce, tagged
from ptf_tests.rlb import (
    BACK,
    FOREVER,
    OWN_LEAF,
    PredictingTest,
    RlbTest,
    cnm,
    probed,
)
from ptf_tests.slow_port import FILLERS
from tailrace.codec.layers.bth import AETH
from tailrace.codec.layers.local import LEAF_ALL, Cnm, PathProbe
from tailrace.codec.numbers import Opcode

FAST, OTHER, LAST = UPLINKS
YEAR_LIKE = 1 << 30  # ticks: no recirculation takes so long
HALF_YEAR_LIKE = YEAR_LIKE // 2  # nor is a packet on its way for so long: a path of this RTT is never overdue
SHORT = 1000
INTERVAL = 500_000  # ticks of a microsecond: so long that many rounds of packets fit in


@group("rlb")
class CnmFromHostTest(RlbTest):
    """A CNM by a host's port, or by one that nobody configured, is counted and changes nothing."""

    def runTest(self) -> None:
        messages = [cnm(FOREVER), cnm(FOREVER, leaf=LEAF_ALL), cnm(0)]
        for port in (HOST_PORT, ROLELESS_PORT):
            for message in messages:
                self.send(port, message)
        self.expect_count("drops", 2 * len(messages), self.enum("DropReason_t", "CONTROL_FROM_HOST"))
        self.assertEqual(list(UPLINKS), self.round_of_packets())
        self.assertEqual(0, sum(self.count("warnings_received", port) for port in (HOST_PORT, ROLELESS_PORT)))
        self.nothing_else()


@group("rlb")
class ProbeTest(RlbTest):
    """A stamp on each path, the echo of the other leaf's, and neither at hosts."""

    def runTest(self) -> None:
        self.probes(FOREVER)
        self.send(HOST_PORT, roce(FLOW))
        port, frame = self.receive()
        probe = Ether(frame)[PathProbe]
        expected = probed(roce(FLOW, ttl=63, tag=tagged(0, port)), stamped=1, path=port, ticks=probe.ticks)
        expected[PathProbe].leaf = OWN_LEAF
        self.assertEqual(bytes(expected).hex(), frame.hex())
        stamped = probed(roce(BACK), stamped=1, path=7, ticks=0x12345678)
        self.send(LAST, stamped)
        self.expect(HOST_PORT, roce(BACK, ttl=63, dst_mac=mac_of(HOST)))
        self.send(HOST_PORT, roce(FLOW, opcode=Opcode.ACK, payload=bytes(AETH(msn=1))))
        _, frame = self.receive()
        echo = Ether(frame)[PathProbe]
        seen = (echo.stamped, echo.echoes, echo.leaf, echo.echo_path, echo.echo_ticks)
        self.assertEqual((0, 1, OWN_LEAF, 7, 0x12345678), seen)
        self.send(HOST_PORT, roce(FLOW, opcode=Opcode.ACK, payload=bytes(AETH(msn=1))))
        self.assertNotIn(PathProbe, Ether(self.receive()[1]))
        self.nothing_else()


@group("rlb")
class RecirculateTest(RlbTest):
    """A packet waits for a path that is much faster than the others, as often as it may; then it takes it, or
    one that is not warned (last_open).
    """

    def runTest(self) -> None:
        self.measure({FAST: HALF_YEAR_LIKE, OTHER: YEAR_LIKE, LAST: YEAR_LIKE})
        self.tell(FAST, cnm(FOREVER))
        for most in (0, 1, 5):
            self.limits(most=most)
            before = self.recirculations()
            self.assertEqual(list(UPLINKS), self.round_of_packets())
            self.assertEqual(before + most, self.recirculations())
        self.limits(most=5, dynamic=1)  # Q_PFC of FOREVER, and all the time of the world
        self.assertEqual(list(UPLINKS), self.round_of_packets())
        self.assertEqual(before + 10, self.recirculations())
        self.warnings(pause_bytes=1)
        self.assertEqual(list(UPLINKS), self.round_of_packets())
        self.assertEqual(before + 10, self.recirculations())
        self.limits(most=5, dynamic=1, last_open=1)
        self.assertEqual([OTHER, OTHER, LAST], self.round_of_packets())
        self.assertEqual(before + 10, self.recirculations())
        for port in (HOST_PORT, *UPLINKS, self.number("mirror_port")):
            self.assertEqual((0, 0), self.port_queues(port))
        self.nothing_else()


@group("rlb")
class AlertTest(RlbTest):
    """Packets that recirculate again and again for one port raise an alert of that port (Algorithm 2)."""

    def runTest(self) -> None:
        self.subscribe("failure_alert_t")
        self.measure({FAST: HALF_YEAR_LIKE, OTHER: YEAR_LIKE, LAST: YEAR_LIKE})
        self.tell(FAST, cnm(FOREVER))
        self.limits(most=255)
        self.failures(INTERVAL, 0)
        self.eventually(1, self.alerts_after_a_round)
        digests = self.receive_message("digest")
        port, total, packets, _ = digests.data[0].struct.members
        numbers = [int.from_bytes(member.bitstring, "big") for member in (port, total, packets)]
        self.assertEqual(FAST, numbers[0])
        self.assertGreater(numbers[1], 0)
        self.assertGreaterEqual(numbers[1], numbers[2])
        self.nothing_else()

    def alerts_after_a_round(self) -> int:
        """Sends a round of packets that wait; returns the number of alerts so far."""
        self.assertEqual(list(UPLINKS), self.round_of_packets())
        return self.count("failures_found")


@group("rlb")
class PredictTest(PredictingTest):
    """The queue of what came in at a port grows: its sender is warned, then told that it is over."""

    def runTest(self) -> None:
        self.predict(valid_ticks=SHORT)
        self.fill()
        self.drain(FILLERS)
        self.assertEqual(0, self.count("warnings_sent", DOWNLINK))
        self.until_warned()
        warned_ticks = []
        for _ in range(self.count("warnings_sent", DOWNLINK) + self.count("warnings_withdrawn", DOWNLINK)):
            _, frame = self.receive(DOWNLINK)
            message = Ether(frame)[Cnm]
            self.assertEqual((DOWNLINK, OWN_LEAF, 0), (message.port, message.leaf, message.hops))
            self.assertEqual(len(cnm(0)), len(frame))
            warned_ticks.append(int(message.valid_ticks))
        self.assertEqual([SHORT, 0] * (len(warned_ticks) // 2), warned_ticks)
        self.assertTrue(warned_ticks)
        self.nothing_else()
