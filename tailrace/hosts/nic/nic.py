# SPDX-License-Identifier: Apache-2.0
"""A NIC: many flows in both directions on one link.

Pull model, no I/O and no clock: the caller, which emulates the link, passes every arriving packet to the NIC,
and asks it for the next packet whenever the link is free and the NIC may send. Control packets are sent
first, then the packets of data flows in round-robin order.

A flow has a queue pair here only while it is active: at the source from its start to the last acknowledgment,
at the destination from its first packet to its last byte. Before the flow is active, the NIC stores its
FlowSpec; afterwards, an observation (`hosts.flows.observation`). If a packet of a complete flow arrives, the
destination's queue pair is restored from the observation, and responds as if it had never been removed.

Packets are passed as a few integers, such as psn_fields, data_fields and aeth (`codec.calls`). The C code
between the NIC and the link, called the port (`codec.nic`), parses and builds the frames.

With Flowcut on the NIC (§II-D), data packets have a shim header with a timestamp. The destination returns it
in a NIC ACK, so that the source can measure RTTs. HF2T (host-based flowlet fine-tuning) lengthens gaps
between packets of a flow, so that switches begin a flowlet.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from tailrace.codec.calls import (
    DISCARD_REASONS,
    KIND_BITS,
    KIND_MASK,
    NEVER,
    PORT_BITS,
    QPN_BITS,
    SYNDROME_SHIFT,
    Packet,
)
from tailrace.codec.numbers import Syndrome
from tailrace.codec.templates import HostAddress, ip_number
from tailrace.hosts.errors import ConfigError
from tailrace.hosts.flows.flow import FlowRecord, FlowSpec
from tailrace.hosts.flows.observation import Observation, ReceiverObservation, SenderObservation, merge
from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.gaps.hf2t import Learner
from tailrace.hosts.gaps.histogram import GapHistogram
from tailrace.hosts.gaps.time_gaps import NicTimeGaps
from tailrace.hosts.nic.dependents import Dependents
from tailrace.hosts.nic.pause import PfcState
from tailrace.hosts.nic.queue_pairs import QueuePairs
from tailrace.hosts.nic.receiver import FlowReceiver
from tailrace.hosts.nic.sender import FlowSender, min_rtt_of
from tailrace.hosts.nic.timers import NO_TIMER, START, Timers
from tailrace.hosts.options.nic import FlowcutNicConfig, NicConfig
from tailrace.hosts.steering.assign import SteeringFactory
from tailrace.hosts.steering.flowcut import MinRtt

_TRIMMED: Final = int(Syndrome.NAK_TRIMMED)


class Nic:
    """One NIC.

    address: its IPv4 address as an integer.
    counters: discarded frames by reason: other, malformed, bad_icrc, not_ours, unexpected.
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
        """Args:
        ip, mac: the NIC's addresses, in dotted and in colon form.
        gateway_mac: destination MAC address of its frames.
        macs: other destination MAC addresses, by the IPv4 address of the peer.
        rng: chooses source ports (Flowcut §II-D, MP-RDMA §3) and paths (Spritz §IV).
        paths: the endpoint table (Spritz §III-C): maps a destination's address, in dotted form, to the paths.
            Called when a steered flow starts, that is, a flow whose paths the NIC chooses.
        """
        self.ip = ip
        self.mac = mac
        self.config = config
        self.address: int = ip_number(ip)
        self.counters: Counter[str] = Counter()
        self._gateway_mac = gateway_mac
        self._macs: dict[str, str] = macs or {}
        self._rng = rng
        self._steerings = SteeringFactory(config, paths, rng)
        self._min_rtt: MinRtt | None = min_rtt_of(config)  # None: no Flowcut on the NIC
        uses_gaps = config.hf2t is not None or config.measure_gaps
        self._time_gaps: NicTimeGaps | None = NicTimeGaps(config) if uses_gaps else None
        self._pfc = PfcState(config.link_rate_bps)
        self._control_priority: int = config.control_priority
        self._data_priority: int = config.data_priority
        self._control_until_ns = 0  # PFC pauses control and data until these times
        self._data_until_ns = 0
        self._queue_pairs = QueuePairs()
        # by peer (address << QPN_BITS | queue pair number): a flow before its start, while active, or later
        self._senders: dict[int, FlowSpec | FlowSender | SenderObservation] = {}
        self._receivers: dict[int, FlowSpec | FlowReceiver | ReceiverObservation] = {}
        # by destination and original source port: peers of active flows; of all flows if the NIC does Flowcut
        self._by_port: dict[int, list[int]] = {}
        # sources and destinations of flows at this NIC, counted by whether the flow is complete here
        self._unfinished = 0
        # of an unreliable transport: destinations of incomplete flows, whose missing packets may never come
        self._unacknowledged = 0
        self._unreliable: bool = config.kind.unreliable
        self._finished = 0
        self._dependents = Dependents()
        self._control: deque[Packet] = deque()
        self._control_sent = 0
        self._ready: deque[FlowSender] = deque()  # flows that may have something to send
        self._timers = Timers(self._queue_pairs)
        self._now_ns = 0

    def add_flow(self, flow: FlowSpec) -> None:
        """Sends a flow from its start time on, once the flows in `flow.after` are complete.

        Raises:
            ConfigError: the flow has another source, has the queue pair or port of another flow, or requires
                steering that this NIC does not support.
        """
        dst = ip_number(flow.dst)
        peer = dst << QPN_BITS | flow.qpn
        port = dst << PORT_BITS | flow.sport
        if flow.src != self.ip:
            raise ConfigError(f"flow {flow.id}: its source {flow.src} is not this host, {self.ip}")
        if peer in self._senders:
            raise ConfigError(f"flow {flow.id}: queue pair {flow.qpn} to {flow.dst} is taken")
        if self._min_rtt is not None and port in self._by_port:
            raise ConfigError(f"flow {flow.id}: source port {flow.sport} to {flow.dst} is taken")
        self._steerings.algorithm(flow)  # raises ConfigError
        self._senders[peer] = flow
        if self._min_rtt is not None:
            self._by_port[port] = [peer]
        self._unfinished += 1
        distinct = list(dict.fromkeys(flow.after))
        waits = self._not_complete(distinct)
        count = (flow.after_count or len(distinct)) - (len(distinct) - len(waits))
        if count > 0:
            self._dependents.add(flow, waits, count)
        else:
            self._timers.start(flow.start_ns, peer)

    def _not_complete(self, waits: list[int]) -> list[int]:
        """Those of these flows that are not complete, by their ids."""
        if not waits or not self._finished:
            return waits
        complete: set[int] = set()
        for sender in self._senders.values():
            if isinstance(sender, SenderObservation):
                complete.add(sender.flow.id)
        for receiver in self._receivers.values():
            if isinstance(receiver, ReceiverObservation) or (
                isinstance(receiver, FlowReceiver) and receiver.done
            ):
                complete.add(receiver.flow.id)
        return [number for number in waits if number not in complete]

    def expect_flow(self, flow: FlowSpec) -> None:
        """Prepares to receive a flow.

        Raises:
            ConfigError: the flow has another destination, or the queue pair of another flow.
        """
        peer = ip_number(flow.src) << QPN_BITS | flow.qpn
        if flow.dst != self.ip:
            raise ConfigError(f"flow {flow.id}: its destination {flow.dst} is not this host, {self.ip}")
        if peer in self._receivers:
            raise ConfigError(f"flow {flow.id}: queue pair {flow.qpn} from {flow.src} is taken")
        self._receivers[peer] = flow
        self._unfinished += 1
        self._unacknowledged += self._unreliable

    def _start(self, flow: FlowSpec, start_ns: int) -> FlowSender:
        """Makes the source of a flow that may start at `start_ns`."""
        sender = FlowSender(
            flow,
            self.config,
            self._to(flow.dst),
            self._queue_pairs.new_handle(),
            self._min_rtt,
            self._rng,
            self._steerings,
            self._time_gaps.for_flow(flow.bytes) if self._time_gaps is not None else None,
        )
        sender.start_ns = start_ns
        self._queue_pairs.put(sender)
        dst = ip_number(flow.dst)
        peer = dst << QPN_BITS | flow.qpn
        self._senders[peer] = sender
        if self._min_rtt is None:
            self._by_port.setdefault(dst << PORT_BITS | flow.sport, []).append(peer)
        return sender

    def _to(self, peer: str) -> HostAddress:
        """The addresses of frames to a host."""
        return HostAddress(self.mac, self._macs.get(peer, self._gateway_mac), self.ip, peer)

    def _end_sender(self, now_ns: int, peer: int, sender: FlowSender) -> None:
        self._senders[peer] = sender.observation(now_ns)
        self._queue_pairs.drop(sender)
        if self._min_rtt is None:
            port = peer >> QPN_BITS << PORT_BITS | sender.flow.sport
            peers = self._by_port[port]
            peers.remove(peer)
            if not peers:
                del self._by_port[port]

    def _receiver_of(self, peer: int) -> FlowReceiver | None:
        """The destination of the flow of an arriving packet, created if necessary; None: no such flow."""
        state = self._receivers.get(peer)
        if state is None or isinstance(state, FlowReceiver):
            return state
        flow = state if isinstance(state, FlowSpec) else state.flow
        address = self._to(flow.src)
        receiver = FlowReceiver(flow, self.config, address, self._queue_pairs.new_handle(), self._control)
        if isinstance(state, ReceiverObservation):
            receiver.resume(state)
        self._queue_pairs.put(receiver)
        self._receivers[peer] = receiver
        return receiver

    def _retire_receiver(self, receiver: FlowReceiver) -> None:
        """Removes the destination of a complete flow, unless it will still send a delayed response."""
        if self._unreliable:
            return  # packets may still come: nothing sends them again
        if not receiver.done or receiver.deadline_ns() != NEVER:
            return
        flow = receiver.flow
        peer = ip_number(flow.src) << QPN_BITS | flow.qpn
        if self._receivers[peer] is not receiver:
            return  # the receiver is already being removed
        self._receivers[peer] = receiver.observation()
        if self._control:
            # the port in C may still need the templates of the last responses
            self._queue_pairs.drop_after(receiver, self._control_sent + len(self._control))
        else:
            self._queue_pairs.drop(receiver)

    def template(self, template_id: int) -> tuple[bytes, bytes]:
        """A template, from which the port in C builds the packets of a kind of one queue pair.

        Args:
            template_id: the queue pair's handle and the kind, any but RAW (codec.calls).

        Returns:
            The packets' headers, and the bytes between headers and payload of a flow's first packet.

        Raises:
            IndexError: the queue pair of the template has been removed.
        """
        end = self._queue_pairs.get(template_id >> KIND_BITS)
        if end is None:
            raise IndexError("a template of a queue pair that has been removed")
        return end.template(template_id & KIND_MASK)

    @property
    def connections(self) -> int:
        """The number of queue pairs, that is, of active ends of flows."""
        return len(self._queue_pairs)

    @property
    def idle(self) -> bool:
        """Whether every flow from this NIC is acknowledged and every flow to this NIC has arrived; with an
        unreliable transport, whether every flow from this NIC is sent.
        """
        return self._unfinished == self._unacknowledged

    # ---- arrivals ----

    def on_data(self, now_ns: int, peer: int, psn_fields: int, data_fields: int, ticks: int) -> None:
        """Handles a data packet; ticks: timestamp in its Flowcut shim (codec.layers.nic_shim), or NO_SHIM."""
        self._now_ns = now_ns
        receiver = self._receiver_of(peer)
        if receiver is None:
            self.counters["unexpected"] += 1
            return
        done = receiver.done
        if not receiver.on_data(now_ns, psn_fields, data_fields, ticks):
            self.counters["unexpected"] += 1
        elif not done and receiver.done:
            self._unacknowledged -= self._unreliable
            self._finish(now_ns, receiver.flow.id)
        self._timers.arm(receiver)
        self._retire_receiver(receiver)

    def on_trimmed(self, now_ns: int, peer: int, psn_fields: int, data_fields: int) -> None:
        """Handles a trimmed packet: a data packet whose payload a full queue has removed (Spritz §II-B)."""
        self._now_ns = now_ns
        receiver = self._receiver_of(peer)
        if receiver is None:
            self.counters["unexpected"] += 1
            return
        if not receiver.on_trimmed(psn_fields, data_fields):
            self.counters["unexpected"] += 1
        self._timers.arm(receiver)
        self._retire_receiver(receiver)

    def on_ack(self, now_ns: int, peer: int, psn_fields: int, aeth: int) -> None:
        """Handles an ACK or NAK."""
        self._now_ns = now_ns
        sender = self._senders.get(peer)
        if isinstance(sender, FlowSender):
            sender.on_ack(now_ns, psn_fields, aeth)
            if sender.done:
                self._finish(now_ns, sender.flow.id)
                self._end_sender(now_ns, peer, sender)
            else:
                self._wake(sender)
        elif not isinstance(sender, SenderObservation):
            self.counters["unexpected"] += 1
        elif aeth >> SYNDROME_SHIFT == _TRIMMED:
            self._senders[peer] = replace(sender, nacks=sender.nacks + 1)

    def on_cnp(self, now_ns: int, peer: int) -> None:
        """Handles a congestion notification packet (CNP)."""
        self._now_ns = now_ns
        sender = self._senders.get(peer)
        if isinstance(sender, FlowSender):
            sender.on_cnp(now_ns)
            self._timers.arm(sender)
        elif isinstance(sender, SenderObservation):
            count = sender.congestion_notifications + 1
            self._senders[peer] = replace(sender, congestion_notifications=count)
        else:
            self.counters["unexpected"] += 1

    def on_nic_ack(self, now_ns: int, flow: int, count: int, ticks: int) -> None:
        """Handles a NIC ACK (Flowcut §II-D).

        Args:
            flow: destination address << PORT_BITS | original source port.
            count: bytes of the acknowledged frames << COUNT_SHIFT | hops.
            ticks: sending time of the last packet plus the delay of the NIC ACK, in ns modulo 2^32.
        """
        self._now_ns = now_ns
        peers = self._by_port.get(flow)
        sender = None if peers is None else self._senders.get(peers[0])
        if isinstance(sender, FlowSender):
            sender.on_nic_ack(now_ns, count, ticks)
            self._wake(sender)
        elif isinstance(sender, SenderObservation) and self._min_rtt is not None:
            # packets sent before rtts_from_ns, the end of the flow's last drain, are no RTT samples
            self._min_rtt.on_nic_ack(now_ns, count, ticks, sender.rtts_from_ns)
        else:
            self.counters["unexpected"] += 1

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
        """Handles a pause frame for the flow with this 5-tuple on the wire; op: one of PauseOp."""
        self._now_ns = now_ns
        if self._min_rtt is None:
            peers = self._by_port.get(dst << PORT_BITS | sport, [])
        else:
            # with Flowcut on the NIC, a flow's source port on the wire may differ from its original port
            peers = list(self._senders)
        matched = False
        for peer in peers:
            sender = self._senders[peer]
            if isinstance(sender, FlowSender) and sender.has_key(src, dst, sport, dport, protocol):
                matched = True
                sender.on_pause(now_ns, op, credit_bytes)
                self._wake(sender)
        if not matched:
            self.counters["unexpected"] += 1

    def on_pfc(self, now_ns: int, quanta: tuple[int, ...]) -> None:
        """Handles a PFC frame; quanta: by priority, NO_QUANTA for priorities that are not enabled."""
        self._now_ns = now_ns
        self._pfc.on_pfc(now_ns, quanta)
        self._control_until_ns = self._pfc.until_ns(self._control_priority)
        self._data_until_ns = self._pfc.until_ns(self._data_priority)

    def on_discard(self, now_ns: int, reason: int) -> None:
        """Counts a discarded frame; reason: index into DISCARD_REASONS."""
        self._now_ns = now_ns
        self.counters[DISCARD_REASONS[reason]] += 1

    # ---- departures ----

    def next_packet(self, now_ns: int) -> Packet | int | None:
        """The packet to send now; called when the link is free.

        Returns:
            A packet; or a time in ns, later than now, before which nothing may be sent unless a packet
            arrives; or None: nothing may be sent before a packet arrives.
        """
        self._now_ns = now_ns
        # the port has read the templates of these responses since the last call
        self._queue_pairs.on_responses_sent(self._control_sent)
        if self._timers.ring_ns <= now_ns:  # a timer has expired
            self._run_timers(now_ns)
        if self._control and self._control_until_ns <= now_ns:
            self._control_sent += 1
            return self._control.popleft()
        if self._data_until_ns <= now_ns:
            ready = self._ready
            while ready:
                sender = ready.popleft()
                packet = sender.next_packet(now_ns)
                if packet is not None:
                    if sender.bursting:  # segmentation offload (tcp): no other flow's packet in a burst
                        ready.appendleft(sender)
                    else:
                        ready.append(sender)
                    self._timers.arm(sender)
                    return packet
                sender.queued = False
                self._timers.arm(sender)
        next_ns = self._next_ns()  # the earliest time at which a packet may become ready
        if next_ns == NEVER:
            return None
        return next_ns if next_ns > now_ns else now_ns + 1

    def set_lateness(self, late_ns: int) -> None:
        """Sets how late the next call of `next_packet` is: by how much the link became free earlier.

        Called before each such call. The gaps that the NIC measures end when the link became free.
        """
        if self._time_gaps is not None:
            self._time_gaps.late_ns = late_ns

    def _next_ns(self) -> int:
        next_ns = self._timers.ring_ns
        if self._control:
            next_ns = min(next_ns, self._control_until_ns)
        if self._ready:
            next_ns = min(next_ns, self._data_until_ns)
        return next_ns

    # ---- observations ----

    def records(self) -> list[Observation]:
        """Observations of all flows that begin or end at this NIC."""
        observations: list[Observation] = []
        for sender in self._senders.values():
            if isinstance(sender, FlowSender):
                observations.append(sender.observation(self._now_ns))
            elif isinstance(sender, FlowSpec):
                observations.append(SenderObservation(sender, sender.start_ns))
            else:
                observations.append(sender)
        observations += self.received()
        observations += [
            ReceiverObservation(flow) for flow in self._receivers.values() if isinstance(flow, FlowSpec)
        ]
        return observations

    def received(self) -> list[ReceiverObservation]:
        """Observations of all flows of which a packet has arrived here."""
        observations: list[ReceiverObservation] = []
        for receiver in self._receivers.values():
            if isinstance(receiver, FlowReceiver):
                observations.append(receiver.observation())
            elif isinstance(receiver, ReceiverObservation):
                observations.append(receiver)
        return observations

    @property
    def gaps(self) -> GapHistogram | None:
        """Gaps between packets of a flow, over all flows of this NIC; None: they are not counted."""
        return self._time_gaps.gaps if self._time_gaps is not None else None

    @property
    def learner(self) -> Learner | None:
        """Learns which gaps are long enough to be lengthened (HF2T §4.2); None: the NIC lengthens no gaps."""
        return self._time_gaps.learner if self._time_gaps is not None else None

    @staticmethod
    def merge(*nics: Nic) -> list[FlowRecord]:
        """One record for each flow that these NICs send."""
        return merge([observation for nic in nics for observation in nic.records()])

    # ---- flows and timers ----

    def _finish(self, now_ns: int, number: int) -> None:
        """Records that a flow is complete at this NIC, and starts the flows that waited only for it."""
        self._unfinished -= 1
        self._finished += 1
        for flow, start_ns in self._dependents.complete(number, now_ns):
            self._timers.arm(self._start(flow, start_ns))

    def _wake(self, sender: FlowSender) -> None:
        """Updates queue and timer after an event of a flow, which may now have a packet to send."""
        if sender.started and not sender.queued and not sender.done:
            sender.queued = True
            self._ready.append(sender)
        self._timers.arm(sender)

    def _run_timers(self, now_ns: int) -> None:
        timer_id = self._timers.next_due(now_ns)
        while timer_id != NO_TIMER:
            if timer_id & START:
                self._run_start(now_ns, timer_id & ~START)
            else:
                self._run_timer(now_ns, timer_id)
            timer_id = self._timers.next_due(now_ns)

    def _run_start(self, now_ns: int, peer: int) -> None:
        flow = self._senders[peer]
        assert isinstance(flow, FlowSpec)
        sender = self._start(flow, flow.start_ns)
        sender.on_time(now_ns)
        self._wake(sender)

    def _run_timer(self, now_ns: int, handle: int) -> None:
        end = self._queue_pairs.get(handle)
        assert end is not None
        end.on_time(now_ns)
        if isinstance(end, FlowSender):
            if end.done:  # an unreliable transport has sent its last packet
                self._finish(now_ns, end.flow.id)
                self._end_sender(now_ns, ip_number(end.flow.dst) << QPN_BITS | end.flow.qpn, end)
                return
            self._wake(end)
        else:
            assert isinstance(end, FlowReceiver)
            self._timers.arm(end)
            self._retire_receiver(end)


__all__ = ["FlowRecord", "FlowSpec", "FlowcutNicConfig", "Nic", "NicConfig"]
