/* Packet buffers in free lists by size. Memory is allocated only when a list is
 * empty.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tr_tm.h"

/* AddressSanitizer does not see overruns within a reused buffer. So in a build
 * with it, the bytes after a frame's last byte are poisoned. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
static void guard(tr_pkt *p, uint32_t len)
{
    ASAN_UNPOISON_MEMORY_REGION(p->buf, p->cap);
    ASAN_POISON_MEMORY_REGION(p->buf + p->off + len, p->cap - p->off - len);
}
#else
static void guard(tr_pkt *p, uint32_t len)
{
    (void)p;
    (void)len;
}
#endif

/* Longest frame in a buffer of each size class, in bytes. */
static const uint32_t class_bytes[TR_SIZE_CLASSES] = {256, 2048, 10240,
                                                      TR_MAX_FRAME};

tr_pkt *tr_pkt_new(tr_switch *s, uint32_t len, int inside)
{
    unsigned c = 0;
    while (c < TR_SIZE_CLASSES && class_bytes[c] < len)
        c++;
    if (c == TR_SIZE_CLASSES)
        return NULL;
    uint32_t phv = (TR_PHV_SIZE(s) + TR_PHV_ALIGN - 1) / TR_PHV_ALIGN *
                   TR_PHV_ALIGN;
    size_t size = sizeof(tr_pkt) + phv + TR_HEADROOM + class_bytes[c] + 8;
    tr_pkt *p = s->free_pkts[c];
    if (p) {
        s->free_pkts[c] = p->next;
    } else {
        p = tr_pkt_memory(s, size, inside);
        if (!p)
            return NULL;
    }
    memset(p, 0, sizeof *p);
    p->size_class = (uint8_t)c;
    p->generation = s->generation;
    p->size = (uint32_t)size;
    p->buf = p->phv + phv;
    p->cap = TR_HEADROOM + class_bytes[c];
    p->off = TR_HEADROOM;
    p->trunc = UINT32_MAX;
    guard(p, len);
    return p;
}

tr_pkt *tr_pkt_in(tr_switch *s, uint32_t port, const uint8_t *data,
                  uint32_t len, uint32_t virt)
{
    tr_pkt *p = tr_pkt_new(s, len, 0);
    if (!p)
        return NULL;
    memcpy(p->buf + p->off, data, len);
    p->len = len;
    p->virt = virt;
    p->in_len = p->plen = len + virt;
    p->ingress_port = port;
    p->pfc_port = (uint16_t)port;
    p->origin = s->origin;
    memset(p->phv, 0, TR_PHV_SIZE(s));
    return p;
}

void tr_pkt_free(tr_switch *s, tr_pkt *p)
{
    p->next = s->free_pkts[p->size_class];
    s->free_pkts[p->size_class] = p;
}

tr_pkt *tr_pkt_copy(tr_switch *s, const tr_pkt *p, int with_phv)
{
    tr_pkt *q = tr_pkt_new(s, p->len, 0);
    if (!q)
        return NULL;
    q->len = p->len;
    q->virt = p->virt;
    q->parsed = p->parsed;
    q->in_len = p->in_len;
    q->plen = p->plen;
    q->ingress_port = p->ingress_port;
    q->pfc_port = p->pfc_port;
    q->origin = p->origin;
    memcpy(q->buf + q->off, p->buf + p->off, p->len);
    if (with_phv)
        memcpy(q->phv, p->phv, TR_PHV_SIZE(s));
    return q;
}

uint8_t *tr_pkt_prepend(tr_pkt *p, uint32_t n)
{
    uint32_t payload = p->off + p->parsed;
    if (n > payload)
        return NULL;
    p->len = p->len - p->parsed + n;
    p->off = payload - n;
    p->parsed = 0;
    return p->buf + p->off;
}

void tr_lose(tr_switch *s, enum tr_drop reason, const tr_lost *frame)
{
    s->drops[reason]++;
    s->account.dropped_virt += frame->virt;
    if (s->lost)
        s->lost(s->lost_arg, s->now_ps, frame);
}

tr_lost tr_pkt_lost(const tr_pkt *p)
{
    /* a packed packet in a queue has no header bytes (tr_pack.c) */
    int packed = p->size_class >= TR_SIZE_CLASSES;
    return (tr_lost){
        .data = packed ? NULL : p->buf + p->off,
        .len = packed ? 0 : p->len,
        .virt = p->virt,
        .copy = p->copy,
        .cut = p->virt && (uint64_t)p->len + p->virt > p->trunc,
    };
}

void tr_drop(tr_switch *s, tr_pkt *p, enum tr_drop reason)
{
    tr_lost lost = tr_pkt_lost(p);
    TR_TRACE(s, p, TR_RECORD_DROP, reason);
    tr_lose(s, reason, &lost);
    if (p->charge)
        tr_buffer_release(s, p);
    tr_pkt_free(s, p);
}

void tr_set_lost(tr_switch *s, tr_lost_fn fn, void *arg)
{
    tr_switch_lock(s);
    s->lost = fn;
    s->lost_arg = arg;
    tr_switch_unlock(s);
}

void tr_set_recirculated(tr_switch *s, tr_lost_fn fn, void *arg)
{
    tr_switch_lock(s);
    s->recirculated_fn = fn;
    s->recirculated_arg = arg;
    tr_switch_unlock(s);
}

const char *tr_drop_name(unsigned reason)
{
    static const char *const names[TR_DROP_COUNT] = {
        [TR_DROP_NO_PIPELINE] = "no_pipeline",
        [TR_DROP_INGRESS] = "ingress_drop",
        [TR_DROP_EGRESS] = "egress_drop",
        [TR_DROP_MULTICAST] = "multicast_unknown",
        [TR_DROP_REPLICATED] = "multicast_original",
        [TR_DROP_QUEUE_PACKETS] = "queue_packets",
        [TR_DROP_QUEUE_BYTES] = "queue_bytes",
        [TR_DROP_PRIORITY] = "priority",
        [TR_DROP_PORT] = "egress_port",
        [TR_DROP_PORT_DOWN] = "port_down",
        [TR_DROP_RESUBMIT_FULL] = "resubmit_full",
        [TR_DROP_RECIRC_FULL] = "recirculate_full",
        [TR_DROP_HEADROOM] = "headroom",
        [TR_DROP_ASSERT] = "assert",
        [TR_DROP_LOOP] = "loop",
        [TR_DROP_PFC_HEADROOM] = "pfc_headroom",
        [TR_DROP_PFC_FRAME] = "pfc_frame",
        [TR_DROP_NO_BUFFER] = "no_buffer",
        [TR_DROP_TOO_LONG] = "too_long",
        [TR_DROP_RELOAD] = "pipeline_replaced",
        [TR_DROP_BUFFER] = "buffer_full",
        [TR_DROP_MAC_CONTROL] = "mac_control",
        [TR_DROP_PFC_STORM] = "pfc_storm",
    };
    return reason < TR_DROP_COUNT ? names[reason] : "";
}
