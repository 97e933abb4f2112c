/* Trace hooks of a program compiled with TR_TRACING; otherwise empty macros.
 * SPDX-License-Identifier: Apache-2.0
 *
 * tr_core.h includes this at its end. A tracer (tr_tracer.h, which also defines
 * PHV and locals) records what happens to marked packets. A dry run processes a
 * packet without changing the switch's state.
 */
#ifndef TR_TRACE_HOOKS_H
#define TR_TRACE_HOOKS_H

#include "tr_tracer.h"

/* Adds a record of n fields for a marked packet. */
void tr_trace(tr_switch *s, const tr_pkt *p, const uint64_t *fields,
              uint32_t n);
/* Records a log text of the packet in the current stage; 0: that packet is not
 * marked. */
int tr_trace_text(tr_switch *s, int level, const char *text);
/* Marks a received packet if a tracer records. */
void tr_trace_mark(tr_switch *s, tr_pkt *p);
/* Adds a record of n fields followed by bytes, or by limbs (64-bit words), for
 * a marked packet. */
void tr_trace_bytes(tr_switch *s, const tr_pkt *p, const uint64_t *fields,
                    uint32_t n, const void *bytes, uint32_t len);
/* Detaches the tracer; the switch runs the regular build again. */
void tr_tracer_detach(tr_switch *s);
/* Marks the entry that was hit, for coverage. hit: its handle + 1; 0: none. */
void tr_tracer_mark_entry(tr_switch *s, uint32_t table, uint64_t hit);
/* Begins a stage: from now on changes of PHV and locals are recorded. */
void tr_trace_begin(tr_switch *s, const tr_pkt *p, enum tr_stage stage,
                    const void *phv, uint32_t phv_size, uint32_t locals_size);
/* Records what changed since the last step, or since the stage began. */
void tr_trace_changes(tr_switch *s, const tr_pkt *p, const void *phv,
                      const void *locals);
/* In a dry run, saves bytes of the switch's state in the undo log before a
 * write. Returns 0 if the log is full: then the bytes must not be written. */
int tr_undo_save(tr_switch *s, const tr_pkt *p, void *bytes, uint32_t len);
/* Saves an entry's counts, time of the last hit, and meter. */
int tr_undo_save_entry(tr_switch *s, const tr_pkt *p, tr_entry *e);
/* The outcome of a choice among n: the outcome requested for a dry run, else
 * `natural`, the outcome without a dry run. */
uint32_t tr_choose(tr_switch *s, const tr_pkt *p, enum tr_choice what,
                   uint32_t n, uint32_t natural);
/* Like tr_meter_execute and tr_random, but these record the result, which in a
 * dry run is a choice (tr_choose). */
uint32_t tr_trace_meter(tr_switch *s, const tr_pkt *p, uint32_t meter,
                        uint64_t index, tr_meter *m, uint64_t amount);
uint64_t tr_trace_random(tr_switch *s, const tr_pkt *p, uint64_t lo,
                         uint64_t hi);
/* Total time in ps that PFC has paused a queue so far. */
uint64_t tr_trace_paused(const tr_switch *s, uint32_t port, uint32_t priority);
/* Whether a dry run may make another copy. After a 0, it makes none. */
int tr_trace_may_copy(tr_switch *s, const tr_pkt *p);
/* Marks q and records that it is a copy of p for this port; TR_MAX_PORTS: the
 * port is not known yet. */
void tr_trace_copy(tr_switch *s, const tr_pkt *p, tr_pkt *q, uint32_t port,
                   uint32_t instance);
/* Records that p is queued, resubmitted or recirculated. Returns 1 if a dry run
 * took p over, 0 if the caller must continue with p. */
int tr_trace_queue(tr_switch *s, tr_pkt *p, uint32_t port, uint32_t priority);
int tr_trace_reentry(tr_switch *s, tr_pkt *p, enum tr_record_kind kind);

/* Adds a record also in a build without TR_TRACING. */
#define TR_TRACE_ALWAYS(s, p, ...)                                            \
    tr_trace((s), (p), (const uint64_t[]){__VA_ARGS__},                       \
             sizeof((const uint64_t[]){__VA_ARGS__}) / 8)

#ifdef TR_TRACING
#define TR_TRACE(s, p, ...)                                                   \
    do {                                                                      \
        if ((p)->mark)                                                        \
            TR_TRACE_ALWAYS(s, p, __VA_ARGS__);                               \
    } while (0)
#define TR_TRACE_MARK(s, p) tr_trace_mark((s), (p))
#define TR_TRACE_MAY_COPY(s, p) tr_trace_may_copy((s), (p))
#define TR_TRACE_COPY(s, p, q, port, instance)                                \
    tr_trace_copy((s), (p), (q), (port), (instance))
#define TR_TRACE_QUEUE(s, p, port, priority)                                  \
    ((p)->mark && tr_trace_queue((s), (p), (port), (priority)))
#define TR_TRACE_REENTRY(s, p, kind)                                           \
    ((p)->mark && tr_trace_reentry((s), (p), (kind)))
#define TR_TRACE_FRAME(s, p, kind, port)                                      \
    do {                                                                      \
        if ((p)->mark)                                                        \
            tr_trace_bytes(                                                   \
                (s), (p),                                                     \
                (const uint64_t[]){(kind), (port), (p)->len, (p)->virt},      \
                4, (p)->buf + (p)->off, (p)->len);                            \
    } while (0)
#else
#define TR_TRACE(s, p, ...) ((void)0)
#define TR_TRACE_MARK(s, p) ((void)0)
#define TR_TRACE_MAY_COPY(s, p) 1
#define TR_TRACE_COPY(s, p, q, port, instance) ((void)0)
#define TR_TRACE_QUEUE(s, p, port, priority) 0
#define TR_TRACE_REENTRY(s, p, kind) 0
#define TR_TRACE_FRAME(s, p, kind, port) ((void)0)
#endif

#endif
