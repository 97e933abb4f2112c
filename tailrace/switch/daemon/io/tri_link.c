/* Interfaces going up, down and away, as the kernel reports them.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A port is up when its interface is administratively up and has carrier
 * (IFF_UP and IFF_RUNNING; the kernel reports the latter once frames really
 * leave, which is a moment after the carrier came). When an interface is
 * deleted, or moved into another network namespace, its port is down until one
 * of that name appears; then it is opened anew.
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
    struct sockaddr_nl at = {
        .nl_family = AF_NETLINK,
        .nl_groups = RTMGRP_LINK,
    };
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
                    NETLINK_ROUTE);

    if (fd < 0)
        return -1;
    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        int error = errno;

        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

void tri_link_set(tri_loop *l, tri_port *p, bool up, bool deleted)
{
    bool was = TRI_READ(p, up) != 0;

    if (deleted && !TRI_READ(p, deleted)) {
        struct epoll_event unused = { 0 };

        TRI_PUT(p, deleted, 1);
        p->ifindex = 0;       /* the kernel may give it to another one */
        epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, p->rx_fd, &unused);
        up = false;
    }
    if (up == was)
        return;
    TRI_PUT(p, up, up);
    if (!up)
        tri_tx_ready(l, p);   /* what waits is dropped, not kept */
    tri_enter(l);
    tr_port_up(l->core, p->number, up);
    tr_switch_unlock(l->core);
    l->again = true;
}

void tri_link_query(tri_loop *l, tri_port *p)
{
    int ifindex = TRI_READ(p, deleted) ? (int)if_nametoindex(p->name)
                                       : p->ifindex;
    struct {
        struct nlmsghdr head;
        struct ifinfomsg body;
    } ask = {
        .head.nlmsg_len = sizeof ask,
        .head.nlmsg_type = RTM_GETLINK,
        .head.nlmsg_flags = NLM_F_REQUEST,
        .body.ifi_family = AF_UNSPEC,
        .body.ifi_index = ifindex,
    };

    if (ifindex == 0)
        return;               /* its coming will be reported */
    /* The kernel has queued the answer when send returns. Without one the
     * port stays as it was. */
    (void)send(l->link_fd, &ask, sizeof ask, 0);
}

/* An interface with the name of a deleted one is its port's. What cannot be
 * opened now may be at the next report, of its going up for one. */
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

/* Records what is known of the interface with index ifindex; name may be
 * NULL. */
static void found(tri_loop *l, int ifindex, const char *name, unsigned flags,
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

/* The name in a message about an interface; NULL where it has none. */
static const char *name_in(const struct nlmsghdr *h)
{
    const struct rtattr *a = IFLA_RTA(NLMSG_DATA(h));
    unsigned left = IFLA_PAYLOAD(h);

    for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
        if (a->rta_type == IFLA_IFNAME && RTA_PAYLOAD(a) > 0
            && memchr(RTA_DATA(a), 0, RTA_PAYLOAD(a)))
            return RTA_DATA(a);
    return NULL;
}

/* One message about an interface, or the answer that there is none. */
static void handle(tri_loop *l, const struct nlmsghdr *h)
{
    const struct ifinfomsg *m = NLMSG_DATA(h);
    const struct nlmsgerr *e = NLMSG_DATA(h);

    if (h->nlmsg_type == NLMSG_ERROR) {
        if (h->nlmsg_len >= NLMSG_LENGTH(sizeof *e + sizeof *m)
            && (e->error == -ENODEV || e->error == -ENXIO)) {
            m = NLMSG_DATA(&e->msg);
            found(l, m->ifi_index, NULL, 0, true);
        }
        return;
    }
    if (h->nlmsg_type != RTM_NEWLINK && h->nlmsg_type != RTM_DELLINK)
        return;
    /* Bridges report their ports in a family of their own. */
    if (h->nlmsg_len < NLMSG_LENGTH(sizeof *m) || m->ifi_family != AF_UNSPEC)
        return;
    found(l, m->ifi_index, name_in(h), m->ifi_flags,
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
            /* Reports were lost: look at everything anew. */
            for (uint32_t i = 0; i < l->n_ports; i++)
                tri_link_query(l, l->list[i]);
            continue;
        }
        if (n < 0)
            return;
        for (size_t left = (size_t)n; NLMSG_OK(h, left);
             h = NLMSG_NEXT(h, left))
            handle(l, h);
    }
}
