/* Matches frames for faults and filters, without Python; the formats of headers
 * come from Net.set_formats (tv_formats).
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tc_bytes.h"
#include "tv_net.h"

#define ETHERNET_BYTES 14u
#define ETHERTYPE_VLAN 0x8100u
#define ETHERTYPE_IPV4 0x0800u
#define IPV4_BYTES 20u
#define UDP_BYTES 8u
#define UDP 17u
#define DSCP_SHIFT 2          /* in the TOS byte */
/* Limit of the VLAN tags and shims that are skipped in front of IPv4. */
#define MOST_SHIMS 4

/* Skips the shim (a header after the project's EtherType) whose subtype is at
 * offset *at; returns the EtherType of the next header; 0: there is none. */
static uint32_t skip(const tv_formats *f, const uint8_t *data, uint32_t len,
                     uint32_t *at)
{
    if (len - *at < 1 || data[*at] >= TV_SHIMS)
        return 0;
    const tv_shim *s = &f->shim[data[*at]];
    const uint8_t *header = data + *at + 1;
    uint32_t left = len - *at - 1;
    if (!s->bytes || left < s->bytes)
        return 0;
    uint32_t size = s->bytes + s->step * (header[s->count_at] & 15u);
    if (left < size)
        return 0;
    *at += 1 + size;
    return tc_get16(header + s->next_at);
}

static int is_udp_to(const uint8_t *ip, uint32_t len, uint32_t port)
{
    if (len < IPV4_BYTES || ip[9] != UDP)
        return 0;
    uint32_t at = (ip[0] & 15u) * 4u;
    return len >= at + 4 && tc_get16(ip + at + 2) == port;
}

int tv_match_frame(const tv_formats *f, const tv_match *m,
                   const uint8_t *data, uint32_t len)
{
    if (len < ETHERNET_BYTES)
        return m->other_types;
    uint32_t type = tc_get16(data + 12), at = ETHERNET_BYTES;
    /* frames match by their first subtype that is not one of `skipped` */
    while (type == f->local_type && len - at >= 1) {
        uint8_t subtype = data[at];
        if (subtype >= TV_SHIMS || !(f->skipped >> subtype & 1))
            return subtype < 64 && (m->subtypes >> subtype & 1);
        type = skip(f, data, len, &at);
    }
    if (m->udp_port && type == ETHERTYPE_IPV4 &&
        is_udp_to(data + at, len - at, m->udp_port))
        return 1;
    return m->other_types;
}

const uint8_t *tv_match_ipv4(const tv_formats *f, const uint8_t *data,
                             uint32_t len)
{
    if (len < ETHERNET_BYTES)
        return NULL;
    uint32_t type = tc_get16(data + 12), at = ETHERNET_BYTES;
    for (int i = 0; i < MOST_SHIMS && type != ETHERTYPE_IPV4; i++) {
        if (type == ETHERTYPE_VLAN && len - at >= 4) {
            type = tc_get16(data + at + 2);
            at += 4;
        } else if (type == f->local_type) {
            type = skip(f, data, len, &at);
        } else {
            return NULL;
        }
    }
    return type == ETHERTYPE_IPV4 && len - at >= IPV4_BYTES ? data + at : NULL;
}

const uint8_t *tv_match_psn(const tv_formats *f, const uint8_t *ip,
                            uint32_t len)
{
    uint32_t at = (ip[0] & 15u) * 4;
    if (ip[9] != UDP || len < at + UDP_BYTES)
        return NULL;
    const uint8_t *udp = ip + at;
    for (unsigned i = 0; i < TV_BTHS; i++) {
        const tv_bth *b = &f->bth[i];
        if (b->port && b->port == tc_get16(udp + 2) &&
            len - at >= b->psn_at + 3)
            return udp + b->psn_at;
    }
    return NULL;
}

void tv_kinds_add(tv_kinds *k, const tv_formats *f, const uint8_t *data,
                  uint32_t len, uint32_t virt)
{
    if (virt) { /* only data frames have virtual payload */
        k->data++;
        return;
    }
    const uint8_t *ip = tv_match_ipv4(f, data, len);
    if (ip)
        /* switches mark frames without payload by DSCP */
        k->trimmed += f->trimmed >> (ip[1] >> DSCP_SHIFT) & 1;
}
