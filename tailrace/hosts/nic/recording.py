# SPDX-License-Identifier: Apache-2.0
"""A NIC that records when its flows drain, resume, change paths and time out, for replays of a run."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from tailrace.codec.calls import QPN_BITS
from tailrace.codec.templates import ip_number
from tailrace.hosts.flows.observation import ReceiverObservation, SenderObservation
from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.nic.nic import Nic
from tailrace.hosts.nic.receiver import FlowReceiver
from tailrace.hosts.nic.sender import FlowSender
from tailrace.hosts.options.nic import NicConfig

DRAIN: Final = "drain"
RESUME: Final = "resume"
PATH_CHANGE: Final = "path change"
TIMEOUT: Final = "timeout"
KINDS: Final = (DRAIN, RESUME, PATH_CHANGE, TIMEOUT)
"""The flow is paused for a change of path; it resumes; its packets take another path (a negative count
corrects an earlier one, because a packet that was sent before has arrived late); a timeout expires."""


class RecordingNic(Nic):
    """A NIC with a record: compares a flow's counters after each call that may change them.

    events: (time in ns, one of KINDS, flow id, by how much the counter has changed); for RESUME, 1.
    """

    def __init__(
        self,
        *,
        ip: str,
        mac: str,
        gateway_mac: str,
        config: NicConfig,
        rng: random.Random,
        paths: Callable[[str], PathList] | None = None,
        macs: dict[str, str] | None = None,
    ) -> None:
        """See Nic."""
        super().__init__(
            ip=ip, mac=mac, gateway_mac=gateway_mac, config=config, rng=rng, paths=paths, macs=macs
        )
        self.events: list[tuple[int, str, int, int]] = []
        self._path_changes: dict[int, int] = {}  # by flow id
        self._drains: dict[int, int] = {}
        self._timeouts: dict[int, int] = {}
        self._draining: set[int] = set()

    def on_data(self, now_ns: int, peer: int, psn_fields: int, data_fields: int, ticks: int) -> None:
        super().on_data(now_ns, peer, psn_fields, data_fields, ticks)
        receiver = self._receivers.get(peer)
        if isinstance(receiver, FlowReceiver | ReceiverObservation):
            self._count(now_ns, PATH_CHANGE, self._path_changes, receiver.flow.id, receiver.path_changes)

    def on_ack(self, now_ns: int, peer: int, psn_fields: int, aeth: int) -> None:
        super().on_ack(now_ns, peer, psn_fields, aeth)
        self._compare(now_ns, peer)

    def on_nic_ack(self, now_ns: int, flow: int, count: int, ticks: int) -> None:
        super().on_nic_ack(now_ns, flow, count, ticks)
        for peer in self._by_port.get(flow, ()):
            self._compare(now_ns, peer)

    def on_flow_pause(
        self,
        now_ns: int,
        src: int,
        dst: int,
        sport: int,
        dport: int,
        protocol: int,
        op: int,
        credit_bytes: int,
    ) -> None:
        super().on_flow_pause(now_ns, src, dst, sport, dport, protocol, op, credit_bytes)
        for peer in list(self._senders):
            self._compare(now_ns, peer)

    def _run_timer(self, now_ns: int, handle: int) -> None:
        end = self._queue_pairs.get(handle)
        super()._run_timer(now_ns, handle)
        if isinstance(end, FlowSender):
            self._compare(now_ns, ip_number(end.flow.dst) << QPN_BITS | end.flow.qpn)

    def _compare(self, now_ns: int, peer: int) -> None:
        """Records what has changed at the source of a flow."""
        sender = self._senders[peer]
        if not isinstance(sender, FlowSender | SenderObservation):
            return
        flow = sender.flow.id
        is_draining = isinstance(sender, FlowSender) and sender.draining
        self._count(now_ns, DRAIN, self._drains, flow, sender.drains)
        self._count(now_ns, TIMEOUT, self._timeouts, flow, sender.timeouts)
        if is_draining:
            self._draining.add(flow)
        elif flow in self._draining:
            self._draining.remove(flow)
            self.events.append((now_ns, RESUME, flow, 1))

    def _count(self, now_ns: int, kind: str, counts: dict[int, int], flow: int, count: int) -> None:
        before = counts.get(flow, 0)
        if count != before:
            counts[flow] = count
            self.events.append((now_ns, kind, flow, count - before))
