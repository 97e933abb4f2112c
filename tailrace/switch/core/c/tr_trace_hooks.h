/* How a program with TR_GLASS tells what it does; without, all of it is nothing.
 * SPDX-License-Identifier: Apache-2.0
 *
 * tr_core.h includes this at its end.
 */
#ifndef TR_SEE_H
#define TR_SEE_H

#include "tr_tracer.h"

/* One record of words. */
void tr_see(tr_switch *s, const tr_pkt *p, const uint64_t *words, uint32_t n);
/* A text of the packet whose stage it is; 0: of no packet that is marked. */
int tr_see_text(tr_switch *s, int level, const char *text);
/* Marks a packet that comes in, where somebody watches all of them. */
void tr_see_mark(tr_switch *s, tr_pkt *p);
/* The same with bytes behind them. */
void tr_see_bytes(tr_switch *s, const tr_pkt *p, const uint64_t *words,
                  uint32_t n, const void *bytes, uint32_t len);
/* The same with limbs behind them. */
void tr_see_limbs(tr_switch *s, const tr_pkt *p, const uint64_t *words,
                  uint32_t n, const uint64_t *limbs, uint32_t more);
/* Nobody watches any more; the switch has its own program again. */
void tr_unwatch(tr_switch *s);
/* An entry was hit: its handle + 1; 0: none was. */
void tr_used_entry(tr_switch *s, uint32_t table, uint64_t handle);
/* A stage begins: from here on changes of the PHV and of the locals show. */
void tr_see_begin(tr_switch *s, const tr_pkt *p, enum tr_stage stage,
                  const void *phv, uint32_t phv_size, uint32_t locals_size);
/* What has changed since the last step or the stage's begin. */
void tr_see_changes(tr_switch *s, const tr_pkt *p, const void *phv,
                    const void *locals);
/* Keeps bytes of the switch's state, which are written next, as they are; 0:
 * they must not be written, for there is no room to keep them. */
int tr_keep(tr_switch *s, const tr_pkt *p, void *bytes, uint32_t len);
/* Keeps an entry's counts and times, and its meter. */
int tr_keep_entry(tr_switch *s, const tr_pkt *p, tr_entry *e);
/* The outcome of a choice among n, which would by itself be `natural`. */
uint32_t tr_choose(tr_switch *s, const tr_pkt *p, enum tr_choice what,
                   uint32_t n, uint32_t natural);
tr_entry *tr_see_resolve(tr_switch *s, const tr_pkt *p, uint32_t profile,
                         const tr_entry *e, uint64_t hash,
                         const tr_entry **first);
uint32_t tr_see_meter(tr_switch *s, const tr_pkt *p, uint32_t meter,
                      uint64_t index, tr_meter *m, uint64_t amount);
uint64_t tr_see_random(tr_switch *s, const tr_pkt *p, uint64_t lo,
                       uint64_t hi);
/* ps that pauses have held a queue so far. */
uint64_t tr_see_paused(const tr_switch *s, uint32_t port, uint32_t priority);
/* Whether a try has room for one more copy of p; where it has none it ends. */
int tr_see_room(tr_switch *s, const tr_pkt *p);
void tr_see_copy(tr_switch *s, const tr_pkt *p, tr_pkt *q, uint32_t port,
                 uint32_t instance);
/* Tells that p is queued or enters again. 1: p is the try's, which goes on with
 * it; else 0. */
int tr_see_queue(tr_switch *s, tr_pkt *p, uint32_t port, uint32_t priority);
int tr_see_again(tr_switch *s, tr_pkt *p, enum tr_seen how);

/* Where a record is made whether or not the program is one of glass. */
#define TR_SEE_ALWAYS(s, p, ...)                                              \
    tr_see((s), (p), (const uint64_t[]){__VA_ARGS__},                         \
           sizeof((const uint64_t[]){__VA_ARGS__}) / 8)

#ifdef TR_GLASS
#define TR_SEE(s, p, ...)                                                     \
    do {                                                                      \
        if ((p)->mark)                                                        \
            tr_see((s), (p), (const uint64_t[]){__VA_ARGS__},                 \
                   sizeof((const uint64_t[]){__VA_ARGS__}) / 8);              \
    } while (0)
#define TR_SEE_MARK(s, p) tr_see_mark((s), (p))
#define TR_SEE_ROOM(s, p) tr_see_room((s), (p))
#define TR_SEE_COPY(s, p, q, port, instance)                                  \
    tr_see_copy((s), (p), (q), (port), (instance))
#define TR_SEE_QUEUE(s, p, port, priority)                                    \
    ((p)->mark && tr_see_queue((s), (p), (port), (priority)))
#define TR_SEE_AGAIN(s, p, how) ((p)->mark && tr_see_again((s), (p), (how)))
#define TR_SEE_FRAME(s, p, kind, a)                                           \
    do {                                                                      \
        if ((p)->mark)                                                        \
            tr_see_bytes((s), (p),                                            \
                         (const uint64_t[]){(kind), (a), (p)->len, (p)->virt}, \
                         4, (p)->buf + (p)->off, (p)->len);                   \
    } while (0)
#else
#define TR_SEE(s, p, ...) ((void)0)
#define TR_SEE_MARK(s, p) ((void)0)
#define TR_SEE_ROOM(s, p) 1
#define TR_SEE_COPY(s, p, q, port, instance) ((void)0)
#define TR_SEE_QUEUE(s, p, port, priority) 0
#define TR_SEE_AGAIN(s, p, how) 0
#define TR_SEE_FRAME(s, p, kind, a) ((void)0)
#endif

#endif
