# SPDX-License-Identifier: Apache-2.0
"""The source of one flow: decides when it sends which packet."""

from __future__ import annotations

import random
from typing import Final

from tailrace.codec.calls import (
    ACKREQ_SHIFT,
    BECN_SHIFT,
    BYTE_MASK,
    COUNT_SHIFT,
    DATA,
    KIND_BITS,
    LEFT_MASK,
    LEFT_SHIFT,
    MSN_MASK,
    NEVER,
    PAYLOAD,
    PAYLOAD_MASK,
    PORT_MASK,
    PSN_MASK,
    RETRANSMISSION_SHIFT,
    SPORT_SHIFT,
    SYNDROME_SHIFT,
    VLAN_SHIFT,
    Packet,
)
from tailrace.codec.layers.dscp import Dscp
from tailrace.codec.numbers import FIRST_PORT, LAST_PORT, ROCE_PORT, SHIM_PORT, Syndrome
from tailrace.codec.sizes import HEADER_BYTES
from tailrace.codec.templates import (
    RETH_BYTES,
    SHIM_BYTES,
    UDP_PROTOCOL,
    HostAddress,
    data_headers,
    five_tuple_hash,
    ip_number,
    reth,
)
from tailrace.hosts.errors import ConfigError
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.hosts.flows.observation import SenderObservation
from tailrace.hosts.gaps.hf2t import GO
from tailrace.hosts.gaps.time_gaps import FlowTimeGaps
from tailrace.hosts.nic.message import RdmaMessage
from tailrace.hosts.nic.pause import FlowPauseState
from tailrace.hosts.nic.queue_pair import QueuePair
from tailrace.hosts.options.nic import NicConfig
from tailrace.hosts.steering.assign import SteeringFactory
from tailrace.hosts.steering.base import ACK, ACK_ECN, NACK, TIMEOUT, Steering
from tailrace.hosts.steering.flowcut import FlowcutSender, MinRtt
from tailrace.hosts.steering.hermes import Hermes
from tailrace.hosts.transport import make_sender
from tailrace.hosts.transport.base import NOTHING
from tailrace.hosts.transport.dcqcn.transport import DcqcnSender
from tailrace.hosts.transport.dctcp import DctcpSender
from tailrace.hosts.transport.tcp.transport import TcpSender
from tailrace.spec.constants import NS_BITS  # bytes * NS_BITS / (bit/s) is a time in ns

_NAK_SYNDROME: Final = int(Syndrome.NAK_SEQUENCE)
_TRIMMED_SYNDROME: Final = int(Syndrome.NAK_TRIMMED)
_RETH_BYTES: Final[int] = RETH_BYTES
_ACKREQ: Final = 1 << ACKREQ_SHIFT
_RETRANSMISSION: Final = 1 << RETRANSMISSION_SHIFT
_PAD_MASK: Final = 3  # payloads are padded to a multiple of 4 bytes


def min_rtt_of(config: NicConfig) -> MinRtt | None:
    """The estimator of minimum RTTs that all flows of a NIC share; None: there is no Flowcut on the NIC."""
    flowcut = config.flowcut_nic
    if flowcut is None:
        return None
    full_bytes = HEADER_BYTES + SHIM_BYTES + (config.mtu_bytes + _PAD_MASK & ~_PAD_MASK)
    return MinRtt(flowcut.ns_per_byte, flowcut.base_rtts_ns, full_bytes)


class FlowSender(QueuePair):
    """One flow at its source. The NIC calls `next_packet` while the flow is `started` and not `done`.

    queued: whether the flow is in the NIC's ready queue; set by the NIC.
    start_ns: when the flow may send its first packet.
    bursting: whether the flow's next packet must be sent before packets of other flows.
    """

    def __init__(
        self,
        flow: FlowSpec,
        config: NicConfig,
        address: HostAddress,
        handle: int,
        min_rtt: MinRtt | None,
        rng: random.Random,
        steerings: SteeringFactory,
        time_gaps: FlowTimeGaps | None,
    ) -> None:
        """Args:
        address: addresses of frames from this NIC to the flow's destination.
        handle: handle of this queue pair at its NIC.
        min_rtt: estimator of minimum RTTs, for Flowcut on the NIC; None: there is no Flowcut on the NIC.
        rng: chooses source ports.
        steerings: makes the flow's steering, which chooses its paths.
        time_gaps: measures and stretches the gaps between the flow's packets; None: neither.

        Raises:
            ConfigError: the flow requires steering that this NIC does not support.
        """
        super().__init__(handle)
        self.flow = flow
        self.queued = False
        self.start_ns: int = flow.start_ns
        self.started = False
        self.bursting = False
        self._message = RdmaMessage(flow.bytes, config.mtu_bytes, config.first_psn)
        self.transport = make_sender(self._message.packets, config, flow.sport, rng)
        self._dcqcn: DcqcnSender | None = self.transport if isinstance(self.transport, DcqcnSender) else None
        self._tcp: TcpSender | None = self.transport if isinstance(self.transport, TcpSender) else None
        self._address = address
        self._ecn: bool = config.ecn
        self._pause = FlowPauseState(config.pause_timeout_ns)
        self._flowcut: FlowcutSender | None = None
        if config.flowcut_nic is not None and min_rtt is not None:
            self._flowcut = FlowcutSender(
                config.flowcut_nic,
                min_rtt,
                config.pause_timeout_ns,
                flow.sport,
                rng,
                held_ns=config.held_ns if config.nic_ack_every > 1 else 0,
            )
        self._shimmed = self._flowcut is not None  # data packets have Flowcut's shim (codec.layers.nic_shim)
        self._overhead_bytes: int = HEADER_BYTES + (SHIM_BYTES if self._shimmed else 0)
        self._virtual: bool = config.virtual_payload  # the payload is only a number of bytes
        self._template_id = handle << KIND_BITS | (DATA if config.virtual_payload else PAYLOAD)
        self._asks_always = config.ack_every == 1  # whether each packet requests an ACK
        # the transport dcqcn applies config.flow_rate_bps itself
        self._flow_rate_bps: int = 0 if self._dcqcn is not None else config.flow_rate_bps
        self._pace_ns = 0  # earliest time of the next frame; 0: no timer is set
        self._time_gaps = time_gaps
        self._rng = rng
        self._steerings = steerings
        self._steered = steerings.algorithm(flow) != ""
        self._steering: Steering | None = None
        # the same object as _steering if this class, not the transport, asks for source ports; else None
        self._chooser: Steering | None = None
        self._explored = 0
        self._reused = 0
        self._blocked = 0
        self._nacks = 0
        self._sent = 0
        self._retransmitted = 0
        self._congestion_notifications = 0

    @property
    def done(self) -> bool:
        """Whether everything has been acknowledged."""
        return self.transport.done

    @property
    def drains(self) -> int:
        """Number of times that the flow was paused for a change of path."""
        return self._pause.count + (self._flowcut.drains if self._flowcut is not None else 0)

    @property
    def draining(self) -> bool:
        """Whether the flow is paused for a change of path."""
        return self._pause.paused or (self._flowcut is not None and self._flowcut.draining)

    @property
    def timeouts(self) -> int:
        """Number of retransmission timeouts."""
        return self.transport.timeouts

    def template(self, kind: int) -> tuple[bytes, bytes]:
        """Headers of data packets, and the RETH of the first packet."""
        assert kind in (DATA, PAYLOAD)
        flow = self.flow
        headers = data_headers(
            self._address,
            sport=flow.sport,
            qpn=flow.qpn,
            ecn=self._ecn,
            shimmed=self._shimmed,
            dscp=Dscp.STEERED if flow.steering else Dscp.DEFAULT,
        )
        return headers, reth(flow.bytes)

    def has_key(self, src: int, dst: int, sport: int, dport: int, protocol: int) -> bool:
        """Whether the flow has this 5-tuple on the wire now."""
        return (
            sport == self.transport.sport
            and dport == (SHIM_PORT if self._shimmed else ROCE_PORT)
            and protocol == UDP_PROTOCOL
            and src == ip_number(self.flow.src)
            and dst == ip_number(self.flow.dst)
        )

    def next_packet(self, now_ns: int) -> Packet | None:
        """The next data packet; None: nothing may be sent now."""
        if now_ns < self._pace_ns or (self._flowcut is not None and self._flowcut.draining):
            return None
        transport, message = self.transport, self._message
        index = transport.peek()
        if index == NOTHING:
            if self._time_gaps is not None:
                self._time_gaps.forget()  # no packet is held back to lengthen a gap
            return None
        length_opcode = message.length_opcode(index)
        frame_bytes = self._overhead_bytes + ((length_opcode & PAYLOAD_MASK) + _PAD_MASK & ~_PAD_MASK)
        if index == 0:
            frame_bytes += _RETH_BYTES
        if not self._pause.allows(frame_bytes):
            return None
        if self._time_gaps is not None:
            until_ns = self._time_gaps.hold_ns(now_ns, frame_bytes)
            if until_ns != GO:  # GO: the packet may be sent now
                # the NIC calls this method again after the flow's next event, and when this timer expires
                self._pace_ns = until_ns
                return None
            if self._time_gaps.moves:
                transport.sport = self._rng.randint(FIRST_PORT, LAST_PORT)
        remaining = message.packets - index
        data_fields = length_opcode | (remaining if remaining < LEFT_MASK else LEFT_MASK) << LEFT_SHIFT
        if index < transport.fresh:
            data_fields |= _RETRANSMISSION
            self._retransmitted += 1
        # request an ACK if the receiver might otherwise delay it although no further packet may be sent
        if self._asks_always or transport.asks_at(index):
            data_fields |= _ACKREQ
        self._on_sent(now_ns, index, frame_bytes)
        psn_fields = message.psn(index) | transport.sport << SPORT_SHIFT
        if self._steering is not None and self._steering.vlans:
            data_fields |= self._steering.vlans[transport.sport] << VLAN_SHIFT
        if self._virtual:
            return (self._template_id, psn_fields, data_fields)
        return (self._template_id, psn_fields, data_fields, message.payload(index))

    def _on_sent(self, now_ns: int, index: int, frame_bytes: int) -> None:
        if self._chooser is not None:
            sport = self._chooser.next_ev(now_ns)
            if not 1 <= sport <= PORT_MASK:
                raise ConfigError(
                    f"flow {self.flow.id}: steering chose port {sport}, expected 1..{PORT_MASK}"
                )
            self.transport.sport = sport
        self.transport.on_sent(now_ns, index)
        self._pause.on_sent(frame_bytes)
        if self._flowcut is not None:
            self._flowcut.on_sent(now_ns, frame_bytes)
        if self._flow_rate_bps:
            start_ns = max(now_ns, self._pace_ns)
            # NS_BITS: bytes * NS_BITS / (bits/s) is a time in ns
            self._pace_ns = start_ns + -(-frame_bytes * NS_BITS // self._flow_rate_bps)
        if self._dcqcn is not None:
            self._dcqcn.on_frame(now_ns, frame_bytes)
            self._pace(now_ns, self._dcqcn)
        if self._tcp is not None:
            self.bursting = self._tcp.burst_left > 0
        self._sent += 1

    def _pace(self, now_ns: int, dcqcn: DcqcnSender) -> None:
        """Sets the earliest time of the next frame, according to DCQCN."""
        ready_ns = dcqcn.pacer.ready_ns
        self._pace_ns = ready_ns if ready_ns > now_ns else 0

    def on_ack(self, now_ns: int, psn_fields: int, aeth: int) -> None:
        """Handles an ACK, a NAK (missing packet) or a NACK (trimmed packet); ignores invalid responses."""
        transport, message = self.transport, self._message
        syndrome = aeth >> SYNDROME_SHIFT
        sport = psn_fields >> SPORT_SHIFT & PORT_MASK
        nak = syndrome == _NAK_SYNDROME
        index = message.index(psn_fields & PSN_MASK, transport.acked)
        arrived = message.index(aeth & MSN_MASK, index)
        # a NAK contains the PSN of the expected packet, other responses that of the packet before
        expected = index if nak else index + 1
        if syndrome == _TRIMMED_SYNDROME:
            self._nacks += 1
            transport.on_trimmed(now_ns, expected, arrived, sport)
        else:
            marked = psn_fields >> BECN_SHIFT & 1 == 1
            transport.on_ack(now_ns, nak, expected, arrived, sport, marked)
            if self._chooser is not None:
                self._chooser.on_feedback(now_ns, NACK if nak else ACK_ECN if marked else ACK, sport)
        if transport.done:
            self._finish(now_ns)

    def _start(self, now_ns: int) -> None:
        self.started = True
        if self._steered:
            flow = self.flow
            flow_hash = five_tuple_hash(flow.src, flow.dst, flow.sport, ROCE_PORT)
            self._steer(self._steerings.start(now_ns, flow, flow_hash))

    def _finish(self, now_ns: int) -> None:
        self._pause.resume(now_ns)  # there is nothing left to send
        if self._flowcut is not None:
            self._flowcut.finish(now_ns)
        steering = self._steering
        if steering is not None:
            self._count_steering()
            # the steering's memory is freed at once, since a run may have many flows
            self._steer(None)
            self._steerings.finish(now_ns, self.flow, steering)

    def _steer(self, steering: Steering | None) -> None:
        """Sets the steering, in the transport if that asks for source ports itself."""
        self._steering, self._chooser = steering, None
        if isinstance(self.transport, DctcpSender):
            self.transport.steering = steering
        elif self._dcqcn is not None and (steering is None or isinstance(steering, Hermes)):
            self._dcqcn.steering = steering
        else:
            self._chooser = steering

    def _count_steering(self) -> None:
        """Copies the counters of the steering, whose memory is freed when the flow ends."""
        steering = self._steering
        if steering is not None:
            self._explored, self._reused = steering.explored, steering.reused
            self._blocked = steering.blocked

    def on_pause(self, now_ns: int, op: int, credit_bytes: int) -> None:
        """Handles a pause frame: a switch pauses or resumes the flow."""
        if not self.transport.done:
            self._pause.on_pause(now_ns, op, credit_bytes)

    def on_nic_ack(self, now_ns: int, count: int, ticks: int) -> None:
        """Handles a NIC ACK of this flow: packets have arrived at the destination NIC."""
        if self._flowcut is None:
            return
        self._flowcut.on_nic_ack(
            now_ns,
            data_bytes=count >> COUNT_SHIFT,
            hops=count & BYTE_MASK,
            ticks=ticks,
            left=self._message.packets - self.transport.fresh,
        )
        self.transport.sport = self._flowcut.wire_sport

    def on_cnp(self, now_ns: int) -> None:
        """Handles a CNP: the destination NIC has received marked packets."""
        self._congestion_notifications += 1
        if self._dcqcn is not None and not self.transport.done:
            self._dcqcn.on_cnp(now_ns)
            self._pace(now_ns, self._dcqcn)

    def deadline_ns(self) -> int:
        """When `on_time` must be called."""
        if not self.started:
            return self.start_ns
        transport = self.transport
        if transport.done:
            return NEVER
        deadline_ns = transport.deadline_ns
        if self._pause.deadline_ns < deadline_ns:
            deadline_ns = self._pause.deadline_ns
        if self._pace_ns and self._pace_ns < deadline_ns:
            deadline_ns = self._pace_ns
        if self._flowcut is not None:
            deadline_ns = min(deadline_ns, self._flowcut.deadline_ns())
        if self._dcqcn is not None:
            deadline_ns = min(deadline_ns, self._dcqcn.rate.deadline_ns)
        return deadline_ns

    def on_time(self, now_ns: int) -> None:
        """Handles all timers that are due."""
        if not self.started and now_ns >= self.start_ns:
            self._start(now_ns)
        if now_ns >= self._pace_ns:
            self._pace_ns = 0
        if self.transport.done:
            return
        timeouts = self.transport.timeouts
        self.transport.on_time(now_ns)
        if self._chooser is not None and self.transport.timeouts != timeouts:
            self._chooser.on_feedback(now_ns, TIMEOUT, self.transport.sport)
        if self._dcqcn is not None:
            self._dcqcn.on_rate_time(now_ns)
            self._pace(now_ns, self._dcqcn)
        self._pause.on_time(now_ns)
        if self._flowcut is not None:
            self._flowcut.on_time(now_ns)
            self.transport.sport = self._flowcut.wire_sport

    def observation(self, now_ns: int) -> SenderObservation:
        """The observation of the flow at its source."""
        flowcut = self._flowcut
        shaper = self._time_gaps.shaper if self._time_gaps is not None else None
        self._count_steering()
        return SenderObservation(
            flow=self.flow,
            start_ns=self.start_ns,
            done=self.transport.done,
            packets=self._sent,
            retransmitted=self._retransmitted,
            drains=self.drains,
            drained_ns=self._pause.total_ns(now_ns) + (flowcut.total_ns(now_ns) if flowcut else 0),
            reroutes=flowcut.reroutes if flowcut else 0,
            pause_timeouts=self._pause.timeouts + (flowcut.timeouts if flowcut else 0),
            timeouts=self.timeouts,
            congestion_notifications=self._congestion_notifications,
            nacks=self._nacks,
            explored=self._explored,
            reused=self._reused,
            blocked=self._blocked,
            stretched=shaper.stretched if shaper is not None else 0,
            stretched_ns=shaper.stretched_ns if shaper is not None else 0,
            natural=shaper.natural if shaper is not None else 0,
            rtts_from_ns=flowcut.sampled_from_ns if flowcut else 0,
        )
