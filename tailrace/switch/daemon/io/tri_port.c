/* Sockets of one interface: opening, checking, closing.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A port has two packet sockets. One receives frames with the kernel's metadata
 * (virtio header, VLAN tag); the other, bound to no protocol, only sends. So
 * sending needs no virtio header, and epoll can wait for space to send and for
 * received frames separately.
 */
#define _GNU_SOURCE 1
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if_arp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tri_internal.h"

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

/* Size of a receive socket's buffer, with the kernel's overhead per frame; it
 * takes up bursts while the loop is busy. */
#define RX_BUFFER_BYTES (8 << 20)

void tri_fail(char *err, const char *what, const char *name, int error)
{
    const char *why = strerror(error);

    if (error == ENODEV || error == ENXIO)
        why = "no such interface";
    else if (error == EPERM || error == EACCES)
        why = "no permission (root or CAP_NET_RAW is needed)";
    snprintf(err, TRI_ERROR_BYTES, "%s %s: %s", what, name, why);
}

static int set_option(int fd, int name, int value)
{
    return setsockopt(fd, SOL_PACKET, name, &value, sizeof value);
}

/* Opens a raw packet socket bound to ifindex. If protocol is 0, the socket only
 * sends; otherwise it receives, into a ring of `slots` slots. Returns -1 with
 * errno set on failure. */
static int open_bound(int ifindex, uint16_t protocol, tri_ring *ring,
                      uint32_t slots)
{
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET,
        .sll_protocol = htons(protocol),
        .sll_ifindex = ifindex,
    };
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    /* Options are set before bind, so that they apply to every frame. */
    if (protocol != 0) {
        struct packet_mreq all = {
            .mr_ifindex = ifindex,
            .mr_type = PACKET_MR_PROMISC,
        };
        int bytes = RX_BUFFER_BYTES;

        if (set_option(fd, PACKET_AUXDATA, 1) != 0
            || set_option(fd, PACKET_VNET_HDR, 1) != 0
            || setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all,
                          sizeof all) != 0)
            goto fail;
        /* The next two options may fail (old kernel, no CAP_NET_ADMIN):
         * outgoing frames are also recognised by their type, and a smaller
         * buffer suffices. */
        (void)set_option(fd, PACKET_IGNORE_OUTGOING, 1);
        if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes,
                       sizeof bytes) != 0)
            (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
        tri_ring_open(ring, fd, slots);
    }
    /* bind also succeeds while the interface is down; then the first read
     * fails. */
    if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
fail:
    {
        int error = errno;

        if (ring)
            tri_ring_close(ring);
        close(fd);
        errno = error;
    }
    return -1;
}

/* Stores the kind of the interface's link header, by its ARP hardware type.
 * Returns 0, or -1 with errno set. */
static int read_link_type(int fd, const char *ifname, tri_link *link)
{
    struct ifreq r;

    memset(&r, 0, sizeof r);
    memcpy(r.ifr_name, ifname, strlen(ifname));
    if (ioctl(fd, SIOCGIFHWADDR, &r) != 0)
        return -1;
    switch (r.ifr_hwaddr.sa_family) {
    case ARPHRD_ETHER:
    case ARPHRD_LOOPBACK:
        *link = TRI_LINK_ETHERNET;
        break;
    case ARPHRD_NONE:
    case ARPHRD_RAWIP:
        *link = TRI_LINK_NONE;
        break;
    default:
        *link = TRI_LINK_OTHER;
    }
    return 0;
}

/* Opens DIR/<interface>_<direction>.pcap. */
static tri_pcap *open_capture(const tri_loop *l, const tri_port *p,
                              const char *direction, char *err)
{
    char path[4096];
    tri_pcap *f;
    int n = snprintf(path, sizeof path, "%s/%s_%s.pcap", l->pcap_dir, p->name,
                     direction);

    if (n < 0 || (size_t)n >= sizeof path) {
        snprintf(err, TRI_ERROR_BYTES, "capture folder: name too long");
        return NULL;
    }
    f = tri_pcap_open(path, p->link == TRI_LINK_NONE ? TRI_PCAP_RAW_IP
                                                     : TRI_PCAP_ETHERNET);
    if (!f)
        tri_fail(err, "cannot write", path, errno);
    return f;
}

tri_port *tri_port_open(tri_loop *l, uint32_t number, const char *ifname,
                        char *err)
{
    char what[32];
    tri_port *p;

    snprintf(what, sizeof what, "port %u: interface", number);
    p = calloc(1, sizeof *p);
    if (!p) {
        tri_fail(err, what, ifname, ENOMEM);
        return NULL;
    }
    p->rx_fd = p->tx_fd = -1;
    p->number = number;
    p->ifindex = strlen(ifname) < IFNAMSIZ ? (int)if_nametoindex(ifname) : 0;
    if (p->ifindex == 0) {
        tri_fail(err, what, ifname, ENODEV);
        goto fail;
    }
    strcpy(p->name, ifname);
    p->rx_fd = open_bound(p->ifindex, ETH_P_ALL, &p->ring, l->ring_slots);
    if (p->rx_fd >= 0)
        p->tx_fd = open_bound(p->ifindex, 0, NULL, 0);
    if (p->tx_fd < 0 || read_link_type(p->tx_fd, ifname, &p->link) != 0) {
        tri_fail(err, what, ifname, errno);
        goto fail;
    }
    if (l->pcap_dir) {
        p->rx_pcap = open_capture(l, p, "in", err);
        if (p->rx_pcap)
            p->tx_pcap = open_capture(l, p, "out", err);
        if (!p->tx_pcap)
            goto fail;
    }
    return p;
fail:
    tri_port_close(p);
    return NULL;
}

int tri_port_reopen(tri_loop *l, tri_port *p, int ifindex)
{
    tri_link link;
    tri_ring ring = { 0 };
    int rx_fd = open_bound(ifindex, ETH_P_ALL, &ring, l->ring_slots);
    int tx_fd = rx_fd < 0 ? -1 : open_bound(ifindex, 0, NULL, 0);

    if (tx_fd < 0 || read_link_type(tx_fd, p->name, &link) != 0
        || link != p->link) {
        tri_ring_close(&ring);
        if (rx_fd >= 0)
            close(rx_fd);
        if (tx_fd >= 0)
            close(tx_fd);
        return -1;
    }
    /* No frame waits to be sent, as the port is down. The lock is needed as
     * other threads read the socket's counts (tri_port_read). */
    tri_lock(l);
    tri_ring_close(&p->ring);
    close(p->rx_fd);
    close(p->tx_fd);
    p->ring = ring;
    p->rx_fd = rx_fd;
    p->tx_fd = tx_fd;
    p->ifindex = ifindex;
    p->refused_bytes = 0;
    tr_switch_unlock(l->core);
    return 0;
}

void tri_port_close(tri_port *p)
{
    tri_ring_close(&p->ring);
    if (p->rx_fd >= 0)
        close(p->rx_fd);
    if (p->tx_fd >= 0)
        close(p->tx_fd);
    tri_pcap_close(p->rx_pcap);
    tri_pcap_close(p->tx_pcap);
    free(p->fifo);
    free(p);
}

void tri_capture(tri_port *p, tri_pcap **file, const uint8_t *data,
                 uint32_t len)
{
    if (!*file || tri_pcap_write(*file, data, len) == 0)
        return;
    tri_pcap_close(*file);
    *file = NULL;
    TRI_COUNT(p, pcap_errors, 1);
}
