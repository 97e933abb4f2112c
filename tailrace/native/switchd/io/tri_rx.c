/* Receiving: a batch of frames from a socket, made whole, into the core.
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <linux/if_packet.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tri_internal.h"

#ifndef TP_STATUS_VLAN_TPID_VALID
#define TP_STATUS_VLAN_TPID_VALID (1 << 6)
#endif

#define CONTROL_BYTES CMSG_SPACE(sizeof(struct tpacket_auxdata))

/* Everything the kernel says about one frame. */
typedef struct tri_rx_slot {
    struct virtio_net_hdr vnet;
    struct iovec iov[2];      /* vnet, frame */
    struct sockaddr_ll from;
    _Alignas(struct cmsghdr) uint8_t control[CONTROL_BYTES];
    uint8_t *frame;           /* start, after a tag was put back */
    uint32_t len;             /* 0 is a length too: see skip */
    bool skip;                /* not for the core */
    bool cut;                 /* a super-frame */
    bool tagged;
    uint16_t tpid, tci;
} tri_rx_slot;

static uint8_t *buffer_of(const tri_rx *rx, uint32_t i)
{
    return rx->memory + (size_t)i * TRI_STRIDE + TRI_HEADROOM;
}

int tri_rx_init(tri_rx *rx)
{
    rx->memory = malloc((size_t)TRI_BATCH * TRI_STRIDE);
    rx->segment = malloc(TRI_STRIDE);
    rx->msgs = calloc(TRI_BATCH, sizeof *rx->msgs);
    rx->slots = calloc(TRI_BATCH, sizeof *rx->slots);
    if (!rx->memory || !rx->segment || !rx->msgs || !rx->slots)
        return -1;
    for (uint32_t i = 0; i < TRI_BATCH; i++) {
        tri_rx_slot *s = &rx->slots[i];

        s->iov[0] = (struct iovec){ &s->vnet, sizeof s->vnet };
        s->iov[1] = (struct iovec){ buffer_of(rx, i), TRI_FRAME_BYTES };
        rx->msgs[i].msg_hdr = (struct msghdr){
            .msg_name = &s->from,
            .msg_iov = s->iov,
            .msg_iovlen = 2,
            .msg_control = s->control,
        };
    }
    return 0;
}

void tri_rx_free(tri_rx *rx)
{
    free(rx->memory);
    free(rx->segment);
    free(rx->msgs);
    free(rx->slots);
}

/* The kernel's notes on a received frame, NULL if it gave none. */
static const struct tpacket_auxdata *notes_of(struct msghdr *m)
{
    struct cmsghdr *c;

    for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
        if (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA)
            return (const struct tpacket_auxdata *)CMSG_DATA(c);
    return NULL;
}

/* Looks whether the kernel keeps a VLAN tag beside the frame. */
static void note_tag(tri_rx_slot *s, struct msghdr *m)
{
    const struct tpacket_auxdata *aux = notes_of(m);

    s->tagged = aux && (aux->tp_status & TP_STATUS_VLAN_VALID)
                && s->len >= 12;
    if (!s->tagged)
        return;
    s->tci = aux->tp_vlan_tci;
    s->tpid = aux->tp_status & TP_STATUS_VLAN_TPID_VALID ? aux->tp_vlan_tpid
                                                         : 0x8100;
}

/* Turns message i into a frame as it would be on a wire, as far as that is
 * possible without cutting it. */
static void prepare(tri_port *p, tri_rx_slot *s, struct mmsghdr *msg)
{
    s->skip = true;
    s->cut = false;
    if (s->from.sll_pkttype == PACKET_OUTGOING) {
        TRI_COUNT(p, rx_own, 1);
        return;
    }
    if ((msg->msg_hdr.msg_flags & MSG_TRUNC)
        || msg->msg_len < sizeof s->vnet) {
        TRI_COUNT(p, rx_too_long, 1);
        return;
    }
    s->frame = s->iov[1].iov_base;
    s->len = msg->msg_len - (uint32_t)sizeof s->vnet;
    note_tag(s, &msg->msg_hdr);
    if (s->vnet.gso_type != VIRTIO_NET_HDR_GSO_NONE) {
        s->cut = true;
    } else if (s->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) {
        if (tri_checksum(s->frame, s->len, s->vnet.csum_start,
                         s->vnet.csum_offset) != 0) {
            TRI_COUNT(p, rx_offload, 1);
            return;
        }
        TRI_COUNT(p, checksums, 1);
    }
    if (s->tagged && !s->cut) {
        s->frame = tri_tag(s->frame, s->tpid, s->tci);
        s->len += 4;
        TRI_COUNT(p, tags, 1);
    }
    s->skip = false;
}

static void capture(tri_port *p, const uint8_t *data, uint32_t len)
{
    if (!p->rx_pcap || tri_pcap_write(p->rx_pcap, data, len) == 0)
        return;
    tri_pcap_close(p->rx_pcap);
    p->rx_pcap = NULL;
    TRI_COUNT(p, pcap_errors, 1);
}

/* Gives one frame to the core. Lock held. */
static void give(tri_loop *l, tri_port *p, const uint8_t *data, uint32_t len,
                 uint64_t now)
{
    capture(p, data, len);
    if (tr_rx(l->core, p->number, data, len, now * TR_PS_PER_NS) != TR_OK) {
        TRI_COUNT(p, rx_refused, 1);
        return;
    }
    TRI_COUNT(p, rx_packets, 1);
    TRI_COUNT(p, rx_bytes, len);
}

/* Cuts a super-frame and gives every segment to the core. Lock held. */
static void give_cut(tri_loop *l, tri_port *p, const tri_rx_slot *s,
                     uint64_t now)
{
    uint8_t *out = l->rx.segment + TRI_HEADROOM, *frame;
    uint32_t len;
    tri_cut cut;

    if (tri_cut_begin(&cut, s->frame, s->len, &s->vnet, p->link) != 0) {
        TRI_COUNT(p, rx_offload, 1);
        return;
    }
    TRI_COUNT(p, super_frames, 1);
    while ((len = tri_cut_next(&cut, out)) != 0) {
        frame = out;
        if (s->tagged) {
            frame = tri_tag(out, s->tpid, s->tci);
            len += 4;
            TRI_COUNT(p, tags, 1);
        }
        give(l, p, frame, len, now);
    }
}

/* recvmmsg on p, at most TRI_BATCH frames; 0 when there are none. */
static uint32_t receive(tri_loop *l, tri_port *p)
{
    int n;

    for (uint32_t i = 0; i < TRI_BATCH; i++) {
        l->rx.msgs[i].msg_hdr.msg_namelen = sizeof l->rx.slots[i].from;
        l->rx.msgs[i].msg_hdr.msg_controllen = CONTROL_BYTES;
    }
    n = recvmmsg(p->rx_fd, l->rx.msgs, TRI_BATCH, MSG_DONTWAIT, NULL);
    if (n >= 0)
        return (uint32_t)n;
    /* EINVAL: an offload that has no name in a virtio header. The frame is
     * gone. ENETDOWN, ENODEV: the link socket tells, here it only ends. */
    if (errno == EINVAL)
        TRI_COUNT(p, rx_offload, 1);
    return 0;
}

void tri_rx_port(tri_loop *l, tri_port *p)
{
    uint32_t n = receive(l, p);
    uint64_t now;

    if (n == 0)
        return;
    for (uint32_t i = 0; i < n; i++)
        prepare(p, &l->rx.slots[i], &l->rx.msgs[i]);
    tri_enter(l);
    now = tri_now(l);
    for (uint32_t i = 0; i < n; i++) {
        tri_rx_slot *s = &l->rx.slots[i];

        if (s->skip)
            continue;
        if (s->cut)
            give_cut(l, p, s, now);
        else
            give(l, p, s->frame, s->len, now);
    }
    tri_turn(l);
    tr_switch_unlock(l->core);
}
