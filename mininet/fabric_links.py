# SPDX-License-Identifier: Apache-2.0
"""The links of a running fabric: takes them down and up, changes their rates, adds delays for BMv2.

BMv2 has no link delays; the kernel's netem adds them, if it is built in. The native switch takes a link's
state from its interfaces. BMv2 stops receiving on all its ports when one of its interfaces goes down, so its
ports are removed from the switch instead, and added again.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from threading import RLock

from fabric_bmv2 import packets_per_s, set_rate, thrift
from fabric_plan import BMV2, FabricPlan, LinkInterface, LinkPlan, SwitchPlan
from fabric_process import run
from fabric_report import FabricError

from tailrace.p4rt.connection import GrpcConnection
from tailrace.p4rt.endpoint import run_at_once
from tailrace.p4rt.errors import ControllerError

_QUEUE_PACKETS = 100_000
"""Limit of netem's queue, which contains all packets in flight on a link and must not drop any."""


class FabricLinks:
    """The links of a plan, for several threads. By name: `down`, those that are down; `cut`, those that have
    been down since the traffic began; `shares`, the parts of their rates that links have; `changed`, the
    changes by the user that hold.
    """

    def __init__(self, plan: FabricPlan, frame_bytes: int) -> None:
        """`frame_bytes`: length of a full data frame; BMv2's rates are in packets/s."""
        self._plan = plan
        self._switches = {switch.name: switch for switch in plan.switches}
        self._frame_bytes = frame_bytes
        self.down: set[str] = set()
        self.cut: set[str] = set()
        self.shares: dict[str, float] = {}
        self.changed: dict[str, str] = {}
        self._lock = RLock()

    def change(self, a: str, b: str, to: bool | float, text: str) -> None:
        """Takes the links between two nodes up (True) or down, or sets the share of their rate, for a user.

        Raises:
            FabricError: a switch or the system refuses.
        """
        for link in self._plan.between(a, b):
            if isinstance(to, bool):
                self.set_state(link, "up" if to else "down")
            else:
                self.set_share(link, to)
            self.changed.pop(link.name, None)
            if to != 1:  # neither up nor the rate of the topology
                self.changed[link.name] = text

    def set_state(self, link: LinkPlan, state: str) -> None:
        """Makes a link `up` or `down`; does nothing if it has this state already.

        Raises:
            FabricError: a switch or the system refuses.
        """
        with self._lock:
            if (state == "down") == (link.name in self.down):
                return
            self.cut.add(link.name)
            for end in self._switch_ends(link):
                self._set_end(end, state)
            self.down ^= {link.name}

    def _switch_ends(self, link: LinkPlan) -> list[LinkInterface]:
        # a host's interface stays up: the kernel would forget its routes
        return [end for end in (link.a, link.b) if end.node in self._switches]

    def is_up(self, link: LinkPlan) -> bool:
        """Whether a link is up, also as far as the system says."""
        states = (Path(f"/sys/class/net/{end.interface}/operstate") for end in self._switch_ends(link))
        return link.name not in self.down and all(state.read_text() == "up\n" for state in states)

    def set_share(self, link: LinkPlan, factor: float) -> None:
        """Limits a link between switches to this share of its rate in both directions.

        Raises:
            FabricError: a switch refuses.
        """
        with self._lock:
            for end in (link.a, link.b):
                switch = self._switches[end.node]
                rate_bps = next(port.rate_bps for port in switch.ports if port.number == end.port)
                self._set_rate(switch, end.port, max(1, round(rate_bps * factor)))
            self.shares[link.name] = factor

    def _set_rate(self, switch: SwitchPlan, port: int, rate_bps: int) -> None:
        if self._plan.target == BMV2:
            with thrift(switch.thrift_port, switch.name) as client:
                set_rate(client, switch, port, packets_per_s(rate_bps, self._frame_bytes))
            return
        with closing(GrpcConnection(switch.name, switch.address, switch.device_id)) as connection:
            try:
                run_at_once(connection.client.set_rate(port, rate_bps))
            except ControllerError as error:
                raise FabricError(str(error)) from error

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


def add_delays(plan: FabricPlan) -> bool:
    """Delays frames that leave each port by its link's delay; returns whether the kernel supports that."""
    netem = ["root", "netem", "limit", str(_QUEUE_PACKETS), "delay"]
    try:
        for port in (port for switch in plan.switches for port in switch.ports if port.delay_ns):
            run(["tc", "qdisc", "add", "dev", port.interface, *netem, f"{port.delay_ns}ns"])
    except FabricError:
        return False
    return True
