# SPDX-License-Identifier: Apache-2.0
"""The destination of one flow: receives packets, sends responses and observes reordering.

Responses are ACKs, NAKs (missing packet), NACKs (trimmed packet), CNPs (congestion notification packets of
DCQCN). If Flowcut runs on the NIC there are also NIC ACKs: with these the NIC reports bytes that have
arrived, whatever the transport does with the packets.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from tailrace.codec.calls import (
    ACK,
    ACKREQ_SHIFT,
    BECN_SHIFT,
    BYTE_MASK,
    CE_SHIFT,
    FRAME_SHIFT,
    HOPS_SHIFT,
    KIND_BITS,
    LENGTH_OPCODE_MASK,
    NIC_ACK,
    NO_SHIM,
    OPCODE_SHIFT,
    PAYLOAD_MASK,
    PORT_MASK,
    PSN_MASK,
    RAW,
    RETRANSMISSION_SHIFT,
    SPORT_SHIFT,
    SYNDROME_SHIFT,
    TAG_MASK,
    TAG_SHIFT,
    Packet,
)
from tailrace.codec.layers.dscp import Dscp
from tailrace.codec.numbers import ROCE_PORT, Syndrome
from tailrace.codec.templates import HostAddress, ack_headers, cnp_frame, nic_ack_headers
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.hosts.flows.observation import ReceiverObservation
from tailrace.hosts.nic.message import NO_PACKET, RdmaMessage
from tailrace.hosts.nic.nic_acks import NicAcks
from tailrace.hosts.nic.order import OrderObserver
from tailrace.hosts.nic.queue_pair import QueuePair
from tailrace.hosts.options.nic import DCQCN, NicConfig
from tailrace.hosts.transport import make_receiver
from tailrace.hosts.transport.base import NAK, SILENCE, TRIMMED
from tailrace.hosts.transport.dcqcn.cnp import CnpClock

_ACK_AETH: Final = int(Syndrome.ACK) << SYNDROME_SHIFT
_NAK_AETH: Final = int(Syndrome.NAK_SEQUENCE) << SYNDROME_SHIFT
_TRIMMED_AETH: Final = int(Syndrome.NAK_TRIMMED) << SYNDROME_SHIFT
_NO_TIME: Final = -1


class FlowReceiver(QueuePair):
    """One flow at its destination."""

    def __init__(
        self, flow: FlowSpec, config: NicConfig, address: HostAddress, handle: int, control: deque[Packet]
    ) -> None:
        """Args:
        address: addresses of frames from this NIC to the flow's source.
        handle: handle of this queue pair at its NIC.
        control: the NIC's queue of responses.
        """
        super().__init__(handle)
        self.flow = flow
        self.end_ns = _NO_TIME
        self._last_ns = _NO_TIME  # when a packet arrived last
        self._address = address
        self._control = control
        self._ack_template_id = handle << KIND_BITS | ACK
        self._nic_acks = NicAcks(config, handle << KIND_BITS | NIC_ACK, control)
        self._message = RdmaMessage(flow.bytes, config.mtu_bytes, config.first_psn)
        self._transport = make_receiver(self._message.packets, config)
        self._reports_arrival = self._transport.reports_arrival
        self._cnps: CnpClock | None = CnpClock(config.dcqcn.cnp_ns) if config.transport == DCQCN else None
        # whether a CNP precedes each NAK
        self._nak_cnp: bool = self._cnps is not None and config.dcqcn.nak_cnp
        self._cnp = b""  # the flow's CNP frame; built for the first CNP
        self._cnps_sent = 0
        self._order = OrderObserver()
        self._bytes = 0
        self._packets = 0
        self._first_received = 0
        # Arrivals with another PSN than the transport expected: `raw` counts all, `sequence` only larger
        # PSNs. `_order` counts only arrivals that the network reordered.
        self._out_of_order_raw = 0
        self._out_of_sequence = 0
        self._ce_marked = 0
        self._trimmed = 0
        # echoed by the next response: the last packet's source port, and any mark since the last response
        self._sport: int = flow.sport
        self._marked = False

    def resume(self, observation: ReceiverObservation) -> None:
        """Restores the state of a complete flow from its observation."""
        assert observation.end_ns is not None
        self._transport.resume()
        self._order.resume(
            self._message.packets,
            observation.highest,
            observation.tag,
            observation.out_of_order,
            observation.overtaken,
            observation.ood_max,  # largest out-of-order degree (hosts.nic.order)
            observation.path_changes,
        )
        self.end_ns = observation.end_ns
        self._cnps_sent = observation.cnps_sent
        self._bytes = observation.bytes
        self._packets = observation.packets
        self._first_received = observation.first_received
        self._out_of_order_raw = observation.out_of_order_raw
        self._out_of_sequence = observation.out_of_sequence
        self._ce_marked = observation.ce_marked
        self._trimmed = observation.trimmed

    @property
    def done(self) -> bool:
        """Whether every byte has arrived in order."""
        return self.end_ns != _NO_TIME

    @property
    def path_changes(self) -> int:
        """Number of changes of path between consecutive packets (hosts.nic.order)."""
        return self._order.path_changes

    def template(self, kind: int) -> tuple[bytes, bytes]:
        """Headers of ACKs or NIC ACKs."""
        sport, qpn = self.flow.sport, self.flow.qpn
        if kind == NIC_ACK:
            headers = nic_ack_headers(self._address, sport=sport, orig_sport=sport, orig_dport=ROCE_PORT)
        else:
            headers = ack_headers(self._address, sport=sport, qpn=qpn, dscp=self._dscp())
        return headers, b""

    def _dscp(self) -> int:
        """The DSCP of responses, the same as that of the flow's data packets."""
        return int(Dscp.STEERED if self.flow.steering else Dscp.DEFAULT)

    def on_data(self, now_ns: int, psn_fields: int, data_fields: int, ticks: int) -> bool:
        """Handles a data packet of this queue pair.

        Args:
            psn_fields, data_fields: see `codec.calls`.
            ticks: timestamp of the packet's Flowcut shim (codec.layers.nic_shim), or NO_SHIM.

        Returns:
            False: the packet is invalid for this flow, and ignored.
        """
        transport = self._transport
        expected = transport.expected
        index = self._message.index(psn_fields & PSN_MASK, expected)
        length_opcode = self._message.length_opcode(index)
        if length_opcode == NO_PACKET or data_fields & LENGTH_OPCODE_MASK != length_opcode:
            return False
        ackreq = data_fields >> ACKREQ_SHIFT & 1 == 1
        if ticks != NO_SHIM:
            # NIC ACKs do not depend on how the transport handles the packet
            retransmission = data_fields >> RETRANSMISSION_SHIFT & 1 == 1
            at_once = ackreq or retransmission or index != expected or index + 1 == self._message.packets
            self._nic_acks.on_data(
                now_ns, data_fields >> FRAME_SHIFT, data_fields >> HOPS_SHIFT & BYTE_MASK, ticks, at_once
            )
        if transport.uniform_marks and transport.ack_delayed and data_fields >> CE_SHIFT & 1 != self._marked:
            # the packets of the delayed ACK have another mark, so the ACK is sent without this packet
            self._respond(transport.release())
        self._observe(index, expected, data_fields)
        if self._cnps is not None and data_fields >> CE_SHIFT & 1 and self._cnps.on_marked(now_ns):
            self._notify()
        self._sport = psn_fields >> SPORT_SHIFT & PORT_MASK
        received_before = transport.received  # the count without duplicates
        response = transport.on_data(now_ns, index, ackreq)
        if transport.received != received_before:
            self._bytes += data_fields & PAYLOAD_MASK
        self._last_ns = now_ns
        if self.end_ns == _NO_TIME and transport.done:
            self.end_ns = now_ns
        if response != SILENCE:
            self._respond(response)
        return True

    def on_trimmed(self, psn_fields: int, data_fields: int) -> bool:
        """Handles a trimmed data packet (without its payload).

        Args:
            psn_fields, data_fields: see `codec.calls`.

        Returns:
            False: the packet is invalid for this flow, and ignored.
        """
        transport = self._transport
        index = self._message.index(psn_fields & PSN_MASK, transport.expected)
        length_opcode = self._message.length_opcode(index)
        if length_opcode == NO_PACKET or (data_fields ^ length_opcode) >> OPCODE_SHIFT & BYTE_MASK:
            return False
        self._trimmed += 1
        if transport.uniform_marks and transport.ack_delayed:
            # the NACK covers one packet only, so the delayed ACK of earlier packets is sent first
            self._respond(transport.release())
        response = transport.on_trimmed(index)
        if response != SILENCE:
            self._sport = psn_fields >> SPORT_SHIFT & PORT_MASK
            self._respond(response)
        return True

    def _observe(self, index: int, expected: int, data_fields: int) -> None:
        self._packets += 1
        if data_fields >> CE_SHIFT & 1:
            self._ce_marked += 1
            self._marked = True
        retransmission = data_fields >> RETRANSMISSION_SHIFT & 1 == 1
        if not retransmission:
            self._first_received += 1
        path_tag = data_fields >> TAG_SHIFT & TAG_MASK
        self._order.on_packet(index, retransmission, path_tag)
        if index != expected:
            self._out_of_order_raw += 1
            if index > expected:  # not a duplicate or late retransmission
                self._out_of_sequence += 1

    def deadline_ns(self) -> int:
        """When a delayed ACK, NIC ACK or CNP is due."""
        deadline_ns = min(self._transport.deadline_ns, self._nic_acks.deadline_ns)
        return deadline_ns if self._cnps is None else min(deadline_ns, self._cnps.deadline_ns)

    def on_time(self, now_ns: int) -> None:
        """Sends delayed CNPs and responses that are due."""
        if self._cnps is not None and self._cnps.on_time(now_ns):
            self._notify()
        self._nic_acks.on_time(now_ns)
        response = self._transport.on_time(now_ns)
        if response != SILENCE:
            self._respond(response)

    def _notify(self) -> None:
        """Sends a CNP to the source (Zhu et al., SIGCOMM 2015, §3.1)."""
        if not self._cnp:
            flow = self.flow
            self._cnp = cnp_frame(self._address, sport=flow.sport, qpn=flow.qpn, dscp=self._dscp())
        self._cnps_sent += 1
        self._control.append((RAW, self._cnp, 0))  # 0: no virtual bytes, which are counted but not stored

    def _respond(self, response: int) -> None:
        """Sends a response. It echoes the last packet's source port and any mark since the last response.

        NAKs, NACKs, and ACKs of transports with `reports_arrival` extend RoCE: the MSN field of their AETH
        has the PSN of the packet that has just arrived (`arrived`).
        """
        message = self._message
        expected = self._transport.expected
        if response == NAK:
            if self._nak_cnp:
                self._notify()
            psn, aeth = message.psn(expected), _NAK_AETH | message.psn(self._transport.arrived)
        elif response == TRIMMED:
            psn, aeth = message.psn(expected - 1), _TRIMMED_AETH | message.psn(self._transport.arrived)
        elif self._reports_arrival:
            psn, aeth = message.psn(expected - 1), _ACK_AETH | message.psn(self._transport.arrived)
        else:
            # the MSN field is the number of complete messages
            psn, aeth = message.psn(expected - 1), _ACK_AETH | (1 if self.end_ns != _NO_TIME else 0)
        psn_fields = psn | self._sport << SPORT_SHIFT
        if self._marked:
            psn_fields |= 1 << BECN_SHIFT
            self._marked = False
        self._control.append((self._ack_template_id, psn_fields, aeth))

    def observation(self) -> ReceiverObservation:
        """The observation of the flow at its destination."""
        end_ns = self._last_ns if self._transport.unreliable else self.end_ns
        return ReceiverObservation(
            flow=self.flow,
            end_ns=end_ns if end_ns != _NO_TIME else None,
            packets=self._packets,
            bytes=self._bytes,
            first_received=self._first_received,
            out_of_order=self._order.out_of_order,
            out_of_order_raw=self._out_of_order_raw,
            overtaken=self._order.overtaken,
            ood_max=self._order.degree_max,
            out_of_sequence=self._out_of_sequence,
            path_changes=self.path_changes,
            ce_marked=self._ce_marked,
            trimmed=self._trimmed,
            cnps_sent=self._cnps_sent,
            tag=self._order.tag,
            highest=self._order.highest,
        )
