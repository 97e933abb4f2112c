# SPDX-License-Identifier: Apache-2.0
"""A leaf or a spine with a program of RLB in virtual time; a tick is a nanosecond.

Behind the uplinks is leaf REMOTE_LEAF with 10.0.2.0/24, behind many more of them WIDE_LEAF with 10.0.3.0/24.
Presto is the selector, with cells of one packet: `next_slot` says where the next packet wants to go.
"""

from __future__ import annotations

from scapy.layers.l2 import Ether
from scapy.packet import Packet

from tailrace.codec.layers.local import PAUSE_MAC, Cnm, LocalHeader
from tailrace.schemes.rlb.app import FIRST_RELAY, FIRST_SESSION, UPSTREAM_GROUP, next_hop_arguments
from tailrace.switch.core import Replica, SentFrame
from tests.p4src.flow_hash import flow_hash
from tests.p4src.frames import HOST_MAC
from tests.p4src.rig import DOWNLINK, REMOTE, UPLINK_GROUP, UPLINKS, Rig, number
from tests.rlb.models import other_slot

OWN_LEAF, REMOTE_LEAF, WIDE_LEAF = 1, 2, 3
WIDE, WIDE_GROUP = "10.0.3.2", 2
WIDE_UPLINKS = tuple(range(20, 60))
FABRIC = (DOWNLINK, *UPLINKS)
FOREVER = 1 << 31
LONGEST = (1 << 32) - 1
ROOM = 512
FIRST_SPORT = 49152
LEAVES = 128
NO_LEAF = number("leaf_all")


class RlbRig(Rig):
    """The switch: a leaf with number OWN_LEAF, or no leaf."""

    def __init__(self, name: str = "rlb_presto", *, leaf: int = OWN_LEAF, recirc_rate_bps: int = 0) -> None:
        super().__init__(name, recirc_rate_bps=recirc_rate_bps)
        self.leaf = leaf
        self.clock = 0  # where tests go on that share the switch
        self.mirror = number("mirror_port")
        for port in (*FABRIC, *WIDE_UPLINKS):
            first = number("priority_queues") - 1
            self.switch.clone_set(FIRST_SESSION + port, [Replica(port)], class_of_service=first)
        self.switch.mcast_set(UPSTREAM_GROUP, [Replica(port) for port in FABRIC])
        for port in WIDE_UPLINKS:
            self.insert("port_role", (port,), self.role(port))
        self.group(WIDE, WIDE_GROUP, WIDE_UPLINKS)
        for address, leaf_number, group in (
            (REMOTE, REMOTE_LEAF, UPLINK_GROUP),
            (WIDE, WIDE_LEAF, WIDE_GROUP),
        ):
            self.leaf_at(address, leaf_number, group)
        for ports, leaf_number in ((UPLINKS, REMOTE_LEAF), (WIDE_UPLINKS, WIDE_LEAF)):
            for port in ports:
                self.switch.mcast_set(FIRST_RELAY + port, [Replica(self.mirror, leaf_number + 1)])
        self.probes(0)

    def members(self, group: int, ports: tuple[int, ...]) -> None:
        """Fill a group and the list of its ports."""
        super().members(group, ports)
        handle = self.insert("next_hops", (group,), "set_next_hops", **next_hop_arguments(ports))
        if group == UPLINK_GROUP:
            self.uplink_hops = handle

    def shrink(self, count: int) -> None:
        """Leave the group of the uplinks its first so many ports."""
        self.delete("next_hops", self.uplink_hops)
        arguments = next_hop_arguments(UPLINKS[:count])
        self.uplink_hops = self.insert("next_hops", (UPLINK_GROUP,), "set_next_hops", **arguments)

    def leaf_at(self, address: str, leaf: int, group: int) -> None:
        """Give the /24 of an address and a group the number of their leaf."""
        prefix = int.from_bytes(bytes(map(int, address.split("."))), "big") >> 8 << 8
        self.insert("leaves", (prefix,), "leaf", prefix_bits=24, leaf=leaf)
        self.insert("leaf_groups", (leaf,), "leaf_group", group=group)

    # ---- configuration ----

    def warnings(self, **given: int) -> None:
        """Set how queues are judged; what is not given predicts nothing."""
        usual = {"dt_ticks": 0, "warn_bytes": FOREVER, "pause_bytes": FOREVER, "margin_ticks": 0}
        usual |= {"valid_ticks": FOREVER, "refresh_ticks": FOREVER, "own_leaf": self.leaf, "stay_ticks": 0}
        usual |= {"threshold_alone": 0}
        numbers = {
            "first_session": FIRST_SESSION,
            "upstream_group": UPSTREAM_GROUP,
            "first_relay": FIRST_RELAY,
        }
        self.default("warning_config", **usual | numbers | given)

    def limits(self, **given: int) -> None:
        """Set how far packets may recirculate; not at all, unless `most` is given."""
        usual = {
            "dynamic": 0,
            "last_open": 0,
            "most": 0,
            "room": ROOM,
            "inflow": 0,
            "usual_ticks": 0,
            "trust_ticks": FOREVER,
        }
        self.default("recirculation_config", **usual | given)

    def probes(self, period: int, keep: int = LONGEST) -> None:
        """Set how often RTTs are measured, and how long they count."""
        self.default("probe_config", period_ticks=period, keep_ticks=keep)

    # ---- paths ----

    def next_slot(self, slot: int, group: int = UPLINK_GROUP) -> None:
        """Where the next packet of a group wants to go."""
        self.set_register("flowcell_turn", group, slot)

    def warn(self, port: int, until: int, leaf: int = REMOTE_LEAF) -> None:
        """Make a path warned until a time."""
        self.set_register("warned_until_ticks", port * LEAVES + leaf, until)

    def warned(self, port: int, leaf: int = REMOTE_LEAF) -> int:
        """Until when a path is warned."""
        return self.register("warned_until_ticks", port * LEAVES + leaf)

    def rtt(self, port: int, ticks: int, leaf: int = REMOTE_LEAF) -> None:
        """Give a path an RTT, measured now, all of its stamps answered."""
        self.set_register("path_rtt_ticks", port * LEAVES + leaf, ticks)
        self.set_register("path_rtt_seen_ticks", port * LEAVES + leaf, self.clock)
        self.set_register("probe_unanswered_ticks", port * LEAVES + leaf, 0)

    def cells(self, register: str) -> list[int]:
        """All cells of a register."""
        return self.switch.register_read_all(self._register(register))

    def total(self, counter: str) -> int:
        """Packets of all cells of a counter."""
        info = next(c for c in self.model.counters if c.name.rsplit(".", 1)[-1] == counter)
        return sum(packets for _, packets in self.switch.counter_cells(info.index, 0, info.size))

    def empty(self) -> bool:
        """Whether no byte is left in any account, and nothing is on its way round."""
        ports = (*range(64), self.mirror, self.cpu_port)
        loads = [self.load(port) for port in ports] + [self.source_load(port) for port in ports]
        return not any(loads) and self.register("recirculating") == 0


def other_path(frame: Packet, port: int, ports: tuple[int, ...] = UPLINKS) -> int:
    """By which port of a group a packet leaves that wants to leave by another one, which is warned."""
    return ports[other_slot(flow_hash(frame), ports.index(port), len(ports))]


def cnm(valid: int, *, leaf: int = REMOTE_LEAF, port: int = 7, hops: int = 0) -> Packet:
    """A warning of another switch, or its withdrawal (valid 0)."""
    header = Cnm(port=port, leaf=leaf, hops=hops, valid_ticks=valid)
    return Ether(src=HOST_MAC, dst=PAUSE_MAC) / LocalHeader() / header


def cnms(outputs: list[SentFrame], port: int) -> list[tuple[int, Cnm]]:
    """The warnings that left by a port, with their times."""
    frames = [(output.time_ns, Ether(output.data)) for output in outputs if output.port == port]
    return [(time, frame[Cnm]) for time, frame in frames if Cnm in frame]


__all__ = [
    "FABRIC",
    "FIRST_SPORT",
    "FOREVER",
    "NO_LEAF",
    "OWN_LEAF",
    "REMOTE_LEAF",
    "WIDE",
    "WIDE_GROUP",
    "WIDE_LEAF",
    "WIDE_UPLINKS",
    "RlbRig",
    "cnm",
    "cnms",
    "other_path",
]
