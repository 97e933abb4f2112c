# SPDX-License-Identifier: Apache-2.0
"""The description of frames for the codec in C: offsets, shifts and masks from the formats of headers, and
constants.

The C code lists the names that it needs (`tc_layout_names` in tc_codec.c), and `offsets` has a value for
each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from tailrace.codec import calls
from tailrace.codec.checksum import ICRC_BYTES, icrc_of_headers
from tailrace.codec.layers.dscp import DSCP_SHIFT, Dscp
from tailrace.codec.layout import HeaderLayout
from tailrace.codec.numbers import (
    ACK_PORT,
    LOCAL_TYPE,
    MAC_CONTROL_TYPE,
    PFC_OPCODE,
    RETRANSMISSION,
    ROCE_PORT,
    SHIM_PORT,
    TTL,
    Opcode,
    PauseOp,
    Subtype,
)
from tailrace.codec.templates import AETH_BYTES, ECN_CE, NIC_ACK, RETH_BYTES, ROCE, UDP_PROTOCOL

IPV4 = 0x0800
VLAN = 0x8100
"""The EtherType of 802.1Q tags: a data packet may have one, for its path class, until its first or second hop
(Spritz §III-D). VlanId_t in p4src/common/types.p4 defines the classes; receivers never see a tag."""


def _byte(layout: HeaderLayout, first: str, last: str | None = None, *, bits: int) -> int:
    """The byte offset of fields that the C code reads as one number of `bits` bits.

    Raises:
        ValueError: the fields have another length.
    """
    span = layout.span(first, last)
    if span.bits != bits:
        raise ValueError(f"{first}: {span.bits} bits, but the codec reads {bits}")
    return span.byte


def _addressing() -> dict[str, int]:
    """Values for Ethernet, IPv4 and UDP."""
    roce = ROCE.layout
    fragment = roce.span("IP.flags", "IP.frag")
    version = _byte(roce, "IP.version", "IP.ihl", bits=8)
    return {
        "ether_type": _byte(roce, "Ether.type", bits=16),
        "type_ipv4": IPV4,
        "type_local": LOCAL_TYPE,
        "type_mac_control": MAC_CONTROL_TYPE,
        "ip": roce.start("IP"),
        "ip_version": version,
        "ip_no_options": ROCE.fill({})[version],
        "ip_tos": _byte(roce, "IP.tos", bits=8),
        "ip_len": _byte(roce, "IP.len", bits=16),
        "ip_id": _byte(roce, "IP.id", bits=16),
        "ip_fragment": _byte(roce, "IP.flags", "IP.frag", bits=16),
        # bits of which one is set in fragments: flag MF (the lowest of the flags), and the offset
        "ip_fragment_mask": roce.mask("IP.frag") | 1 << roce.shift(fragment, "IP.flags"),
        "ip_ttl": _byte(roce, "IP.ttl", bits=8),
        "ip_proto": _byte(roce, "IP.proto", bits=8),
        "ip_chksum": _byte(roce, "IP.chksum", bits=16),
        "ip_src": _byte(roce, "IP.src", bits=32),
        "ip_dst": _byte(roce, "IP.dst", bits=32),
        "udp": roce.start("UDP"),
        "udp_sport": _byte(roce, "UDP.sport", bits=16),
        "udp_dport": _byte(roce, "UDP.dport", bits=16),
        "udp_len": _byte(roce, "UDP.len", bits=16),
        "udp_end": HeaderLayout("Ether", "IP", "UDP").size_bytes,
        "udp_protocol": UDP_PROTOCOL,
        "initial_ttl": TTL,
        "ce": ECN_CE,
        "retransmission": RETRANSMISSION,
        "dscp_shift": DSCP_SHIFT,
        "dscp_trimmed": Dscp.TRIMMED,
        "dscp_trimmed_steered": Dscp.TRIMMED_STEERED,
        "type_vlan": VLAN,
        "vlan_bytes": HeaderLayout("Dot1Q").size_bytes,
        "port_roce": ROCE_PORT,
        "port_shim": SHIM_PORT,
        "port_nic_ack": ACK_PORT,
    }


def _transport() -> dict[str, int]:
    """Values for the BTH, the headers after it, and the opcodes."""
    bth = HeaderLayout("BTH")
    flags = bth.span("BTH.solicited", "BTH.version")
    pair = bth.span("BTH.fecn", "BTH.dqpn")
    number = bth.span("BTH.ackreq", "BTH.psn")
    return {
        "bth_bytes": bth.size_bytes,
        "bth_opcode": _byte(bth, "BTH.opcode", bits=8),
        "bth_flags": _byte(bth, "BTH.solicited", "BTH.version", bits=8),
        "bth_pad_shift": bth.shift(flags, "BTH.padcount"),
        "bth_pad_mask": bth.mask("BTH.padcount"),
        "bth_qpn": _byte(bth, "BTH.fecn", "BTH.dqpn", bits=32),
        "bth_qpn_mask": bth.mask("BTH.dqpn"),
        "bth_becn_shift": bth.shift(pair, "BTH.becn"),
        "bth_tag_shift": bth.shift(pair, "BTH.resv6"),
        "bth_tag_mask": bth.mask("BTH.resv6"),
        "bth_psn": _byte(bth, "BTH.ackreq", "BTH.psn", bits=32),
        "bth_psn_mask": bth.mask("BTH.psn"),
        "bth_ackreq_shift": bth.shift(number, "BTH.ackreq"),
        "bth_left_shift": bth.shift(number, "BTH.resv7"),
        "bth_left_mask": bth.mask("BTH.resv7"),
        "op_first": Opcode.WRITE_FIRST,
        "op_middle": Opcode.WRITE_MIDDLE,
        "op_last": Opcode.WRITE_LAST,
        "op_only": Opcode.WRITE_ONLY,
        "op_ack": Opcode.ACK,
        "op_cnp": Opcode.CNP,
        "reth_bytes": RETH_BYTES,
        "aeth_bytes": AETH_BYTES,
        "aeth_syndrome": _byte(HeaderLayout("AETH"), "AETH.syndrome", "AETH.msn", bits=32),
        "icrc_bytes": ICRC_BYTES,
    }


def _nic() -> dict[str, int]:
    """Values for the shim and the ACK of Flowcut in NICs."""
    shim, ack = HeaderLayout("NicShim"), NIC_ACK.layout
    return {
        "shim_bytes": shim.size_bytes,
        "shim_ports": _byte(shim, "NicShim.orig_sport", "NicShim.orig_dport", bits=32),
        "shim_sport": _byte(shim, "NicShim.orig_sport", bits=16),
        "shim_ticks": _byte(shim, "NicShim.ticks", bits=32),
        "nic_ack_bytes": ack.size_bytes,
        "nic_ack_sport": _byte(ack, "NicAck.orig_sport", bits=16),
        "nic_ack_count": _byte(ack, "NicAck.bytes", "NicAck.hops", bits=32),
        "nic_ack_ticks": _byte(ack, "NicAck.ticks", bits=32),
    }


def _control() -> dict[str, int]:
    """Values for flow pauses and PFC."""
    pause = HeaderLayout("Ether", "LocalHeader", "FlowPause")
    name = "MACControlClassBasedFlowControl"
    frame = HeaderLayout("Ether", name)
    operations = sorted(PauseOp)
    return {
        "pause_bytes": pause.size_bytes,
        "pause_subtype": _byte(pause, "LocalHeader.subtype", bits=8),
        "subtype_flow_pause": Subtype.FLOW_PAUSE,
        "pause_src": _byte(pause, "FlowPause.src", bits=32),
        "pause_dst": _byte(pause, "FlowPause.dst", bits=32),
        "pause_sport": _byte(pause, "FlowPause.sport", bits=16),
        "pause_dport": _byte(pause, "FlowPause.dport", bits=16),
        "pause_protocol": _byte(pause, "FlowPause.protocol", bits=8),
        "pause_op": _byte(pause, "FlowPause.op", bits=8),
        "pause_op_first": operations[0],
        "pause_op_last": operations[-1],
        "pause_credit": _byte(pause, "FlowPause.credit_bytes", bits=32),
        "pfc_bytes": frame.size_bytes,
        "pfc_op": _byte(frame, f"{name}._op_code", bits=16),
        "pfc_op_code": PFC_OPCODE,
        "pfc_enabled": _byte(frame, f"{name}.c7_enabled", f"{name}.c0_enabled", bits=8),
        "pfc_times": _byte(frame, f"{name}.c0_pause_time", bits=16),
    }


def _calls() -> dict[str, int]:
    """Values for the arguments of a NIC's packet calls."""
    return {
        "kind_bits": calls.KIND_BITS,
        "slot_bits": calls.SLOT_BITS,
        "kind_raw": calls.RAW,
        "kind_data": calls.DATA,
        "kind_payload": calls.PAYLOAD,
        "kind_ack": calls.ACK,
        "kind_nic_ack": calls.NIC_ACK,
        "qpn_bits": calls.QPN_BITS,
        "port_bits": calls.PORT_BITS,
        "sport_shift": calls.SPORT_SHIFT,
        "becn_shift": calls.BECN_SHIFT,
        "opcode_shift": calls.OPCODE_SHIFT,
        "hops_shift": calls.HOPS_SHIFT,
        "left_shift": calls.LEFT_SHIFT,
        "tag_shift": calls.TAG_SHIFT,
        "ce_shift": calls.CE_SHIFT,
        "retransmission_shift": calls.RETRANSMISSION_SHIFT,
        "ackreq_shift": calls.ACKREQ_SHIFT,
        "frame_shift": calls.FRAME_SHIFT,
        "vlan_shift": calls.VLAN_SHIFT,
        "vlan_mask": calls.VLAN_MASK,
        **{f"discard_{name}": index for index, name in enumerate(calls.DISCARD_REASONS)},
    }


@cache
def offsets() -> Mapping[str, int]:
    """The value of every name in `tc_layout_names`, each 0..2^32-1.

    Raises:
        ValueError: a field does not have the length that the C code assumes.
    """
    parts: tuple[Callable[[], dict[str, int]], ...] = (_addressing, _transport, _nic, _control, _calls)
    return {name: int(value) for part in parts for name, value in part().items()}


@cache
def icrc_mask() -> tuple[int, ...]:
    """Offsets, from the IPv4 header, of the bytes that count as ones in the ICRC, whatever their value."""
    zeros = bytes(ROCE.layout.size_bytes - ROCE.layout.start("IP"))

    def changed(i: int) -> bytes:
        return zeros[:i] + b"\xff" + zeros[i + 1 :]

    crc_of_zeros = icrc_of_headers(zeros)
    return tuple(i for i in range(len(zeros)) if icrc_of_headers(changed(i)) == crc_of_zeros)
