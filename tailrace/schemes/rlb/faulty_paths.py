# SPDX-License-Identifier: Apache-2.0
"""Controller-side reaction to failure alerts (RLB §IV-B.2): events, and ports of switches to suppress.

The time is an argument, so the same code runs in real and virtual time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from tailrace.p4rt.digests import DigestMessage
from tailrace.p4rt.events import Event
from tailrace.p4rt.messages import p4r
from tailrace.p4rt.programs import P4Program
from tailrace.p4rt.target import Target
from tailrace.schemes.blocks.groups import excluding
from tailrace.schemes.rlb.failures import Alert, Failures, alert_of
from tailrace.schemes.watch import FormatTime, LinkEnd, Notify, SuppressedPath, Watcher
from tailrace.spec.units import format_time
from tailrace.topology import Topology
from tailrace.topology.paths.shortest import Down, next_hops

TAKEN_OUT, ALREADY_OUT, LAST_WAY = "taken-out", "already-out", "last-way"
"""What happened to the path of an alert: it was suppressed, it was already suppressed, or it stays in use
because the leaves behind it have no other path.
"""

_MEMBERS = "group_members"


class RlbWatcher(Watcher):
    """Handles the failure alerts of one network, and suppresses the faulty paths."""

    def __init__(
        self,
        topology: Topology,
        target: Target,
        hold_ns: int,
        notify: Notify,
        time_text: FormatTime = format_time,
    ) -> None:
        """`hold_ns`: the hold time of a first suppression."""
        super().__init__(topology, notify, time_text)
        self._target = target
        self._failures = Failures(hold_ns)

    def on_digest(self, digest: DigestMessage, now_ns: int, down: Down = frozenset()) -> bool:
        """Handles a digest of a switch; returns whether it suppressed another path.

        Args:
            digest: a digest of any kind.
            now_ns: the current time.
            down: the ends of dead links.
        """
        alert = alert_of(digest, self.topology, self._target)
        if alert is None:
            return super().on_digest(digest, now_ns, down)
        suppressed = None
        action = LAST_WAY
        if not self._is_last(alert.end, down):
            suppressed = self._failures.suppress(alert.end, now_ns)
            action = ALREADY_OUT if suppressed is None else TAKEN_OUT
        self.notify(self._alert_event(alert, now_ns, action, suppressed))
        return suppressed is not None

    def on_takeover(
        self,
        switch: str,
        program: P4Program,
        intended: Iterable[p4r.Entity],
        held: Iterable[p4r.Entity],
        now_ns: int,
        down: Down = frozenset(),
    ) -> bool:
        """See Watcher: paths that an earlier controller has suppressed stay suppressed for a hold time."""
        missing = missing_ports(program, intended, held)
        return bool(missing) and self.adopt(switch, missing, now_ns, down)

    def adopt(self, switch: str, ports: Collection[int], now_ns: int, down: Down = frozenset()) -> bool:
        """Adopts suppressions of an earlier controller: `ports`, which a switch should use but does not use,
        stay suppressed for a hold time from now on. Returns whether any suppression was adopted.
        """
        adopted = [self._adopt_one(switch, port, now_ns, down) for port in sorted(ports)]
        return any(adopted)

    def _adopt_one(self, switch: str, port: int, now_ns: int, down: Down) -> bool:
        peer = self.topology.ports_of(switch).get(port)
        if peer is None or peer.kind != "switch" or self._is_last((switch, port), down):
            return False
        suppressed = self._failures.suppress((switch, port), now_ns)
        if suppressed is None:
            return False
        facts = {"time_ns": now_ns, "switch": switch, "port": port, "neighbour": peer.name}
        facts["until_ns"] = suppressed.until_ns
        text = (
            f"{switch}: the path by port {port} to {peer.name} was out already;"
            f" hold={format_time(suppressed.until_ns - suppressed.since_ns)}"
        )
        self.notify(Event("path-out", f"{switch}-{peer.name}", text, facts))
        return True

    def reused(self, now_ns: int, down: Down = frozenset()) -> list[LinkEnd]:
        """See Watcher: paths whose hold time is over are used again."""
        reused = self._failures.reuse(now_ns, down)
        for switch, port in reused:
            neighbour = self.topology.ports_of(switch)[port].name
            facts = {"time_ns": now_ns, "switch": switch, "port": port, "neighbour": neighbour}
            text = f"{switch}: the path by port {port} to {neighbour} is used again"
            self.notify(Event("path-back", f"{switch}-{neighbour}", text, facts))
        return reused

    @property
    def suppressed(self) -> list[SuppressedPath]:
        return self._failures.suppressed

    def next_ns(self, now_ns: int) -> int | None:
        """The time at which the next path may be used again; None: nothing changes by time alone."""
        return self._failures.next_ns(now_ns)

    def _alert_event(
        self, alert: Alert, now_ns: int, action: str, suppressed: SuppressedPath | None
    ) -> Event:
        facts: dict[str, Any] = {"time_ns": now_ns, **alert.facts, "action": action}
        text = (
            f"{alert.switch}: failure alert: time={self.time_text(now_ns)} port={alert.port}"
            f" neighbour={alert.neighbour} mean_recirculations={alert.mean:.3g}"
            f" t_rc={format_time(alert.delay_ns)} action={action}"
        )
        if suppressed is not None:
            facts["until_ns"] = suppressed.until_ns
            text += f" hold={format_time(suppressed.until_ns - suppressed.since_ns)}"
        return Event("failure-alert", f"{alert.switch}-{alert.neighbour}", text, facts)

    def _is_last(self, end: LinkEnd, down: Down) -> bool:
        """Whether all leaves that the switch reaches by this port have no other next hop in use."""
        name, port = end
        hops = next_hops(self.topology, down)[name]
        using = {leaf: ports for leaf, ports in hops.items() if port in ports}
        suppressed = {number for switch, number in self.suppressed_ports if switch == name}
        # a leaf without other next hops keeps the excluded ports
        remaining = excluding(using, frozenset(suppressed | {port}))
        return bool(using) and all(port in ports for ports in remaining.values())


def missing_ports(program: P4Program, intended: Iterable[p4r.Entity], held: Iterable[p4r.Entity]) -> set[int]:
    """The ports that are in next-hop groups of `intended`, the entries that a switch should have, but in no
    group of `held`, the entries that it has; empty if `held` contains no groups.
    """
    wanted, present = member_ports(program, intended), member_ports(program, held)
    return wanted - present if present else set()


def member_ports(program: P4Program, entities: Iterable[p4r.Entity]) -> set[int]:
    """The ports in next-hop groups among these entities."""
    table = program.table(_MEMBERS)
    return {
        int.from_bytes(param.value, "big")
        for entity in entities
        if entity.table_entry.table_id == table.preamble.id
        for param in entity.table_entry.action.action.params
    }
