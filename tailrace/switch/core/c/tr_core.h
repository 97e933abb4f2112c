/* Internals of the switch core that generated programs and the runtime share.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A P4 program is compiled to C code with a constant `tr_program`. This has the
 * sizes of the program's tables and externs, and the functions ingress and
 * egress, which contain its parser, tables and actions and the v1model steps of
 * tr_v1model.h. All state is in tr_switch, so that many switches can share the
 * code of a program.
 *
 * PHV (packet header vector): the parsed headers and metadata of a packet.
 * Limbs: 64-bit words of a wide integer, least significant first.
 */
#ifndef TR_CORE_H
#define TR_CORE_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>

#include "tr_bits.h"
#include "tr_switch.h"

/* Maximum number of header bytes that a program may add to a packet. */
#define TR_HEADROOM 512u
/* Backward jumps that an action may take before its packet is dropped. A jump
 * back over n primitives counts n / 64, rounded up. */
#define TR_LOOP_LIMIT 1048576u
/* Parser states that a packet may visit: far more than real packets need. A
 * state with n operations counts n / 64, rounded up, but at least 1. */
#define TR_PARSER_LIMIT 16384u
/* Bytes of a cache line. */
#define TR_LINE 64u
/* The size of the memory for a packet's PHV is a multiple of this (bytes). */
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

/* Bit of tr_pkt.clone_session: a clone is requested. */
#define TR_CLONE_VALID 0x8000u

/* The part of the packet buffer to which a waiting packet's bytes are charged
 * (tr_buffer.c). */
enum tr_charge {
    TR_CHARGE_NONE,          /* the packet has no space in the buffer */
    TR_CHARGE_OWN,           /* the reserve of its ingress port */
    TR_CHARGE_SHARED,        /* the shared part of the buffer */
    TR_CHARGE_LOSSLESS       /* the shared part or the headroom; PFC counts
                              * these bytes by ingress port and priority */
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
    uint32_t cap;            /* size of buf in bytes */
    uint32_t off, len;       /* offset and length of the frame in buf */
    uint32_t virt;           /* virtual payload: bytes counted, not stored */
    uint32_t parsed;         /* bytes that the parser has extracted */
    uint32_t in_len;         /* length with which counters and byte meters
                              * count the packet */
    uint32_t plen;           /* standard_metadata.packet_length: changes with
                              * the headers */
    uint32_t trunc;          /* length to truncate to; UINT32_MAX: do not */
    uint32_t ingress_port;
    uint32_t egress_port;
    uint32_t charged_bytes;  /* bytes in the packet buffer (tr_buffer.c) */
    uint16_t pfc_port;       /* ingress port charged with these bytes */
    uint8_t priority;
    uint8_t size_class;      /* index of its free list; from TR_SIZE_CLASSES
                              * on for packed packets (tr_pack.c) */
    uint8_t exit;            /* `exit` was executed in this control */
    uint8_t failed;          /* 1 + enum tr_drop after a failed assert or an
                              * endless loop; else 0 */
    uint16_t clone_session;  /* session id | TR_CLONE_VALID; 0: no clone */
    /* other requests of the program, each a field list or an id; 0: none */
    uint16_t clone_fields, digest, resubmit, recirculate;
    uint32_t generation;     /* tr_switch.generation at the allocation */
    uint32_t size;           /* bytes of the block with this struct */
    uint8_t charge;          /* enum tr_charge: where charged_bytes are */
    uint8_t pfc_class;       /* TR_CHARGE_LOSSLESS: the priority whose bytes
                              * PFC counts */
    uint8_t copy;            /* the packet is a clone or a multicast copy */
    uint32_t mark;           /* the packet's number if a tracer records it
                              * (tr_tracer.h), else 0 */
    uint32_t origin;         /* the caller's id of the received frame from
                              * which this packet comes (tr_origin); 0: none */
    uint64_t ready_ps;       /* in a re-entry queue: when ingress may start */
    uint64_t order;          /* position in the order of arrival at both
                              * re-entry queues */
    alignas(16) uint8_t phv[];
} tr_pkt;

/* ---- tables ---- */

typedef struct tr_counter_cell {
    uint64_t bytes, packets;
} tr_counter_cell;

enum tr_meter_mode {
    TR_METER_UNSET,           /* every packet is green */
    TR_METER_TWO_RATES,       /* RFC 2698 */
    TR_METER_ONE_RATE         /* one rate and an excess burst (RFC 2697) */
};

/* A meter occupies two cache lines. A meter without rates uses only the first.
 * A meter with rates reads these from the second, which also has the counts of
 * yellow and red packets. */
typedef struct tr_meter {
    uint8_t mode;             /* enum tr_meter_mode */
    uint64_t last_ps;
    uint64_t c_tokens, p_tokens;  /* tokens in the committed bucket; in the
                                   * peak or excess bucket */
    uint64_t c_frac, p_frac;  /* fractions of a token, in units of 1e-12 */
    tr_counter_cell counts[TR_COLOURS];
    uint64_t cir, cburst, pir;
    uint64_t pburst;          /* TR_METER_ONE_RATE: the excess burst */
} tr_meter;

/* A table entry. The slot of the entry in a hash table has a copy of action and
 * data, if they fit. Rarely used fields (tr_entry_rest) precede the entry in
 * memory. */
typedef struct tr_entry {
    uint32_t kind, id;        /* TR_TARGET_*; index or handle of the target */
    uint64_t last_hit_ps;
    uint64_t *data;           /* action data limbs */
    int32_t priority;
    uint32_t seq;             /* insertion order: of entries with the same
                               * priority, the earliest is used */
    /* first the masked key (range fields: the low bounds), key_words long; then
     * the action data; then the mask (range fields: the high bounds) */
    uint64_t limbs[];
} tr_entry;

typedef struct tr_entry_rest {
    alignas(64) uint64_t packets;
    uint64_t bytes, timeout_ps;
    uint64_t notified_ps;     /* last time listed as expired; 0: never */
    tr_meter *meter;          /* NULL: the table has no direct meter */
    int handle;
    uint32_t size;            /* bytes of the block with entry and rest */
    /* Links of the index (tr_index.c). The best entry of a key and mask links
     * to the next entry in its bucket (chain) and to a tree of the entries with
     * lower priorities (worse). Each entry in such a tree links to its two
     * children (above, below). */
    union {
        struct { tr_entry *chain, *worse; };
        struct { tr_entry *above, *below; };
    };
} tr_entry_rest;

TR_INLINE tr_entry_rest *tr_rest(const tr_entry *e)
{
    return (tr_entry_rest *)(uintptr_t)e - 1;
}

/* Whether e is used, not `other`, if both match. */
TR_INLINE int tr_entry_wins(const tr_entry *e, const tr_entry *other)
{
    return e->priority > other->priority ||
           (e->priority == other->priority && e->seq < other->seq);
}

/* A slot of a hash table with linear probing; at most half of the slots are
 * used. A hit reads one cache line if key and action data are short. This
 * matters since the entries of a large network do not fit into CPU caches.
 *
 *   words: the masked key (key_words long), then the action data. If packets
 *          need more of the entry (desc->entries), a pointer to the entry
 *          replaces the action data. */
typedef struct tr_slot {
    uint32_t id;              /* action index */
    uint32_t taken;           /* the entry's handle + 1; 0: the slot is free */
    uint64_t words[];
} tr_slot;

/* Hash table of the entries with the same mask, by masked key (a "tuple" of
 * tuple space search). */
typedef struct tr_tuple {
    uint8_t *slots;
    uint64_t seed;            /* seed of the hash, from tr_seed */
    uint64_t mask_word;       /* the first word of mask */
    uint8_t *mask;
    uint32_t n_slots;         /* a power of two */
    int32_t top_priority;     /* at least the priority of every entry */
    uint32_t count;           /* number of keys; the slot of a key has the
                               * key's best entry */
} tr_tuple;

/* Allocator of handles: a new handle is the smallest free number. */
typedef struct tr_handle_pool {
    uint32_t *freed;          /* free handles below top, as a heap */
    uint32_t n_freed;
    uint32_t top;             /* all handles from here on are free */
} tr_handle_pool;

enum tr_match { TR_EXACT, TR_LPM, TR_TERNARY, TR_RANGE };

typedef struct tr_key_field {
    uint16_t offset, nbytes;
    uint8_t range;
} tr_key_field;

typedef struct tr_table_desc {
    const char *name;
    uint8_t match;            /* enum tr_match */
    uint16_t key_bytes;       /* length of the key without padding */
    uint16_t key_words;       /* 8-byte words of the key, padded with zeros */
    uint32_t max_size;
    uint32_t data_limbs;
    uint8_t indirect;         /* entries refer to members or groups */
    int32_t profile;          /* action profile of the entries; -1: none */
    uint8_t entries;          /* slots have pointers to entries, not data */
    uint8_t metered;          /* entries have direct meters */
    uint16_t slot_bytes;
    const tr_key_field *fields;
    uint32_t n_fields;
} tr_table_desc;

typedef struct tr_vectors tr_vectors;

typedef struct tr_table {
    const tr_table_desc *desc;
    tr_tuple *tuples;         /* sorted by top_priority, the highest first */
    uint32_t n_tuples;
    tr_vectors *vectors;      /* bit vectors, for range fields and for many
                               * masks (tr_vectors.c); NULL: not used */
    uint32_t vectored;        /* vectors contain the entries with handles below
                               * this */
    int by_vectors;           /* lookups use vectors; there are no tuples */
    tr_entry **index;         /* ternary and range tables: a hash table of
                               * the best entry of each key and mask
                               * (tr_index.c) */
    uint32_t n_index, n_keys; /* buckets and keys of the index */
    tr_entry **by_handle;
    uint32_t n_handles, count, next_seq, max_size;
    tr_handle_pool handles;
    tr_entry *defaults;       /* the default entry; NULL: no default action */
} tr_table;

typedef struct tr_group {
    uint32_t n;
    int drawn;  /* a random draw selects the member, not the hash */
    int *members;
    tr_entry *first;  /* action to run before the member's; NULL: none */
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
    tr_handle_pool member_handles, group_handles;
} tr_profile;

/* ---- externs ---- */

_Static_assert(sizeof(tr_meter) == 2 * TR_LINE, "two cache lines");
_Static_assert(sizeof(tr_counter_cell) == 2 * sizeof(uint64_t),
               "bytes and packets, as control calls copy them");

typedef struct tr_array_desc {
    const char *name;
    uint64_t size;
    uint32_t bits;            /* registers: width in bits; meters: 1: it
                               * counts bytes, 0: packets */
    uint32_t cell_bytes;      /* registers: storage of one cell */
    uint32_t block, offset;   /* registers: block and offset of cell 0 */
    uint32_t stride;          /* registers: bytes from cell to cell */
} tr_array_desc;

/* Registers of the same size are interleaved in a block: the cells of one index
 * are adjacent, because programs use them together as a record. */
typedef struct tr_block_desc {
    uint64_t size;            /* number of records */
    uint32_t stride;
} tr_block_desc;

/* A parser's value set: n values of key_bytes, each with a mask. */
typedef struct tr_vset {
    uint32_t n, key_bytes;
    uint8_t *values, *masks;
} tr_vset;

/* ---- program ---- */

struct tr_program {
    uint32_t abi, phv_size;
    uint32_t phv_carried;     /* leading bytes of the PHV that egress needs */
    const char *name;
    uint32_t n_tables, n_profiles, n_counters, n_registers, n_meters, n_vsets;
    uint32_t n_blocks;        /* number of register blocks */
    uint32_t digest_limbs;    /* limbs of the longest digest message; 0: the
                               * program has no digests */
    const tr_table_desc *tables;
    const tr_profile_desc *profiles;
    const tr_array_desc *counters, *registers, *meters, *vsets;
    const tr_block_desc *blocks;
    /* Runs parser, ingress and v1model's steps after it; takes over p. */
    void (*ingress)(tr_switch *s, tr_pkt *p, uint64_t now_ps);
    /* Runs egress and deparser. Nonzero: the caller sends p from its
     * egress_port; zero: p was dropped or recirculated. */
    int (*egress)(tr_switch *s, tr_pkt *p, uint64_t now_ps);
    /* tr_rx_virtual and tr_run call these while this program is loaded. */
    int (*rx)(tr_switch *s, uint32_t port, const uint8_t *data, uint32_t len,
              uint32_t virt, uint64_t now_ps);
    uint64_t (*run)(tr_switch *s, uint64_t now_ps);
};

/* The program's sizes and functions; tr_data.h replaces them by constants. */
#define TR_PHV_SIZE(s) ((s)->prog ? (s)->prog->phv_size : 0)
#define TR_PHV_CARRIED(s) ((s)->prog->phv_carried)
#define TR_INGRESS(s, p, now_ps) ((s)->prog->ingress(s, p, now_ps))
#define TR_EGRESS(s, p, now_ps) ((s)->prog->egress(s, p, now_ps))

/* ---- traffic manager ---- */

typedef struct tr_queue {
    tr_pkt *head, *tail;
    uint32_t packets, max_packets;
    uint64_t bytes, max_bytes;
    uint64_t pps, next_ps;    /* limit in packets/s; when the next packet may
                               * leave */
    uint64_t pause_until_ps;  /* end of the pause that received PFC frames
                               * requested */
} tr_queue;

/* PFC state of one port and priority. Ingress: the switch pauses the sender at
 * the other end of the link. Egress: the other end pauses the queue. */
typedef struct tr_pfc_state {
    uint64_t shared, headroom; /* ingress: bytes received here that wait in
                                * the shared part; in the headroom */
    uint64_t refresh_ps;      /* when to repeat the pause frame; or TR_NEVER */
    uint64_t insist_ps;       /* when to repeat a pause that is not obeyed */
    uint64_t pausing_from_ps; /* ingress: when the sender was paused */
    uint64_t paused_from_ps;  /* egress: when the queue's last pause began */
    uint64_t asked_until_ps;  /* when the requested pause ends, even if it is
                               * ignored in a storm */
    uint64_t paused_ps;       /* level of the watchdog's leaky bucket, which
                               * fills during pauses (tr_watch.c) */
    uint64_t updated_ps;      /* when paused_ps was computed */
    uint64_t storm_from_ps;   /* when the current storm began */
    uint8_t blocked;          /* 1: at updated_ps packets waited for the end of
                               * a pause */
    uint8_t paused;           /* ingress: the sender is paused */
    tr_pfc_stats stats;       /* counts up to the last change of state */
} tr_pfc_state;

/* The packet buffer: memory for packets that wait (tr_buffer.c). */
typedef struct tr_buffer {
    tr_buffer_config cfg;
    uint64_t reserved;        /* bytes reserved for ports in use: headrooms and
                               * port reserves */
    /* occupied bytes of the shared part, of the headrooms, and of the ports'
     * reserves; "most": the maximum so far */
    uint64_t shared, shared_most, headroom, headroom_most, in_reserves;
} tr_buffer;

/* Ordered by use: the fields that every frame uses are in two cache lines. */
typedef struct tr_port {
    uint8_t down;
    uint8_t blocked;          /* the caller takes no more frames of this port
                               * for now (tr_port_block) */
    /* bit sets: the priorities whose queues ... */
    uint8_t waiting;          /* are not empty */
    uint8_t watched;          /* must be checked by the watchdog */
    uint8_t dropping;         /* drop all packets, in a PFC storm */
    uint16_t heap_at;         /* index in tr_switch.heap, or TR_NO_PLACE */
    uint64_t rate_bps, delay_ps;
    uint64_t busy_until_ps;   /* end of the serialisation of the last frame */
    uint64_t frac;            /* remainder of the division that computed
                               * busy_until_ps, in bits * 1e12 */
    tr_pfc_state *pfc_state;  /* per priority; NULL: PFC off */
    alignas(64) tr_port_stats stats;
    tr_queue queue[TR_MAX_PRIORITIES];
    tr_pfc_config pfc;
    uint64_t own_bytes;       /* occupied bytes of the port's reserve */
} tr_port;

#define TR_NO_PLACE UINT16_MAX

/* An item of the heap: a port and the time of its next event. */
typedef struct tr_wait {
    uint64_t time_ps;
    uint32_t port;
} tr_wait;

/* Queue of resubmitted or recirculated packets, ordered by ready_ps. */
typedef struct tr_reentry {
    tr_pkt *head, *tail;
    uint32_t count;
} tr_reentry;

/* The copies that a multicast group or clone session makes; truncate: their
 * maximum length in bytes; 0: no limit. */
typedef struct tr_replicas {
    uint32_t n, class_of_service, truncate;
    tr_replica replica[];
} tr_replicas;

/* Multicast groups and clone sessions by id: pages of pointers, allocated on
 * first use. */
#define TR_PRE_PAGES 256u
#define TR_PRE_PAGE 256u
/* Sizes of buffers of packets that are not packed (tr_pkt.c). */
#define TR_SIZE_CLASSES 4u
/* Cache lines of the largest packed packet (tr_pack.c); larger: unpacked. */
#define TR_PACKED_LINES 16u

struct tr_switch {
    const tr_program *prog;
    tr_table *tables;
    tr_profile *profiles;
    tr_counter_cell **counters;
    uint8_t **registers;      /* address of each register's cell 0 */
    void **blocks;            /* memory of the registers, as allocated */
    tr_meter **meters;
    tr_vset *vsets;
    tr_replicas **groups[TR_PRE_PAGES], **sessions[TR_PRE_PAGES];

    tr_switch_config cfg;
    tr_pfc_config pfc;        /* PFC settings of ports not used yet */
    tr_buffer buffer;
    tr_port *ports[TR_MAX_PORTS];
    uint64_t due[TR_MAX_PORTS / 64];  /* a bit is set for each port that has
                                       * to be served (tr_loop.c) */
    uint8_t due_words;        /* a bit is set for each word of due that is
                               * not 0 */
    uint32_t n_heap;
    tr_wait heap[TR_MAX_PORTS];  /* ports with a later event, a binary heap */
    tr_reentry resubmitted, recirculated;
    uint64_t reentries;       /* packets resubmitted or recirculated so far */
    uint64_t recirc_busy_ps;  /* when the recirculation port becomes idle */
    uint8_t refusing;         /* egress runs for a lossless packet that will
                               * be dropped, only so that the program can
                               * subtract its bytes (tr_tm.c) */
    tr_pkt *out_head, *out_tail;  /* sent frames, for tr_pop */
    uint64_t out_bytes;       /* memory of the sent frames */
    uint64_t now_ps, next_event_ps;
    uint64_t ticks_at_ps, ticks;  /* a time, and the same time in ticks
                                   * of cfg.tick_ps */
    tr_clock_fn clock;        /* tr_set_clock; NULL: time is now_ps */
    void *clock_arg;
    uint64_t rng;
    uint64_t drops[TR_DROP_COUNT];
    int storm_digests[2];     /* digests that report the end [0] and begin [1]
                               * of PFC storms; negative: none */
    tr_account account;       /* rx_frames, dropped_frames and held_* are
                               * computed when it is read */

    tr_pkt *free_pkts[TR_SIZE_CLASSES + TR_PACKED_LINES];
    uint64_t packet_bytes;    /* memory of all packets, free ones included */
    uint32_t steps;           /* passes and copies at now_ps in this call of
                               * tr_run, which limits them (tr_loop.c) */
    uint32_t generation;      /* counts program loads: PHV sizes differ */
    uint64_t *digests;        /* ring of digest messages: each is the digest's
                               * index, a time, and limbs */
    uint32_t digest_head, digest_count;

    tr_log_fn log;
    void *log_arg;
    tr_lost_fn lost, recirculated_fn;
    void *lost_arg, *recirculated_arg;
    uint32_t origin;          /* the id that received frames get (tr_origin) */
    struct tr_tracer *tracer; /* records what happens to marked packets */
    uint32_t marked;          /* last mark that earlier tracers used; their
                               * packets may still be in the switch */
    const tr_program *regular; /* the regular build, while prog is the tracing
                                * build of the program */
    const tr_pkt *traced_pkt; /* the packet in the current stage */
    uint64_t *coverage;       /* coverage counts, while prog is the tracing
                               * build */
    pthread_mutex_t lock;
    atomic_int waiting;       /* number of threads that wait for the lock */
};

#define TR_DIGEST_RING 1024u

/* ---- called by generated code ---- */

void tr_logf(tr_switch *s, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Drops a packet: counts the reason and frees its buffer. */
void tr_drop(tr_switch *s, tr_pkt *p, enum tr_drop reason);
/* Counts and reports the drop of a frame that has no tr_pkt (yet). */
void tr_lose(tr_switch *s, enum tr_drop reason, const tr_lost *frame);
/* Describes a dropped packet for tr_lose. */
tr_lost tr_pkt_lost(const tr_pkt *p);
/* A buffer for a frame of len bytes. inside: the buffer is for a packet that is
 * already in the switch, so it may use all of tr_switch_config.packet_bytes. */
tr_pkt *tr_pkt_new(tr_switch *s, uint32_t len, int inside);
/* Allocates a packet within the limit; if necessary frees unused buffers of
 * other sizes first. NULL: no memory. */
tr_pkt *tr_pkt_memory(tr_switch *s, size_t size, int inside);
void tr_pkt_memory_free(tr_switch *s, tr_pkt *p);
/* Creates a packet from a received frame, with a zero PHV; NULL: no memory. */
tr_pkt *tr_pkt_in(tr_switch *s, uint32_t port, const uint8_t *data,
                  uint32_t len, uint32_t virt);
void tr_pkt_free(tr_switch *s, tr_pkt *p);
/* Copies the frame's bytes and the bookkeeping, and the PHV if with_phv. NULL:
 * no memory. */
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
/* Makes space for n bytes of headers before the payload and returns its
 * address; NULL when the headers would grow by more than TR_HEADROOM. */
uint8_t *tr_pkt_prepend(tr_pkt *p, uint32_t n);
/* Meters a frame as `amount` units, counts it (in_len bytes) and returns its
 * colour: 0 green, 1 yellow, 2 red. */
uint32_t tr_meter_execute(tr_meter *m, uint32_t in_len, uint64_t amount,
                          uint64_t now_ps);
int tr_vset_match(const tr_vset *v, const uint8_t *key, const uint8_t *mask);
/* The member that e, an entry of an indirect table, selects for p; NULL: none.
 * *first is the entry whose action runs before the member's; NULL: none. For a
 * marked packet the result is recorded; in a dry run it is a choice. */
tr_entry *tr_profile_resolve(tr_switch *s, const tr_pkt *p, uint32_t profile,
                             const tr_entry *e, uint64_t hash,
                             const tr_entry **first);
/* A random integer, uniform in [lo, hi], lo <= hi. */
uint64_t tr_random(tr_switch *s, uint64_t lo, uint64_t hi);
/* Emits a log_msg: replaces each "{}" in format by the next of n numbers, given
 * as decimal strings. */
void tr_log_msg(tr_switch *s, const char *format, const char *const *numbers,
                unsigned n);
/* Writes the integer of n limbs in decimal; negative when is_signed and the
 * top bit is set. text must have 20 n + 2 bytes. */
void tr_decimal(const uint64_t *limbs, unsigned n, int is_signed, char *text);

TR_INLINE void tr_count(tr_counter_cell *cells, uint64_t size, uint64_t index,
                        const tr_pkt *p)
{
    if (index < size) {
        cells[index].bytes += p->in_len;
        cells[index].packets++;
    }
}

/* Hash of a masked key. The seed is secret, so that clients cannot choose keys
 * that collide. As in wyhash, the halves of a product are combined by XOR. The
 * last multiplication mixes the result: without it, for one seed in a hundred,
 * consecutive keys would get adjacent slots. */
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

/* The slot of a tuple with this key after masking, or the free slot for it. */
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

/* The slot that matches key (`words` words of 8 bytes), NULL on a miss; for
 * exact and LPM tables. All arguments but t and key are compile-time constants,
 * so the compiler makes a specialised lookup for each table. */
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

/* The entry of a slot, in a table whose slots point to entries. */
TR_INLINE tr_entry *tr_slot_entry(const tr_slot *slot, unsigned words)
{
    return (tr_entry *)(uintptr_t)slot->words[words];
}

/* Lookups in range tables, and in tables with bit vectors. They return the
 * entry that matches key; NULL on a miss. */
tr_entry *tr_lookup_range(const tr_table *t, const uint8_t *key);
tr_entry *tr_lookup_vectors(const tr_table *t, const uint8_t *key);

/* The entry that matches key, NULL on a miss; in tables whose slots point to
 * entries. */
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
