# SPDX-License-Identifier: Apache-2.0
"""Queues: what waits is known by port, control packets go first, and the program's limit drops data only.

Run one case: scripts/run_ptf.py --target native test_queues.PriorityTest
"""

from __future__ import annotations

from ptf.testutils import group
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from ptf_tests.fabric import FLOW, HOST, HOST_PORT, OTHER_HOST_PORT, SLOW_REMOTE, FabricTest
from ptf_tests.frames import GATEWAY_MAC, Flow, mac_of, roce, tagged
from ptf_tests.slow_port import FILLER_BYTES, FILLER_FLOW, FILLERS, SlowPortTest
from tailrace.codec.layers.bth import AETH, Opcode
from tailrace.codec.layers.nic_shim import ACK_PORT, NicAck

SLOW_FLOW = Flow(HOST, SLOW_REMOTE)


def control_packets(flow: Flow) -> list[Packet]:
    """RoCE ACK, NAK, CNP, and the ACK of a Flowcut NIC."""
    nic_ack = UDP(sport=flow.sport, dport=ACK_PORT, chksum=0) / NicAck(bytes=100, hops=2, ticks=1)
    return [
        roce(flow, opcode=Opcode.ACK, payload=bytes(AETH(syndrome=0x1F, msn=1))),
        roce(flow, opcode=Opcode.ACK, payload=bytes(AETH(syndrome=0x60, msn=1))),
        roce(flow, opcode=Opcode.CNP, payload=bytes(16)),
        Ether(src=mac_of(flow.src), dst=GATEWAY_MAC) / IP(src=flow.src, dst=flow.dst) / nic_ack,
    ]


@group("queues")
class ReadPortTest(SlowPortTest):
    """READ_PORT says what waits by egress port and by ingress port, to the byte, and nothing stays behind."""

    def runTest(self) -> None:
        self.fill()
        waiting, _ = self.port_queues(self.slow_port)
        self.assertGreater(waiting, 0)
        self.assertEqual(0, waiting % FILLER_BYTES)
        self.assertLessEqual(waiting, FILLERS * FILLER_BYTES)
        # Asked later, so not more; the other host's frames wait for the slow port only.
        still_waiting = self.port_queues(OTHER_HOST_PORT)
        self.assertEqual(0, still_waiting[0])
        self.assertEqual(0, still_waiting[1] % FILLER_BYTES)
        self.assertLessEqual(still_waiting[1], waiting)
        self.assertEqual((0, 0), self.port_queues(HOST_PORT))
        self.drain(FILLERS)
        self.assertEqual((0, 0), self.port_queues(OTHER_HOST_PORT))
        self.expect_drops()


@group("queues")
class PriorityTest(SlowPortTest):
    """A control packet overtakes the data that waits; data does not."""

    def runTest(self) -> None:
        filler = bytes(roce(FILLER_FLOW, ttl=63, tag=tagged(0, self.slow_port)))
        for packet in control_packets(SLOW_FLOW):
            frames = self.behind_fillers(HOST_PORT, packet)
            self.assertEqual(FILLERS, frames.count(filler))
            self.assertEqual(filler, frames[-1])
        frames = self.behind_fillers(HOST_PORT, roce(SLOW_FLOW))
        self.assertEqual([filler] * FILLERS, frames[:-1])


@group("queues")
class LimitTest(FabricTest):
    """The limit counts what waits and the packet itself; 0 is no limit; control packets pass any limit."""

    def runTest(self) -> None:
        frame = roce(FLOW)
        for limit, passes in ((len(frame), True), (len(frame) - 1, False), (1, False), (0, True)):
            self.set_default("queue_config", self.action("set_queue_limit", limit_bytes=limit))
            dropped = self.count("drops", self.enum("DropReason_t", "QUEUE_LIMIT"))
            self.send(HOST_PORT, frame)
            if passes:
                self.receive()
            self.expect_count("drops", dropped + (not passes), self.enum("DropReason_t", "QUEUE_LIMIT"))
        self.set_default("queue_config", self.action("set_queue_limit", limit_bytes=1))
        for packet in control_packets(FLOW):
            self.send(HOST_PORT, packet)
            self.receive()
        self.expect_drops(QUEUE_LIMIT=2)
        self.assertEqual((0, 0), self.port_queues(HOST_PORT))


@group("queues")
class FullQueueTest(SlowPortTest):
    """A queue at its limit takes no more, and what was dropped is charged to nobody."""

    def runTest(self) -> None:
        room = 3
        self.set_default("queue_config", self.action("set_queue_limit", limit_bytes=room * FILLER_BYTES))
        self.fill()
        self.assertLessEqual(self.waiting(), room * FILLER_BYTES)
        dropped = self.count("drops", self.enum("DropReason_t", "QUEUE_LIMIT"))
        self.assertGreater(dropped, 0)
        self.drain(FILLERS - dropped)
        self.expect_drops(QUEUE_LIMIT=dropped)
        self.assertEqual((0, 0), self.port_queues(OTHER_HOST_PORT))
