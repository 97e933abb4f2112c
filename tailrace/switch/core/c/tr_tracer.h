/* A switch of glass: what it does to packets, step by step, as records.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A program compiled with TR_GLASS tells of packets that are marked; the same
 * program without it has none of this. Both have one layout, so that a switch
 * may change from one to the other between two packets.
 *
 * A record is words of 64 bits: kind, packet, the switch's time in ps, number of
 * words that follow, and these. Packets are numbered from 1 as they are made; of
 * one that is told of briefly the number has TR_GLASS_BRIEF, too.
 *
 * Python reads this file, too (cbuild/headers.py): nothing but declarations
 * and #define NAME NUMBER.
 */
#ifndef TR_GLASS_H
#define TR_GLASS_H

#include "tr_switch.h"

typedef struct tr_glass tr_glass;

/* Kinds of records, and the words of each; "bytes" are packed eight to a word,
 * the first in the lowest bits. */
enum tr_seen {
    TR_SEEN_ENTER,     /* port, bytes' number, virtual ones, bytes */
    TR_SEEN_STAGE,     /* enum tr_stage, bytes' number, bytes of the PHV; its
                        * locals are all zeros */
    TR_SEEN_STATE,     /* parser state */
    TR_SEEN_EXTRACT,   /* place in the packet, bytes' number */
    TR_SEEN_SELECT,    /* case, its number for the default; limbs of the key */
    TR_SEEN_ERROR,     /* parser error */
    TR_SEEN_STEP,      /* enum tr_owner, index there, position */
    TR_SEEN_CHANGE,    /* 0: PHV, 1: locals; offset, bytes' number, bytes */
    TR_SEEN_TABLE,     /* table, handle + 1 (0: miss), bytes' number, key bytes */
    TR_SEEN_MEMBER,    /* profile, group + 1, place in it, of so many, member + 1 */
    TR_SEEN_ACTION,    /* action, limbs of its data */
    TR_SEEN_CONDITION, /* conditional, value */
    TR_SEEN_READ,      /* register, index, in range, limbs */
    TR_SEEN_WRITE,     /* the same */
    TR_SEEN_COUNT,     /* counter, index, in range; direct: no index */
    TR_SEEN_METER,     /* meter, index (direct: none), in range, colour */
    TR_SEEN_RANDOM,    /* low, high, value */
    TR_SEEN_CHECKSUM,  /* checksum, 0: verified, 1: updated, as it should be */
    TR_SEEN_CLONE,     /* session, known */
    TR_SEEN_DIGEST,    /* digest, limbs */
    TR_SEEN_RESUBMIT,
    TR_SEEN_RECIRCULATE,
    TR_SEEN_MULTICAST, /* group, replicas */
    TR_SEEN_COPY,      /* number of the copy, port, instance */
    TR_SEEN_QUEUE,     /* port, priority, packets and bytes that wait there,
                        * ps that pauses have held that queue so far */
    TR_SEEN_EGRESS,    /* port, priority, ticks it has waited, ps of pauses */
    TR_SEEN_SENT,      /* port, bytes' number, virtual ones, bytes */
    TR_SEEN_DROP,      /* enum tr_drop */
    TR_SEEN_TEXT,      /* level, bytes' number, bytes */
    TR_SEEN_CHOICE,    /* enum tr_choice, possible outcomes, the one taken */
    TR_SEEN_KINDS
};

enum tr_stage {
    TR_STAGE_PARSER, TR_STAGE_VERIFY, TR_STAGE_INGRESS, TR_STAGE_EGRESS,
    TR_STAGE_UPDATE, TR_STAGE_DEPARSER
};

/* Whose step a primitive is. */
enum tr_owner { TR_OWNER_ACTION, TR_OWNER_STATE, TR_OWNER_DEPARSER };

/* Where a packet's way depends on what it does not say itself. */
enum tr_choice { TR_CHOICE_MEMBER, TR_CHOICE_COLOUR, TR_CHOICE_RANDOM };

/* Where something stands in the PHV or the locals of a program. */
enum tr_place_kind {
    TR_PLACE_END, TR_PLACE_VALID, TR_PLACE_FIELD,
    TR_PLACE_BITS,            /* how long a varbit field is */
    TR_PLACE_STACK, TR_PLACE_UNION_STACK  /* elements that were filled */
};

typedef struct tr_place {
    uint32_t kind;            /* TR_PLACE_*, */
    uint32_t space;           /* 0: PHV, 1: locals */
    uint32_t index, field;    /* of the header or stack, in the program's model */
    uint32_t offset, bytes;
} tr_place;

/* Bit of the number of a packet of which only this is told: where it comes in,
 * waits, leaves, goes round and ends. */
#define TR_GLASS_BRIEF 0x80000000u

/* Values of `random` that are tried each; of a wider span some. */
#define TR_GLASS_SPAN 64u

/* Room for `words` of records, and counts of so many uses (compiler/coverage_points.py) and
 * of the entries of so many tables; NULL when out of memory. */
tr_glass *tr_glass_new(uint32_t words, uint32_t uses, uint32_t tables);
void tr_glass_free(tr_glass *g);
/* What a switch would do at now_ps with a frame; nothing of the switch changes.
 * plain: the program that the switch has; glass: the same compiled with
 * TR_GLASS. choices: outcomes
 * of the first n choices, in order; later ones come as they would by themselves.
 * Of a number of a span of more than TR_GLASS_SPAN, TR_GLASS_SPAN + 1 and more
 * is the number itself: so far above the lowest one.
 * TR_OK, TR_EINVAL (another program), TR_ERANGE or TR_ENOMEM. */
int tr_glass_try(tr_switch *s, tr_glass *g, const tr_program *plain,
                 const tr_program *glass, uint32_t port, const uint8_t *data, uint32_t len,
                 uint64_t now_ps, const uint64_t *choices, uint32_t n);
/* From now on every packet that comes in is told of, where `told`, and its
 * copies; what packets use is counted in any case. NULL: none any more. It ends by itself when the switch gets another program. TR_EINVAL:
 * another program. */
int tr_glass_watch(tr_switch *s, tr_glass *g, const tr_program *plain,
                   const tr_program *glass, int told);
/* Of packets that come in from now on little is told, but all of those that come
 * at one of n times by the port of the same place. TR_OK, TR_ENOMEM. */
int tr_glass_await(tr_switch *s, tr_glass *g, const uint64_t *times_ps,
                   const uint32_t *ports, uint32_t n);
/* How often each use was made. */
void tr_glass_uses(tr_switch *s, const tr_glass *g, uint64_t *counts);
/* Whether an entry was ever hit. */
int tr_glass_entry(tr_switch *s, const tr_glass *g, uint32_t table,
                   uint32_t handle);
/* Takes the records so far, at most so many words; their number. cut: there was
 * no room for some, so that what is told of packets then under way is not all.
 * missed: packets that came in since, and are not told of. */
uint32_t tr_glass_take(tr_switch *s, tr_glass *g, uint64_t *words,
                       uint32_t most, uint32_t *cut, uint32_t *missed);
/* The records of a try, and whether there was no room for more. */
const uint64_t *tr_glass_words(const tr_glass *g, uint32_t *n, uint32_t *cut);

#endif
