/* Lists paused queues, with the ingress ports and PFC classes of their packets,
 * to detect cycles of pauses (deadlocks) in a network. A packet's PFC class is
 * the priority with which it was sent to this switch.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tr_tm.h"

#include <stdlib.h>

typedef struct accounts {
    uint64_t bytes[TR_MAX_PORTS][TR_MAX_PRIORITIES];
} accounts;

/* Sums the lossless bytes of a queue by ingress port and class. */
static void sum_up(const tr_queue *q, accounts *sums)
{
    memset(sums, 0, sizeof *sums);
    for (const tr_pkt *p = q->head; p; p = p->next)
        if (p->charge == TR_CHARGE_LOSSLESS)
            sums->bytes[p->pfc_port][p->pfc_class] += p->charged_bytes;
}

/* Adds an item for each ingress port and class of a queue, at most `most`.
 * Returns the number of all items. */
static uint32_t list_accounts(const tr_switch *s, const accounts *sums,
                              tr_paused_queue queue, tr_paused_queue *out,
                              uint32_t most)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < TR_MAX_PORTS; i++)
        for (uint32_t k = 0; s->ports[i] && k < TR_MAX_PRIORITIES; k++) {
            if (!sums->bytes[i][k])
                continue;
            queue.from_port = i;
            queue.from_priority = k;
            queue.bytes = sums->bytes[i][k];
            queue.pausing = s->ports[i]->pfc_state[k].paused;
            queue.xon_bytes = s->ports[i]->pfc.limits[k].xon_bytes;
            if (n < most)
                out[n] = queue;
            n++;
        }
    return n;
}

int tr_paused_queues(tr_switch *s, uint64_t at_ps, tr_paused_queue *out,
                     uint32_t most, uint32_t *count)
{
    accounts *sums = malloc(sizeof *sums);
    if (!sums)
        return TR_ENOMEM;
    *count = 0;
    tr_switch_lock(s);
    for (uint32_t i = 0; i < TR_MAX_PORTS; i++) {
        const tr_port *t = s->ports[i];
        for (unsigned bits = t ? t->waiting : 0; bits; bits &= bits - 1) {
            uint32_t k = (uint32_t)__builtin_ctz(bits);
            if (t->queue[k].pause_until_ps <= at_ps)
                continue;
            sum_up(&t->queue[k], sums);
            tr_paused_queue queue = {.port = i, .priority = k};
            uint32_t fit = *count < most ? most - *count : 0;
            *count += list_accounts(s, sums, queue, fit ? out + *count : NULL,
                                    fit);
        }
    }
    tr_switch_unlock(s);
    free(sums);
    return TR_OK;
}
