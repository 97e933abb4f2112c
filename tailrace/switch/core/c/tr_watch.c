/* The PFC watchdog: a queue that is paused for too long has a storm.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A queue counts as paused while packets wait in it for the end of a pause. A
 * leaky bucket measures the paused time:
 *
 *   paused_ps  grows by the time for which the queue is paused, and shrinks by
 *              the time for which it is not paused, times
 *              share / (1 - share)
 *
 * A storm begins when paused_ps reaches detect_ps. A pause without end is
 * detected after exactly this time. Pauses with breaks are detected if they
 * take more than `share` of the time. With a share of 1, any break empties the
 * bucket.
 *
 * In a storm pauses are ignored, and packets of the queue are dropped or sent.
 * The storm ends restore_ps after the end of the last requested pause. Its end
 * does not empty the bucket, so that another storm is detected sooner.
 */
#include "tr_tm.h"

void tr_watch_settle(tr_port *t, uint32_t priority, uint64_t now_ps)
{
    tr_pfc_state *st = &t->pfc_state[priority];
    const tr_queue *q = &t->queue[priority];
    uint64_t paused = 0;
    if (now_ps > st->updated_ps) {
        uint64_t span = now_ps - st->updated_ps;
        if (st->blocked && q->pause_until_ps > st->updated_ps)
            paused = q->pause_until_ps < now_ps
                         ? q->pause_until_ps - st->updated_ps
                         : span;
        uint32_t share = t->pfc.watchdog.share_ppm;
        tr_u128 leak = span - paused;
        if (leak)
            leak = share < TR_ALWAYS_PPM
                       ? leak * share / (TR_ALWAYS_PPM - share)
                       : TR_NEVER;
        st->paused_ps += paused;
        st->paused_ps =
            leak < st->paused_ps ? st->paused_ps - (uint64_t)leak : 0;
        st->updated_ps = now_ps;
    }
    st->blocked = q->head && q->pause_until_ps > now_ps;
}

void tr_watch_action(tr_port *t)
{
    t->dropping = 0;
    for (uint32_t i = 0; i < TR_MAX_PRIORITIES; i++)
        if (t->pfc_state[i].stats.storming && !t->pfc.watchdog.ignore)
            t->dropping |= (uint8_t)(1u << i);
}

static void report_storm(tr_switch *s, uint32_t port, uint32_t priority)
{
    uint64_t storming = s->ports[port]->pfc_state[priority].stats.storming;
    tr_logf(s, 2, "port %u, priority %u: PFC storm %s", port, priority,
            storming ? "detected" : "is over");
    int digest = s->storm_digests[storming];
    if (digest >= 0) {
        uint64_t fields[] = {port, priority};
        tr_digest_push(s, (uint32_t)digest, s->now_ps, fields, 2);
    }
}

static void begin_storm(tr_switch *s, uint32_t port, uint32_t priority,
                  uint64_t now_ps)
{
    tr_port *t = s->ports[port];
    tr_pfc_state *st = &t->pfc_state[priority];
    tr_pfc_pause_until(t, priority, 0, now_ps);
    st->blocked = 0;
    st->paused_ps = t->pfc.watchdog.detect_ps;
    st->storm_from_ps = now_ps;
    st->stats.storming = 1;
    st->stats.storms++;
    tr_watch_action(t);
    report_storm(s, port, priority);
}

void tr_watch_end(tr_switch *s, uint32_t port, uint32_t priority,
                  uint64_t now_ps)
{
    tr_port *t = s->ports[port];
    tr_pfc_state *st = &t->pfc_state[priority];
    if (!st->stats.storming)
        return;
    st->stats.storming = 0;
    st->stats.storm_ps += now_ps - st->storm_from_ps;
    tr_watch_action(t);
    if (st->asked_until_ps > now_ps)
        tr_pfc_pause_until(t, priority, st->asked_until_ps, now_ps);
    report_storm(s, port, priority);
}

/* When the storm of a queue will end. */
static uint64_t storm_end(const tr_port *t, const tr_pfc_state *st)
{
    uint64_t end = st->asked_until_ps, restore = t->pfc.watchdog.restore_ps;
    return restore > TR_NEVER - end ? TR_NEVER : end + restore;
}

/* Checks one queue; returns when to check it again. */
static uint64_t check(tr_switch *s, uint32_t port, uint32_t priority,
                      uint64_t now_ps)
{
    tr_port *t = s->ports[port];
    tr_pfc_state *st = &t->pfc_state[priority];
    const tr_pfc_watchdog *w = &t->pfc.watchdog;
    tr_watch_settle(t, priority, now_ps);
    if (st->stats.storming && storm_end(t, st) <= now_ps)
        tr_watch_end(s, port, priority, now_ps);
    else if (!st->stats.storming && w->detect_ps && st->blocked &&
             st->paused_ps >= w->detect_ps)
        begin_storm(s, port, priority, now_ps);
    if (st->stats.storming)
        return storm_end(t, st);
    if (!w->detect_ps ||
        (!st->paused_ps && t->queue[priority].pause_until_ps <= now_ps))
        t->watched &= (uint8_t)~(1u << priority);
    if (!st->blocked || !w->detect_ps)
        return TR_NEVER;
    uint64_t until_storm = w->detect_ps - st->paused_ps;
    return until_storm > TR_NEVER - now_ps ? TR_NEVER : now_ps + until_storm;
}

uint64_t tr_watch(tr_switch *s, uint32_t port, uint64_t now_ps)
{
    uint64_t next = TR_NEVER;
    for (unsigned bits = s->ports[port]->watched; bits; bits &= bits - 1) {
        uint64_t time_ps =
            check(s, port, (uint32_t)__builtin_ctz(bits), now_ps);
        if (time_ps < next)
            next = time_ps;
    }
    return next;
}

int tr_pfc_storm_digests(tr_switch *s, int begin, int end)
{
    tr_switch_lock(s);
    int fits = (begin < 0 && end < 0) ||
               (s->prog && s->prog->digest_limbs >= 2);
    if (fits) {
        s->storm_digests[0] = end;
        s->storm_digests[1] = begin;
    }
    tr_switch_unlock(s);
    return fits ? TR_OK : TR_EINVAL;
}
