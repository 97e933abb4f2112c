# SPDX-License-Identifier: Apache-2.0
"""PFC by the program, where the traffic manager has none: closed ports, order, pauses asked for, storms.

The native switch has the real thing; it is not switched on here, so that both run the same program.
Run one case: scripts/run_ptf.py --target native test_pfc_emulation.PauseTest
"""

from __future__ import annotations

from p4.v1 import p4runtime_pb2
from ptf import testutils
from ptf.testutils import group
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from ptf_tests.fabric import HOST, HOST_PORT, OTHER_HOST, OTHER_HOST_PORT, REMOTE, SLOW_REMOTE, UPLINKS
from ptf_tests.frames import GATEWAY_MAC, Flow, mac_of, number_of, roce
from ptf_tests.slow_port import FILLER_BYTES, FILLERS, SlowPortTest
from tailrace.bmv2.thrift import ThriftClient
from tailrace.codec.layers.bth import BTH
from tailrace.codec.layers.pfc import pfc_frame
from tailrace.codec.numbers import Opcode

DATA = 0
LONG = 0xFFFF
QUANTUM_TICKS = 1000  # of a microsecond: a pause of LONG is longer than any test
ONE = 1 << 16
FOREVER = (1 << 31) - 1
WAITING_PPS = 2000
TO_HOST = Flow(REMOTE, HOST)
TO_SLOW = Flow(OTHER_HOST, SLOW_REMOTE)


class EmulationTest(SlowPortTest):
    """A leaf that does PFC by itself and pauses nobody, unless it is given thresholds."""

    program = "presto"

    def setUp(self) -> None:
        super().setUp()
        waiting = self.number("waiting_port")
        if testutils.test_param_get("target") == "bmv2":
            with ThriftClient(int(testutils.test_param_get("thrift_port"))) as client:
                client.set_port_rate(waiting, WAITING_PPS)
        self.add_clone_session(self.number("pause_session"), self.number("pause_port"))
        for port in (HOST_PORT, OTHER_HOST_PORT, *UPLINKS, self.slow_port):
            self.add_entry("pfc_ports", {"port": port}, self.unit())
        self.emulate()

    def unit(
        self, detect_ticks: int = 0, restore_ticks: int = 0, leak: int = 0, storm: str = "NONE"
    ) -> p4runtime_pb2.Action:
        """What is said of a port; without `detect_ticks` it has no watchdog."""
        return self.action(
            "pause_unit",
            quantum=QUANTUM_TICKS * ONE,
            detect_ticks=detect_ticks,
            restore_ticks=restore_ticks,
            leak=leak,
            storm=self.enum("Storm_t", storm),
        )

    def emulate(self, **given: int) -> None:
        """Set thresholds and room."""
        values = {"xoff_bytes": FOREVER, "xon_bytes": FOREVER, "quanta": LONG, "refresh_ticks": FOREVER}
        values |= {"room": 500, "patience_ticks": FOREVER, "station": number_of(GATEWAY_MAC)}
        self.set_default("pfc_config", self.action("set_pfc", **values | given))

    def pause(self, port: int, quanta: int) -> None:
        """The other end of a port asks for a pause of data, and the switch has heard it."""
        before = self.count("pfc_received", port)
        self.send(port, pfc_frame(mac_of(HOST), {DATA: quanta}))
        self.expect_count("pfc_received", before + 1, port)

    def send_all(self, port: int, frames: list[Packet]) -> None:
        """Frames arrive, and the switch has taken all of them."""
        before = self.count("port_rx", port)
        for frame in frames:
            self.send(port, frame)
        self.expect_count("port_rx", before + len(frames), port)

    def numbers(self, port: int, packets: int) -> list[int]:
        """The numbers of so many packets that leave a port next."""
        return [int(Ether(self.receive(port)[1])[BTH].psn) for _ in range(packets)]


def numbered(flow: Flow, number: int) -> Packet:
    """A packet of a flow that says the how many-th it is."""
    frame = roce(flow)
    frame[BTH].psn = number
    return frame


@group("pfc")
class PauseTest(EmulationTest):
    """Data for a paused port waits, unchanged and in order, until the resume; control does not wait."""

    def runTest(self) -> None:
        count = 12
        self.pause(HOST_PORT, LONG)
        self.send_all(UPLINKS[0], [numbered(TO_HOST, number) for number in range(count)])
        ack = roce(TO_HOST, opcode=Opcode.ACK, payload=b"")
        self.send(UPLINKS[1], ack)
        self.expect(HOST_PORT, roce(TO_HOST, ttl=63, opcode=Opcode.ACK, payload=b"", dst_mac=mac_of(HOST)))
        self.eventually(count * FILLER_BYTES, lambda: self.port_queues(HOST_PORT)[0])
        self.assertEqual(count * FILLER_BYTES, self.port_queues(UPLINKS[0])[1])
        self.nothing_else()
        self.pause(HOST_PORT, 0)
        for number in range(count):
            expected = roce(TO_HOST, ttl=63, dst_mac=mac_of(HOST))
            expected[BTH].psn = number
            self.expect(HOST_PORT, expected)
        self.assertEqual((0, 0), self.port_queues(HOST_PORT))
        self.assertEqual((0, 0), self.port_queues(UPLINKS[0]))
        self.expect_drops()


@group("pfc")
class AskTest(EmulationTest):
    """The sender of a port is paused when more than xoff waits that it brought, and resumed at xon."""

    def runTest(self) -> None:
        self.emulate(xoff_bytes=3 * FILLER_BYTES, xon_bytes=FILLER_BYTES)
        self.pause(self.slow_port, LONG)
        self.send_all(OTHER_HOST_PORT, [numbered(TO_SLOW, number) for number in range(FILLERS)])
        self.expect(OTHER_HOST_PORT, pfc_frame(GATEWAY_MAC, {DATA: LONG}))
        self.pause(self.slow_port, 0)
        self.assertEqual(list(range(FILLERS)), self.numbers(self.slow_port, FILLERS))
        self.expect(OTHER_HOST_PORT, pfc_frame(GATEWAY_MAC, {DATA: 0}))
        self.assertEqual(2, self.count("pfc_sent", OTHER_HOST_PORT))
        self.assertEqual(1, self.count("pfc_pauses_sent", OTHER_HOST_PORT))
        self.assertEqual((0, 0), self.port_queues(OTHER_HOST_PORT))
        self.expect_drops()
