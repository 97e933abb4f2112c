/* The insides of a tr_glass, for tr_tracer.c and tr_dry_run.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TR_GLASS_OWN_H
#define TR_GLASS_OWN_H

#include "tr_tm.h"

typedef struct kept {
    void *place;
    uint32_t len, at;         /* its bytes, in tr_glass.bytes */
} kept;

typedef struct arrival {
    uint64_t time_ps;
    uint32_t port;
} arrival;

struct tr_glass {
    uint64_t *words;
    uint32_t n, room, cut;
    uint32_t packets;         /* numbered so far */
    uint32_t missed;          /* that came in while there was little room */
    int told;                 /* packets that come in are marked */
    arrival *awaited;         /* that are told of in full, NULL: all */
    uint32_t n_awaited;
    uint64_t *used;
    uint32_t uses, tables;
    struct { uint8_t *bits; uint32_t bytes; } *entries;
    /* the stage's PHV and locals as the last record left them */
    uint8_t *seen;
    uint32_t phv_size, locals_size, seen_room;
    /* a try: */
    int trying;
    tr_pkt *head, *tail;
    uint32_t held_bytes;      /* of these */
    int full;                 /* it makes no more copies */
    kept *kept;
    uint32_t n_kept, kept_room;
    uint8_t *bytes;
    uint32_t n_bytes, bytes_room;
    const uint64_t *choices;
    uint32_t n_choices, chosen;
};

/* Room for `want` items in a list, new ones zero; 0: there is none. */
int tr_glass_grow(void **list, uint32_t *room, uint32_t want, size_t item);
/* Whether it is the switch's program, which a program of glass stands for while
 * somebody watches. Of another program the state has other places. */
int tr_glass_runs(const tr_switch *s, const tr_program *plain);

#endif
