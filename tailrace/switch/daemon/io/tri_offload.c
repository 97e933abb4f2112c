/* Checksums, TCP and UDP segmentation and VLAN tags in software.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tri_offload.h"

#include <string.h>

/* The kernel's value; older headers do not define it. */
#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

enum {
    MAC_PAIR_BYTES = 12,
    ETHERNET_BYTES = 14,
    TAG_BYTES = 4,
    UDP_BYTES = 8,
    TCP_MIN_BYTES = 20,
    TCP_CHECKSUM = 16,        /* offset in the TCP header */
    UDP_CHECKSUM = 6,
    PROTO_TCP = 6,
    PROTO_UDP = 17,
    TCP_FIN = 0x01,
    TCP_PSH = 0x08,
    TCP_CWR = 0x80
};

static uint16_t get16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static void put16(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

/* Adds len bytes to sum for the Internet checksum, as words in the machine's
 * byte order; the result is not folded. */
static uint64_t sum_bytes(const uint8_t *p, uint32_t len, uint64_t sum)
{
    uint32_t word;
    uint16_t half;

    for (; len >= 4; p += 4, len -= 4) {
        memcpy(&word, p, 4);
        sum += word;
    }
    if (len >= 2) {
        memcpy(&half, p, 2);
        sum += half;
        p += 2;
        len -= 2;
    }
    if (len) {
        uint8_t last[2] = { *p, 0 };

        memcpy(&half, last, 2);
        sum += half;
    }
    return sum;
}

/* Folds sum and returns its complement, to be copied to a frame unchanged. */
static uint16_t finish(uint64_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

int tri_checksum(uint8_t *frame, uint32_t len, uint32_t start, uint32_t offset)
{
    uint16_t sum;

    if (start > len || offset > len - start || len - start - offset < 2)
        return -1;
    sum = finish(sum_bytes(frame + start, len - start, 0));
    if (sum == 0)
        sum = 0xffff;         /* 0 would mean "no checksum" in UDP */
    memcpy(frame + start + offset, &sum, 2);
    return 0;
}

/* Offset of the IP header, or -1. */
static int64_t find_ip(const uint8_t *f, uint32_t len, tri_link link)
{
    uint32_t offset = MAC_PAIR_BYTES;

    if (link == TRI_LINK_NONE)
        return 0;
    if (link != TRI_LINK_ETHERNET)
        return -1;
    while (offset + 2 <= len) {
        uint16_t type = get16(f + offset);

        if (type == 0x0800 || type == 0x86dd)
            return offset + 2;
        /* VLAN tags (802.1Q, 802.1ad, QinQ) precede the IP header */
        if (type != 0x8100 && type != 0x88a8 && type != 0x9100)
            return -1;
        offset += TAG_BYTES;
    }
    return -1;
}

/* Sets c->l4 to the offset of the transport header after the IPv6 header at
 * c->l3; returns the transport protocol or -1. Does not skip fragment headers,
 * since fragments are never super-frames. */
static int skip_ipv6(tri_cut *c)
{
    uint32_t offset = c->l3 + 40;
    int next;

    if (offset > c->len)
        return -1;
    next = c->frame[c->l3 + 6];
    /* hop-by-hop options, routing header, destination options */
    while (next == 0 || next == 43 || next == 60) {
        if (offset + 8 > c->len)
            return -1;
        next = c->frame[offset];
        offset += 8u + 8u * c->frame[offset + 1];
    }
    c->l4 = offset;
    return next;
}

/* Fills l3, l4 and ipv6; returns the transport protocol or -1. */
static int find_transport(tri_cut *c, tri_link link)
{
    int64_t ip = find_ip(c->frame, c->len, link);
    const uint8_t *h;

    if (ip < 0 || ip + 20 > c->len)
        return -1;
    c->l3 = (uint32_t)ip;
    h = c->frame + ip;
    if (h[0] >> 4 == 6) {
        c->ipv6 = true;
        return skip_ipv6(c);
    }
    if (h[0] >> 4 != 4 || (h[0] & 15) < 5)
        return -1;
    c->l4 = c->l3 + (h[0] & 15u) * 4u;
    return h[9];
}

int tri_cut_begin(tri_cut *c, const uint8_t *frame, uint32_t len,
                  const struct virtio_net_hdr *h, tri_link link)
{
    uint8_t type = h->gso_type & (uint8_t)~VIRTIO_NET_HDR_GSO_ECN;
    uint32_t least;
    int proto;

    memset(c, 0, sizeof *c);
    c->frame = frame;
    c->len = len;
    c->step = h->gso_size;
    proto = find_transport(c, link);
    c->tcp = proto == PROTO_TCP;
    if (type == VIRTIO_NET_HDR_GSO_TCPV4 || type == VIRTIO_NET_HDR_GSO_TCPV6) {
        if (!c->tcp || c->ipv6 != (type == VIRTIO_NET_HDR_GSO_TCPV6))
            return -1;
    } else if (type != VIRTIO_NET_HDR_GSO_UDP_L4 || proto != PROTO_UDP) {
        return -1;
    }
    /* In a tunnel h describes the inner transport header, c->l4 the outer. */
    if ((h->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) && h->csum_start != c->l4)
        return -1;
    least = c->l4 + (c->tcp ? TCP_MIN_BYTES : UDP_BYTES);
    if (least > len || c->step == 0)
        return -1;
    c->payload = c->l4 + (c->tcp ? (frame[c->l4 + 12] >> 4) * 4u : UDP_BYTES);
    if (c->payload >= len || c->payload < least)
        return -1;
    c->at = c->payload;
    return 0;
}

/* Sum of the pseudo header (RFC 9293 §3.1, RFC 8200 §8.1), not folded. len:
 * bytes of transport header and payload. */
static uint64_t sum_pseudo_header(const tri_cut *c, const uint8_t *out,
                                  uint32_t len)
{
    uint8_t tail[4] = { 0, c->tcp ? PROTO_TCP : PROTO_UDP, 0, 0 };
    uint64_t sum;

    put16(tail + 2, len);
    if (c->ipv6)
        sum = sum_bytes(out + c->l3 + 8, 32, 0);
    else
        sum = sum_bytes(out + c->l3 + 12, 8, 0);
    return sum_bytes(tail, 4, sum);
}

/* Sets length, identification and checksum in a segment's IP header. */
static void fix_ip(const tri_cut *c, uint8_t *out, uint32_t len)
{
    uint8_t *ip = out + c->l3;
    uint16_t sum;

    if (c->ipv6) {
        put16(ip + 4, len - c->l3 - 40);
        return;
    }
    put16(ip + 2, len - c->l3);
    put16(ip + 4, get16(ip + 4) + c->index);
    put16(ip + 10, 0);
    sum = finish(sum_bytes(ip, c->l4 - c->l3, 0));
    memcpy(ip + 10, &sum, 2);
}

/* Sets sequence number and flags of a TCP segment: only the first segment may
 * have CWR, only the last segment FIN and PSH. */
static void fix_tcp(const tri_cut *c, uint8_t *tcp, bool last)
{
    uint32_t seq = (uint32_t)get16(tcp + 4) << 16 | get16(tcp + 6);

    seq += c->at - c->payload;
    put16(tcp + 4, seq >> 16);
    put16(tcp + 6, seq);
    if (c->index > 0)
        tcp[13] &= (uint8_t)~TCP_CWR;
    if (!last)
        tcp[13] &= (uint8_t)~(TCP_FIN | TCP_PSH);
}

uint32_t tri_cut_next(tri_cut *c, uint8_t *out)
{
    uint32_t part = c->len - c->at, len;
    uint8_t *l4 = out + c->l4, *field;
    uint16_t sum;

    if (part == 0)
        return 0;
    if (part > c->step)
        part = c->step;
    len = c->payload + part;
    memcpy(out, c->frame, c->payload);
    memcpy(out + c->payload, c->frame + c->at, part);
    fix_ip(c, out, len);
    if (c->tcp)
        fix_tcp(c, l4, c->at + part == c->len);
    else
        put16(l4 + 4, UDP_BYTES + part);
    field = l4 + (c->tcp ? TCP_CHECKSUM : UDP_CHECKSUM);
    put16(field, 0);
    sum = finish(sum_bytes(l4, len - c->l4,
                           sum_pseudo_header(c, out, len - c->l4)));
    if (sum == 0)
        sum = 0xffff;
    memcpy(field, &sum, 2);
    c->at += part;
    c->index++;
    return len;
}

uint8_t *tri_tag(uint8_t *frame, uint16_t tpid, uint16_t tci)
{
    uint8_t *start = frame - TAG_BYTES;

    memmove(start, frame, MAC_PAIR_BYTES);
    put16(start + MAC_PAIR_BYTES, tpid);
    put16(start + MAC_PAIR_BYTES + 2, tci);
    return start;
}
