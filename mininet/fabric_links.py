# SPDX-License-Identifier: Apache-2.0
"""The links of a running fabric: takes them down and up, changes their rates, adds delays for BMv2.

BMv2 has no link delays; the kernel's netem adds them, if it is built in. The native switch takes a link's
state from its interfaces. BMv2 stops receiving on all its ports when one of its interfaces goes down, so its
ports are removed from the switch instead, and added again.
"""

from __future__ import annotations

from fabric_bmv2 import packets_per_s, set_rate, thrift
from fabric_plan import BMV2, FabricPlan, LinkInterface, LinkPlan
from fabric_process import run
from fabric_report import FabricError

_QUEUE_PACKETS = 100_000
"""Limit of netem's queue, which contains all packets in flight on a link and must not drop any."""


class FabricLinks:
    """The links of a plan. `down`: the names of the links that are down."""

    def __init__(self, plan: FabricPlan, frame_bytes: int) -> None:
        """`frame_bytes`: length of a full data frame; BMv2's rates are in packets/s."""
        self._plan = plan
        self._switches = {switch.name: switch for switch in plan.switches}
        self._frame_bytes = frame_bytes
        self.down: set[str] = set()

    def set_state(self, link: LinkPlan, state: str) -> None:
        """Makes a link `up` or `down`; does nothing if it has this state already.

        Raises:
            FabricError: a switch or the system refuses.
        """
        if (state == "down") == (link.name in self.down):
            return
        for end in (link.a, link.b):
            # a host's interface stays up: the kernel would forget its routes
            if end.node in self._switches:
                self._set_end(end, state)
        self.down ^= {link.name}

    def set_share(self, link: LinkPlan, factor: float) -> None:
        """Limits a link between BMv2 switches to this share of its rate in both directions.

        Raises:
            FabricError: a switch refuses.
        """
        for end in (link.a, link.b):
            switch = self._switches[end.node]
            rate_bps = next(port.rate_bps for port in switch.ports if port.number == end.port)
            with thrift(switch.thrift_port, switch.name) as client:
                set_rate(client, switch, end.port, packets_per_s(share(rate_bps, factor), self._frame_bytes))

    def _set_end(self, end: LinkInterface, state: str) -> None:
        if self._plan.target != BMV2:
            run(["ip", "link", "set", "dev", end.interface, state])
            return
        switch = self._switches[end.node]
        with thrift(switch.thrift_port, switch.name) as client:
            if state == "down":
                client.remove_port(end.port)
            else:
                client.add_port(end.port, end.interface)


def share(rate_bps: int, factor: float) -> int:
    """A part of a rate, at least 1 bit/s."""
    return max(1, round(rate_bps * factor))


def add_delays(plan: FabricPlan) -> bool:
    """Delays frames that leave each port by its link's delay; returns whether the kernel supports that."""
    netem = ["root", "netem", "limit", str(_QUEUE_PACKETS), "delay"]
    try:
        for port in (port for switch in plan.switches for port in switch.ports if port.delay_ns):
            run(["tc", "qdisc", "add", "dev", port.interface, *netem, f"{port.delay_ns}ns"])
    except FabricError:
        return False
    return True
