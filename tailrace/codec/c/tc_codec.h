/* Parses and builds the frames of hosts, in virtual time and real time.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Formats are not defined here: every offset, shift, mask and constant comes
 * from tailrace.codec.table, which takes them from the Scapy layers and from
 * hosts. A frame may have a virtual payload (`virt`): a number of zeros before
 * the ICRC that are counted but not stored.
 *
 * No function allocates memory or reads beyond the end of a frame.
 */
#ifndef TC_CODEC_H
#define TC_CODEC_H

#include <stdint.h>

/* The values of the layout; tailrace.codec.table gives their meaning. Offsets
 * are in bytes from the start of the frame; those named bth_*, shim_* and
 * aeth_* from the start of that header. */
#define TC_LAYOUT(X)                                                          \
    /* Ethernet */                                                            \
    X(ether_type) X(type_ipv4) X(type_local) X(type_mac_control)              \
    /* IPv4 and UDP */                                                        \
    X(ip) X(ip_version) X(ip_no_options) X(ip_tos) X(ip_len) X(ip_id)         \
    X(ip_fragment) X(ip_fragment_mask) X(ip_ttl) X(ip_proto) X(ip_chksum)     \
    X(ip_src) X(ip_dst) X(udp) X(udp_sport) X(udp_dport) X(udp_len)           \
    X(udp_end) X(udp_protocol) X(initial_ttl) X(ce) X(retransmission)         \
    X(dscp_shift) X(dscp_trimmed) X(dscp_trimmed_steered)                     \
    X(type_vlan) X(vlan_bytes)                                                \
    X(port_roce) X(port_shim) X(port_nic_ack)                                 \
    /* BTH */                                                                 \
    X(bth_bytes) X(bth_opcode) X(bth_flags) X(bth_pad_shift)                  \
    X(bth_pad_mask) X(bth_qpn) X(bth_qpn_mask) X(bth_becn_shift)              \
    X(bth_tag_shift) X(bth_tag_mask) X(bth_psn) X(bth_psn_mask)               \
    X(bth_ackreq_shift) X(bth_left_shift) X(bth_left_mask)                    \
    X(op_first) X(op_middle) X(op_last) X(op_only) X(op_ack) X(op_cnp)        \
    X(reth_bytes) X(aeth_bytes) X(aeth_syndrome) X(icrc_bytes)                \
    /* NIC shim and NIC ACK */                                                \
    X(shim_bytes) X(shim_ports) X(shim_sport) X(shim_ticks)                   \
    X(nic_ack_bytes) X(nic_ack_sport) X(nic_ack_count) X(nic_ack_ticks)       \
    /* pause of a flow, PFC */                                                \
    X(pause_bytes) X(pause_subtype) X(subtype_flow_pause) X(pause_src)        \
    X(pause_dst) X(pause_sport) X(pause_dport) X(pause_protocol)              \
    X(pause_op) X(pause_op_first) X(pause_op_last) X(pause_credit)            \
    X(pfc_bytes) X(pfc_op) X(pfc_op_code) X(pfc_enabled) X(pfc_times)         \
    /* the packet calls of a NIC: tailrace.codec.calls */                     \
    X(kind_bits) X(slot_bits)                                                \
    X(kind_raw) X(kind_data) X(kind_payload) X(kind_ack)                      \
    X(kind_nic_ack) X(qpn_bits) X(port_bits) X(sport_shift) X(becn_shift)     \
    X(opcode_shift) X(hops_shift) X(left_shift) X(tag_shift) X(ce_shift)      \
    X(retransmission_shift) X(ackreq_shift) X(frame_shift)                    \
    X(vlan_shift) X(vlan_mask)                                                \
    X(discard_other) X(discard_malformed) X(discard_bad_icrc)                 \
    X(discard_not_ours)

typedef struct tc_layout {
#define TC_FIELD(name) uint32_t name;
    TC_LAYOUT(TC_FIELD)
#undef TC_FIELD
} tc_layout;

#define TC_PFC_PRIORITIES 8u
#define TC_HEADERS_MAX 64u    /* most bytes of headers in an ICRC */
#define TC_TEMPLATE_MAX 96u   /* most bytes of a template, and of a frame
                                  without payload, ICRC and VLAN tag */
#define TC_ICRC_BYTES 4u
#define TC_VLAN_BYTES 4u
#define TC_BUILD_MAX (TC_TEMPLATE_MAX + TC_ICRC_BYTES + TC_VLAN_BYTES)

typedef struct tc_codec {
    tc_layout layout;
    uint32_t headers_bytes;          /* length of IPv4, UDP and BTH headers */
    uint32_t icrc_start;             /* the CRC register before these headers */
    uint8_t icrc_mask[TC_HEADERS_MAX]; /* 255: byte is 255 in ICRC */
    uint8_t opcodes[256];            /* enum tc_opcode */
} tc_codec;

enum tc_opcode { TC_OP_OTHER, TC_OP_DATA, TC_OP_DATA_RETH, TC_OP_ACK,
                 TC_OP_CNP };

enum tc_kind { TC_DISCARD, TC_DATA, TC_TRIMMED, TC_ACK, TC_CNP, TC_NIC_ACK,
               TC_FLOW_PAUSE, TC_PFC };

/* The fields of a parsed frame; only those of its kind are set. */
typedef struct tc_packet {
    uint32_t kind;       /* enum tc_kind */
    uint32_t reason;     /* TC_DISCARD: index into calls.DISCARD_REASONS */
    uint32_t src, dst;   /* IPv4 addresses; TC_FLOW_PAUSE: the flow's */
    uint32_t qpn, psn;
    uint32_t wire_sport; /* TC_DATA, TC_TRIMMED, TC_ACK: the UDP source port */
    uint32_t sport;      /* TC_DATA: the flow's original source port;
                            TC_NIC_ACK: the acknowledged flow's;
                            TC_FLOW_PAUSE: the paused flow's */
    uint32_t dport, protocol, op, credit_bytes; /* TC_FLOW_PAUSE */
    uint32_t aeth;       /* TC_ACK: syndrome and MSN */
    uint32_t becn;       /* TC_ACK, TC_CNP: 0 or 1 */
    uint32_t count;      /* TC_NIC_ACK: data bytes and hops in one integer */
    int64_t ticks;       /* TC_DATA (-1: without NIC shim), TC_NIC_ACK: time
                            stamp in ns modulo 2^32 */
    uint64_t data_fields; /* TC_DATA, TC_TRIMMED: see tailrace.codec.calls */
    int32_t quanta[TC_PFC_PRIORITIES]; /* TC_PFC: pause times; -1: none */
} tc_packet;

/* Names of the fields of tc_layout, in order, NULL at the end. */
extern const char *const tc_layout_names[];

/* Initialises a codec with the values of tc_layout in order, and the offsets,
 * from the IPv4 header on, of bytes that are ones in the ICRC. Returns 0, or -1
 * if the values are not supported. */
int tc_codec_init(tc_codec *c, const uint32_t *values, uint32_t count,
                  const uint32_t *masked, uint32_t masked_count);

/* Parses any frame, without FCS, into *p; returns p->kind. */
uint32_t tc_parse(const tc_codec *c, const uint8_t *frame, uint32_t len,
                  uint32_t virt, tc_packet *p);

/* The bytes that all packets of a kind in one direction of a flow share. */
typedef struct tc_template {
    uint32_t head_bytes; /* headers */
    uint32_t body_bytes; /* RETH of data packets */
    uint32_t shimmed;    /* 1: with NIC shim, Flowcut's header after UDP */
    uint8_t bytes[TC_TEMPLATE_MAX]; /* headers, then body */
} tc_template;

/* Makes a template of headers and body for packets of a kind (kind_* of the
 * layout). Returns 0, or -1 if a length is wrong for this kind. */
int tc_template_init(const tc_codec *c, tc_template *t, uint32_t kind,
                     const uint8_t *head, uint32_t head_bytes,
                     const uint8_t *body, uint32_t body_bytes);

/* Builders write a frame to `frame`, which has TC_BUILD_MAX bytes, and return
 * its length. `ticks` is the NIC's time in ns modulo 2^32; `psn_fields`,
 * `data_fields`, `aeth` and `count` are those of tailrace.codec.calls. */

/* Builds data with a virtual payload, whose length with padding is written to
 * *virt. Returns 0 if the packet would be too long for IPv4. */
uint32_t tc_build_data(const tc_codec *c, const tc_template *t,
                       uint64_t psn_fields, uint64_t data_fields,
                       uint32_t ticks, uint8_t *frame,
                       uint32_t *virt);

/* Builds data with a real payload of the length in data_fields: the bytes
 * before the payload are written to `frame`, padding and ICRC to `tail`, which
 * has TC_TAIL_MAX bytes. Returns the length of `frame`, or 0 if the packet
 * would be too long, and writes the length of `tail` to *tail_bytes. */
#define TC_TAIL_MAX 8u
uint32_t tc_build_payload(const tc_codec *c, const tc_template *t,
                          uint64_t psn_fields, uint64_t data_fields,
                          uint32_t ticks, const uint8_t *payload,
                          uint8_t *frame, uint8_t *tail, uint32_t *tail_bytes);

uint32_t tc_build_ack(const tc_codec *c, const tc_template *t,
                      uint64_t psn_fields, uint32_t aeth, uint8_t *frame);

uint32_t tc_build_nic_ack(const tc_codec *c, const tc_template *t,
                          uint32_t count, uint32_t ticks, uint8_t *frame);

/* The length of the payload in data_fields. */
uint32_t tc_payload_bytes(const tc_codec *c, uint64_t data_fields);

#endif
