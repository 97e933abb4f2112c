# SPDX-License-Identifier: Apache-2.0
"""The Flowcut table: insert, lookup, ACK, delete (Flowcut §II-A).

Run one case: scripts/run_ptf.py --target native test_flowcut_table.LifeTest
"""

from __future__ import annotations

from ptf.testutils import group

from ptf_tests.fabric import FLOW
from ptf_tests.flowcut import FlowcutTest


@group("flowcut")
class LifeTest(FlowcutTest):
    """The first packet makes an entry, further ones add to it, ACKs take off, the last one deletes it."""

    def runTest(self) -> None:
        sent = [self.send_data(payload=bytes(100)), self.send_data(payload=bytes(1000)), self.send_data()]
        self.assertEqual(1, len({packet.port for packet in sent}))
        total = sum(packet.frame_bytes for packet in sent)
        self.expect_flows({FLOW.sport: total})
        self.expect_count("flowcut_created", 1)
        for packet in sent[:-1]:
            self.send_ack(packet)
            total -= packet.frame_bytes
            self.expect_flows({FLOW.sport: total})
        self.expect_count("flowcut_deleted", 0)
        self.finish(sent[-1])
        self.expect_count("flowcut_deleted", 1)
        self.expect_count("acks_unknown", 0)
        self.assertEqual(0, self.untracked_bytes())
        self.expect_drops()


@group("flowcut")
class BucketNumberTest(FlowcutTest):
    """A bucket that the program does not have is not answered for."""

    def runTest(self) -> None:
        registers = {register.preamble.alias: register.size for register in self.p4info.registers}
        last = registers["untracked_bytes"] - 1
        self.bucket(last)
        self.bucket(last, "SWEEP")
        for op in ("READ_FLOWS", "SWEEP"):
            self.packet_out(op, last + 1)
        self.expect_drops(UNSUPPORTED=2)
