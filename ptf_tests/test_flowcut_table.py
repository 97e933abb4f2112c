# SPDX-License-Identifier: Apache-2.0
"""The Flowcut table: insert, lookup, ACK, delete (Flowcut §II-A).

Run one case: scripts/run_ptf.py --target native test_flowcut_table.LifeTest
"""

from __future__ import annotations

from ptf.testutils import group

from ptf_tests.fabric import FLOW, HOST, HOST_PORT, REMOTE, UPLINKS
from ptf_tests.flowcut import FlowcutTest
from ptf_tests.frames import Flow, number_of, roce


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
class EntryTest(FlowcutTest):
    """An entry names its flow, ports and state, and READ_FLOWS shows them; it is fresh when it is made."""

    def runTest(self) -> None:
        sent = self.send_data(left=5)
        bucket, ways = self.bucket()
        (entry,) = [way for way in ways if way["in_flight_bytes"]]
        expected = {
            "src": number_of(HOST),
            "dst": number_of(REMOTE),
            "sport": FLOW.sport,
            "dport": FLOW.dport,
            "protocol": 17,
            "state": self.enum("FlowState_t", "TRACKED"),
            "in_port": HOST_PORT,
            "out_port": sent.port,
            "in_flight_bytes": sent.frame_bytes,
            "rtt_avg": 0,
            "rtt_last": 0,
            "rtt_growth": 0,
            "left": 5,
            "samples": 0,
        }
        self.assertEqual(
            expected, {name: value for name, value in entry.items() if name != "last_data_ticks"}
        )
        # The stamp is the low half of the same clock.
        self.assertEqual(sent.stamps[0][0], entry["last_data_ticks"] & 0xFFFF_FFFF)
        self.assertGreaterEqual(bucket["now_ticks"], entry["last_data_ticks"])
        self.send_data(left=4)
        again = self.entries()[FLOW.sport]
        self.assertEqual(4, again["left"])
        self.assertGreater(again["last_data_ticks"], entry["last_data_ticks"])


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


@group("flowcut")
class DropsAreNotInFlightTest(FlowcutTest):
    """What the queue's limit or the hop limit drops was never in flight."""

    def runTest(self) -> None:
        sent = self.send_data()
        self.set_default("queue_config", self.action("set_queue_limit", limit_bytes=1))
        self.send(HOST_PORT, roce(FLOW))
        self.send(HOST_PORT, roce(Flow(HOST, REMOTE, sport=1)))
        self.send(HOST_PORT, roce(FLOW, ttl=1))
        self.expect_drops(QUEUE_LIMIT=2, TTL_EXPIRED=1)
        self.expect_flows({FLOW.sport: sent.frame_bytes})
        self.finish(sent)
        self.expect_count("flowcut_created", 1)
        self.assertIn(sent.port, UPLINKS)
