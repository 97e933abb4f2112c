/* State of interfaces: up, down or deleted, as the kernel reports by netlink.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A port is up when its interface is administratively up and has carrier
 * (IFF_UP and IFF_RUNNING; the kernel sets IFF_RUNNING when frames can leave,
 * shortly after the carrier appears). When an interface is deleted, or moved
 * into another network namespace, its port is down until an interface of the
 * same name appears. That interface is then opened for the port.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "tri_internal.h"

int tri_link_open(void)
{
    struct sockaddr_nl address = {
        .nl_family = AF_NETLINK,
        .nl_groups = RTMGRP_LINK,
    };
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
                    NETLINK_ROUTE);

    if (fd < 0)
        return -1;
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        int error = errno;

        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

void tri_link_set(tri_loop *l, tri_port *p, bool up, bool deleted)
{
    bool was_up = TRI_READ(p, up) != 0;

    if (deleted && !TRI_READ(p, deleted)) {
        struct epoll_event unused = { 0 };

        TRI_PUT(p, deleted, 1);
        p->ifindex = 0;       /* the kernel may reuse the index */
        epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, p->rx_fd, &unused);
        up = false;
    }
    if (up == was_up)
        return;
    TRI_PUT(p, up, up);
    if (!up)
        tri_tx_ready(l, p);   /* drops the frames that wait at the port */
    tri_lock(l);
    tr_port_up(l->core, p->number, up);
    tr_switch_unlock(l->core);
    l->again = true;          /* the core has work now */
}

void tri_link_query(tri_loop *l, tri_port *p)
{
    int ifindex = TRI_READ(p, deleted) ? (int)if_nametoindex(p->name)
                                       : p->ifindex;
    struct {
        struct nlmsghdr head;
        struct ifinfomsg body;
    } request = {
        .head.nlmsg_len = sizeof request,
        .head.nlmsg_type = RTM_GETLINK,
        .head.nlmsg_flags = NLM_F_REQUEST,
        .body.ifi_family = AF_UNSPEC,
        .body.ifi_index = ifindex,
    };

    if (ifindex == 0)
        return;               /* the kernel will report a new interface */
    /* The kernel has queued the reply when send returns. Without a reply the
     * port keeps its state. */
    (void)send(l->link_fd, &request, sizeof request, 0);
}

/* Opens a new interface for the port whose deleted interface had the same name.
 * If that fails, the next report about the interface calls this again. */
static void attach(tri_loop *l, tri_port *p, int ifindex)
{
    struct epoll_event e = {
        .events = EPOLLIN,
        .data.u64 = TRI_EV(TRI_EV_RX, p->number),
    };

    if (tri_port_reopen(l, p, ifindex) == 0
        && epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, p->rx_fd, &e) == 0)
        TRI_PUT(p, deleted, 0);
}

/* Updates the port of the interface with this index; name NULL: not known. */
static void update(tri_loop *l, int ifindex, const char *name, unsigned flags,
                   bool deleted)
{
    bool up = (flags & IFF_UP) && (flags & IFF_RUNNING);

    for (uint32_t i = 0; i < l->n_ports; i++) {
        tri_port *p = l->list[i];

        if (!deleted && name && TRI_READ(p, deleted)
            && strcmp(name, p->name) == 0)
            attach(l, p, ifindex);
        if (p->ifindex == ifindex)
            tri_link_set(l, p, up && !deleted, deleted);
    }
}

/* The interface name in a netlink message; NULL: it has none. */
static const char *name_in(const struct nlmsghdr *h)
{
    const struct rtattr *a = IFLA_RTA(NLMSG_DATA(h));
    unsigned bytes_left = IFLA_PAYLOAD(h);

    for (; RTA_OK(a, bytes_left); a = RTA_NEXT(a, bytes_left))
        if (a->rta_type == IFLA_IFNAME && RTA_PAYLOAD(a) > 0
            && memchr(RTA_DATA(a), 0, RTA_PAYLOAD(a)))
            return RTA_DATA(a);
    return NULL;
}

/* Handles a message about an interface, or the error that it does not exist. */
static void handle(tri_loop *l, const struct nlmsghdr *h)
{
    const struct ifinfomsg *m = NLMSG_DATA(h);
    const struct nlmsgerr *e = NLMSG_DATA(h);

    if (h->nlmsg_type == NLMSG_ERROR) {
        if (h->nlmsg_len >= NLMSG_LENGTH(sizeof *e + sizeof *m)
            && (e->error == -ENODEV || e->error == -ENXIO)) {
            m = NLMSG_DATA(&e->msg);
            update(l, m->ifi_index, NULL, 0, true);
        }
        return;
    }
    if (h->nlmsg_type != RTM_NEWLINK && h->nlmsg_type != RTM_DELLINK)
        return;
    /* Reports of bridges about their ports have another address family. */
    if (h->nlmsg_len < NLMSG_LENGTH(sizeof *m) || m->ifi_family != AF_UNSPEC)
        return;
    update(l, m->ifi_index, name_in(h), m->ifi_flags,
           h->nlmsg_type == RTM_DELLINK);
}

void tri_link_read(tri_loop *l)
{
    _Alignas(struct nlmsghdr) uint8_t buf[32768];
    ssize_t n;

    while ((n = recv(l->link_fd, buf, sizeof buf, MSG_DONTWAIT)) != 0) {
        struct nlmsghdr *h = (struct nlmsghdr *)buf;

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == ENOBUFS) {
            /* Reports were lost: query all interfaces again. */
            for (uint32_t i = 0; i < l->n_ports; i++)
                tri_link_query(l, l->list[i]);
            continue;
        }
        if (n < 0)
            return;
        for (size_t bytes_left = (size_t)n; NLMSG_OK(h, bytes_left);
             h = NLMSG_NEXT(h, bytes_left))
            handle(l, h);
    }
}
