# SPDX-License-Identifier: Apache-2.0
"""The source of one flow: decides whether it may send, and what."""

from __future__ import annotations

import random

from hosts.config import NicConfig
from hosts.flow import FlowSpec
from hosts.flowcut_nic import FlowcutSender, MinRtt
from hosts.frame import Frame
from hosts.message import Message
from hosts.observation import SenderObservation
from hosts.packets.bth import ROCE_PORT, Syndrome, left_field
from hosts.packets.nic_shim import SHIM_PORT
from hosts.pause import FlowPauseState
from hosts.templates import Address, DataTemplate, ip_number, reth
from hosts.transport import SENDERS
from hosts.transport.base import Answer
from hosts.wire import UDP_PROTOCOL, WITH_RETH, ZEROS, Ack, NicAcked, Pause

_NS_BITS = 8_000_000_000  # bits in a byte times ns in a second


class FlowSender:
    """One flow at its source. The NIC calls `next_frame` while it is `started` and not `done`.

    Attributes:
        queued, timer_ns: the NIC's own notes.
    """

    def __init__(
        self, flow: FlowSpec, config: NicConfig, address: Address, min_rtt: MinRtt | None, rng: random.Random
    ) -> None:
        """Args:
        address: from this NIC to the flow's destination.
        min_rtt: the NIC's, if it does Flowcut itself.
        rng: chooses source ports.
        """
        self.flow = flow
        self.queued = False
        self.timer_ns: int | None = None
        self.started = False
        self.transport = SENDERS[config.transport](-(-flow.bytes // config.mtu_bytes), config)
        self._config = config
        self._message = Message(flow.bytes, config.mtu_bytes, config.first_psn)
        self._reth = reth(flow.bytes)
        self._pause = FlowPauseState(config.pause_timeout_ns)
        self._flowcut: FlowcutSender | None = None
        if config.flowcut_nic is not None and min_rtt is not None:
            self._flowcut = FlowcutSender(
                config.flowcut_nic, min_rtt, config.pause_timeout_ns, flow.sport, rng
            )
        shimmed = self._flowcut is not None
        self._template = DataTemplate(
            address, sport=flow.sport, qpn=flow.qpn, ecn=config.ecn, shimmed=shimmed
        )
        self._key = (
            ip_number(flow.src),
            ip_number(flow.dst),
            SHIM_PORT if shimmed else ROCE_PORT,
            UDP_PROTOCOL,
        )
        self._pace_ns = 0
        self._sent = 0
        self._retransmitted = 0
        self._congestion_notifications = 0

    @property
    def done(self) -> bool:
        """Whether everything has been acknowledged."""
        return self.transport.done

    def has_key(self, key: tuple[int, int, int, int, int]) -> bool:
        """Whether the flow has this 5-tuple on the wire now."""
        src, dst, sport, dport, protocol = key
        return (src, dst, dport, protocol) == self._key and sport == self._template.wire_sport

    def next_frame(self, now_ns: int) -> Frame | None:
        """The next data packet; None: nothing may be sent now."""
        flowcut = self._flowcut
        if now_ns < self._pace_ns or (flowcut is not None and flowcut.draining):
            return None
        index = self.transport.peek()
        if index is None:
            return None
        message = self._message
        opcode = message.opcode(index)
        payload_bytes = message.payload_bytes(index)
        padding = -payload_bytes % 4
        body = self._reth if opcode in WITH_RETH else b""
        frame_bytes = self._template.overhead_bytes + len(body) + payload_bytes + padding
        if not self._pause.allows(frame_bytes):
            return None

        virtual_bytes = payload_bytes + padding if self._config.virtual_payload else 0
        if not virtual_bytes:
            body += message.payload(index) + bytes(padding)
        retransmission = index < self.transport.fresh
        data = self._template.build(
            opcode=opcode,
            psn=message.psn(index),
            left=left_field(message.packets - index),
            # asks for an answer where waiting for more packets would be in vain
            ackreq=self._config.ack_every == 1 or not self.transport.window_open_after(index),
            retransmission=retransmission,
            ticks=now_ns,
            body=body,
            padding=padding,
            virtual_bytes=virtual_bytes,
            zeros=ZEROS,
        )
        self._on_sent(now_ns, index, frame_bytes, retransmission)
        return Frame(data, virtual_bytes)

    def _on_sent(self, now_ns: int, index: int, frame_bytes: int, retransmission: bool) -> None:
        self.transport.on_sent(now_ns, index)
        self._pause.on_sent(frame_bytes)
        if self._flowcut is not None:
            self._flowcut.on_sent(now_ns, frame_bytes)
        if self._config.flow_rate_bps:
            start_ns = max(now_ns, self._pace_ns)
            self._pace_ns = start_ns + -(-frame_bytes * _NS_BITS // self._config.flow_rate_bps)
        self._sent += 1
        self._retransmitted += retransmission

    def on_ack(self, now_ns: int, ack: Ack) -> None:
        """An ACK or NAK of this flow; one that makes no sense changes nothing."""
        nak = ack.syndrome == Syndrome.NAK_SEQUENCE
        index = self._message.index(ack.psn, self.transport.acked)
        arrived = self._message.index(ack.msn, index) if nak else index
        self.transport.on_answer(now_ns, Answer(nak, index if nak else index + 1, arrived))
        if self.transport.done:
            self._pause.finish(now_ns)
            if self._flowcut is not None:
                self._flowcut.finish(now_ns)

    def on_pause(self, now_ns: int, pause: Pause) -> None:
        """A switch asks the flow to stop or to go on."""
        if not self.transport.done:
            self._pause.on_pause(now_ns, pause.op, pause.credit_bytes)

    def on_nic_ack(self, now_ns: int, ack: NicAcked) -> None:
        """The destination NIC has seen a packet of this flow."""
        if self._flowcut is None:
            return
        left = self._message.packets - self.transport.fresh
        self._flowcut.on_nic_ack(now_ns, data_bytes=ack.data_bytes, hops=ack.hops, ticks=ack.ticks, left=left)
        self._follow(self._flowcut)

    def on_cnp(self) -> None:
        """The destination NIC has seen congestion."""
        self._congestion_notifications += 1

    def deadline_ns(self) -> int | None:
        """When `on_time` has something to do; None: never, unless something else happens."""
        if not self.started:
            return self.flow.start_ns
        if self.transport.done:
            return None
        times = [self.transport.deadline_ns, self._pause.deadline_ns()]
        if self._flowcut is not None:
            times.append(self._flowcut.deadline_ns())
        if self._pace_ns:
            times.append(self._pace_ns)
        return min((time for time in times if time is not None), default=None)

    def on_time(self, now_ns: int) -> None:
        """Lets run off whatever is due."""
        if now_ns >= self.flow.start_ns:
            self.started = True
        if now_ns >= self._pace_ns:
            self._pace_ns = 0
        if self.transport.done:
            return
        self.transport.on_time(now_ns)
        self._pause.on_time(now_ns)
        if self._flowcut is not None:
            self._flowcut.on_time(now_ns)
            self._follow(self._flowcut)

    def _follow(self, flowcut: FlowcutSender) -> None:
        if flowcut.wire_sport != self._template.wire_sport:
            self._template.set_wire_sport(flowcut.wire_sport)

    def observation(self, now_ns: int) -> SenderObservation:
        """What has been seen of the flow here."""
        flowcut = self._flowcut
        return SenderObservation(
            flow=self.flow,
            done=self.transport.done,
            packets=self._sent,
            retransmitted=self._retransmitted,
            drains=self._pause.count + (flowcut.drains if flowcut else 0),
            drained_ns=self._pause.total_ns(now_ns) + (flowcut.total_ns(now_ns) if flowcut else 0),
            reroutes=flowcut.reroutes if flowcut else 0,
            pause_timeouts=self._pause.timeouts + (flowcut.timeouts if flowcut else 0),
            timeouts=self.transport.timeouts,
            congestion_notifications=self._congestion_notifications,
        )
