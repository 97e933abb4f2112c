/* Receiving: reads a batch of frames from ring or socket, does the work that
 * the kernel has left to offloads (checksums, VLAN tags, cutting super-frames
 * (GSO) into segments), and delivers the frames to the core.
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

/* Buffers for one message that recvmmsg receives. */
typedef struct tri_rx_slot {
    struct virtio_net_hdr vnet;
    struct iovec iov[2];      /* vnet, frame */
    struct sockaddr_ll from;
    _Alignas(struct cmsghdr) uint8_t control[CONTROL_BYTES];
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
    rx->frames = calloc(TRI_BATCH, sizeof *rx->frames);
    if (!rx->memory || !rx->segment || !rx->msgs || !rx->slots
        || !rx->frames)
        return -1;
    for (uint32_t i = 0; i < TRI_BATCH; i++) {
        tri_rx_slot *s = &rx->slots[i];

        s->iov[0] = (struct iovec){ &s->vnet, sizeof s->vnet };
        s->iov[1] = (struct iovec){ buffer_of(rx, i), TR_MAX_FRAME };
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
    free(rx->frames);
}

/* The kernel's metadata of a received frame; NULL if there is none. */
static const struct tpacket_auxdata *auxdata_of(struct msghdr *m)
{
    struct cmsghdr *c;

    for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
        if (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA)
            return (const struct tpacket_auxdata *)CMSG_DATA(c);
    return NULL;
}

void tri_rx_note_tag(tri_rx_frame *f, uint32_t status, uint16_t tci,
                     uint16_t tpid)
{
    f->tagged = (status & TP_STATUS_VLAN_VALID) && f->len >= 12;
    f->tci = tci;
    f->tpid = status & TP_STATUS_VLAN_TPID_VALID ? tpid : 0x8100;
}

/* Describes the frame in message i. */
static void from_message(const tri_rx *rx, uint32_t i, tri_rx_frame *f)
{
    const tri_rx_slot *s = &rx->slots[i];
    struct mmsghdr *m = &rx->msgs[i];
    const struct tpacket_auxdata *aux = auxdata_of(&m->msg_hdr);

    *f = (tri_rx_frame){
        .vnet = s->vnet,
        .data = s->iov[1].iov_base,
        .outgoing = s->from.sll_pkttype == PACKET_OUTGOING,
        .too_long = (m->msg_hdr.msg_flags & MSG_TRUNC)
                    || m->msg_len < sizeof s->vnet,
    };
    if (f->too_long)
        return;
    f->len = m->msg_len - (uint32_t)sizeof s->vnet;
    if (aux)
        tri_rx_note_tag(f, aux->tp_status, aux->tp_vlan_tci,
                        aux->tp_vlan_tpid);
}

/* Completes checksum and VLAN tag of a frame, but not of a super-frame, whose
 * segments are completed later. Returns whether to deliver it to the core. */
static bool prepare(tri_port *p, tri_rx_frame *f)
{
    if (f->skip)
        return false;
    if (f->outgoing) {
        TRI_COUNT(p, rx_own, 1);
        return false;
    }
    if (f->too_long || f->lost) {
        if (f->too_long)
            TRI_COUNT(p, rx_too_long, 1);
        else
            TRI_COUNT(p, rx_kernel_drops, 1);
        return false;
    }
    f->super_frame = f->vnet.gso_type != VIRTIO_NET_HDR_GSO_NONE;
    if (!f->super_frame && (f->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)) {
        if (tri_checksum(f->data, f->len, f->vnet.csum_start,
                         f->vnet.csum_offset) != 0) {
            TRI_COUNT(p, rx_offload, 1);
            return false;
        }
        TRI_COUNT(p, checksums, 1);
    }
    if (f->tagged && !f->super_frame) {
        f->data = tri_tag(f->data, f->tpid, f->tci);
        f->len += 4;
        TRI_COUNT(p, tags, 1);
    }
    return true;
}

/* Delivers one frame to the core. The caller has the core's lock. */
static void deliver(tri_loop *l, tri_port *p, const uint8_t *data,
                    uint32_t len, uint64_t now)
{
    tri_capture(p, &p->rx_pcap, data, len);
    if (tr_rx(l->core, p->number, data, len, now * TR_PS_PER_NS) != TR_OK) {
        TRI_COUNT(p, rx_refused, 1);
        return;
    }
    TRI_COUNT(p, rx_packets, 1);
    TRI_COUNT(p, rx_bytes, len);
}

/* Cuts a super-frame into segments and delivers each. The caller has the core's
 * lock. */
static void deliver_segments(tri_loop *l, tri_port *p, const tri_rx_frame *f,
                             uint64_t now)
{
    uint8_t *out = l->rx.segment + TRI_HEADROOM, *frame;
    uint32_t len;
    tri_cut cut;

    if (tri_cut_begin(&cut, f->data, f->len, &f->vnet, p->link) != 0) {
        TRI_COUNT(p, rx_offload, 1);
        return;
    }
    TRI_COUNT(p, super_frames, 1);
    while ((len = tri_cut_next(&cut, out)) != 0) {
        frame = out;
        if (f->tagged) {
            frame = tri_tag(out, f->tpid, f->tci);
            len += 4;
            TRI_COUNT(p, tags, 1);
        }
        deliver(l, p, frame, len, now);
    }
}

/* Calls recvmmsg on p for at most `most` frames; -1 with errno. */
static int receive(tri_loop *l, tri_port *p, uint32_t most)
{
    int n;

    for (uint32_t i = 0; i < most; i++) {
        l->rx.msgs[i].msg_hdr.msg_namelen = sizeof l->rx.slots[i].from;
        l->rx.msgs[i].msg_hdr.msg_controllen = CONTROL_BYTES;
    }
    n = recvmmsg(p->rx_fd, l->rx.msgs, most, MSG_DONTWAIT, NULL);
    /* EINVAL: a virtio header cannot describe the frame's offload; the frame is
     * lost. ENETDOWN, ENODEV: ignored here; the netlink socket reports them. */
    if (n < 0 && errno == EINVAL)
        TRI_COUNT(p, rx_offload, 1);
    return n;
}

static uint32_t from_socket(tri_loop *l, tri_port *p)
{
    int n = receive(l, p, TRI_BATCH);

    for (int i = 0; i < n; i++)
        from_message(&l->rx, (uint32_t)i, &l->rx.frames[i]);
    return n < 0 ? 0 : (uint32_t)n;
}

/* Of n frames of the ring, `queued` are truncated: receives these completely
 * from the socket's queue. Returns the number of frames before the first that
 * could not be received. */
static uint32_t receive_queued(tri_loop *l, tri_port *p, uint32_t n,
                               uint32_t queued)
{
    int taken = receive(l, p, queued), next = 0;
    /* EINVAL: recvmmsg has discarded a frame; EAGAIN: the queue is empty */
    bool first_lost = taken < 0 && (errno == EINVAL || errno == EAGAIN);

    for (uint32_t i = 0; i < n; i++) {
        tri_rx_frame *f = &l->rx.frames[i];
        bool outgoing = f->outgoing;

        if (!f->queued)
            continue;
        if (next < taken) {
            from_message(&l->rx, (uint32_t)next++, f);
            f->outgoing = outgoing; /* known only from the ring */
        } else if (first_lost) {
            f->skip = true;
            first_lost = false;
        } else {
            return i;
        }
    }
    return n;
}

/* Reads a batch from the ring; returns the number of frames. */
static uint32_t from_ring(tri_loop *l, tri_port *p)
{
    uint32_t n = tri_ring_look(&p->ring, l->rx.frames, TRI_BATCH), queued = 0;

    if (n == 0) {
        /* Clears the error that a socket has while its interface is down; the
         * netlink socket reports the state. recvmmsg would clear the
         * error, too, but could take a frame from the queue before the frame's
         * slot is ready. */
        int error;
        socklen_t size = sizeof error;

        (void)getsockopt(p->rx_fd, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    for (uint32_t i = 0; i < n; i++)
        queued += l->rx.frames[i].queued;
    return queued ? receive_queued(l, p, n, queued) : n;
}

void tri_rx_port(tri_loop *l, tri_port *p)
{
    uint32_t n = p->ring.memory ? from_ring(l, p) : from_socket(l, p);
    uint64_t now;

    if (n == 0)
        return;
    tri_lock(l);
    now = tri_now(l);
    for (uint32_t i = 0; i < n; i++) {
        tri_rx_frame *f = &l->rx.frames[i];

        if (!prepare(p, f))
            continue;
        /* Processing a frame may take long: waiting threads get the lock. */
        if (tr_switch_contended(l->core)) {
            tr_switch_unlock(l->core);
            tri_lock(l);
        }
        if (f->super_frame)
            deliver_segments(l, p, f, now);
        else
            deliver(l, p, f->data, f->len, now);
    }
    if (p->ring.memory)
        tri_ring_release(&p->ring, n);
    tri_run_core(l);
    tr_switch_unlock(l->core);
}
