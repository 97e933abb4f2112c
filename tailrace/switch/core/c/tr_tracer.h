/* The tracer: records of what a switch does to packets, step by step.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The tracing build of a program, compiled with TR_TRACING, records marked
 * packets; the regular build has no trace hooks. Both have one layout, so that a
 * switch may change from one to the other between two packets.
 *
 * A record is fields of 64 bits: kind, packet, the switch's time in ps, number
 * of fields that follow, and these. Packets are numbered from 1 as they are
 * made; the number of one that is traced in brief has TR_TRACE_BRIEF, too.
 *
 * Python reads this file, too (cbuild/headers.py): nothing but declarations
 * and #define NAME NUMBER.
 */
#ifndef TR_TRACER_H
#define TR_TRACER_H

#include "tr_switch.h"

typedef struct tr_tracer tr_tracer;

/* Kinds of records, and the fields of each; "bytes" are packed eight to a field,
 * the first in the lowest bits. */
enum tr_record_kind {
    TR_RECORD_ENTER,     /* port, bytes' number, virtual ones, bytes */
    TR_RECORD_STAGE,     /* enum tr_stage, bytes' number, bytes of the PHV; its
                          * locals are all zeros */
    TR_RECORD_STATE,     /* parser state */
    TR_RECORD_EXTRACT,   /* place in the packet, bytes' number */
    TR_RECORD_SELECT,    /* case, their number: the default; limbs of the key */
    TR_RECORD_ERROR,     /* parser error */
    TR_RECORD_STEP,      /* enum tr_owner, index there, position */
    TR_RECORD_CHANGE,    /* 0: PHV, 1: locals; offset, bytes' number, bytes */
    TR_RECORD_TABLE,     /* table, handle + 1 (0: miss), bytes' number, key */
    TR_RECORD_MEMBER,    /* profile, group + 1, position, group size, member + 1 */
    TR_RECORD_ACTION,    /* action, limbs of its data */
    TR_RECORD_CONDITION, /* conditional, value */
    TR_RECORD_READ,      /* register, index, in range, limbs */
    TR_RECORD_WRITE,     /* the same */
    TR_RECORD_COUNT,     /* counter, index, in range; direct: no index */
    TR_RECORD_METER,     /* meter, index (direct: none), in range, colour */
    TR_RECORD_RANDOM,    /* low, high, value */
    TR_RECORD_CHECKSUM,  /* checksum, 0: verified, 1: updated; whether right */
    TR_RECORD_CLONE,     /* session, known */
    TR_RECORD_DIGEST,    /* digest, limbs */
    TR_RECORD_RESUBMIT,
    TR_RECORD_RECIRCULATE,
    TR_RECORD_MULTICAST, /* group, replicas */
    TR_RECORD_COPY,      /* number of the copy, port, instance */
    TR_RECORD_QUEUE,     /* port, priority, packets and bytes that wait there,
                          * ps that the queue has been paused so far */
    TR_RECORD_EGRESS,    /* port, priority, ticks it has waited, ps of pauses */
    TR_RECORD_SENT,      /* port, bytes' number, virtual ones, bytes */
    TR_RECORD_DROP,      /* enum tr_drop */
    TR_RECORD_TEXT,      /* level, bytes' number, bytes */
    TR_RECORD_CHOICE,    /* enum tr_choice, possible outcomes, the one taken */
    TR_RECORD_KINDS
};

enum tr_stage {
    TR_STAGE_PARSER, TR_STAGE_VERIFY, TR_STAGE_INGRESS, TR_STAGE_EGRESS,
    TR_STAGE_UPDATE, TR_STAGE_DEPARSER
};

/* Whose step a primitive is. */
enum tr_owner { TR_OWNER_ACTION, TR_OWNER_STATE, TR_OWNER_DEPARSER };

/* Choices: outcomes that do not follow from the packet alone. */
enum tr_choice { TR_CHOICE_MEMBER, TR_CHOICE_COLOUR, TR_CHOICE_RANDOM };

/* Layout of the PHV and of the locals of a program. */
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

/* Bit of the number of a packet traced in brief: only its arrival, queues,
 * departures, recirculations and drop are recorded. */
#define TR_TRACE_BRIEF 0x80000000u

/* Values of `random` that a dry run can choose; of a wider span a sample. */
#define TR_DRY_RUN_SPAN 64u

/* Room for so many fields of records, for counts of `points` coverage points
 * (compiler/coverage_points.py), and hits of entries in so many tables; NULL
 * when out of memory. */
tr_tracer *tr_tracer_new(uint32_t size, uint32_t points, uint32_t tables);
void tr_tracer_free(tr_tracer *g);
/* What a switch would do at now_ps with a frame; nothing of the switch changes.
 * regular: the program that the switch runs; tracing: its tracing build.
 * choices: outcomes of the first n choices, in order; later ones are natural. Of
 * a random number with a span of more than TR_DRY_RUN_SPAN, a choice c above
 * TR_DRY_RUN_SPAN means low + c - TR_DRY_RUN_SPAN - 1.
 * TR_OK, TR_EINVAL (another program), TR_ERANGE or TR_ENOMEM. */
int tr_dry_run(tr_switch *s, tr_tracer *g, const tr_program *regular,
               const tr_program *tracing, uint32_t port, const uint8_t *data,
               uint32_t len, uint64_t now_ps, const uint64_t *choices,
               uint32_t n);
/* From now on coverage is counted, and with `recording` every packet that comes
 * in, and its copies, is recorded. NULL: detaches the tracer, as loading another
 * program does. TR_EINVAL: another program. */
int tr_tracer_attach(tr_switch *s, tr_tracer *g, const tr_program *regular,
                     const tr_program *tracing, int recording);
/* From now on packets are traced in brief, but in full those that arrive at one
 * of n times by the port of the same index. TR_OK, TR_ENOMEM. */
int tr_tracer_select(tr_switch *s, tr_tracer *g, const uint64_t *times_ps,
                     const uint32_t *ports, uint32_t n);
/* The count of each coverage point. */
void tr_tracer_coverage(tr_switch *s, const tr_tracer *g, uint64_t *counts);
/* Whether an entry was ever hit. */
int tr_tracer_entry_hit(tr_switch *s, const tr_tracer *g, uint32_t table,
                        uint32_t handle);
/* Takes the records so far, at most so many fields; their number. cut: there was
 * no room for some, so the records of packets in flight are incomplete.
 * missed: packets that came in since, and are not recorded. */
uint32_t tr_tracer_take(tr_switch *s, tr_tracer *g, uint64_t *records,
                        uint32_t most, uint32_t *cut, uint32_t *missed);
/* The records of a dry run, and whether there was no room for more. */
const uint64_t *tr_tracer_records(const tr_tracer *g, uint32_t *n,
                                  uint32_t *cut);

#endif
