/* The fields of a tr_tracer, for tr_tracer.c and tr_dry_run.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TR_TRACER_INTERNAL_H
#define TR_TRACER_INTERNAL_H

#include "tr_tm.h"

typedef struct undo_entry {
    void *place;
    uint32_t len, at;         /* its bytes, in tr_tracer.bytes */
} undo_entry;

typedef struct arrival {
    uint64_t time_ps;
    uint32_t port;
} arrival;

struct tr_tracer {
    uint64_t *records;
    uint32_t n, room, cut;
    uint32_t packets;         /* numbered so far */
    uint32_t missed;          /* that came in while there was little room */
    int recording;            /* packets that come in are marked */
    arrival *selected;        /* packets traced in full, NULL: all */
    uint32_t n_selected;
    uint64_t *coverage;
    uint32_t points, tables;
    struct { uint8_t *bits; uint32_t bytes; } *entries;
    /* the stage's PHV and locals as the last record left them */
    uint8_t *last;
    uint32_t phv_size, locals_size, last_room;
    /* a dry run: */
    int dry_run;
    tr_pkt *head, *tail;
    uint32_t pkt_bytes;       /* of these */
    int full;                 /* it makes no more copies */
    undo_entry *undo;
    uint32_t n_undo, undo_room;
    uint8_t *bytes;
    uint32_t n_bytes, bytes_room;
    const uint64_t *choices;
    uint32_t n_choices, chosen;
};

/* Room for `want` items in a list, new ones zero; 0: there is none. */
int tr_tracer_grow(void **list, uint32_t *room, uint32_t want, size_t item);
/* Whether it is the switch's program, which its tracing build replaces while a
 * tracer is attached. The state of another program has another layout. */
int tr_tracer_fits(const tr_switch *s, const tr_program *regular);

#endif
