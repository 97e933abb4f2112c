# SPDX-License-Identifier: Apache-2.0
"""What the RLB tests stand on: RLB over Presto with cells of one packet, which want the uplinks in turn.

The test plays the other switches: it warns of paths, sends stamps back, and gets warnings. The hosts of
10.0.2.0/24 are at leaf REMOTE_LEAF.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from p4.v1 import p4runtime_pb2
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from ptf_tests.fabric import (
    DOWNLINK,
    FLOW,
    HOST,
    HOST_PORT,
    REMOTE,
    SLOW_GROUP,
    SLOW_REMOTE,
    UPLINK_GROUP,
    UPLINKS,
    FabricTest,
)
from ptf_tests.frames import Flow, LocalHeader, mac_of, number_of, roce
from ptf_tests.slow_port import ATTEMPTS, FILLER_BYTES, FILLERS, SlowPortTest
from tailrace.codec.layers.local import PAUSE_MAC, Cnm, PathProbe

OWN_LEAF, REMOTE_LEAF, SLOW_LEAF = 1, 2, 3
FIRST_SESSION, UPSTREAM_GROUP, FIRST_RELAY = 256, 1, 1024
FOREVER = (1 << 31) - 1
PORT_BITS, PARTS, PART_SLOTS = 16, 4, 16
MOST_SLOTS = PARTS * PART_SLOTS
"""Of a group: what RLB is told of has no room for more."""
AROUND = 17
"""A prime above the number of slots of nearly all groups here."""
LEAVES, PATH_PORTS = 128, 256
"""Of p4src/rlb/sizes.p4, which P4Info does not have."""
MOST = 5
BACK = Flow(REMOTE, HOST)
# Where the first uplink is warned a flow's hash says which of the others it takes: FLOW the second one, this
# one the last.
LAST_FLOW = Flow(HOST, REMOTE, sport=49153)


class RlbTest(FabricTest):
    """A leaf that predicts nothing, probes nothing and never recirculates, unless told to."""

    program = "rlb_presto"

    def setUp(self) -> None:
        super().setUp()
        fabric = (DOWNLINK, *UPLINKS, self.slow_port)
        for port in fabric:
            self.add_clone_session(FIRST_SESSION + port, port)
        self.add_multicast_group(UPSTREAM_GROUP, [(port, 0) for port in fabric])
        for port in UPLINKS:
            self.add_multicast_group(FIRST_RELAY + port, [(self.number("mirror_port"), REMOTE_LEAF + 1)])
        for address, leaf, group, ports in (
            (REMOTE, REMOTE_LEAF, UPLINK_GROUP, UPLINKS),
            (SLOW_REMOTE, SLOW_LEAF, SLOW_GROUP, (self.slow_port,)),
        ):
            self.leaf_at(address, leaf, group, ports)
        self.warnings()
        self.limits()

    def next_hops(self, ports: Sequence[int], around: int = AROUND) -> p4runtime_pb2.Action:
        """What RLB is told of the slots of a group; `around`: a prime that is no less than their number."""
        parts = {f"ports{part}": 0 for part in range(PARTS)}
        for slot, port in enumerate(ports):
            parts[f"ports{slot // PART_SLOTS}"] |= port << PORT_BITS * (slot % PART_SLOTS)
        return self.action("set_next_hops", count=len(ports), around=around, **parts)

    def leaf_at(
        self, address: str, leaf: int, group: int, ports: Sequence[int], around: int = AROUND
    ) -> None:
        """Give the /24 of an address and its group the number of their leaf."""
        self.add_entry("next_hops", {"group": group}, self.next_hops(ports, around))
        prefix = number_of(address) >> 8 << 8
        self.add_entry("leaves", {"dst": (prefix, 24)}, self.action("leaf", leaf=leaf))
        self.add_entry("leaf_groups", {"leaf": leaf}, self.action("leaf_group", group=group))

    # ---- configuration ----

    def warnings(self, **given: int) -> None:
        """Set how queues are judged and how long warnings last."""
        values = {"own_leaf": OWN_LEAF, "dt_ticks": 0, "warn_bytes": FOREVER, "pause_bytes": FOREVER}
        values |= {"margin_ticks": 0, "valid_ticks": FOREVER, "refresh_ticks": FOREVER}
        values |= {"first_session": FIRST_SESSION, "upstream_group": UPSTREAM_GROUP}
        values |= {"first_relay": FIRST_RELAY, "stay_ticks": 0, "threshold_alone": 0}
        self.set_default("warning_config", self.action("set_warnings", **values | given))

    def limits(self, **given: int) -> None:
        """Set how far packets may recirculate."""
        values = {"dynamic": 0, "last_open": 0, "most": 0, "room": 48, "inflow": 0, "usual_ticks": 0}
        values |= {"trust_ticks": FOREVER}
        self.set_default("recirculation_config", self.action("set_recirculation", **values | given))

    def probes(self, period_ticks: int) -> None:
        """Set how often a path is measured."""
        action = self.action("set_probes", period_ticks=period_ticks, keep_ticks=FOREVER)
        self.set_default("probe_config", action)

    def failures(self, interval_ticks: int, most: int) -> None:
        """Set how failures are looked for."""
        action = self.action("set_failures", interval_ticks=interval_ticks, most=most)
        self.set_default("failure_config", action)

    # ---- packets ----

    def tell(self, port: int, frame: Any) -> None:
        """A frame of another switch comes in and has been handled."""
        before = self.count("port_rx", port)
        self.send(port, frame)
        self.expect_count("port_rx", before + 1, port)

    def round_of_packets(self, flow: Flow = FLOW) -> list[int]:
        """Ports by which one packet of a flow for each uplink leaves, sorted."""
        ports = []
        for _ in UPLINKS:
            self.send(HOST_PORT, roce(flow))
            ports.append(self.receive()[0])
        return sorted(ports)

    def measure(self, rtts: dict[int, int]) -> None:
        """Give paths to REMOTE_LEAF RTTs in ticks, at least: stamps come back as if they were so old."""
        self.probes(FOREVER)
        for _ in UPLINKS:
            self.send(HOST_PORT, roce(FLOW))
            port, frame = self.receive()
            probe = Ether(frame)[PathProbe]
            self.assertEqual(port, probe.path)
            before = self.count("path_rtts_measured")
            echo = {"echoes": 1, "echo_path": port, "echo_ticks": (probe.ticks - rtts[port]) % (1 << 32)}
            self.send(UPLINKS[0], probed(roce(BACK), **echo))
            self.receive(HOST_PORT)
            self.expect_count("path_rtts_measured", before + 1)
        self.probes(0)

    def recirculations(self) -> int:
        """Recirculations of all packets so far, none of which was sent round more than MOST times."""
        return sum(self.count("recirculations", before) for before in range(MOST))


class AnswerTest(RlbTest):
    """A leaf that is asked by packets what it knows."""

    def path(self, port: int, leaf: int = REMOTE_LEAF) -> dict[str, int]:
        """What the switch knows of a path."""
        return self.asked("READ_PATH", port * LEAVES + leaf, "PATH", "path_state_t")

    def port(self, port: int) -> dict[str, int]:
        """What it knows of a port, and of recirculation as a whole."""
        return self.asked("READ_RLB_PORT", port, "RLB_PORT", "rlb_port_t")


class PredictingTest(RlbTest, SlowPortTest):
    """A switch that predicts: what came in by DOWNLINK waits for the slow port."""

    def predict(self, valid_ticks: int) -> None:
        """Warn of a queue of two packets and more, for so long."""
        self.warnings(
            dt_ticks=1,
            warn_bytes=2 * FILLER_BYTES,
            pause_bytes=4 * FILLER_BYTES,
            margin_ticks=FOREVER,
            valid_ticks=valid_ticks,
        )

    def fill_from_downlink(self) -> None:
        """Put data of the switch behind DOWNLINK into the queue."""
        for _ in range(FILLERS):
            self.send(DOWNLINK, roce(Flow(REMOTE, SLOW_REMOTE)))

    def until_warned(self) -> None:
        """Fill the queue until the sender behind DOWNLINK is warned, or often enough; then it is empty."""
        for _ in range(ATTEMPTS):
            self.fill_from_downlink()
            self.drain(FILLERS)
            if self.count("warnings_sent", DOWNLINK):
                return


def cnm(valid_ticks: int, *, leaf: int = REMOTE_LEAF, hops: int = 0) -> Packet:
    """A warning of another switch; 0 withdraws it."""
    header = Cnm(port=9, leaf=leaf, hops=hops, valid_ticks=valid_ticks)
    return Ether(src=mac_of(HOST), dst=PAUSE_MAC) / LocalHeader() / header


def probed(frame: Packet, **fields: int) -> Packet:
    """A data frame of the other leaf with a probe."""
    header = LocalHeader() / PathProbe(**{"leaf": REMOTE_LEAF, **fields})
    return Ether(src=frame[Ether].src, dst=frame[Ether].dst) / header / frame[Ether].payload.copy()
