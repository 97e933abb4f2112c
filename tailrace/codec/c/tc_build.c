/* Builds frames from the templates that a NIC gives for its flows.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A template has the bytes that are the same in all packets. Each frame is a
 * copy with the fields that vary, and a new IPv4 checksum and ICRC. The NIC
 * shim is Flowcut's header between UDP and BTH (codec/layers/nic_shim.py).
 */
#include "tc_bytes.h"

#include <string.h>

#define MAX_IP_BYTES 0xffffu

int tc_template_init(const tc_codec *c, tc_template *t, uint32_t kind,
                     const uint8_t *head, uint32_t head_bytes,
                     const uint8_t *body, uint32_t body_bytes)
{
    const tc_layout *l = &c->layout;
    uint32_t bare = l->udp_end + l->bth_bytes; /* headers without shim */
    int data = kind == l->kind_data || kind == l->kind_payload;
    int shimmed = data && head_bytes == bare + l->shim_bytes;
    uint32_t wanted = kind == l->kind_nic_ack ? l->nic_ack_bytes : bare;
    if (!data && kind != l->kind_ack && kind != l->kind_nic_ack)
        return -1;
    if ((head_bytes != wanted && !shimmed) ||
        body_bytes != (data ? l->reth_bytes : 0))
        return -1;
    memset(t, 0, sizeof *t);
    t->head_bytes = head_bytes;
    t->body_bytes = body_bytes;
    t->shimmed = (uint32_t)shimmed;
    memcpy(t->bytes, head, head_bytes);
    if (body_bytes)
        memcpy(t->bytes + head_bytes, body, body_bytes);
    return 0;
}

uint32_t tc_payload_bytes(const tc_codec *c, uint64_t data_fields)
{
    return (uint32_t)(data_fields & ((1ull << c->layout.opcode_shift) - 1));
}

static void put_icrc(uint8_t *p, uint32_t reg)
{
    uint32_t icrc = ~reg;
    for (uint32_t i = 0; i < TC_ICRC_BYTES; i++)
        p[i] = (uint8_t)(icrc >> (8 * i));
}

static uint32_t sport_of(const tc_layout *l, uint64_t psn_fields)
{
    return (uint32_t)(psn_fields >> l->sport_shift & 0xffff);
}

static uint32_t psn_of(const tc_layout *l, uint64_t psn_fields)
{
    return (uint32_t)psn_fields & l->bth_psn_mask;
}

/* Writes headers and RETH of a data packet to f. Returns their length, or 0 if
 * the packet with its payload is too long for IPv4. */
static uint32_t put_data(const tc_codec *c, const tc_template *t,
                         uint64_t psn_fields, uint64_t data_fields,
                         uint32_t ticks, uint32_t payload_bytes, uint8_t *f)
{
    const tc_layout *l = &c->layout;
    uint32_t opcode = (uint32_t)(data_fields >> l->opcode_shift & 0xff);
    int reth = c->opcodes[opcode] == TC_OP_DATA_RETH;
    uint32_t len = t->head_bytes + (reth ? t->body_bytes : 0);
    uint32_t padding = -payload_bytes & l->bth_pad_mask;
    uint32_t ip_len = len - l->ip + payload_bytes + padding + TC_ICRC_BYTES;
    if (ip_len > MAX_IP_BYTES)
        return 0;
    memcpy(f, t->bytes, sizeof t->bytes);

    uint32_t retransmitted =
        (uint32_t)(data_fields >> l->retransmission_shift & 1);
    tc_put16(f + l->ip_len, ip_len);
    tc_put16(f + l->ip_id, retransmitted ? l->retransmission : 0);
    tc_put16(f + l->ip_chksum, 0);
    tc_put16(f + l->ip_chksum, ~tc_inet_sum(f + l->ip, l->udp - l->ip));
    tc_put16(f + l->udp_sport, sport_of(l, psn_fields));
    tc_put16(f + l->udp_len, ip_len - (l->udp - l->ip));

    uint8_t *bth = f + t->head_bytes - l->bth_bytes;
    uint32_t left = /* packets of the message that remain */
        (uint32_t)(data_fields >> l->left_shift) & l->bth_left_mask;
    uint32_t ackreq = (uint32_t)(data_fields >> l->ackreq_shift & 1);
    bth[l->bth_opcode] = (uint8_t)opcode;
    bth[l->bth_flags] = (uint8_t)(
        (bth[l->bth_flags] & ~(l->bth_pad_mask << l->bth_pad_shift)) |
        padding << l->bth_pad_shift);
    tc_put32(bth + l->bth_psn, ackreq << l->bth_ackreq_shift |
                                   left << l->bth_left_shift |
                                   psn_of(l, psn_fields));
    if (t->shimmed)
        tc_put32(f + l->udp_end + l->shim_ticks, ticks);
    return len;
}

/* Inserts an 802.1Q tag, if data_fields have a VLAN ID, into a frame of len
 * bytes; returns the new length. */
static uint32_t put_vlan(const tc_layout *l, uint64_t data_fields, uint8_t *f,
                         uint32_t len)
{
    uint32_t vlan = (uint32_t)(data_fields >> l->vlan_shift) & l->vlan_mask;
    if (!vlan)
        return len;
    uint8_t *tag = f + l->ether_type;
    memmove(tag + TC_VLAN_BYTES, tag, len - l->ether_type);
    tc_put16(tag, l->type_vlan);
    tc_put16(tag + 2, vlan);
    return len + TC_VLAN_BYTES;
}

uint32_t tc_build_data(const tc_codec *c, const tc_template *t,
                       uint64_t psn_fields, uint64_t data_fields,
                       uint32_t ticks, uint8_t *frame,
                       uint32_t *virt)
{
    uint32_t payload = tc_payload_bytes(c, data_fields);
    uint32_t len =
        put_data(c, t, psn_fields, data_fields, ticks, payload, frame);
    if (len == 0)
        return 0;
    *virt = payload + (-payload & c->layout.bth_pad_mask);
    uint32_t reg = tc_icrc_headers(c, frame, (int)t->shimmed);
    reg = tc_icrc_body(reg, frame + t->head_bytes, len - t->head_bytes, *virt);
    put_icrc(frame + len, reg);
    return put_vlan(&c->layout, data_fields, frame, len + TC_ICRC_BYTES);
}

uint32_t tc_build_payload(const tc_codec *c, const tc_template *t,
                          uint64_t psn_fields, uint64_t data_fields,
                          uint32_t ticks, const uint8_t *payload,
                          uint8_t *frame, uint8_t *tail, uint32_t *tail_bytes)
{
    uint32_t bytes = tc_payload_bytes(c, data_fields);
    uint32_t padding = -bytes & c->layout.bth_pad_mask;
    uint32_t len =
        put_data(c, t, psn_fields, data_fields, ticks, bytes, frame);
    if (len == 0)
        return 0;
    uint32_t reg = tc_icrc_headers(c, frame, (int)t->shimmed);
    reg = tc_icrc_body(reg, frame + t->head_bytes, len - t->head_bytes, 0);
    reg = tc_icrc_body(reg, payload, bytes, padding);
    memset(tail, 0, padding);
    put_icrc(tail + padding, reg);
    *tail_bytes = padding + TC_ICRC_BYTES;
    return put_vlan(&c->layout, data_fields, frame, len);
}

uint32_t tc_build_ack(const tc_codec *c, const tc_template *t,
                      uint64_t psn_fields, uint32_t aeth, uint8_t *frame)
{
    const tc_layout *l = &c->layout;
    uint8_t *bth = frame + l->udp_end, *body = bth + l->bth_bytes;
    memcpy(frame, t->bytes, sizeof t->bytes);
    tc_put16(frame + l->udp_sport, sport_of(l, psn_fields));
    uint32_t becn = (uint32_t)(psn_fields >> l->becn_shift & 1);
    tc_put32(bth + l->bth_qpn, tc_get32(bth + l->bth_qpn) |
                                   becn << l->bth_becn_shift);
    tc_put32(bth + l->bth_psn, psn_of(l, psn_fields));
    tc_put32(body + l->aeth_syndrome, aeth);
    uint32_t reg = tc_icrc_headers(c, frame, 0);
    put_icrc(body + l->aeth_bytes, tc_icrc_body(reg, body, l->aeth_bytes, 0));
    return l->udp_end + l->bth_bytes + l->aeth_bytes + TC_ICRC_BYTES;
}

uint32_t tc_build_nic_ack(const tc_codec *c, const tc_template *t,
                          uint32_t count, uint32_t ticks, uint8_t *frame)
{
    const tc_layout *l = &c->layout;
    memcpy(frame, t->bytes, sizeof t->bytes);
    tc_put32(frame + l->nic_ack_count, count);
    tc_put32(frame + l->nic_ack_ticks, ticks);
    return t->head_bytes;
}
