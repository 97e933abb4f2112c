# SPDX-License-Identifier: Apache-2.0
"""ECMP by an action selector: a flow keeps its member, flows spread, a group can change (action_profiles.p4).

Run one case: scripts/run_ptf.py --target native test_ecmp_selector.SpreadTest
"""

from __future__ import annotations

import ptf
import ptf.testutils as testutils
from p4.v1 import p4runtime_pb2
from ptf.testutils import group

from ptf_tests.base import TIMEOUT_S, P4RuntimeTest

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
