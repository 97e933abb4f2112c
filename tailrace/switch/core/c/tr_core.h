/* Internals of the switch core that generated programs and the runtime share.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A program (generated C) is a constant `tr_program`: sizes of everything it
 * declares and two functions, ingress and egress, made of its parser, tables
 * and actions plus the v1model steps of tr_v1model.h. All state lives in
 * tr_switch, so that any number of switches share one program's code.
 */
#ifndef TR_CORE_H
#define TR_CORE_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>

#include "tr_bits.h"
#include "tr_switch.h"

/* v1model: bytes of headers that may be added to a packet. */
#define TR_HEADROOM 512u
/* Backward jumps an action may take before its packet is dropped. */
#define TR_LOOP_LIMIT 1048576u
/* Parser states one packet may visit, far above any real header chain. */
#define TR_PARSER_LIMIT 16384u
/* Bytes of a cache line. */
#define TR_LINE 64u
/* A packet's PHV ends at a multiple of this. */
#define TR_PHV_ALIGN 32u
/* Depth of the resubmit and recirculate queues (simple_switch: 1024). */
#define TR_REENTRY_DEPTH 1024u

/* standard_metadata.instance_type, as simple_switch numbers it. */
enum tr_instance {
    TR_INSTANCE_NORMAL = 0,
    TR_INSTANCE_INGRESS_CLONE = 1,
    TR_INSTANCE_EGRESS_CLONE = 2,
    TR_INSTANCE_RECIRC = 4,
    TR_INSTANCE_REPLICATION = 5,
    TR_INSTANCE_RESUBMIT = 6
};

#define TR_CLONE_VALID 0x8000u

/* Where the bytes of a packet stand that waits in the switch. */
enum tr_charge {
    TR_CHARGE_NONE,
    TR_CHARGE_OWN,           /* on what its port has for itself */
    TR_CHARGE_SHARED,        /* on the shared buffer alone */
    TR_CHARGE_LOSSLESS       /* on the account of its port and priority, too */
};

/* A packet in the switch: bookkeeping, then the PHV, then the frame's bytes.
 *
 *   buf: |<- headroom 512 ->|<- frame as it entered this ingress pass ->|
 *                           ^ off                    ^ off + len
 *                           |<-- parsed -->|<-- payload -->|
 */
typedef struct tr_pkt {
    struct tr_pkt *next;
    uint8_t *buf;
    uint32_t cap;            /* bytes at buf */
    uint32_t off, len;       /* the frame's bytes in buf */
    uint32_t virt;           /* payload bytes that exist as a length only */
    uint32_t parsed;         /* bytes taken off by the parser */
    uint32_t in_len;         /* length for counters and byte meters */
    uint32_t plen;           /* packet_length as headers come and go */
    uint32_t trunc;          /* length asked for, UINT32_MAX: none */
    uint32_t ingress_port;
    uint32_t egress_port;
    uint32_t charged_bytes;  /* of the switch's buffer (tr_buffer.c) */
    uint16_t pfc_port;       /* whose ingress account they are on, with pfc_class */
    uint8_t priority;
    uint8_t size_class;      /* which free list it came from; packed: those
                              * from TR_SIZE_CLASSES on (tr_pack.c) */
    uint8_t exit;            /* `exit` was executed in this control */
    uint8_t failed;          /* tr_drop + 1 when an assert or loop failed */
    uint16_t clone_session;  /* with TR_CLONE_VALID */
    uint16_t clone_fields, digest, resubmit, recirculate;
    uint32_t generation;     /* of the program it was made for */
    uint32_t size;           /* bytes of the whole block */
    uint8_t charge;          /* enum tr_charge: where charged_bytes stand */
    uint8_t pfc_class;       /* priority of that account: TR_CHARGE_LOSSLESS */
    uint8_t copy;            /* made of another one: a clone, a replica */
    uint32_t mark;           /* its number while a tracer records it
                              * (tr_tracer.h), else 0 */
    uint32_t origin;         /* tr_origin when it came in, of a copy as well */
    uint64_t ready_ps;       /* in re-entry queue: when it may enter */
    uint64_t order;          /* in re-entry queue: place among both queues */
    alignas(16) uint8_t phv[];
} tr_pkt;

/* ---- tables ---- */

typedef struct tr_counter_cell {
    uint64_t bytes, packets;
} tr_counter_cell;

enum tr_meter_mode {
    TR_METER_UNSET,           /* every packet is green */
    TR_METER_TWO_RATES,
    TR_METER_ONE_RATE         /* with an excess burst */
};

/* Two cache lines; a meter without rates, or whose packets are green, needs the
 * first one alone but for the rates. */
typedef struct tr_meter {
    uint8_t mode;             /* enum tr_meter_mode */
    uint64_t last_ps;
    uint64_t c_tokens, p_tokens;  /* p: of the peak, or of the excess burst */
    uint64_t c_frac, p_frac;  /* token fractions, in units of 1e-12 */
    tr_counter_cell counts[TR_COLOURS];
    uint64_t cir, cburst, pir;
    uint64_t pburst;          /* with one rate: the excess burst */
} tr_meter;

/* An entry. What packets need of it stands in the slot of its hash table, too,
 * where that can be. What is rarely used lies in front of it (tr_entry_rest). */
typedef struct tr_entry {
    uint32_t kind, id;        /* TR_TARGET_* and what it points to */
    uint64_t last_hit_ps;
    uint64_t *data;           /* action data limbs */
    int32_t priority;
    uint32_t seq;             /* insertion order; earlier wins a tie */
    /* masked key (or low) in the table's key words, then the data limbs, then
     * the mask (or high) in key words */
    uint64_t limbs[];
} tr_entry;

typedef struct tr_entry_rest {
    alignas(64) uint64_t packets;
    uint64_t bytes, timeout_ps;
    uint64_t notified_ps;     /* when it was last listed as expired; 0: never */
    tr_meter *meter;          /* NULL: the table has no direct meter */
    int handle;
    uint32_t size;            /* bytes of the whole block */
    /* of the best entry of a key and mask: the next one in its bucket of the
     * index, and the root of the tree of the worse ones; of these the children */
    union {
        struct { tr_entry *chain, *worse; };
        struct { tr_entry *above, *below; };
    };
} tr_entry_rest;

TR_INLINE tr_entry_rest *tr_rest(const tr_entry *e)
{
    return (tr_entry_rest *)(uintptr_t)e - 1;
}

/* Of two entries that match, whether e is better than the other. */
TR_INLINE int tr_entry_wins(const tr_entry *e, const tr_entry *other)
{
    return e->priority > other->priority ||
           (e->priority == other->priority && e->seq < other->seq);
}

/* A place of a hash table with open addressing: linear probing, at most half of
 * all slots are used. A hit reads one cache line where the key is short and
 * data are few; a large network has more entries than the caches have room for.
 *
 *   words: the masked key in the table's key words, then the action's data, or
 *          the entry where packets need more of it (desc->entries) */
typedef struct tr_slot {
    uint32_t id;              /* of the action */
    uint32_t taken;           /* the entry's handle + 1; 0: the slot is free */
    uint64_t words[];
} tr_slot;

/* Entries that share one mask, by their masked key. */
typedef struct tr_tuple {
    uint8_t *slots;
    uint64_t seed;            /* of the hash: that of the process */
    uint64_t mask_word;       /* the first word of mask */
    uint8_t *mask;
    uint32_t n_slots;         /* a power of two */
    int32_t top_priority;     /* no entry's priority is above it */
    uint32_t count;           /* keys; of each the best entry is in the slot */
} tr_tuple;

/* Which numbers of a list are taken; the smallest free one is taken next. */
typedef struct tr_numbers {
    uint32_t *freed;          /* those that are free again, a heap */
    uint32_t n_freed;
    uint32_t top;             /* no number from here on is taken */
} tr_numbers;

enum tr_match { TR_EXACT, TR_LPM, TR_TERNARY, TR_RANGE };

typedef struct tr_key_field {
    uint16_t offset, nbytes;
    uint8_t range;
} tr_key_field;

typedef struct tr_table_desc {
    const char *name;
    uint8_t match;            /* enum tr_match */
    uint16_t key_bytes;       /* without padding */
    uint16_t key_words;       /* padded with zeros to 8-byte words */
    uint32_t max_size;
    uint32_t data_limbs;
    uint8_t indirect;         /* entries name members or groups ... */
    int32_t profile;          /* ... of this action profile; -1: none */
    uint8_t entries;          /* slots hold entries, not data */
    uint8_t metered;          /* entries have direct meters */
    uint16_t slot_bytes;
    const tr_key_field *fields;
    uint32_t n_fields;
} tr_table_desc;

typedef struct tr_vectors tr_vectors;

typedef struct tr_table {
    const tr_table_desc *desc;
    tr_tuple *tuples;         /* by top_priority, highest first */
    uint32_t n_tuples;
    tr_vectors *vectors;      /* ranges, many masks (tr_vectors.c); or NULL */
    uint32_t vectored;        /* entries whose handles are below stand there */
    int by_vectors;           /* there are no tuples: lookups use vectors */
    tr_entry **index;         /* ternary, range: buckets of the best entry of */
    uint32_t n_index, n_keys; /* ... each key and mask (tr_index.c) */
    tr_entry **by_handle;
    uint32_t n_handles, count, next_seq, max_size;
    tr_numbers handles;
    tr_entry *defaults;       /* NULL: no default action */
} tr_table;

typedef struct tr_group {
    uint32_t n;
    int drawn;  /* members are, whatever the hash is */
    int *members;
    tr_entry *first;  /* its action comes before the member's; NULL: none */
} tr_group;

typedef struct tr_profile_desc {
    const char *name;
    uint32_t max_size, data_limbs;
} tr_profile_desc;

typedef struct tr_profile {
    const tr_profile_desc *desc;
    tr_entry **members;
    tr_group **groups;
    uint32_t n_members, n_groups, count;
    tr_numbers member_handles, group_handles;
} tr_profile;

/* ---- externs ---- */

_Static_assert(sizeof(tr_meter) == 2 * TR_LINE, "two cache lines");
_Static_assert(sizeof(tr_counter_cell) == 2 * sizeof(uint64_t),
               "bytes and packets, as they are read and written");

typedef struct tr_array_desc {
    const char *name;
    uint64_t size;
    uint32_t bits;            /* registers: width; meters: 1 = bytes */
    uint32_t cell_bytes;      /* registers: storage of one cell */
    uint32_t block, offset;   /* registers: where cell 0 lies */
    uint32_t stride;          /* registers: bytes from cell to cell */
} tr_array_desc;

/* Registers of one size lie interleaved: all cells of one index stand together,
 * as programs keep a record in cells of several registers at one index. */
typedef struct tr_block_desc {
    uint64_t size;            /* records */
    uint32_t stride;
} tr_block_desc;

typedef struct tr_vset {
    uint32_t n, key_bytes;
    uint8_t *values, *masks;
} tr_vset;

/* ---- program ---- */

struct tr_program {
    uint32_t abi, phv_size;
    uint32_t phv_carried;     /* of its bytes, those that egress needs */
    const char *name;
    uint32_t n_tables, n_profiles, n_counters, n_registers, n_meters, n_vsets;
    uint32_t n_blocks;        /* of registers */
    uint32_t digest_limbs;    /* longest digest record; 0: no digests */
    const tr_table_desc *tables;
    const tr_profile_desc *profiles;
    const tr_array_desc *counters, *registers, *meters, *vsets;
    const tr_block_desc *blocks;
    /* Parses and runs ingress and what v1model does after it; takes p. */
    void (*ingress)(tr_switch *s, tr_pkt *p, uint64_t now_ps);
    /* Runs egress and the deparser. Nonzero: p is to be sent from its
     * egress_port; zero: p was taken. */
    int (*egress)(tr_switch *s, tr_pkt *p, uint64_t now_ps);
    /* tr_rx_virtual and tr_run of a switch with this program */
    int (*rx)(tr_switch *s, uint32_t port, const uint8_t *data, uint32_t len,
              uint32_t virt, uint64_t now_ps);
    uint64_t (*run)(tr_switch *s, uint64_t now_ps);
};

/* What the data plane has to know of the program; in tr_data.h constants. */
#define TR_PHV_SIZE(s) ((s)->prog ? (s)->prog->phv_size : 0)
#define TR_PHV_CARRIED(s) ((s)->prog->phv_carried)
#define TR_INGRESS(s, p, now_ps) ((s)->prog->ingress(s, p, now_ps))
#define TR_EGRESS(s, p, now_ps) ((s)->prog->egress(s, p, now_ps))

/* ---- traffic manager ---- */

typedef struct tr_queue {
    tr_pkt *head, *tail;
    uint32_t packets, max_packets;
    uint64_t bytes, max_bytes;
    uint64_t pps, next_ps;    /* packets/s limit and when it lets one go */
    uint64_t pause_until_ps;  /* PFC received */
} tr_queue;

/* PFC of one port and priority: as ingress, which pauses the sender, and as
 * egress, which is paused. */
typedef struct tr_pfc_state {
    uint64_t shared, head;    /* bytes that came in here and wait: in the shared
                               * buffer, in the headroom */
    uint64_t refresh_ps;      /* when to repeat the pause, TR_NEVER: not */
    uint64_t insist_ps;       /* no sooner, if it is not obeyed */
    uint64_t pausing_from_ps; /* since when the sender is paused */
    uint64_t paused_from_ps;  /* since when the queue is, if it is */
    uint64_t asked_until_ps;  /* by pause frames; in a storm they are not obeyed */
    uint64_t paused_ps;       /* the watchdog's leaky bucket (tr_watch.c) ... */
    uint64_t updated_ps;      /* ... at this time */
    uint64_t storm_from_ps;
    uint8_t blocked;          /* packets wait for the end of a pause since then */
    uint8_t paused;           /* we have paused the sender */
    tr_pfc_stats stats;       /* up to the last change */
} tr_pfc_state;

/* Memory for packets that wait. */
typedef struct tr_buffer {
    tr_buffer_config cfg;
    uint64_t reserved;        /* headrooms and own bytes of ports in use */
    uint64_t shared, shared_most, head, head_most, from_ports;
} tr_buffer;

/* In the order of use: what every frame touches shares two cache lines. */
typedef struct tr_port {
    uint8_t down, blocked;
    uint8_t waiting;          /* bit per priority whose queue is not empty */
    uint8_t watched;          /* ... that the watchdog has to look at */
    uint8_t dropping;         /* ... in a storm, whose packets are dropped */
    uint16_t heap_at;         /* place in tr_switch.heap, TR_NO_PLACE: none */
    uint64_t rate_bps, delay_ps;
    uint64_t busy_until_ps, frac;  /* serialising; remainder in bit*1e12 */
    tr_pfc_state *pfc_state;  /* per priority; NULL: PFC off */
    alignas(64) tr_port_stats stats;
    tr_queue queue[TR_MAX_PRIORITIES];
    tr_pfc_config pfc;
    uint64_t own_bytes;       /* that came in here and are TR_CHARGE_OWN */
} tr_port;

#define TR_NO_PLACE UINT16_MAX

/* A port in the heap of those that wait for a time. */
typedef struct tr_wait {
    uint64_t time_ps;
    uint32_t port;
} tr_wait;

/* Packets on their way back into ingress, in the order of their times. */
typedef struct tr_reentry {
    tr_pkt *head, *tail;
    uint32_t count;
} tr_reentry;

typedef struct tr_replicas {
    uint32_t n, class_of_service, truncate;
    tr_replica replica[];
} tr_replicas;

/* Groups and sessions by number: pages of pointers, made as they are used. */
#define TR_PRE_PAGES 256u
#define TR_PRE_PAGE 256u
#define TR_SIZE_CLASSES 4u
/* Longest packed packet, in cache lines; one that is longer stays as it is. */
#define TR_PACKED_LINES 16u

struct tr_switch {
    const tr_program *prog;
    tr_table *tables;
    tr_profile *profiles;
    tr_counter_cell **counters;
    uint8_t **registers;      /* cell 0 of each */
    void **blocks;            /* as they were allocated */
    tr_meter **meters;
    tr_vset *vsets;
    tr_replicas **groups[TR_PRE_PAGES], **sessions[TR_PRE_PAGES];

    tr_switch_config cfg;
    tr_pfc_config pfc;        /* of ports not used yet */
    tr_buffer buffer;
    tr_port *ports[TR_MAX_PORTS];
    uint64_t due[TR_MAX_PORTS / 64];  /* ports to look at now (tr_loop.c) */
    uint8_t due_words;        /* bit per word of due that is not 0 */
    uint32_t n_heap;
    tr_wait heap[TR_MAX_PORTS];  /* ports with a later event, a binary heap */
    tr_reentry resubmitted, recirculated;
    uint64_t reentries;       /* packets that ever went back */
    uint64_t recirc_busy_ps;
    uint8_t refusing;         /* a packet without room is in egress */
    tr_pkt *out_head, *out_tail;
    uint64_t out_bytes;       /* memory of these */
    uint64_t now_ps, next_event_ps;
    uint64_t ticks_at_ps, ticks;  /* a time, and the same in ticks */
    tr_clock_fn clock;        /* NULL: there is no time but now_ps */
    void *clock_arg;
    uint64_t rng;
    uint64_t drops[TR_DROP_COUNT];
    int storm_digests[2];     /* report storms that are over, that began;
                               * negative: none does */
    tr_account account;       /* its rx_frames, dropped_frames and held_* are
                               * made when it is read */

    tr_pkt *free_pkts[TR_SIZE_CLASSES + TR_PACKED_LINES];
    uint64_t packet_bytes;    /* of packets and of free_pkts */
    uint32_t steps;           /* passes and copies since tr_run began a time */
    uint32_t generation;      /* counts loads: old buffers have another PHV */
    uint64_t *digests;        /* ring of records: index, time, limbs */
    uint32_t digest_head, digest_count;

    tr_log_fn log;
    void *log_arg;
    tr_lost_fn lost;
    void *lost_arg;
    uint32_t origin;          /* of frames that come in */
    struct tr_tracer *tracer; /* records what happens to marked packets */
    uint32_t marked;          /* packets that earlier tracers numbered: some
                               * may be here still */
    const tr_program *regular; /* while prog is a tracing build: the other one */
    const tr_pkt *traced_pkt; /* whose stage it is */
    uint64_t *coverage;       /* while prog is a tracing build: its counts */
    pthread_mutex_t lock;
    atomic_int waiting;
};

#define TR_DIGEST_RING 1024u

/* ---- called by generated code ---- */

void tr_logf(tr_switch *s, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Drops a packet: counts the reason and frees its buffer. */
void tr_drop(tr_switch *s, tr_pkt *p, enum tr_drop reason);
/* Counts a frame that ends otherwise than as a packet. */
void tr_lose(tr_switch *s, enum tr_drop reason, const tr_lost *frame);
/* A packet as it is lost. */
tr_lost tr_pkt_lost(const tr_pkt *p);
/* inside: in place of a packet that is in the switch (tr_switch_config). */
tr_pkt *tr_pkt_new(tr_switch *s, uint32_t len, int inside);
/* Memory for a packet, where the limit allows it: unused packets of other sizes
 * make room. NULL: none. */
tr_pkt *tr_pkt_memory(tr_switch *s, size_t size, int inside);
void tr_pkt_memory_free(tr_switch *s, tr_pkt *p);
/* A packet as it comes in by a port, with a PHV of zeros; NULL: no memory. */
tr_pkt *tr_pkt_in(tr_switch *s, uint32_t port, const uint8_t *data,
                  uint32_t len, uint32_t virt);
void tr_pkt_free(tr_switch *s, tr_pkt *p);
/* Copy of frame bytes (all, or the payload alone) and bookkeeping; the PHV is
 * copied when with_phv. NULL when out of memory. */
tr_pkt *tr_pkt_copy(tr_switch *s, const tr_pkt *p, int with_phv);
/* Puts p into the queue of (port, priority) or drops it. */
void tr_enqueue(tr_switch *s, tr_pkt *p, uint32_t port, uint32_t priority);
uint32_t tr_queue_packets(const tr_switch *s, uint32_t port,
                          uint32_t priority);
void tr_resubmit(tr_switch *s, tr_pkt *p, uint64_t now_ps);
void tr_recirculate(tr_switch *s, tr_pkt *p, uint64_t now_ps);
const tr_replicas *tr_group_find(const tr_switch *s, uint32_t group);
const tr_replicas *tr_session_find(const tr_switch *s, uint32_t session);
void tr_digest_push(tr_switch *s, uint32_t digest, uint64_t now_ps,
                    const uint64_t *limbs, uint32_t n);
/* Room for n bytes of headers before the payload; NULL when more than
 * TR_HEADROOM would be added. */
uint8_t *tr_pkt_prepend(tr_pkt *p, uint32_t n);
/* Charges a frame of in_len bytes as `amount` units and counts it with its
 * colour: 0 green, 1 yellow, 2 red. */
uint32_t tr_meter_execute(tr_meter *m, uint32_t in_len, uint64_t amount,
                          uint64_t now_ps);
int tr_vset_match(const tr_vset *v, const uint8_t *key, const uint8_t *mask);
/* The member that e, an entry of an indirect table, stands for; NULL: none. *first
 * has the action to run before, of a group that has one, or is NULL. */
tr_entry *tr_profile_resolve(tr_switch *s, uint32_t profile,
                             const tr_entry *e, uint64_t hash,
                             const tr_entry **first);
/* Uniform in [lo, hi], lo <= hi. */
uint64_t tr_random(tr_switch *s, uint64_t lo, uint64_t hi);
/* Emits a log_msg: each "{}" of format becomes the next decimal number. */
void tr_log_msg(tr_switch *s, const char *format, const char *const *numbers,
                unsigned n);
/* Decimal text of limbs (n of them), negative when is_signed and the top bit
 * is set; text has room for 20 n + 2 bytes. */
void tr_decimal(const uint64_t *limbs, unsigned n, int is_signed, char *text);

TR_INLINE void tr_count(tr_counter_cell *cells, uint64_t size, uint64_t index,
                        const tr_pkt *p)
{
    if (index < size) {
        cells[index].bytes += p->in_len;
        cells[index].packets++;
    }
}

/* Keyed by the seed, a secret of the process, so that no client can choose
 * keys that collide. The halves of a product folded, as wyhash does it: what a bit
 * of the key changes depends on the seed. A second product mixes the first: alone,
 * it leaves keys that count up side by side for one seed of a hundred. */
TR_INLINE uint64_t tr_hash_words(const uint8_t *key, unsigned words,
                                 const uint8_t *mask, uint64_t seed)
{
    uint64_t h = seed;
    for (unsigned i = 0; i < words; i++) {
        uint64_t w, m = ~0ULL;
        memcpy(&w, key + 8 * i, 8);
        if (mask)
            memcpy(&m, mask + 8 * i, 8);
        tr_u128 product = (tr_u128)(h ^ (w & m)) * (seed | 1);
        h = (uint64_t)product ^ (uint64_t)(product >> 64);
    }
    h *= 0xff51afd7ed558ccdULL;
    return h ^ h >> 32;
}

TR_INLINE int tr_words_equal(const uint8_t *a, const uint8_t *key,
                             const uint8_t *mask, unsigned words)
{
    for (unsigned i = 0; i < words; i++) {
        uint64_t x, y, m = ~0ULL;
        memcpy(&x, a + 8 * i, 8);
        memcpy(&y, key + 8 * i, 8);
        if (mask)
            memcpy(&m, mask + 8 * i, 8);
        if (x != (y & m))
            return 0;
    }
    return 1;
}

/* The slot of a tuple that holds a masked key, or the free one where it would
 * be. */
TR_INLINE tr_slot *tr_slot_of(const tr_tuple *u, const uint8_t *key,
                              const uint8_t *mask, unsigned words,
                              uint32_t slot_bytes)
{
    uint32_t last = u->n_slots - 1;
    uint32_t i = (uint32_t)tr_hash_words(key, words, mask, u->seed) & last;
    for (;; i = (i + 1) & last) {
        tr_slot *slot = (tr_slot *)(void *)(u->slots + (size_t)i * slot_bytes);
        if (!slot->taken || tr_words_equal((const uint8_t *)slot->words, key,
                                           mask, words))
            return slot;
    }
}

TR_INLINE const uint8_t *tr_mask_of(const tr_tuple *u, unsigned words,
                                    enum tr_match match)
{
    return match == TR_EXACT ? NULL
           : words == 1      ? (const uint8_t *)&u->mask_word
                             : u->mask;
}

/* The slot that matches key (words 8-byte words), NULL on a miss; for exact and
 * LPM tables. All but t and key are constants at every call, so each table gets
 * its own lookup. */
TR_INLINE const tr_slot *tr_find(const tr_table *t, const uint8_t *key,
                                 unsigned words, enum tr_match match,
                                 uint32_t slot_bytes)
{
    for (uint32_t i = 0; i < t->n_tuples; i++) {
        const tr_tuple *u = &t->tuples[i];
        const tr_slot *slot = tr_slot_of(u, key, tr_mask_of(u, words, match),
                                         words, slot_bytes);
        if (slot->taken)
            return slot;
    }
    return NULL;
}

/* The entry in a slot of a table whose slots hold entries. */
TR_INLINE tr_entry *tr_slot_entry(const tr_slot *slot, unsigned words)
{
    return (tr_entry *)(uintptr_t)slot->words[words];
}

/* The same for range tables, and for tables that have vectors. */
tr_entry *tr_lookup_range(const tr_table *t, const uint8_t *key);
tr_entry *tr_lookup_vectors(const tr_table *t, const uint8_t *key);

/* The entry that matches key, NULL on a miss; the table's slots hold entries. */
TR_INLINE tr_entry *tr_lookup(const tr_table *t, const uint8_t *key,
                              unsigned words, enum tr_match match,
                              uint32_t slot_bytes)
{
    if (match != TR_TERNARY) {
        const tr_slot *slot = tr_find(t, key, words, match, slot_bytes);
        return slot ? tr_slot_entry(slot, words) : NULL;
    }
    if (t->by_vectors)
        return tr_lookup_vectors(t, key);
    tr_entry *best = NULL;
    for (uint32_t i = 0; i < t->n_tuples; i++) {
        const tr_tuple *u = &t->tuples[i];
        if (best && best->priority > u->top_priority)
            break;
        const tr_slot *slot = tr_slot_of(u, key, tr_mask_of(u, words, match),
                                         words, slot_bytes);
        if (!slot->taken)
            continue;
        tr_entry *e = tr_slot_entry(slot, words);
        if (!best || tr_entry_wins(e, best))
            best = e;
    }
    return best;
}

#include "tr_trace_hooks.h"

#endif
