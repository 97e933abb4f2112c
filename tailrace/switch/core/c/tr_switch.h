/* Public interface of the switch core: a v1model switch as a passive object.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The core reads no clock but one that it is given (tr_set_clock), does no I/O,
 * starts no thread and allocates nothing per packet: the caller hands in frames and the time, and takes frames out
 * again with the time at which their last bit has left the port. All times are
 * picoseconds on one clock that never runs backwards, so that a byte at
 * 400 Gb/s (20 ps) is exact; a clock that starts at 0 lasts 213 days.
 *
 * Threads: data-plane calls (tr_rx, tr_run, tr_pop, tr_release, tr_port_*)
 * want the lock held by the caller around a batch; every other call takes the
 * lock itself.
 *
 * Python reads this file, too (cbuild/headers.py): nothing but declarations
 * and #define NAME NUMBER.
 */
#ifndef TR_SWITCH_H
#define TR_SWITCH_H

#include <stdint.h>

#define TR_ABI 6u
#define TR_MAX_PORTS 512u
#define TR_MAX_PRIORITIES 8u
/* Longest frame that comes in, recirculates or leaves, virtual bytes included:
 * more than any GSO super-frame. A longer one is dropped and counted. */
#define TR_MAX_FRAME 66000u
#define TR_NEVER 0xffffffffffffffffULL
#define TR_PS_PER_S 1000000000000ULL
#define TR_PS_PER_NS 1000ULL

typedef struct tr_switch tr_switch;
typedef struct tr_program tr_program;

/* Results of control calls; errors are negative. */
enum {
    TR_OK = 0,
    TR_EEXIST = -1,   /* an equal entry, member or group is there already */
    TR_ENOENT = -2,   /* no such handle, group or session */
    TR_EFULL = -3,    /* size limit reached */
    TR_ERANGE = -4,   /* index or port out of range */
    TR_EINVAL = -5,   /* argument that makes no sense */
    TR_ENOMEM = -6
};

/* Why a packet died; names in tr_drop_name(). */
enum tr_drop {
    TR_DROP_NO_PIPELINE,      /* no program loaded */
    TR_DROP_INGRESS,          /* marked to drop in ingress */
    TR_DROP_EGRESS,           /* marked to drop in egress */
    TR_DROP_MULTICAST,        /* group unknown or empty */
    TR_DROP_REPLICATED,       /* original of a multicast packet (not a loss) */
    TR_DROP_QUEUE_PACKETS,    /* queue at its depth in packets */
    TR_DROP_QUEUE_BYTES,      /* queue at its depth in bytes */
    TR_DROP_PRIORITY,         /* priority without a queue */
    TR_DROP_PORT,             /* egress port out of range */
    TR_DROP_PORT_DOWN,        /* egress port is down */
    TR_DROP_RESUBMIT_FULL,    /* resubmit queue full */
    TR_DROP_RECIRC_FULL,      /* recirculation queue full */
    TR_DROP_HEADROOM,         /* more than 512 B of headers added */
    TR_DROP_ASSERT,           /* assert or assume failed */
    TR_DROP_LOOP,             /* loop in an action exceeded its limit */
    TR_DROP_PFC_HEADROOM,     /* PFC ingress buffer exhausted */
    TR_DROP_PFC_FRAME,        /* pause frame consumed (not a loss) */
    TR_DROP_NO_BUFFER,        /* out of memory for packets */
    TR_DROP_TOO_LONG,         /* frame longer than TR_MAX_FRAME */
    TR_DROP_RELOAD,           /* in flight when the program was replaced */
    TR_DROP_BUFFER,           /* the switch's shared buffer is full */
    TR_DROP_MAC_CONTROL,      /* no valid pause frame: ignored (not a loss) */
    TR_DROP_PFC_STORM,        /* its queue was paused for too long */
    TR_DROP_COUNT
};

/* Thresholds of what came in by one port with one priority. */
typedef struct tr_pfc_limits {
    uint64_t xoff_bytes;      /* pause the sender above this many bytes */
    uint64_t xon_bytes;       /* resume it at or below this many bytes */
    uint64_t headroom_bytes;  /* accepted above xoff before dropping */
} tr_pfc_limits;

/* What becomes of a queue that is paused for too long (tr_watch.c). */
typedef struct tr_pfc_watchdog {
    uint64_t detect_ps;       /* paused for so long: a storm; 0: no watchdog */
    uint64_t restore_ps;      /* no pause frame for so long: storm over */
    uint32_t share_ppm;       /* of the time a queue may be paused, for good;
                               * 1000000: all of it, with breaks */
    uint32_t ignore;          /* in a storm 0: drop, 1: send all the same */
} tr_pfc_watchdog;
#define TR_ALWAYS_PPM 1000000u

/* PFC of one port and all its priorities (RLB §II-A, IEEE 802.1Qbb). */
typedef struct tr_pfc_config {
    uint8_t enabled;          /* bit per priority that is lossless; 0: off */
    uint16_t quanta;          /* pause time asked for, in 512 bit times */
    tr_pfc_limits of[TR_MAX_PRIORITIES];
    tr_pfc_watchdog watchdog;
    uint8_t rise;             /* what came in here waits so many priorities
                               * above that with which it was sent */
} tr_pfc_config;

/* The memory that all ports of a switch share (tr_buffer.c). */
typedef struct tr_buffer_config {
    uint64_t bytes;           /* all that follows included; 0: no limit */
    uint64_t port_bytes;      /* of each port for what is not lossless */
    /* dynamic thresholds: xoff is at most alpha times what is free; alpha_num
     * 0: thresholds are as they were configured */
    uint32_t alpha_num, alpha_den;
} tr_buffer_config;

typedef struct tr_buffer_state_t {
    uint64_t bytes;           /* as configured */
    uint64_t reserved_bytes;  /* headrooms and own bytes of ports in use */
    uint64_t shared_bytes, shared_most_bytes;  /* taken now, and ever */
    uint64_t headroom_bytes, headroom_most_bytes;
    uint64_t own_bytes;       /* of ports, for what is not lossless */
    uint64_t held_bytes;      /* taken by packets that were looked for: equal
                               * to the sum of what is taken */
} tr_buffer_state_t;

/* Of the bytes in a paused queue, those of one ingress account: of a port and a
 * priority. */
typedef struct tr_paused_queue {
    uint32_t port, priority;  /* of the queue */
    uint32_t from_port, from_priority;
    uint64_t bytes;
    uint64_t xon_bytes;       /* of all that is on the account: its sender goes
                               * on at or below this many */
    uint32_t pausing;         /* 1: its sender is paused */
} tr_paused_queue;

/* What PFC of one port and priority has done so far. */
typedef struct tr_pfc_stats {
    uint64_t bytes, most_bytes;           /* came in here and wait; ever */
    uint64_t headroom_bytes, headroom_most_bytes;  /* of them above xoff */
    uint64_t xoff_sent, xon_sent;         /* repeated pauses included */
    uint64_t received;                    /* frames that name the priority */
    uint64_t pausing_ps;                  /* we kept the sender paused */
    uint64_t paused_ps;                   /* our queue was paused */
    uint64_t times_paused;                /* ... so often, repeats aside */
    uint64_t storms, storming;            /* so far; 1: there is one now */
    uint64_t storm_dropped, storm_ps;     /* packets, and how long, in all */
} tr_pfc_stats;

typedef struct tr_switch_config {
    uint32_t drop_port;       /* egress_spec value that means drop */
    uint32_t priorities;      /* queues a port, 1..TR_MAX_PRIORITIES */
    uint64_t tick_ps;         /* ps a tick of the P4 timestamps */
    uint32_t queue_packets;   /* default queue depth in packets, 0: no limit */
    uint64_t queue_bytes;     /* default queue depth in bytes, 0: no limit */
    uint64_t port_rate_bps;   /* default port rate, 0: infinitely fast */
    uint64_t port_delay_ps;   /* default delay after serialisation */
    uint64_t recirc_rate_bps; /* rate of the recirculation port, 0: infinite */
    uint64_t seed;            /* of the random extern */
    uint64_t packet_bytes;    /* memory for packets, 0: no limit; new packets
                               * and copies get half of it, those that leave
                               * their queues the rest */
} tr_switch_config;

/* A frame to send. data stays valid until tr_release(slot). */
typedef struct tr_out {
    uint32_t port;
    uint32_t len;             /* bytes at data */
    uint32_t virt;            /* payload bytes that exist as a length only */
    uint32_t origin;          /* of the frame that it comes from (tr_origin) */
    uint64_t time_ps;         /* when the last bit has left (may be future) */
    const uint8_t *data;
    void *slot;
} tr_out;

typedef struct tr_port_stats {
    uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes;
    uint64_t dropped;         /* packets dropped at this port's queues */
    uint64_t pfc_sent, pfc_received, paused_ps;
    uint64_t pfc_ignored;     /* MAC control frames that are no valid PFC */
} tr_port_stats;

/* Where all frames and their virtual payload bytes are. At any time
 *
 *   rx_frames + made_frames == tx_frames + dropped_frames + held_frames
 *   rx_virt + made_virt == tx_virt + dropped_virt + cut_virt + held_virt
 *
 * where what is held is counted by looking for it, all else as it happens. */
typedef struct tr_account {
    uint64_t rx_frames;       /* handed in */
    uint64_t made_frames;     /* clones, multicast copies, pause frames */
    uint64_t tx_frames;       /* handed out by tr_pop */
    uint64_t dropped_frames;  /* for any reason of tr_drops_read */
    uint64_t held_frames;     /* in queues, re-entry and the output list */
    uint64_t rx_virt, made_virt, tx_virt, dropped_virt;
    uint64_t cut_virt;        /* cut off by truncate */
    uint64_t held_virt;
    uint64_t held_data;       /* frames that hold such payload, and no copies */
} tr_account;

/* A frame that a switch drops. */
typedef struct tr_lost {
    const uint8_t *data;      /* NULL: its bytes are not at hand */
    uint32_t len, virt;
    uint8_t copy;             /* a clone or multicast copy */
    uint8_t cut;              /* its payload was about to be cut off */
} tr_lost;

/* A port at a moment. */
typedef struct tr_port_state_t {
    uint64_t rate_bps, delay_ps;
    uint64_t queue_packets, queue_bytes;  /* of all priorities */
    uint64_t tx_bytes;
    uint8_t paused;           /* bit per priority that obeys a pause then */
} tr_port_state_t;

/* What a table entry does. */
typedef struct tr_target {
    uint32_t kind;            /* TR_TARGET_* */
    uint32_t id;              /* action index, member handle, group handle */
    const uint64_t *data;     /* action data, limbs as the program wants */
    uint32_t limbs;
} tr_target;
enum { TR_TARGET_ACTION = 0, TR_TARGET_MEMBER = 1, TR_TARGET_GROUP = 2 };

/* Rates of a meter, in units and units per second. With an excess burst it is a
 * single-rate meter, whose pir and pburst are its cir and cburst; without one
 * it has two rates. Equal ones mark as a single rate of two colours does. */
typedef struct tr_meter_rates {
    uint64_t cir, cburst, pir, pburst, eburst;
} tr_meter_rates;
enum { TR_COLOURS = 3 };      /* green, yellow, red */

typedef struct tr_replica {
    uint32_t port;
    uint32_t instance;
} tr_replica;

/* level: 1 info, 2 warning, 3 error */
typedef void (*tr_log_fn)(void *arg, int level, const char *text);
typedef void (*tr_lost_fn)(void *arg, const tr_lost *frame);
/* The time, in ps. */
typedef uint64_t (*tr_clock_fn)(void *arg);

/* Makes a switch without ports' traffic; NULL when out of memory or when the
 * program was made for another TR_ABI. prog may be NULL: everything drops. */
tr_switch *tr_switch_new(const tr_program *prog, const tr_switch_config *cfg);
void tr_switch_free(tr_switch *s);
/* Replaces the program: tables, externs, PRE and packets in flight are gone,
 * ports and their settings stay. prog must outlive the switch. */
int tr_switch_load(tr_switch *s, const tr_program *prog);
/* Gives s the program and all state of `other`, which no packet has reached,
 * and other that of s; packets in flight are gone, ports and their settings
 * stay. Cannot fail. Only s may be in use by another thread. */
void tr_switch_exchange(tr_switch *s, tr_switch *other);
/* Time for entries and meters made from now on; never runs backwards. */
void tr_switch_clock(tr_switch *s, uint64_t now_ps);
void tr_switch_lock(tr_switch *s);
void tr_switch_unlock(tr_switch *s);
/* Control calls that wait for the lock; the I/O loop yields when not 0. */
int tr_switch_contended(const tr_switch *s);

/* Data plane (lock held by the caller). */

/* A frame of len bytes (plus virt payload bytes carried as a length) arrives
 * complete on port at now_ps. Returns TR_OK, TR_ERANGE or TR_ENOMEM. */
int tr_rx(tr_switch *s, uint32_t port, const uint8_t *data, uint32_t len,
          uint64_t now_ps);
int tr_rx_virtual(tr_switch *s, uint32_t port, const uint8_t *data,
                  uint32_t len, uint32_t virt, uint64_t now_ps);
/* What frames that come in from now on, and all that becomes of them, are known
 * by when they leave; 0, as at first: nothing. */
void tr_origin(tr_switch *s, uint32_t origin);
/* Does all work due up to now_ps, in the order of its times: at one time what
 * enters ingress again comes first, then ports by number, until nothing is
 * left. Returns the time of the next timed event, TR_NEVER, or a time <=
 * now_ps when it stopped early because packets loop without time passing, or
 * because many are to be taken out first (tr_pop). */
uint64_t tr_run(tr_switch *s, uint64_t now_ps);
/* When tr_run has something to do next; not later than the switch's own time
 * when that is so at once. */
uint64_t tr_next(const tr_switch *s);
/* A port as it stands at at_ps, until when the switch has run: its own time is
 * that of its last event. TR_ERANGE when there can be no such port; one that
 * was never used reads as zeros. */
int tr_port_state(const tr_switch *s, uint32_t port, uint64_t at_ps,
                  tr_port_state_t *out);
int tr_pop(tr_switch *s, tr_out *out);
void tr_release(tr_switch *s, void *slot);
void tr_port_block(tr_switch *s, uint32_t port, int blocked);
void tr_port_up(tr_switch *s, uint32_t port, int up);
int tr_digest_pending(const tr_switch *s);

/* Ports and queues. */
int tr_port_rate(tr_switch *s, uint32_t port, uint64_t bps);
int tr_port_delay(tr_switch *s, uint32_t port, uint64_t delay_ps);
/* port TR_MAX_PORTS: all ports, those not used yet too */
int tr_port_pfc(tr_switch *s, uint32_t port, const tr_pfc_config *cfg);
/* Finite pauses count up to at_ps. */
int tr_pfc_read(tr_switch *s, uint32_t port, uint32_t prio, uint64_t at_ps,
                tr_pfc_stats *out);
/* The paused queues at a time, one item an account, by port and priority;
 * `count`: all items, of which at most `most` are written. */
int tr_paused_queues(tr_switch *s, uint64_t at_ps, tr_paused_queue *out,
                     uint32_t most, uint32_t *count);
/* Digests of the program that report the begin and the end of storms, with port
 * and priority as fields; negative: none, as after loading a program. */
int tr_pfc_storm_digests(tr_switch *s, int begun, int over);
int tr_buffer_set(tr_switch *s, const tr_buffer_config *cfg);
void tr_buffer_state(tr_switch *s, tr_buffer_state_t *out);
/* prio TR_MAX_PRIORITIES: all queues of the port */
int tr_queue_depth(tr_switch *s, uint32_t port, uint32_t prio,
                   uint32_t packets, uint64_t bytes);
int tr_queue_rate_pps(tr_switch *s, uint32_t port, uint32_t prio,
                      uint64_t pps);
int tr_queue_level(tr_switch *s, uint32_t port, uint32_t prio,
                   uint32_t *packets, uint64_t *bytes);
int tr_port_stats_read(tr_switch *s, uint32_t port, tr_port_stats *out);
void tr_drops_read(tr_switch *s, uint64_t out[TR_DROP_COUNT]);
void tr_account_read(tr_switch *s, tr_account *out);
const char *tr_drop_name(unsigned reason);
/* Registers fn for log_msg and for errors. */
void tr_set_log(tr_switch *s, tr_log_fn fn, void *arg);
/* Has packets stamped by a clock when they begin ingress, are queued and begin
 * egress: the one from which the caller takes the times that it hands in, which
 * are those of whole batches. NULL: by the switch's own time, which is that of
 * the last event. */
void tr_set_clock(tr_switch *s, tr_clock_fn fn, void *arg);
/* Registers fn for every frame that is dropped; NULL: none. */
void tr_set_lost(tr_switch *s, tr_lost_fn fn, void *arg);

/* Tables. Handles are >= 0; handle -1 is the default entry. */
int tr_table_insert(tr_switch *s, uint32_t table, const uint8_t *key,
                    const uint8_t *mask, uint32_t prefix_bits,
                    int32_t priority, const tr_target *target,
                    uint64_t timeout_ps, uint64_t now_ps);
int tr_table_modify(tr_switch *s, uint32_t table, int handle,
                    const tr_target *target, uint64_t timeout_ps);
int tr_table_delete(tr_switch *s, uint32_t table, int handle);
/* NULL: no default action at all (the packet goes on untouched) */
int tr_table_default(tr_switch *s, uint32_t table, const tr_target *target);
int tr_table_count(tr_switch *s, uint32_t table);
/* Room for this many entries, instead of what the program says. */
int tr_table_resize(tr_switch *s, uint32_t table, uint32_t max_size);
int tr_entry_counter(tr_switch *s, uint32_t table, int handle,
                     uint64_t *bytes, uint64_t *packets);
int tr_entry_counter_set(tr_switch *s, uint32_t table, int handle,
                         uint64_t bytes, uint64_t packets);
/* The direct meter of an entry; handle -1 is the default entry. rates NULL:
 * every packet green. TR_EINVAL: the table has none. */
int tr_entry_meter(tr_switch *s, uint32_t table, int handle,
                   const tr_meter_rates *rates);
/* What it has counted: bytes and packets of each colour. */
int tr_entry_colours(tr_switch *s, uint32_t table, int handle,
                     uint64_t *bytes_packets);
int tr_entry_colours_set(tr_switch *s, uint32_t table, int handle,
                         const uint64_t *bytes_packets);
int tr_entry_last_hit(tr_switch *s, uint32_t table, int handle,
                      uint64_t *time_ps);
/* Looks at `scan` handles from *next on, and moves it, to 0 behind the last.
 * Handles of at most max entries not hit for their timeout, and not notified
 * since; their number. */
int tr_table_expired(tr_switch *s, uint32_t table, uint64_t now_ps,
                     uint32_t *next, uint32_t scan, int *handles, int max);

/* Action profiles. */
int tr_member_add(tr_switch *s, uint32_t profile, const tr_target *action);
int tr_member_modify(tr_switch *s, uint32_t profile, int handle,
                     const tr_target *action);
int tr_member_delete(tr_switch *s, uint32_t profile, int handle);
/* drawn: each packet's member is, and not chosen by the hash. first: an action
 * that comes before the member's, and without one in an empty group; or NULL. */
int tr_group_add(tr_switch *s, uint32_t profile, int drawn,
                 const tr_target *first);
/* The members among which the hash chooses: members[hash % n]. */
int tr_group_set(tr_switch *s, uint32_t profile, int handle,
                 const int *members, uint32_t n);
int tr_group_delete(tr_switch *s, uint32_t profile, int handle);

/* Externs. Calls for n cells hold the lock for all of them: packets wait. */
int tr_counter_read(tr_switch *s, uint32_t counter, uint64_t first,
                    uint64_t n, uint64_t *bytes_packets);
int tr_counter_write(tr_switch *s, uint32_t counter, uint64_t first,
                     uint64_t n, const uint64_t *bytes_packets);
/* Cells are limbs, least significant first, (bits + 63) / 64 a cell. */
int tr_register_read(tr_switch *s, uint32_t reg, uint64_t first, uint64_t n,
                     uint64_t *limbs);
int tr_register_write(tr_switch *s, uint32_t reg, uint64_t first, uint64_t n,
                      const uint64_t *limbs);
/* configured[i]: whether the cell has rates at all */
int tr_meter_read(tr_switch *s, uint32_t meter, uint64_t first, uint64_t n,
                  tr_meter_rates *rates, uint8_t *configured);
/* The same rates for n cells; those that have them already go on as they are.
 * What has been counted stays. */
int tr_meter_write(tr_switch *s, uint32_t meter, uint64_t first, uint64_t n,
                   const tr_meter_rates *rates);
/* What the cells have counted: 2 TR_COLOURS numbers each, bytes and packets of
 * each colour. */
int tr_colours_read(tr_switch *s, uint32_t meter, uint64_t first, uint64_t n,
                    uint64_t *bytes_packets);
int tr_colours_write(tr_switch *s, uint32_t meter, uint64_t first, uint64_t n,
                     const uint64_t *bytes_packets);
/* values and masks: n strings of the set's key length each */
int tr_vset_write(tr_switch *s, uint32_t vset, const uint8_t *values,
                  const uint8_t *masks, uint32_t n);

/* Packet replication. */
int tr_mcast_set(tr_switch *s, uint32_t group, const tr_replica *replicas,
                 uint32_t n);
int tr_mcast_delete(tr_switch *s, uint32_t group);
int tr_clone_set(tr_switch *s, uint32_t session, const tr_replica *replicas,
                 uint32_t n, uint32_t class_of_service, uint32_t truncate);
int tr_clone_delete(tr_switch *s, uint32_t session);

/* The oldest digest record: returns its digest index and fills time and at
 * most max limbs, or TR_ENOENT when there is none. */
int tr_digest_pop(tr_switch *s, uint64_t *time_ps, uint64_t *limbs,
                  uint32_t max);

#endif
