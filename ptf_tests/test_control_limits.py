# SPDX-License-Identifier: Apache-2.0
"""Control packets of hosts are short and few: what is longer is data, and what is more waits with data.

Run one case: scripts/run_ptf.py --target native test_control_limits.HostRateTest
"""

from __future__ import annotations

from p4.v1 import p4runtime_pb2
from ptf.testutils import group
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from ptf_tests.fabric import (
    DOWNLINK,
    FLOW,
    HOST,
    HOST_PORT,
    OTHER_HOST,
    OTHER_HOST_PORT,
    REMOTE,
    SLOW_REMOTE,
    UPLINKS,
    FabricTest,
)
from ptf_tests.frames import GATEWAY_MAC, Flow, control_packets, mac_of, roce, tagged
from ptf_tests.slow_port import FILLERS, SlowPortTest
from tailrace.codec.layers.bth import BTH
from tailrace.codec.layers.dscp import DSCP_SHIFT, Dscp
from tailrace.codec.numbers import ACK_PORT, Opcode

LOCAL = Flow(HOST, OTHER_HOST)
MOST_BYTES = 78
"""MAX_CONTROL_BYTES of the P4 sources: a CNP behind a VLAN tag."""

SLOWEST_RATE = 1
"""A byte a second: no token comes back while a test runs."""


def ack(flow: Flow, frame_bytes: int = 0, dscp: int = 0, ttl: int = 64, tag: int = 0) -> Packet:
    """An ACK, or what has its opcode in a frame of so many bytes with lengths that say so."""
    bare = roce(flow, opcode=Opcode.ACK, payload=b"", dscp=dscp, ttl=ttl, tag=tag)
    return bare / Raw(bytes(max(4, frame_bytes - len(bare))))


def nic_ack(flow: Flow, frame_bytes: int) -> Packet:
    """What goes to the port of NIC ACKs, in a frame of so many bytes."""
    frame = Ether(src=mac_of(flow.src), dst=GATEWAY_MAC) / IP(src=flow.src, dst=flow.dst, id=0)
    frame = frame / UDP(sport=flow.sport, dport=ACK_PORT, chksum=0)
    return frame / Raw(bytes(frame_bytes - len(frame)))


def cnp(flow: Flow, frame_bytes: int) -> Packet:
    """A CNP in a frame of so many bytes."""
    bare = roce(flow, opcode=Opcode.CNP, payload=b"")
    return bare / Raw(bytes(frame_bytes - len(bare)))


def dishonest(flow: Flow) -> list[Packet]:
    """Long frames that say they are short, and short ones whose lengths contradict each other."""
    frames = []
    for total, udp in ((48, 28), (48, 1366), (1386, 28), (40, 20), (9000, 8980)):
        frame = ack(flow, 1400)
        frame[IP].len, frame[UDP].len = total, udp
        frames.append(frame)
    for total, udp in ((48, 27), (48, 29), (48, 0), (49, 29), (0, 65516)):
        frame = ack(flow)
        frame[IP].len, frame[UDP].len = total, udp
        frames.append(frame)
    return frames


class PoliceTest(FabricTest):
    """Knows the counter of what was policed."""

    def policed(self) -> dict[str, int]:
        """Packets by kind of Policed_t; kinds never seen are left out."""
        kinds = self.p4info.type_info.serializable_enums["Policed_t"].members
        counts = {kind.name: self.count("policed", int.from_bytes(kind.value, "big")) for kind in kinds}
        return {name: packets for name, packets in counts.items() if packets}

    def expect_policed(self, **packets: int) -> None:
        """Exactly these have been since the test began."""
        self.eventually(packets, self.policed)

    def meter(self, table: str, key: str, port: int, burst_bytes: int) -> None:
        """Limit a port to a burst."""
        arguments, name = {}, {"host_limits": "limit_host", "port_limits": "limit_port"}[table]
        if table == "host_limits":
            arguments["reason"] = self.enum("Policed_t", "CONTROL_OVER_RATE")
        entry = self.entry(table, {key: port})
        entry.action.action.CopyFrom(self.action(name, **arguments))
        entry.meter_config.CopyFrom(
            p4runtime_pb2.MeterConfig(
                cir=SLOWEST_RATE, cburst=burst_bytes, pir=SLOWEST_RATE, pburst=burst_bytes
            )
        )
        self.write(table_entry=entry)

    def dscps(self, frames: list[Packet], in_port: int, out_port: int) -> list[int]:
        """The DSCPs with which frames leave, one after the other."""
        values = []
        for frame in frames:
            self.send(in_port, frame)
            values.append(int(Ether(self.receive(out_port)[1])[IP].tos) >> DSCP_SHIFT)
        return values


@group("limits")
class LongestTest(PoliceTest):
    """Up to the longest control packet's length it is control, and passes any limit; beyond it is data."""

    def runTest(self) -> None:
        self.set_default("queue_config", self.action("set_queue_limit", limit_bytes=1))
        for make in (ack, cnp, nic_ack):
            self.send(HOST_PORT, make(LOCAL, MOST_BYTES))
            self.receive(OTHER_HOST_PORT)
        self.expect_policed()
        for length in (MOST_BYTES + 1, 100, 1400):
            for make in (ack, cnp, nic_ack):
                self.send(HOST_PORT, make(LOCAL, length))
        self.expect_drops(QUEUE_LIMIT=9)
        self.expect_policed(CONTROL_TOO_LONG=9)


@group("limits")
class DishonestTest(PoliceTest):
    """Neither is what lies about its length, in whatever direction."""

    def runTest(self) -> None:
        self.set_default("queue_config", self.action("set_queue_limit", limit_bytes=1))
        frames = dishonest(LOCAL)
        for frame in frames:
            self.send(HOST_PORT, frame)
        self.expect_drops(QUEUE_LIMIT=len(frames))
        self.expect_policed(CONTROL_TOO_LONG=len(frames))
        # the next switch does not believe it either, and does not count it again
        for frame in frames:
            self.send(DOWNLINK, frame)
        self.expect_drops(QUEUE_LIMIT=2 * len(frames))
        self.expect_policed(CONTROL_TOO_LONG=len(frames))


@group("limits")
class PaddedTest(PoliceTest):
    """Padding to the shortest frame of Ethernet is no lie."""

    def runTest(self) -> None:
        self.set_default("queue_config", self.action("set_queue_limit", limit_bytes=1))
        frame = bytes(nic_ack(LOCAL, 52))
        self.send(HOST_PORT, frame + bytes(60 - len(frame)))
        self.receive(OTHER_HOST_PORT)
        self.expect_policed()


@group("limits")
class LongIsDataTest(PoliceTest):
    """To every block behind: Flowcut tracks it, in the order of all data of its flow."""

    program = "flowcut"

    def runTest(self) -> None:
        config = self.action(
            "set_flowcut",
            mode=self.enum("FlowcutMode_t", "FULL"),
            first_path=self.enum("FirstPath_t", "ECMP"),
            bucket_mask=0,
            age_ticks=1 << 46,
        )
        self.set_default("flowcut_config", config)
        self.send(HOST_PORT, ack(FLOW))
        self.receive()
        self.expect_count("flowcut_created", 0)
        self.send(HOST_PORT, ack(FLOW, 1000))
        self.receive()
        self.expect_count("flowcut_created", 1)


@group("limits")
class BehindDataTest(SlowPortTest, PoliceTest):
    """A long one waits behind data; so does a demoted one, here and at the next switch; others go first."""

    def runTest(self) -> None:
        flow = Flow(HOST, SLOW_REMOTE)

        def place(port: int, frame: Packet) -> int:
            """How many fillers leave behind the frame."""
            left = [Ether(sent_frame)[BTH].opcode for sent_frame in self.behind_fillers(port, frame)]
            self.assertEqual(1, left.count(Opcode.ACK))
            return FILLERS - left.index(Opcode.ACK)

        self.assertGreater(place(HOST_PORT, ack(flow)), 0)
        self.assertEqual(0, place(HOST_PORT, ack(flow, 200)))
        remote = Flow(REMOTE, SLOW_REMOTE)
        self.assertGreater(place(UPLINKS[0], ack(remote)), 0)
        self.assertEqual(0, place(UPLINKS[0], ack(remote, dscp=Dscp.DEMOTED)))
        self.meter("host_limits", "ingress_port", HOST_PORT, 10)
        self.assertEqual(0, place(HOST_PORT, ack(flow)))


@group("limits")
class HostRateTest(PoliceTest):
    """Above the rate of its port a host's control packets are demoted, not lost, and marked as such."""

    def runTest(self) -> None:
        frames = control_packets(LOCAL)
        length = sum(map(len, frames))
        self.meter("host_limits", "ingress_port", HOST_PORT, length)
        self.assertEqual([0] * 4, self.dscps(frames, HOST_PORT, OTHER_HOST_PORT))
        self.assertEqual([Dscp.DEMOTED] * 4, self.dscps(frames, HOST_PORT, OTHER_HOST_PORT))
        self.expect_policed(CONTROL_OVER_RATE=4)
        # data is not touched, and has not used anything up
        self.assertEqual([0] * 3, self.dscps([roce(LOCAL)] * 3, HOST_PORT, OTHER_HOST_PORT))
        # another port has a rate of its own
        back = control_packets(Flow(OTHER_HOST, HOST))
        self.assertEqual([0] * 4, self.dscps(back, OTHER_HOST_PORT, HOST_PORT))
        self.expect_policed(CONTROL_OVER_RATE=4)
        self.expect_drops()


@group("limits")
class DataIsNotMeteredTest(PoliceTest):
    """Data, also such as poses as control, takes nothing of what control packets may use."""

    def runTest(self) -> None:
        self.meter("host_limits", "ingress_port", HOST_PORT, 62)
        self.dscps([roce(LOCAL), ack(LOCAL, 1000), roce(LOCAL)], HOST_PORT, OTHER_HOST_PORT)
        self.assertEqual([0], self.dscps([ack(LOCAL)], HOST_PORT, OTHER_HOST_PORT))
        self.expect_policed(CONTROL_TOO_LONG=1)


@group("limits")
class DemotedFitsTest(PoliceTest):
    """What is demoted keeps to the limit of the queue of data."""

    def runTest(self) -> None:
        self.meter("host_limits", "ingress_port", HOST_PORT, 10)
        self.set_default("queue_config", self.action("set_queue_limit", limit_bytes=1))
        self.send(HOST_PORT, ack(LOCAL))
        self.expect_drops(QUEUE_LIMIT=1)


@group("limits")
class PortShareTest(PoliceTest):
    """Of the control packets of all hosts and switches so many go before the data of a port."""

    def runTest(self) -> None:
        frame, other = ack(LOCAL), ack(Flow(REMOTE, OTHER_HOST))
        self.meter("port_limits", "egress_port", OTHER_HOST_PORT, 2 * len(frame))
        self.assertEqual([0], self.dscps([frame], HOST_PORT, OTHER_HOST_PORT))
        self.assertEqual([0, Dscp.DEMOTED], self.dscps([other] * 2, DOWNLINK, OTHER_HOST_PORT))
        self.assertEqual([Dscp.DEMOTED], self.dscps([frame], HOST_PORT, OTHER_HOST_PORT))
        self.expect_policed(CONTROL_OVER_SHARE=2)
        # what was demoted before is not counted again; other ports are not concerned
        again = ack(Flow(REMOTE, OTHER_HOST), dscp=Dscp.DEMOTED)
        self.assertEqual([Dscp.DEMOTED], self.dscps([again], DOWNLINK, OTHER_HOST_PORT))
        self.send(HOST_PORT, ack(FLOW))
        port, data = self.receive()
        self.assertEqual(bytes(ack(FLOW, ttl=63, tag=tagged(0, port))).hex(), data.hex())
        self.expect_policed(CONTROL_OVER_SHARE=2)


@group("limits")
class SteeredStaysSteeredTest(PoliceTest):
    """A demoted packet that was steered says both."""

    program = "spritz"

    def runTest(self) -> None:
        action = self.action("set_spritz", mode=self.enum("SpritzMode_t", "MINIMAL"), host_marks=1)
        self.set_default("spritz_config", action)
        self.meter("host_limits", "ingress_port", HOST_PORT, 10)
        frame = ack(LOCAL, dscp=Dscp.STEERED)
        self.assertEqual([Dscp.DEMOTED_STEERED], self.dscps([frame], HOST_PORT, OTHER_HOST_PORT))


@group("limits")
class MarksOfHostsTest(PoliceTest):
    """Only switches mark packets as trimmed; as steered hosts do, where they may."""

    program = "spritz"

    def runTest(self) -> None:
        cases = {
            Dscp.TRIMMED: (Dscp.DEFAULT, Dscp.DEFAULT),
            Dscp.TRIMMED_STEERED: (Dscp.STEERED, Dscp.DEFAULT),
            Dscp.STEERED: (Dscp.STEERED, Dscp.DEFAULT),
            Dscp.DEMOTED_STEERED: (Dscp.DEMOTED_STEERED, Dscp.DEMOTED),
            46: (46, 46),
        }
        frames = [roce(LOCAL, dscp=dscp) for dscp in cases]
        for may in (1, 0):
            action = self.action("set_spritz", mode=self.enum("SpritzMode_t", "MINIMAL"), host_marks=may)
            self.set_default("spritz_config", action)
            expected = [left[1 - may] for left in cases.values()]
            self.assertEqual(expected, self.dscps(frames, HOST_PORT, OTHER_HOST_PORT))
        self.expect_policed(TRIMMED_BY_HOST=4, STEERED_BY_HOST=3)
        # from a switch they are what they were
        marks = [roce(Flow(REMOTE, HOST), dscp=dscp) for dscp in cases]
        self.assertEqual(list(cases), self.dscps(marks, DOWNLINK, HOST_PORT))
        self.expect_policed(TRIMMED_BY_HOST=4, STEERED_BY_HOST=3)
