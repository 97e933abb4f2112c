/* The fields of a tr_tracer, for tr_tracer.c and tr_dry_run.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TR_TRACER_INTERNAL_H
#define TR_TRACER_INTERNAL_H

#include "tr_tm.h"

typedef struct undo_entry {
    void *address;
    uint32_t len, at;         /* length of the old content, and its offset in
                               * tr_tracer.bytes */
} undo_entry;

typedef struct arrival {
    uint64_t time_ps;
    uint32_t port;
} arrival;

struct tr_tracer {
    uint64_t *records;
    uint32_t n, capacity;     /* number of fields in `records`; maximum */
    uint32_t cut;             /* a record did not fit: no more are added */
    uint32_t packets;         /* last packet number used */
    uint32_t missed;          /* packets not marked: `records` was half full */
    int recording;            /* 1: received packets are marked */
    arrival *selected;        /* arrivals traced in full; NULL: all */
    uint32_t n_selected;
    uint64_t *coverage;
    uint32_t points, tables;
    /* by table: a bit for each handle, set when the entry was hit */
    struct { uint8_t *bits; uint32_t bytes; } *entries;
    /* the stage's PHV and locals at the last record, to find changes */
    uint8_t *last;
    uint32_t phv_size, locals_size, last_capacity;
    /* for dry runs: */
    int dry_run;              /* 1: a dry run is in progress */
    tr_pkt *head, *tail;      /* waiting packets of the dry run */
    uint32_t pkt_bytes;       /* memory of the waiting packets */
    int full;                 /* 1: the dry run makes no more copies */
    undo_entry *undo;         /* undo log of the switch's state */
    uint32_t n_undo, undo_capacity;
    uint8_t *bytes;           /* the old contents that the undo log needs */
    uint32_t n_bytes, bytes_capacity;
    const uint64_t *choices;
    uint32_t n_choices, chosen; /* number of `choices`; choices made so far */
};

/* Grows a list to at least `want` items of `item` bytes; new items are zeros.
 * Returns 0 if there is no memory. */
int tr_tracer_grow(void **list, uint32_t *capacity, uint32_t want,
                   size_t item);
/* Whether `regular` is the switch's program, which its tracing build replaces
 * while a tracer is attached. The state of other programs has another layout.
 */
int tr_tracer_fits(const tr_switch *s, const tr_program *regular);

#endif
