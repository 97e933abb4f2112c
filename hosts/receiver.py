# SPDX-License-Identifier: Apache-2.0
"""The destination of one flow: takes packets, answers them, and watches their order."""

from __future__ import annotations

from hosts.config import NicConfig
from hosts.flow import FlowSpec
from hosts.frame import Frame
from hosts.message import Message
from hosts.observation import ReceiverObservation
from hosts.order import OrderObserver
from hosts.packets.bth import ROCE_PORT, Syndrome
from hosts.templates import AckTemplate, Address, NicAckTemplate
from hosts.transport import RECEIVERS
from hosts.transport.base import Answer
from hosts.wire import NO_SHIM, Data


class FlowReceiver:
    """One flow at its destination.

    Attributes:
        timer_ns: the NIC's own note.
    """

    def __init__(self, flow: FlowSpec, config: NicConfig, address: Address) -> None:
        """Args: address: from this NIC to the flow's source."""
        self.flow = flow
        self.timer_ns: int | None = None
        self.end_ns: int | None = None
        self._message = Message(flow.bytes, config.mtu_bytes, config.first_psn)
        self._transport = RECEIVERS[config.transport](self._message.packets, config)
        self._acks = AckTemplate(address, sport=flow.sport, qpn=flow.qpn)
        self._nic_acks = NicAckTemplate(
            address, sport=flow.sport, orig_sport=flow.sport, orig_dport=ROCE_PORT
        )
        self._order = OrderObserver()
        self._bytes = 0
        self._packets = 0
        self._out_of_sequence = 0
        self._path_changes = 0
        self._tag: int | None = None
        self._ce_marked = 0

    @property
    def done(self) -> bool:
        """Whether every byte has arrived in order."""
        return self._transport.done

    def nic_ack(self, data: Data) -> Frame | None:
        """The NIC ACK of a shimmed data packet, whatever the transport makes of it; None: it had no shim."""
        if data.ticks == NO_SHIM:
            return None
        return Frame(self._nic_acks.build(data_bytes=data.frame_bytes, hops=data.hops, ticks=data.ticks))

    def fits(self, data: Data) -> bool:
        """Whether a packet can be one of this flow, by number, opcode and length."""
        index = self._message.index(data.psn, self._transport.expected)
        return (
            0 <= index < self._message.packets
            and data.opcode == self._message.opcode(index)
            and data.payload_bytes == self._message.payload_bytes(index)
        )

    def on_data(self, now_ns: int, data: Data) -> Frame | None:
        """A packet that fits has arrived; the answer, if there is one now."""
        transport = self._transport
        index = self._message.index(data.psn, transport.expected)
        self._packets += 1
        self._ce_marked += data.ce
        if data.tag != self._tag:
            self._path_changes += self._tag is not None
            self._tag = data.tag
        self._order.on_packet(index, data.retransmission)
        self._out_of_sequence += index > transport.expected
        taken = transport.received
        answer = transport.on_data(now_ns, index, data.ackreq)
        if transport.received != taken:
            self._bytes += data.payload_bytes
        if transport.done and self.end_ns is None:
            self.end_ns = now_ns
        return self._frame(answer)

    def deadline_ns(self) -> int | None:
        """When `on_time` has something to do; None: never, unless something arrives."""
        return self._transport.deadline_ns

    def on_time(self, now_ns: int) -> Frame | None:
        """The answer that was held back, when its time has come."""
        return self._frame(self._transport.on_time(now_ns))

    def _frame(self, answer: Answer | None) -> Frame | None:
        if answer is None:
            return None
        messages = int(self._transport.done)
        if not answer.nak:
            psn = self._message.psn(answer.expected - 1)
            return Frame(self._acks.build(psn=psn, syndrome=Syndrome.ACK, msn=messages))
        psn = self._message.psn(answer.expected)
        msn = self._message.psn(answer.arrived)
        return Frame(self._acks.build(psn=psn, syndrome=Syndrome.NAK_SEQUENCE, msn=msn))

    def observation(self) -> ReceiverObservation:
        """What has been seen of the flow here."""
        return ReceiverObservation(
            flow=self.flow,
            end_ns=self.end_ns,
            packets=self._packets,
            bytes=self._bytes,
            out_of_order=self._order.out_of_order,
            overtaken=self._order.overtaken,
            ood_max=self._order.degree_max,
            out_of_sequence=self._out_of_sequence,
            path_changes=self._path_changes,
            ce_marked=self._ce_marked,
        )
