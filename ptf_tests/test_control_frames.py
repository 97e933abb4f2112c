# SPDX-License-Identifier: Apache-2.0
"""Control frames of the fabric are taken from switches only: no host frees, pauses or steers another's flow.

Run one case: scripts/run_ptf.py --target native test_control_frames.FromHostTest
"""

from __future__ import annotations

from ptf.testutils import group
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from ptf_tests.fabric import DOWNLINK, FLOW, HOST, HOST_PORT, REMOTE, ROLELESS_PORT, UPLINKS, FabricTest
from ptf_tests.frames import Flow, LocalHeader, PauseOp, Subtype, flowcut_ack, mac_of, pause, roce, shimmed

ETHER_TYPE_LLDP = 0x88CC
FROM_FABRIC = Flow(REMOTE, HOST)


def lldp() -> Packet:
    """A link probe; switches read no further than its EtherType."""
    return Ether(src=mac_of(HOST), dst="01:80:c2:00:00:0e", type=ETHER_TYPE_LLDP) / Raw(bytes(46))


def of_subtype(subtype: int) -> Packet:
    """Our EtherType with a subtype and nothing that makes sense behind it."""
    return Ether(src=mac_of(HOST), dst=mac_of(REMOTE)) / LocalHeader(subtype=subtype) / Raw(bytes(45))


def other_control_frames() -> list[Packet]:
    """Pauses, CNM, path probe, and subtypes that nobody has given a meaning."""
    pauses = [pause(FLOW, op, 1000) for op in PauseOp]
    return [*pauses, *(of_subtype(kind) for kind in (Subtype.CONGESTION, Subtype.PATH_PROBE, 0, 6, 255))]


@group("control")
class FromHostTest(FabricTest):
    """From a host, or by a port that nobody configured, each is dropped with its own reason."""

    def runTest(self) -> None:
        frames = [
            flowcut_ack(FLOW, frame_bytes=100, hops=1, stamps=[(1, HOST_PORT)]),
            shimmed(roce(FROM_FABRIC), 1, [(1, HOST_PORT)]),
            *other_control_frames(),
            lldp(),
        ]
        for port in (HOST_PORT, ROLELESS_PORT):
            for frame in frames:
                self.send(port, frame)
        self.expect_drops(CONTROL_FROM_HOST=2 * len(frames))


@group("control")
class FromHostAtFlowcutTest(FromHostTest):
    """The same where Flowcut could act on them."""

    program = "flowcut"


@group("control")
class FromSwitchTest(FabricTest):
    """Between switches nothing but data, ACKs and LLDP has a meaning yet; a pause is for hosts only."""

    program = "flowcut"

    def runTest(self) -> None:
        frames = other_control_frames()
        for frame in frames:
            self.send(UPLINKS[0], frame)
        self.expect_drops(UNSUPPORTED=len(frames))


@group("control")
class LldpTest(FabricTest):
    """LLDP from another switch goes to the controller as it came, with the port."""

    def runTest(self) -> None:
        for port in (DOWNLINK, *UPLINKS):
            self.send(port, lldp())
            self.assertEqual((port, bytes(lldp())), self.packet_in("LLDP"))
        self.send(HOST_PORT, lldp())
        self.expect_drops(CONTROL_FROM_HOST=1)
        self.verify_no_message("packet")
