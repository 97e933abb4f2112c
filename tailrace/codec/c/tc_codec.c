/* Parses frames. Fields that switches may change are not checked; frames that
 * are otherwise invalid are discarded. `virt` is the number of payload bytes
 * that are counted but not stored.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tc_bytes.h"
#include "tc_crc.h"

#include <string.h>

#define TC_FIELD(name) #name,
const char *const tc_layout_names[] = {TC_LAYOUT(TC_FIELD) 0};
#undef TC_FIELD

#define LAYOUT_FIELDS (sizeof(tc_layout) / sizeof(uint32_t))
#define LOCAL_ROUTE_HEADER_BYTES 8 /* all ones: InfiniBand annex A17.3.3 */

/* Whether headers of the layout's sizes fit into the buffers here. */
static int fits_buffers(const tc_layout *l)
{
    uint32_t headers = l->udp_end - l->ip + l->bth_bytes;
    uint32_t head = l->udp_end + l->shim_bytes + l->bth_bytes;
    return l->icrc_bytes == TC_ICRC_BYTES &&
           l->vlan_bytes == TC_VLAN_BYTES && headers <= TC_HEADERS_MAX &&
           head + l->reth_bytes <= TC_TEMPLATE_MAX &&
           head + l->aeth_bytes <= TC_TEMPLATE_MAX &&
           l->nic_ack_bytes <= TC_TEMPLATE_MAX &&
           l->kind_bits + l->slot_bits < 32 &&
           l->ip_src < l->udp_end && l->ip_dst < l->udp_end;
}

int tc_codec_init(tc_codec *c, const uint32_t *values, uint32_t count,
                  const uint32_t *masked, uint32_t masked_count)
{
    static const uint8_t route_header[LOCAL_ROUTE_HEADER_BYTES] = {
        255, 255, 255, 255, 255, 255, 255, 255};
    if (count != LAYOUT_FIELDS)
        return -1;
    memset(c, 0, sizeof *c);
    memcpy(&c->layout, values, sizeof c->layout);
    const tc_layout *l = &c->layout;
    if (!fits_buffers(l))
        return -1;
    c->headers_bytes = l->udp_end - l->ip + l->bth_bytes;
    for (uint32_t i = 0; i < masked_count; i++) {
        if (masked[i] >= c->headers_bytes)
            return -1;
        c->icrc_mask[masked[i]] = 255;
    }
    c->opcodes[l->op_middle & 255] = TC_OP_DATA;
    c->opcodes[l->op_last & 255] = TC_OP_DATA;
    c->opcodes[l->op_first & 255] = TC_OP_DATA_RETH;
    c->opcodes[l->op_only & 255] = TC_OP_DATA_RETH;
    c->opcodes[l->op_ack & 255] = TC_OP_ACK;
    c->opcodes[l->op_cnp & 255] = TC_OP_CNP;
    tc_crc_init();
    c->icrc_start =
        tc_crc_bytes(TC_CRC_START, route_header, sizeof route_header);
    return 0;
}

static inline uint32_t saturating_sub(uint32_t length, uint32_t by)
{
    return length < by ? 0 : length - by;
}

uint32_t tc_icrc_headers(const tc_codec *c, const uint8_t *frame, int shimmed)
{
    const tc_layout *l = &c->layout;
    const uint8_t *headers = frame + l->ip;
    uint8_t restored[TC_TEMPLATE_MAX];
    if (shimmed) {
        memcpy(restored, frame, l->udp_end);
        memcpy(restored + l->udp_sport, frame + l->udp_end + l->shim_ports, 4);
        tc_put16(restored + l->ip_len,
                 saturating_sub(tc_get16(frame + l->ip_len), l->shim_bytes));
        tc_put16(restored + l->udp_len,
                 saturating_sub(tc_get16(frame + l->udp_len), l->shim_bytes));
        memcpy(restored + l->udp_end, frame + l->udp_end + l->shim_bytes,
               l->bth_bytes);
        headers = restored + l->ip;
    }
    return tc_crc_masked(c->icrc_start, headers, c->icrc_mask,
                         c->headers_bytes);
}

uint32_t tc_icrc_body(uint32_t reg, const uint8_t *body, uint32_t n,
                      uint32_t zeros)
{
    return tc_crc_zeros(tc_crc_bytes(reg, body, n), zeros);
}

static uint32_t discard(tc_packet *p, uint32_t reason)
{
    p->reason = reason;
    return p->kind = TC_DISCARD;
}

static uint32_t parse_nic_ack(const tc_codec *c, const uint8_t *f, int64_t end,
                              tc_packet *p)
{
    const tc_layout *l = &c->layout;
    if (end != (int64_t)l->nic_ack_bytes)
        return discard(p, l->discard_malformed);
    p->sport = tc_get16(f + l->nic_ack_sport);
    p->count = tc_get32(f + l->nic_ack_count);
    p->ticks = tc_get32(f + l->nic_ack_ticks);
    return p->kind = TC_NIC_ACK;
}

/* Parses an ACK or CNP whose BTH is at `bth`, followed by body_bytes. */
static uint32_t parse_response(const tc_codec *c, const uint8_t *bth,
                             int64_t body_bytes, uint32_t opcode, tc_packet *p)
{
    const tc_layout *l = &c->layout;
    if (opcode == TC_OP_OTHER)
        return discard(p, l->discard_other);
    p->becn = tc_get32(bth + l->bth_qpn) >> l->bth_becn_shift & 1;
    if (opcode == TC_OP_CNP)
        return p->kind = TC_CNP;
    if (body_bytes != l->aeth_bytes)
        return discard(p, l->discard_malformed);
    p->aeth = tc_get32(bth + l->bth_bytes + l->aeth_syndrome);
    return p->kind = TC_ACK;
}

/* Reads the fields that all packets with a BTH have. */
static void read_bth(const tc_codec *c, const uint8_t *f, const uint8_t *bth,
                     tc_packet *p)
{
    const tc_layout *l = &c->layout;
    p->qpn = tc_get32(bth + l->bth_qpn) & l->bth_qpn_mask;
    p->psn = tc_get32(bth + l->bth_psn) & l->bth_psn_mask;
    p->wire_sport = tc_get16(f + l->udp_sport);
}

static uint32_t parse_data(const tc_codec *c, const uint8_t *f,
                           const uint8_t *bth, uint32_t payload, tc_packet *p)
{
    const tc_layout *l = &c->layout;
    uint32_t ttl = f[l->ip_ttl], tos = f[l->ip_tos];
    uint32_t hops = ttl <= l->initial_ttl ? l->initial_ttl - ttl : 0;
    uint32_t tag = tc_get32(bth + l->bth_qpn) >> l->bth_tag_shift;
    uint32_t retransmitted = tc_get16(f + l->ip_id) == l->retransmission;
    uint32_t ackreq = tc_get32(bth + l->bth_psn) >> l->bth_ackreq_shift;
    uint32_t frame_bytes = l->ip + tc_get16(f + l->ip_len);
    p->data_fields = (uint64_t)payload |
               (uint64_t)bth[l->bth_opcode] << l->opcode_shift |
               (uint64_t)hops << l->hops_shift |
               (uint64_t)(tag & l->bth_tag_mask) << l->tag_shift |
               (uint64_t)((tos & l->ce) == l->ce) << l->ce_shift |
               (uint64_t)retransmitted << l->retransmission_shift |
               (uint64_t)ackreq << l->ackreq_shift |
               (uint64_t)frame_bytes << l->frame_shift;
    return p->kind = TC_DATA;
}

/* Parses a trimmed data packet, which ends after its BTH. As it has no ICRC,
 * only the IPv4 checksum protects its headers. */
static uint32_t parse_trimmed(const tc_codec *c, const uint8_t *f, int64_t end,
                              uint32_t virt, tc_packet *p)
{
    const tc_layout *l = &c->layout;
    const uint8_t *bth = f + l->udp_end;
    if (virt || end != (int64_t)(l->udp_end + l->bth_bytes))
        return discard(p, l->discard_malformed);
    uint32_t opcode = c->opcodes[bth[l->bth_opcode]];
    if (opcode != TC_OP_DATA && opcode != TC_OP_DATA_RETH)
        return discard(p, l->discard_other);
    read_bth(c, f, bth, p);
    parse_data(c, f, bth, 0, p);
    return p->kind = TC_TRIMMED;
}

/* Parses a frame with a BTH. shimmed: a NIC shim precedes the BTH. end: offset
 * of the end of the frame's real bytes. */
static uint32_t parse_roce(const tc_codec *c, const uint8_t *f, int64_t end,
                           uint32_t virt, int shimmed, tc_packet *p)
{
    const tc_layout *l = &c->layout;
    uint32_t start = l->udp_end + (shimmed ? l->shim_bytes : 0);
    uint32_t body = start + l->bth_bytes;
    int64_t real = end - TC_ICRC_BYTES - body; /* stored bytes of the body */
    if (real < 0)
        return discard(p, l->discard_malformed);
    /* virt is below 2^16 here: it is part of the IPv4 length */
    uint32_t reg = tc_icrc_body(tc_icrc_headers(c, f, shimmed), f + body,
                                (uint32_t)real, virt);
    const uint8_t *icrc = f + body + real;
    if (~reg != ((uint32_t)icrc[3] << 24 | (uint32_t)icrc[2] << 16 |
                 (uint32_t)icrc[1] << 8 | icrc[0]))
        return discard(p, l->discard_bad_icrc);

    const uint8_t *bth = f + start;
    int64_t payload = real + virt;
    uint32_t opcode = c->opcodes[bth[l->bth_opcode]];
    read_bth(c, f, bth, p);
    if (opcode != TC_OP_DATA && opcode != TC_OP_DATA_RETH)
        return parse_response(c, bth, payload, opcode, p);
    payload -= bth[l->bth_flags] >> l->bth_pad_shift & l->bth_pad_mask;
    payload -= opcode == TC_OP_DATA_RETH ? l->reth_bytes : 0;
    if (payload < 0)
        return discard(p, l->discard_malformed);
    p->sport = p->wire_sport;
    p->ticks = -1;
    if (shimmed) {
        p->sport = tc_get16(f + l->udp_end + l->shim_sport);
        p->ticks = tc_get32(f + l->udp_end + l->shim_ticks);
    }
    return parse_data(c, f, bth, (uint32_t)payload, p);
}

static uint32_t parse_ipv4(const tc_codec *c, const uint8_t *f, uint32_t len,
                           uint32_t virt, tc_packet *p)
{
    const tc_layout *l = &c->layout;
    if (len < l->udp_end)
        return discard(p, l->discard_malformed);
    uint32_t port = tc_get16(f + l->udp_dport);
    if (f[l->ip_proto] != l->udp_protocol ||
        (port != l->port_roce && port != l->port_shim &&
         port != l->port_nic_ack))
        return discard(p, l->discard_other);
    uint32_t ip_len = tc_get16(f + l->ip_len);
    int64_t end = (int64_t)l->ip + ip_len - virt;
    if (f[l->ip_version] != l->ip_no_options ||
        tc_get16(f + l->ip_fragment) & l->ip_fragment_mask || end > len ||
        tc_get16(f + l->udp_len) + (l->udp - l->ip) != ip_len ||
        tc_inet_sum(f + l->ip, l->udp - l->ip) != 0xffff)
        return discard(p, l->discard_malformed);
    p->src = tc_get32(f + l->ip_src);
    p->dst = tc_get32(f + l->ip_dst);
    if (port == l->port_nic_ack)
        return parse_nic_ack(c, f, end, p);
    uint32_t dscp = (uint32_t)f[l->ip_tos] >> l->dscp_shift;
    if (port == l->port_roce &&
        (dscp == l->dscp_trimmed || dscp == l->dscp_trimmed_steered))
        return parse_trimmed(c, f, end, virt, p);
    return parse_roce(c, f, end, virt, port == l->port_shim, p);
}

/* Parses a frame of EtherType 0x88B5: a pause of a flow. */
static uint32_t parse_local(const tc_codec *c, const uint8_t *f, uint32_t len,
                            tc_packet *p)
{
    const tc_layout *l = &c->layout;
    if (len < l->pause_bytes)
        return discard(p, l->discard_malformed);
    if (f[l->pause_subtype] != l->subtype_flow_pause)
        return discard(p, l->discard_other);
    p->op = f[l->pause_op];
    if (p->op < l->pause_op_first || p->op > l->pause_op_last)
        return discard(p, l->discard_malformed);
    p->src = tc_get32(f + l->pause_src);
    p->dst = tc_get32(f + l->pause_dst);
    p->sport = tc_get16(f + l->pause_sport);
    p->dport = tc_get16(f + l->pause_dport);
    p->protocol = f[l->pause_protocol];
    p->credit_bytes = tc_get32(f + l->pause_credit);
    return p->kind = TC_FLOW_PAUSE;
}

static uint32_t parse_pfc(const tc_codec *c, const uint8_t *f, uint32_t len,
                          tc_packet *p)
{
    const tc_layout *l = &c->layout;
    if (len < l->pfc_bytes)
        return discard(p, l->discard_malformed);
    if (tc_get16(f + l->pfc_op) != l->pfc_op_code)
        return discard(p, l->discard_other);
    uint32_t enabled = f[l->pfc_enabled];
    for (uint32_t i = 0; i < TC_PFC_PRIORITIES; i++) {
        uint32_t quanta = tc_get16(f + l->pfc_times + 2 * i);
        p->quanta[i] = enabled >> i & 1 ? (int32_t)quanta : -1;
    }
    return p->kind = TC_PFC;
}

uint32_t tc_parse(const tc_codec *c, const uint8_t *frame, uint32_t len,
                  uint32_t virt, tc_packet *p)
{
    const tc_layout *l = &c->layout;
    if (len < l->ip)
        return discard(p, l->discard_malformed);
    uint32_t type = tc_get16(frame + l->ether_type);
    if (type == l->type_ipv4)
        return parse_ipv4(c, frame, len, virt, p);
    if (type == l->type_local)
        return parse_local(c, frame, len, p);
    if (type == l->type_mac_control)
        return parse_pfc(c, frame, len, p);
    return discard(p, l->discard_other);
}
