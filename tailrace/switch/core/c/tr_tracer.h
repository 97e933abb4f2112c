/* The tracer: records of what a switch does to packets, step by step.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The tracing build of a program, compiled with TR_TRACING, records packets
 * that are marked; the regular build has no trace hooks. The switch's state has
 * the same layout in both, so a switch can change its build after any packet.
 *
 * PHV: the parsed headers and metadata of a packet. Locals: metadata that only
 * one stage uses, in local variables of its C function.
 *
 * A record consists of 64-bit fields: kind, packet number, the switch's time in
 * ps, count of the fields that follow, and those fields. Packets are numbered
 * from 1 in the order of their creation; the bit TR_TRACE_BRIEF is set in the
 * number of a packet that is traced in brief.
 *
 * Python parses this file, too (cbuild/headers.py): it may have only
 * declarations and #define NAME NUMBER.
 */
#ifndef TR_TRACER_H
#define TR_TRACER_H

#include "tr_switch.h"

typedef struct tr_tracer tr_tracer;

/* Kinds of records; each comment lists the fields of the record, in order.
 * "bytes" are packed eight to a field, the first in the lowest bits; "length"
 * is their count. "Virtual bytes" of payload are counted, but not stored.
 * "Limbs" are 64-bit words of an integer, the least significant first. */
enum tr_record_kind {
    TR_RECORD_ENTER,     /* port, length, virtual bytes, bytes of the frame */
    TR_RECORD_STAGE,     /* enum tr_stage, length, bytes of the PHV; locals
                          * begin as zeros */
    TR_RECORD_STATE,     /* index of the parser state */
    TR_RECORD_EXTRACT,   /* offset in the packet, length */
    TR_RECORD_SELECT,    /* index of the case (default: the count of cases),
                          * limbs of the key */
    TR_RECORD_ERROR,     /* number of the parser error */
    TR_RECORD_STEP,      /* enum tr_owner, index of that owner, index of the
                          * step in its code */
    TR_RECORD_CHANGE,    /* 0 (PHV) or 1 (locals), offset, length, bytes */
    TR_RECORD_TABLE,     /* table, handle + 1 (0: miss), length, key bytes */
    TR_RECORD_MEMBER,    /* profile, group + 1 (0: none), position in the group,
                          * group size, member + 1 (0: none) */
    TR_RECORD_ACTION,    /* action, limbs of its data */
    TR_RECORD_CONDITION, /* conditional, value */
    TR_RECORD_READ,      /* register, index, 1 if in range, limbs read */
    TR_RECORD_WRITE,     /* register, index, 1 if in range, limbs written */
    TR_RECORD_COUNT,     /* counter, index, 1 if in range */
    TR_RECORD_METER,     /* meter, index (UINT64_MAX: direct meter), 1 if in
                          * range, colour */
    TR_RECORD_RANDOM,    /* low, high, value */
    TR_RECORD_CHECKSUM,  /* checksum, 0 (verified) or 1 (updated), 1 if it was
                          * correct */
    TR_RECORD_CLONE,     /* session, 1 if the session exists */
    TR_RECORD_DIGEST,    /* digest, limbs */
    TR_RECORD_RESUBMIT,    /* no fields */
    TR_RECORD_RECIRCULATE, /* no fields */
    TR_RECORD_MULTICAST, /* group, count of replicas */
    TR_RECORD_COPY,      /* packet number of the copy, port, instance */
    TR_RECORD_QUEUE,     /* port, priority, packets and bytes in the queue, ps
                          * that PFC has paused the queue so far */
    TR_RECORD_EGRESS,    /* port, priority, waiting time in ticks (the unit of
                          * P4 timestamps, tr_switch.tick_ps), ps paused as
                          * above */
    TR_RECORD_SENT,      /* port, length, virtual bytes, bytes of the frame */
    TR_RECORD_DROP,      /* enum tr_drop */
    TR_RECORD_TEXT,      /* level, length, bytes of the text */
    TR_RECORD_CHOICE,    /* enum tr_choice, count of outcomes, outcome taken */
    TR_RECORD_KINDS      /* number of kinds */
};

enum tr_stage {
    TR_STAGE_PARSER, TR_STAGE_VERIFY, TR_STAGE_INGRESS, TR_STAGE_EGRESS,
    TR_STAGE_UPDATE, TR_STAGE_DEPARSER
};

/* The part of a program to which a step (a primitive operation) belongs. */
enum tr_owner { TR_OWNER_ACTION, TR_OWNER_STATE, TR_OWNER_DEPARSER };

/* Choices: outcomes that do not follow from the packet alone. */
enum tr_choice { TR_CHOICE_MEMBER, TR_CHOICE_COLOUR, TR_CHOICE_RANDOM };

/* Layout of the PHV and of the locals of a program. */
enum tr_place_kind {
    TR_PLACE_END, TR_PLACE_VALID, TR_PLACE_FIELD,
    TR_PLACE_BITS,            /* current length of a varbit field */
    TR_PLACE_STACK            /* next index of a header stack */
};

/* Where a program has a value: offset and size in the PHV or in the locals. */
typedef struct tr_place {
    uint32_t kind;            /* TR_PLACE_* */
    uint32_t space;           /* 0: PHV, 1: locals */
    uint32_t index, field;    /* index of the header or stack, and of its field,
                               * in the compiler's model of the program */
    uint32_t offset, bytes;
} tr_place;

/* Bit in the number of a packet that is traced in brief: only its arrival,
 * copies, queueing, departure, resubmission, recirculation and drop are
 * recorded. */
#define TR_TRACE_BRIEF 0x80000000u

/* S: `random` in a range of at most S values can have any of them as outcome of
 * a dry run; a wider range is sampled by S evenly spaced values. */
#define TR_DRY_RUN_SPAN 64u

/* Creates a tracer with space for `size` fields of records, for counts of
 * `points` coverage points (compiler/coverage_points.py), and for the hits of
 * entries in `tables` tables; NULL when out of memory. */
tr_tracer *tr_tracer_new(uint32_t size, uint32_t points, uint32_t tables);
void tr_tracer_free(tr_tracer *g);
/* Dry run: records what a switch would do with a frame at now_ps, and changes
 * nothing in the switch. regular: the program that the switch runs; tracing:
 * its tracing build. choices: outcomes of the first n choices, in order; later
 * choices have the same outcome as without a dry run. For `random` with a range
 * of more than TR_DRY_RUN_SPAN (S) values, outcome c < S is the c-th of S
 * evenly spaced values, c = S the value without a dry run; any other value v of
 * the range can be requested, by c = S + 1 + v - low. Returns TR_OK, TR_EINVAL
 * (the switch runs another program), TR_ERANGE or TR_ENOMEM. */
int tr_dry_run(tr_switch *s, tr_tracer *g, const tr_program *regular,
               const tr_program *tracing, uint32_t port, const uint8_t *data,
               uint32_t len, uint64_t now_ps, const uint64_t *choices,
               uint32_t n);
/* Attaches a tracer: from now on coverage is counted, and with `recording` all
 * received packets and their copies are recorded. NULL: detaches the tracer, as
 * loading another program does. TR_EINVAL: the switch runs another program. */
int tr_tracer_attach(tr_switch *s, tr_tracer *g, const tr_program *regular,
                     const tr_program *tracing, int recording);
/* From now on traces packets in brief, except those that arrive at times_ps[i]
 * on ports[i], for any i below n. Returns TR_OK or TR_ENOMEM. */
int tr_tracer_select(tr_switch *s, tr_tracer *g, const uint64_t *times_ps,
                     const uint32_t *ports, uint32_t n);
/* The count of each coverage point. */
void tr_tracer_coverage(tr_switch *s, const tr_tracer *g, uint64_t *counts);
/* Whether an entry was ever hit. */
int tr_tracer_entry_hit(tr_switch *s, const tr_tracer *g, uint32_t table,
                        uint32_t handle);
/* Removes the records so far, or those of a dry run, and returns the number of
 * their fields. If this
 * would exceed `most`, the records are lost, and 0 is returned. *cut: records
 * were lost, so the records of packets in the switch are incomplete. *missed:
 * number of received packets that were not recorded. */
uint32_t tr_tracer_take(tr_switch *s, tr_tracer *g, uint64_t *records,
                        uint32_t most, uint32_t *cut, uint32_t *missed);

#endif
