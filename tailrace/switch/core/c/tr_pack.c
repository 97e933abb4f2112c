/* Packets that wait in a queue are packed into few cache lines.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The queues of a large network contain more packets than fit into the
 * processor's caches. Egress needs only the payload of a queued packet and the
 * first part of its PHV. Most of that part is zeros: invalid headers, and
 * metadata never written. So a packed packet consists of the bookkeeping, a
 * bitmap of the PHV's blocks that are not all zeros, those blocks, and the
 * payload. Large buffers are used only while a packet is processed, so few of
 * them are in use and they stay in the cache.
 */
#include "tr_tm.h"

#define BLOCK 32u             /* bytes of a block of the PHV */
#define MOST_WORDS 4u         /* maximum length of the bitmap in words; packets
                               * with larger PHVs are not packed */

_Static_assert(TR_PHV_ALIGN % BLOCK == 0, "a PHV consists of whole blocks");

typedef struct block {
    uint64_t word[BLOCK / sizeof(uint64_t)];
} block;

/* Whether a block is not all zeros. */
static int nonzero(const block *b)
{
    return (b->word[0] | b->word[1] | b->word[2] | b->word[3]) != 0;
}

/* Computes the bitmap of blocks that are not all zeros; returns their count. */
static uint32_t find_nonzero(const block *b, uint32_t n, uint64_t *bits)
{
    uint32_t count = 0;
    for (uint32_t first = 0; first < n; first += 64) {
        uint32_t in_word = n - first < 64 ? n - first : 64;
        uint64_t word = 0;
        for (uint32_t i = 0; i < in_word; i++)
            word |= (uint64_t)nonzero(&b[first + i]) << i;
        bits[first / 64] = word;
        count += (uint32_t)__builtin_popcountll(word);
    }
    return count;
}

/* Number of blocks of the PHV that egress may read. */
static uint32_t phv_blocks(const tr_switch *s)
{
    return (TR_PHV_CARRIED(s) + BLOCK - 1) / BLOCK;
}

static tr_pkt *packed_new(tr_switch *s, uint32_t lines)
{
    tr_pkt *p = s->free_pkts[TR_SIZE_CLASSES + lines - 1];
    if (p)
        s->free_pkts[TR_SIZE_CLASSES + lines - 1] = p->next;
    else
        p = tr_pkt_memory(s, lines * TR_LINE, 0);
    return p;
}

tr_pkt *tr_pkt_pack(tr_switch *s, tr_pkt *p)
{
    uint64_t bits[MOST_WORDS];
    uint32_t n = phv_blocks(s), words = (n + 63) / 64;
    uint32_t payload = p->len - p->parsed;
    if (words > MOST_WORDS)
        return p;
    const block *from = (const block *)p->phv;
    uint32_t count = find_nonzero(from, n, bits);
    uint32_t bitmap_bytes = words * (uint32_t)sizeof *bits;
    uint32_t size =
        (uint32_t)sizeof *p + bitmap_bytes + count * BLOCK + payload;
    uint32_t lines = (size + TR_LINE - 1) / TR_LINE;
    tr_pkt *q = lines > TR_PACKED_LINES ? NULL : packed_new(s, lines);
    if (!q)
        return p;
    memcpy(q->phv, bits, bitmap_bytes);
    uint8_t *to = q->phv + bitmap_bytes;
    for (uint32_t w = 0; w < words; w++)
        for (uint64_t rest = bits[w]; rest; rest &= rest - 1, to += BLOCK)
            memcpy(to, &from[w * 64 + (uint32_t)__builtin_ctzll(rest)], BLOCK);
    memcpy(to, p->buf + p->off + p->parsed, payload);
    /* the bookkeeping is copied last: its fields have just been written singly,
     * and wider loads stall until these stores are complete */
    memcpy(q, p, sizeof *q);
    q->size_class = (uint8_t)(TR_SIZE_CLASSES + lines - 1);
    q->size = lines * TR_LINE;
    tr_pkt_free(s, p);
    return q;
}

tr_pkt *tr_pkt_unpack(tr_switch *s, tr_pkt *q)
{
    uint32_t n = phv_blocks(s), words = (n + 63) / 64;
    uint32_t end = q->off + q->len;
    tr_pkt *p = tr_pkt_new(s, end > TR_HEADROOM ? end - TR_HEADROOM : 0, 1);
    if (!p)
        return NULL;
    uint8_t *buf = p->buf;
    uint32_t cap = p->cap, size = p->size;
    uint8_t size_class = p->size_class;
    memcpy(p, q, sizeof *p);
    p->buf = buf;
    p->cap = cap;
    p->size = size;
    p->size_class = size_class;
    block *to = (block *)p->phv;
    const uint8_t *from = q->phv + words * sizeof(uint64_t);
    memset(to, 0, TR_PHV_SIZE(s));
    for (uint32_t w = 0; w < words; w++) {
        uint64_t rest;
        memcpy(&rest, q->phv + w * sizeof rest, sizeof rest);
        for (; rest; rest &= rest - 1, from += BLOCK)
            memcpy(&to[w * 64 + (uint32_t)__builtin_ctzll(rest)], from, BLOCK);
    }
    memcpy(p->buf + p->off + p->parsed, from, p->len - p->parsed);
    tr_pkt_free(s, q);
    return p;
}
