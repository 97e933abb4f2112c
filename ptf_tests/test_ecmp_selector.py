# SPDX-License-Identifier: Apache-2.0
"""ECMP by an action selector: a flow keeps its member, flows spread, a group can change (action_profiles.p4).

Run one case: scripts/run_ptf.py --target native test_ecmp_selector.SpreadTest
"""

from __future__ import annotations

import ptf
import ptf.testutils as testutils
from p4.v1 import p4runtime_pb2
from ptf.testutils import group
from scapy.packet import Packet

from ptf_tests.base import TIMEOUT_S, Keys, P4RuntimeTest

FLOWS = 64


@group("ecmp")
class SpreadTest(P4RuntimeTest):
    """Three members on ports 1, 2, 3; then the group shrinks to port 2."""

    program = "action_profiles"

    def setUp(self) -> None:
        super().setUp()
        profile = self.named("action_profiles", "next_hops").preamble.id
        for port in (1, 2, 3):
            member = p4runtime_pb2.ActionProfileMember(action_profile_id=profile, member_id=port)
            member.action.CopyFrom(self.action("set_port", port=port))
            self.write(action_profile_member=member)
        self.group = p4runtime_pb2.ActionProfileGroup(action_profile_id=profile, group_id=7, max_size=8)
        for port in (1, 2, 3):
            self.group.members.add(member_id=port, weight=1)
        self.write(action_profile_group=self.group)
        entry = self.entry("route", {"dst": (0x0A000000, 8)})
        entry.action.action_profile_group_id = 7
        self.write(table_entry=entry)

    def port_of(self, source_port: int) -> int:
        """The port by which a flow leaves."""
        packet = testutils.simple_udp_packet(ip_dst="10.0.0.1", udp_sport=source_port, udp_dport=80)
        testutils.send_packet(self, 0, packet)
        polled = testutils.dp_poll(self, timeout=TIMEOUT_S)
        self.assertIsInstance(polled, ptf.dataplane.DataPlane.PollSuccess)
        return int(polled.port)

    def runTest(self) -> None:
        ports = [self.port_of(source) for source in range(1000, 1000 + FLOWS)]
        self.assertEqual({1, 2, 3}, set(ports))
        self.assertEqual(ports, [self.port_of(source) for source in range(1000, 1000 + FLOWS)])
        del self.group.members[:]
        self.group.members.add(member_id=2, weight=1)
        self._write(p4runtime_pb2.Update.MODIFY, action_profile_group=self.group)
        self.assertEqual({2}, {self.port_of(source) for source in range(1000, 1000 + FLOWS)})
        testutils.verify_no_other_packets(self)


@group("ecmp")
class ProfilesTest(P4RuntimeTest):
    """Members of a plain profile, an entry with its own set of actions, and what they all do to one packet;
    an entry that names a member directly, one that drops, and frames that pass no table.
    """

    program = "action_profiles"

    def member(self, profile: str, number: int, action: p4runtime_pb2.Action) -> None:
        member = p4runtime_pb2.ActionProfileMember(member_id=number)
        member.action_profile_id = self.named("action_profiles", profile).preamble.id
        member.action.CopyFrom(action)
        self.write(action_profile_member=member)

    def to_member(self, table: str, keys: Keys, number: int) -> None:
        entry = self.entry(table, keys)
        entry.action.action_profile_member_id = number
        self.write(table_entry=entry)

    def runTest(self) -> None:
        self.member("next_hops", 1, self.action("set_port_and_mac", port=3, dst=0x0200000000BB))
        self.member("next_hops", 2, self.action("ProfileIngress.drop"))
        self.to_member("route", {"dst": (0x0A010000, 16)}, 1)
        self.to_member("route", {"dst": (0x0A020000, 16)}, 2)
        self.member("rewrites", 1, self.action("set_id", value=0x4321))
        self.to_member("rewrite", {"protocol": 17}, 1)
        shot = self.entry("uplink", {"src_low": (0x0A, 0xFF)}, priority=1)
        profile_action = shot.action.action_profile_action_set.action_profile_actions.add(weight=1)
        profile_action.action.CopyFrom(self.action("set_tos", value=0x2C))
        self.write(table_entry=shot)
        sent = testutils.simple_udp_packet(ip_dst="10.1.0.1")
        testutils.send_packet(self, 0, sent)
        self.expect(3, sent, dst="02:00:00:00:00:bb", tos=0x2C, checksum=1)
        # another source: the table is missed, and has no default action, as none with a profile has: so no
        # label of the switch is taken, the one for all others not either
        plain = testutils.simple_udp_packet(ip_dst="10.1.0.1", eth_src="00:06:07:08:09:0b")
        testutils.send_packet(self, 0, plain)
        self.expect(3, plain, dst="02:00:00:00:00:bb", tos=0, checksum=None)
        # an entry whose action has no label of its own takes the one for all others
        other = self.entry("uplink", {"src_low": (0x0C, 0xFF)}, priority=1)
        none = other.action.action_profile_action_set.action_profile_actions.add(weight=1)
        none.action.CopyFrom(self.action("NoAction"))
        self.write(table_entry=other)
        labelled = testutils.simple_udp_packet(ip_dst="10.1.0.1", eth_src="00:06:07:08:09:0c")
        testutils.send_packet(self, 0, labelled)
        self.expect(3, labelled, dst="02:00:00:00:00:bb", tos=0, checksum=0)
        nowhere = testutils.simple_udp_packet(ip_dst="192.168.0.1", eth_src="00:06:07:08:09:0b")
        testutils.send_packet(self, 0, nowhere)
        self.expect(7, nowhere, dst=nowhere.dst, tos=0, checksum=None)
        testutils.send_packet(self, 0, testutils.simple_udp_packet(ip_dst="10.2.0.1"))
        testutils.send_packet(self, 0, b"\x02" * 20)
        testutils.verify_no_other_packets(self)

    def expect(self, port: int, sent: Packet, *, dst: str, tos: int, checksum: int | None) -> None:
        """The frame as profiles have rewritten it; with the checksums of before, or another of UDP."""
        wanted = type(sent)(bytes(sent))
        wanted.dst = dst
        wanted["IP"].tos, wanted["IP"].id = tos, 0x4321
        if checksum is not None:
            wanted["UDP"].chksum = checksum
        testutils.verify_packet(self, wanted, port)
