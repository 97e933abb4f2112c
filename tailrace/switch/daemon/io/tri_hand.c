/* Ports without interfaces: hands their frames to and from a client (gRPC).
 * SPDX-License-Identifier: Apache-2.0
 *
 * Frames from the client have an origin (tr_origin): an id that all frames have
 * that result from the frame.
 *
 * Such a port sends a frame at the time that the core computes. While the
 * client does not take the frames, the port is blocked and its queues build up,
 * as at a busy link. While no client listens, the port's frames are dropped, as
 * if no cable were plugged in.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "tri_internal.h"

int tri_add_client_ports(tri_loop *l, char *err)
{
    for (uint32_t number = 0; number < TR_MAX_PORTS; number++) {
        tri_port *p;

        if (number == l->cpu_port || l->ports[number])
            continue;
        p = calloc(1, sizeof *p);
        if (!p) {
            tri_fail(err, "cannot make the", "ports", ENOMEM);
            return -1;
        }
        p->rx_fd = p->tx_fd = -1;
        p->number = number;
        p->for_client = true;
        l->ports[number] = l->list[l->n_ports++] = p;
    }
    return 0;
}

void tri_client_listen(tri_loop *l, int on)
{
    atomic_store(&l->client_listens, on != 0);
    tri_box_drop_all(&l->boxes[TRI_CLIENT_FRAMES]);
}

int tri_client_idle(tri_loop *l)
{
    tr_account account;

    /* Checked in the order in which frames move, so that no frame is missed. */
    tr_account_read(l->core, &account);
    return account.held_frames == 0 && atomic_load(&l->client_frames) == 0
           && tri_frames_waiting(l, TRI_CLIENT_FRAMES) == 0;
}

static tri_port *port_of(const tri_loop *l, uint32_t number)
{
    tri_port *p = number < TR_MAX_PORTS ? l->ports[number] : NULL;

    return p && p->for_client ? p : NULL;
}

int tri_client_set_up(tri_loop *l, uint32_t number, int up)
{
    tri_port *p = port_of(l, number);

    if (!p)
        return -1;
    tr_switch_lock(l->core);
    TRI_PUT(p, up, up != 0);
    tr_port_up(l->core, number, up);
    tr_switch_unlock(l->core);
    tri_signal(l->wake_fd);
    return 0;
}

int tri_inject(tri_loop *l, uint32_t number, const uint8_t *data, uint32_t len,
               uint32_t origin)
{
    tri_port *p = port_of(l, number);
    int result = TR_OK;

    tr_switch_lock(l->core);
    if (p && !TRI_READ(p, up)) {
        TRI_COUNT(p, rx_refused, 1);
    } else {
        tr_origin(l->core, origin);
        result = tr_rx(l->core, number, data, len,
                       tri_now(l) * TR_PS_PER_NS);
        tr_origin(l->core, 0);
    }
    tr_switch_unlock(l->core);
    tri_signal(l->wake_fd);
    return result;
}
