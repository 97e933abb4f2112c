# SPDX-License-Identifier: Apache-2.0
"""What the Flowcut tests stand on: its configuration, data with shims, ACKs from the test's own neighbour,
the table.

The test plays the other switches: data leaves with a shim and a stamp, and the ACK that a real egress switch
would make of it comes back by the port where the data left. All flows are in bucket 0 unless a test says
otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from p4.v1 import p4runtime_pb2
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from ptf_tests.fabric import (
    FLOW,
    HOST_PORT,
    MIXED_GROUP,
    SLOW_GROUP,
    UPLINK_GROUP,
    UPLINKS,
    FabricTest,
)
from ptf_tests.frames import DRAINED, MOVED, UNTRACKED, Flow, flowcut_ack, roce, shimmed, tagged
from tailrace.codec.layers.local import DataShim
from tailrace.codec.numbers import ROCE_PORT

WAYS = 4  # of a bucket: what an answer to READ_FLOWS holds
NEVER_TICKS = 10**12
RTT_OFF, GROWTH_OFF = 0xFFFF, 0x7FFF  # thresholds that nothing reaches
CANDIDATES = ("set_candidates", "set_more_candidates")


@dataclass(frozen=True)
class Sent:
    """A data frame that the switch forwarded with a shim."""

    flow: Flow
    port: int
    frame_bytes: int  # as the host sent it
    hops: int
    stamps: tuple[tuple[int, int], ...]  # as `ptf_tests.frames.stamp` takes them, the newest first

    def ack(self, *, congested: bool = False, **forged: Any) -> Packet:
        """The egress switch's answer, as it arrives here; `forged` overrides what it says."""
        fields = {"frame_bytes": self.frame_bytes, "hops": self.hops, "stamps": list(self.stamps), **forged}
        return flowcut_ack(self.flow, congested=congested, **fields)


class FlowcutTest(FabricTest):
    """The leaf switch, with the Flowcut program in its full-switch variant."""

    program = "flowcut"
    mode = "FULL"

    def setUp(self) -> None:
        super().setUp()
        self.add_clone_session(self.number("ack_session"), self.number("mirror_port"))
        for group, ports in (
            (UPLINK_GROUP, UPLINKS),
            (SLOW_GROUP, (self.slow_port,)),
            (MIXED_GROUP, (self.slow_port, UPLINKS[0])),
        ):
            self.add_entry("candidates", {"group": group}, self.candidates(*ports))
        self.configure()

    # ---- configuration ----

    def candidates(self, *ports: int) -> Any:
        """The action that names next hops: the smallest one that has room for them."""
        rooms = {name: len(self.named("actions", name).params) - 1 for name in CANDIDATES}
        name = next(name for name in CANDIDATES if len(ports) <= rooms[name])
        padded = [*ports, *[0] * (rooms[name] - len(ports))]
        return self.action(name, count=len(ports), **{f"p{i}": port for i, port in enumerate(padded)})

    def change_candidates(self, group: int, *ports: int) -> None:
        """Give a group other next hops; the slots stay as they are."""
        entry = self.entry("candidates", {"group": group})
        entry.action.action.CopyFrom(self.candidates(*ports))
        self._write(p4runtime_pb2.Update.MODIFY, table_entry=entry)

    def configure(
        self, *, age_ticks: int = NEVER_TICKS, bucket_mask: int = 0, first_path: str = "ECMP"
    ) -> None:
        """Set mode, age, buckets and the rule for first packets."""
        action = self.action(
            "set_flowcut",
            mode=self.enum("FlowcutMode_t", self.mode),
            first_path=self.enum("FirstPath_t", first_path),
            bucket_mask=bucket_mask,
            age_ticks=age_ticks,
        )
        self.set_default("flowcut_config", action)

    def configure_drain(
        self,
        *,
        rtt_threshold: int = RTT_OFF,
        growth_threshold: int = GROWTH_OFF,
        alpha: int = 256,
        ticks_per_byte: int = 0,
        min_left: int = 0,
        resume_bytes: int = 0,
    ) -> None:
        """Set when and how to drain; never, unless a threshold is given."""
        action = self.action(
            "set_drain",
            rtt_threshold=rtt_threshold,
            growth_threshold=growth_threshold,
            alpha=alpha,
            ticks_per_byte=ticks_per_byte,
            min_left=min_left,
            resume_bytes=resume_bytes,
        )
        self.set_default("drain_config", action)

    def configure_pauses(
        self, *, by_class: bool = False, quanta: int = 0, obey_bytes: int = 0, credit_bytes: int = 0
    ) -> None:
        """Set how a source is told to stop; by a plain XOFF, unless something is given."""
        action = self.action(
            "set_pause",
            by_class=int(by_class),
            quanta=quanta,
            obey_bytes=obey_bytes,
            credit_bytes=credit_bytes,
        )
        self.set_default("pause_config", action)

    # ---- data and ACKs ----

    def send_data(self, flow: Flow = FLOW, *, in_port: int = HOST_PORT, **fields: Any) -> Sent:
        """A data packet from a host goes out by some port, right in every byte but its stamp's ticks
        and flags."""
        frame = roce(flow, **fields)
        self.send(in_port, frame)
        port, received = self.receive()
        (stamp,) = Ether(received)[DataShim].stack
        flags = stamp.moved * MOVED | stamp.untracked * UNTRACKED | stamp.drained * DRAINED
        stamps = ((int(stamp.ticks), in_port | flags),)
        tag = tagged(0, port) if flow.dport == ROCE_PORT else 0  # only RoCEv2 has a place for it
        expected = roce(flow, ttl=63, tag=tag, **fields)
        self.assertEqual(bytes(shimmed(expected, 1, list(stamps))).hex(), received.hex())
        return Sent(flow, port, len(frame), 1, stamps)

    def send_ack(self, sent: Sent, **forged: Any) -> None:
        """The ACK of a data packet comes back, and the switch has handled it."""
        before = self.count("port_rx", sent.port)
        self.send(sent.port, sent.ack(**forged))
        self.expect_count("port_rx", before + 1, sent.port)

    def finish(self, *sent: Sent) -> None:
        """All of these are acknowledged; nothing of them is left in flight."""
        for packet in sent:
            self.send_ack(packet)
        self.expect_flows({})

    def flags(self, sent: Sent) -> int:
        """What the stamp of a data packet says beside the port by which it came."""
        return sent.stamps[0][1] & ~HOST_PORT

    # ---- the table ----

    def bucket(self, index: int = 0, op: str = "READ_FLOWS") -> tuple[dict[str, int], list[dict[str, int]]]:
        """A bucket and its ways as the switch tells them."""
        self.packet_out(op, index)
        answered_index, payload = self.packet_in("FLOWS")
        self.assertEqual(index, answered_index)
        bucket, payload = self.decode("bucket_t", payload)
        ways = []
        for _ in range(WAYS):
            way, payload = self.decode("flow_entry_t", payload)
            ways.append(way)
        self.assertEqual(b"", payload)
        return bucket, ways

    def entries(self, op: str = "READ_FLOWS") -> dict[int, dict[str, int]]:
        """The ways of bucket 0 that are taken, by source port of their flow."""
        return {way["sport"]: way for way in self.bucket(op=op)[1] if way["in_flight_bytes"]}

    def in_flight(self) -> dict[int, int]:
        """Bytes in flight of each flow in bucket 0, by its source port."""
        return {sport: way["in_flight_bytes"] for sport, way in self.entries().items()}

    def expect_flows(self, in_flight: dict[int, int]) -> None:
        """Bucket 0 comes to hold exactly these flows."""
        self.eventually(in_flight, self.in_flight)

    def untracked_bytes(self) -> int:
        """Bytes in flight of flows that found no room in bucket 0."""
        return self.bucket()[0]["untracked_bytes"]

    def state_of(self, flow: Flow = FLOW) -> str:
        """State of a flow's entry, by name."""
        state = self.entries()[flow.sport]["state"]
        members = self.p4info.type_info.serializable_enums["FlowState_t"].members
        return next(str(member.name) for member in members if int.from_bytes(member.value, "big") == state)
