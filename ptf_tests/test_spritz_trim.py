# SPDX-License-Identifier: Apache-2.0
"""Trimming: RoCE data that finds no room is cut off behind its BTH, with honest lengths, and goes first.

Run one case: scripts/run_ptf.py --target native test_spritz_trim.BytesTest
"""

from __future__ import annotations

from ptf.testutils import group
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from ptf_tests.fabric import HOST, HOST_PORT, OTHER_HOST, OTHER_HOST_PORT, REMOTE, SLOW_REMOTE
from ptf_tests.frames import GATEWAY_MAC, Flow, classed, cut, mac_of, roce, tagged
from ptf_tests.slow_port import ATTEMPTS, FILLER_BYTES, FILLER_FLOW, FILLERS, SlowPortTest
from ptf_tests.spritz import (
    CLASS_FIRST,
    FAR_DEFAULT,
    GLOBALS,
    LOCAL,
    LOCALS,
    NEAR,
    SpritzTest,
    after,
    kinds,
    steered,
)
from tailrace.codec.layers.dscp import Dscp
from tailrace.codec.layers.nic_shim import SHIM_PORT, NicShim, ShimmedBTH

TRIMMED_BYTES, TAG_BYTES = 54, 4
FLOW = Flow(HOST, REMOTE)


def trimmed(flow: Flow, port: int, dscp: int = Dscp.TRIMMED, ecn: int = 0, left: int = 0) -> bytes:
    """What is left of data that this switch cut, as it leaves by a port to another one."""
    return cut(roce(flow, ttl=63, tag=tagged(0, port), dscp=dscp, ecn=ecn, left=left))


class TrimTest(SpritzTest):
    """A switch that trims, on its default table."""

    mode = "MINIMAL"

    def set_limit(self, limit_bytes: int, *, trim: bool = True) -> None:
        """Set the limit of every egress queue, and what happens beyond."""
        name = "set_queue_trim" if trim else "set_queue_limit"
        self.set_default("queue_config", self.action(name, limit_bytes=limit_bytes))


@group("spritz")
class BytesTest(TrimTest):
    """Headers only, IPv4 and UDP say so, DSCP TRIMMED, ECN as it was, no UDP checksum."""

    def runTest(self) -> None:
        self.set_limit(TRIMMED_BYTES - 1)
        frames = 0
        for size in (0, 1, 3, 4, 96, 1400):
            for ecn in range(4):
                self.send(HOST_PORT, roce(FLOW, payload=bytes(size), ecn=ecn, left=77))
                frame = self.receive(FAR_DEFAULT)[1]
                self.assertEqual(bytes(trimmed(FLOW, FAR_DEFAULT, ecn=ecn, left=77)).hex(), frame.hex())
                self.assertEqual(TRIMMED_BYTES, len(frame))
                self.assertEqual((40, 20), (Ether(frame)[IP].len, Ether(frame)[UDP].len))
                frames += 1
        checked = roce(FLOW)
        checked[UDP].chksum = 0x1234
        self.send(HOST_PORT, checked)
        self.expect(FAR_DEFAULT, trimmed(FLOW, FAR_DEFAULT))
        self.expect_count("trims", frames + 1)
        self.expect_drops()
        self.assertEqual((0, 0), self.port_queues(FAR_DEFAULT))
        self.assertEqual((0, 0), self.port_queues(HOST_PORT))


@group("spritz")
class LimitTest(TrimTest):
    """What fits is left alone; without trimming it is dropped; headers may take as much room again."""

    def runTest(self) -> None:
        frame = roce(FLOW)
        for limit in (0, len(frame)):
            self.set_limit(limit)
            self.expect_by(HOST_PORT, FLOW, FAR_DEFAULT)
        self.expect_count("trims", 0)
        for limit in (len(frame) - 1, TRIMMED_BYTES // 2):
            self.set_limit(limit)
            self.send(HOST_PORT, frame)
            self.expect(FAR_DEFAULT, trimmed(FLOW, FAR_DEFAULT))
        self.expect_drops()
        self.set_limit(TRIMMED_BYTES // 2 - 1)
        self.send(HOST_PORT, frame)
        self.expect_drops(QUEUE_LIMIT=1)
        self.set_limit(len(frame) - 1, trim=False)
        self.send(HOST_PORT, frame)
        self.expect_drops(QUEUE_LIMIT=2)
        self.expect_count("trims", 2)


@group("spritz")
class LocalTest(TrimTest):
    """A queue to a host trims like any other."""

    def runTest(self) -> None:
        self.set_limit(TRIMMED_BYTES)
        self.send(HOST_PORT, roce(LOCAL))
        left = roce(LOCAL, ttl=63, dst_mac=mac_of(OTHER_HOST), dscp=Dscp.TRIMMED)
        self.expect(OTHER_HOST_PORT, cut(left))


@group("spritz")
class NotTrimmedTest(TrimTest):
    """ACK, NAK and CNP pass any limit whole; TCP, other UDP and a Flowcut NIC's data are dropped."""

    def runTest(self) -> None:
        self.set_limit(TRIMMED_BYTES)
        for packet, left in zip(
            kinds(FLOW)[1:], kinds(FLOW, ttl=63, tag=tagged(0, FAR_DEFAULT))[1:], strict=True
        ):
            self.send(HOST_PORT, packet)
            self.expect(FAR_DEFAULT, left)
        shim = NicShim(orig_sport=1, orig_dport=2, ticks=3) / ShimmedBTH(opcode=7)
        in_front = Ether(src=mac_of(HOST), dst=GATEWAY_MAC) / IP(src=HOST, dst=REMOTE)
        contents = [
            TCP(sport=1, dport=2) / Raw(bytes(99)),
            UDP(sport=1, dport=2, chksum=0) / Raw(bytes(99)),
            UDP(sport=1, dport=SHIM_PORT, chksum=0) / shim / Raw(bytes(99)),
        ]
        for content in contents:
            self.send(HOST_PORT, in_front / content)
        self.expect_drops(QUEUE_LIMIT=len(contents))
        self.expect_count("trims", 0)


@group("spritz")
class SteeredTrimTest(TrimTest):
    """DSCP STEERED outlives trimming, and what is left is steered by its EV here and at the next switch."""

    def runTest(self) -> None:
        self.set_limit(TRIMMED_BYTES)
        first = LOCALS + GLOBALS
        for ev in (0x0001, 0x0100, 0x0201, 0x0300, 0xFFFF):
            flow, port = steered(ev), first[(ev >> 8) % len(first)]
            self.send(HOST_PORT, roce(flow, dscp=Dscp.STEERED))
            self.expect(port, trimmed(flow, port, dscp=Dscp.TRIMMED_STEERED))
            flow, port = steered(ev, NEAR), GLOBALS[ev % len(GLOBALS)]
            self.send(LOCALS[0], cut(roce(flow, dscp=Dscp.TRIMMED_STEERED)))
            self.expect(port, trimmed(flow, port, dscp=Dscp.TRIMMED_STEERED))
        self.expect_count("trims", 5)  # not again at the next switch
        self.expect_drops()


@group("spritz")
class TaggedTrimTest(TrimTest):
    """A tag that goes on stays in front of the headers; the limit counts what leaves, with or without it."""

    mode = "CLASS"

    def add_lists(self) -> None:
        nonminimal = "NONMINIMAL"
        self.add_list(CLASS_FIRST, "FIRST", LOCALS[:1], path_class=nonminimal, goes_on=LOCALS)
        self.add_list(CLASS_FIRST + 1, "SECOND", GLOBALS[:1], path_class=nonminimal)

    def runTest(self) -> None:
        vid = self.enum("VlanId_t", "NONMINIMAL")
        action = self.action("vlan_class", **{"class": self.enum("PathClass_t", "NONMINIMAL")})
        self.add_entry("vlan_classes", {"vid": vid}, action)
        self.set_limit(TRIMMED_BYTES)
        self.send(HOST_PORT, classed(roce(FLOW), vid))
        port, frame = self.receive()
        self.assertEqual(self.tagged_headers(vid).hex(), frame.hex())
        self.assertEqual((LOCALS[0], TRIMMED_BYTES + TAG_BYTES), (port, len(frame)))
        flow = steered(1, NEAR)
        self.send(LOCALS[0], classed(roce(flow), vid))
        self.expect(GLOBALS[0], trimmed(flow, GLOBALS[0]))
        # 4 bytes less than came in.
        self.set_limit(len(roce(flow)))
        self.send(LOCALS[0], classed(roce(flow), vid))
        self.expect(GLOBALS[0], after(flow, GLOBALS[0]))
        self.send(HOST_PORT, classed(roce(FLOW), vid))
        self.expect(LOCALS[0], self.tagged_headers(vid))
        self.expect_drops()
        for port in (HOST_PORT, *LOCALS, *GLOBALS):
            self.assertEqual((0, 0), self.port_queues(port))

    def tagged_headers(self, vid: int) -> bytes:
        """What is left of the flow's data, with its tag."""
        frame = roce(FLOW, ttl=63, tag=tagged(0, LOCALS[0]), dscp=Dscp.TRIMMED)
        return cut(classed(frame, vid))


@group("spritz")
class ForgedTest(TrimTest):
    """DSCP TRIMMED alone makes no packet urgent: with a payload it is data, from whoever it comes."""

    def runTest(self) -> None:
        self.set_limit(TRIMMED_BYTES // 2)
        classes = (Dscp.TRIMMED, Dscp.TRIMMED_STEERED)
        for dscp in classes:
            self.send(GLOBALS[0], roce(FLOW, dscp=dscp, payload=bytes(1)))
            self.expect(FAR_DEFAULT, trimmed(FLOW, FAR_DEFAULT, dscp=dscp))
        self.send(HOST_PORT, roce(FLOW, dscp=Dscp.TRIMMED, payload=bytes(1)))
        self.expect(FAR_DEFAULT, trimmed(FLOW, FAR_DEFAULT))
        self.expect_count("trims", 3)
        self.set_limit(1, trim=False)
        for dscp in classes:
            self.send(GLOBALS[0], cut(roce(FLOW, dscp=dscp)))
            self.expect(FAR_DEFAULT, trimmed(FLOW, FAR_DEFAULT, dscp=dscp))
        self.expect_drops()


@group("spritz")
class GoFirstTest(SlowPortTest, TrimTest):
    """What arrives trimmed from a switch overtakes the data that waits; what a host made so does not."""

    def runTest(self) -> None:
        filler = bytes(after(FILLER_FLOW, self.slow_port))
        packet = cut(roce(Flow(HOST, SLOW_REMOTE), dscp=Dscp.TRIMMED))
        frames = self.behind_fillers(GLOBALS[0], packet)
        self.assertEqual(FILLERS, frames.count(filler))
        self.assertEqual(filler, frames[-1])
        frames = self.behind_fillers(HOST_PORT, packet)
        self.assertEqual([filler] * FILLERS, frames[:-1])


@group("spritz")
class FullQueueTest(SlowPortTest, TrimTest):
    """Data beyond the limit leaves as headers, before the data that waits, and is charged as such."""

    # A rate holds for each priority of a port: few fillers may be cut where a header is to overtake others.
    room_bytes = (FILLERS - 3) * FILLER_BYTES

    def cut_behind_fillers(self) -> bool:
        """A packet comes in behind fillers; whether it was cut and overtook one of them."""
        mine, filler = Flow(HOST, SLOW_REMOTE), FILLER_FLOW
        whole, headers = bytes(after(filler, self.slow_port)), trimmed(filler, self.slow_port)
        my_headers = trimmed(mine, self.slow_port)
        before, received = self.count("trims"), self.count("port_rx", HOST_PORT)
        self.fill()
        self.assertLessEqual(self.waiting(), self.room_bytes + FILLERS * TRIMMED_BYTES)
        self.send(HOST_PORT, roce(mine))
        self.expect_count("port_rx", received + 1, HOST_PORT)
        frames = self.drain(FILLERS + 1)
        cut_now = self.count("trims") - before
        self.assertEqual(cut_now, frames.count(headers) + frames.count(my_headers))
        self.assertEqual(FILLERS, frames.count(headers) + frames.count(whole))
        self.assertEqual((0, 0), self.port_queues(OTHER_HOST_PORT))
        self.assertEqual((0, 0), self.port_queues(HOST_PORT))
        return my_headers in frames and whole in frames[frames.index(my_headers) :]

    def runTest(self) -> None:
        self.set_limit(self.room_bytes)
        if not any(self.cut_behind_fillers() for _ in range(ATTEMPTS)):
            raise AssertionError("the machine is too slow: the slow port was never full at the right time")
        self.expect_drops()
