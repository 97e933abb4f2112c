/* Samples of ports: bytes queued, bytes sent, paused priorities.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tv_net.h"

#include <stdlib.h>

uint64_t tv_sample_next(const tv_net *net)
{
    return net->sampler ? net->sampler->next_ps : TC_NEVER;
}

/* Enlarges the arrays: a row is one sample, a cell one port of it. */
static int grow(tv_sampler *s)
{
    size_t cap = s->cap ? s->cap * 2 : 64, cells = cap * (s->n ? s->n : 1);
    if (tv_resize(&s->time_ps, cap * sizeof *s->time_ps) < 0 ||
        tv_resize(&s->queue_bytes, cells * sizeof *s->queue_bytes) < 0 ||
        tv_resize(&s->tx_bytes, cells * sizeof *s->tx_bytes) < 0 ||
        tv_resize(&s->paused, cells) < 0)
        return -1;
    s->cap = cap;
    return 0;
}

static uint32_t saturated(uint64_t value)
{
    return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

int tv_sample_take(tv_net *net)
{
    tv_sampler *s = net->sampler;
    if (s->rows == s->cap && grow(s) < 0)
        return -1;
    size_t cell = s->rows * s->n;
    for (uint32_t i = 0; i < s->n; i++, cell++) {
        const tv_wire *w = s->wires[i];
        tr_port_state_t state;
        tr_port_state(net->nodes[w->source]->core, w->source_port, s->next_ps,
                      &state);
        s->queue_bytes[cell] = saturated(state.queue_bytes);
        s->tx_bytes[cell] = saturated(state.tx_bytes - s->tx_before[i]);
        s->paused[cell] = state.paused;
        s->tx_before[i] = state.tx_bytes;
    }
    s->time_ps[s->rows++] = s->next_ps;
    s->next_ps += s->period_ps;
    return 0;
}

void tv_sample_free(tv_sampler *s)
{
    if (!s)
        return;
    free(s->wires);
    free(s->tx_before);
    free(s->time_ps);
    free(s->queue_bytes);
    free(s->tx_bytes);
    free(s->paused);
    free(s);
}
