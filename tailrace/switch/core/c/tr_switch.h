/* Public interface of the switch core: a v1model switch as a passive object.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The core does no I/O, starts no thread, allocates nothing per packet, and
 * reads no clock except the clock of tr_set_clock. The caller passes frames and
 * times to the core, and takes sent frames from it, each with the time at which
 * its last bit has left the port. All times are in picoseconds of a monotonic
 * clock, so that the duration of a byte at 400 Gb/s (20 ps) is exact. 64 bits
 * suffice for 213 days.
 *
 * Threads: the caller must have the lock (tr_switch_lock) for data-plane calls
 * (tr_rx, tr_run, tr_pop, tr_release, tr_port_block, tr_port_up ...), usually
 * around a batch; all other calls take the lock themselves.
 *
 * Virtual payload ("virt", "virtual bytes"): payload bytes at the end of a
 * frame that count for its length, but are not stored.
 *
 * Python parses this file, too (cbuild/headers.py): it may have only
 * declarations and #define NAME NUMBER.
 */
#ifndef TR_SWITCH_H
#define TR_SWITCH_H

#include <stdint.h>

#define TR_ABI 6u
#define TR_MAX_PORTS 512u
#define TR_MAX_PRIORITIES 8u
/* Longest frame to be received, recirculated or sent, virtual bytes included:
 * more than any GSO super-frame. A longer frame is dropped and counted. */
#define TR_MAX_FRAME 66000u
#define TR_NEVER 0xffffffffffffffffULL
#define TR_PS_PER_S 1000000000000ULL
#define TR_PS_PER_NS 1000ULL

typedef struct tr_switch tr_switch;
typedef struct tr_program tr_program;

/* Results of control calls; errors are negative. */
enum {
    TR_OK = 0,
    TR_EEXIST = -1,   /* an equal entry exists already */
    TR_ENOENT = -2,   /* no such handle, group or session */
    TR_EFULL = -3,    /* size limit reached */
    TR_ERANGE = -4,   /* index or port out of range */
    TR_EINVAL = -5,   /* invalid argument */
    TR_ENOMEM = -6
};

/* Why a packet was dropped; tr_drop_name() returns the names. */
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
    TR_DROP_MAC_CONTROL,      /* MAC control frame that is not a valid PFC
                               * frame, ignored (not a loss) */
    TR_DROP_PFC_STORM,        /* the queue was paused for too long */
    TR_DROP_COUNT
};

/* PFC thresholds of the bytes received on one port with one priority. */
typedef struct tr_pfc_limits {
    uint64_t xoff_bytes;      /* pause the sender above this many bytes */
    uint64_t xon_bytes;       /* resume the sender at or below this many */
    uint64_t headroom_bytes;  /* accept this many bytes above xoff, then drop */
} tr_pfc_limits;

/* PFC watchdog: detects queues that are paused for too long (tr_watch.c). */
typedef struct tr_pfc_watchdog {
    uint64_t detect_ps;       /* a pause this long is a storm; 0: no watchdog */
    uint64_t restore_ps;      /* a storm ends this long after the last pause */
    uint32_t share_ppm;       /* share of the time that a queue may be paused
                               * without a storm; 1000000: any share, as long
                               * as pauses are interrupted */
    uint32_t ignore;          /* packets in a storm: 0 drops, 1 sends them */
} tr_pfc_watchdog;
#define TR_ALWAYS_PPM 1000000u

/* PFC of one port and all its priorities (RLB §II-A, IEEE 802.1Qbb). */
typedef struct tr_pfc_config {
    uint8_t enabled;          /* a bit is set for each lossless priority; 0: PFC
                               * is off */
    uint16_t quanta;          /* duration of the pauses that this port requests,
                               * in units of 512 bit times */
    tr_pfc_limits limits[TR_MAX_PRIORITIES];
    tr_pfc_watchdog watchdog;
    uint8_t rise;             /* received packets are queued this many
                               * priorities above the priority with which they
                               * were sent */
} tr_pfc_config;

/* The memory that all ports of a switch share (tr_buffer.c). */
typedef struct tr_buffer_config {
    uint64_t bytes;           /* size including the reserves; 0: no limit */
    uint64_t port_bytes;      /* each port has a reserve of this size for lossy
                               * packets */
    /* dynamic thresholds: xoff is at most alpha times the free bytes;
     * alpha_num 0: static thresholds */
    uint32_t alpha_num, alpha_den;
} tr_buffer_config;

typedef struct tr_buffer_state_t {
    uint64_t bytes;           /* size, as configured */
    uint64_t reserved_bytes;  /* headrooms and reserves of ports in use */
    /* occupied bytes of the shared part and of the headrooms: now, and the
     * maximum so far */
    uint64_t shared_bytes, shared_most_bytes;
    uint64_t headroom_bytes, headroom_most_bytes;
    uint64_t own_bytes;       /* occupied bytes of the ports' reserves */
    uint64_t held_bytes;      /* all occupied bytes, summed packet by packet;
                               * must equal shared_bytes + headroom_bytes +
                               * own_bytes */
} tr_buffer_state_t;

/* The bytes of a paused queue that were received on one port with one
 * priority. */
typedef struct tr_paused_queue {
    uint32_t port, priority;  /* port and priority of the queue */
    uint32_t from_port;       /* port on which the bytes were received */
    uint32_t from_priority;   /* priority with which the bytes were sent */
    uint64_t bytes;
    uint64_t xon_bytes;       /* the sender is resumed when all queues together
                               * have at most this many bytes of the sender */
    uint32_t pausing;         /* 1: the sender is paused */
} tr_paused_queue;

/* PFC counts of one port and priority. */
typedef struct tr_pfc_stats {
    uint64_t bytes, most_bytes;           /* received here and waiting: now,
                                           * and maximum so far */
    uint64_t headroom_bytes, headroom_most_bytes;  /* of these, in headroom */
    uint64_t xoff_sent, xon_sent;         /* repeated pauses included */
    uint64_t received;                    /* PFC frames for this priority */
    uint64_t pausing_ps;                  /* time the sender was paused */
    uint64_t paused_ps;                   /* total time the queue was paused */
    uint64_t times_paused;                /* number of pauses of the queue */
    uint64_t storms, storming;            /* storms so far; 1: in a storm now */
    uint64_t storm_dropped, storm_ps;     /* packets dropped in storms; total
                                           * duration of the storms */
} tr_pfc_stats;

typedef struct tr_switch_config {
    uint32_t drop_port;       /* egress_spec value that means drop */
    uint32_t priorities;      /* queues of a port, 1..TR_MAX_PRIORITIES */
    uint64_t tick_ps;         /* unit of the P4 timestamps in ps */
    uint32_t queue_packets;   /* default queue depth in packets, 0: no limit */
    uint64_t queue_bytes;     /* default queue depth in bytes, 0: no limit */
    uint64_t port_rate_bps;   /* default port rate, 0: infinitely fast */
    uint64_t port_delay_ps;   /* default delay after serialisation */
    uint64_t recirc_rate_bps; /* rate of the recirculation port, 0: infinite */
    uint64_t seed;            /* seed of the extern function random */
    uint64_t packet_bytes;    /* bytes of memory for packets; 0: no limit. Only
                               * half of it is available to received packets
                               * and copies, all of it to packets that leave
                               * their queues */
} tr_switch_config;

/* A frame to send. data stays valid until tr_release(slot). */
typedef struct tr_out {
    uint32_t port;
    uint32_t len;             /* number of bytes at data */
    uint32_t virt;            /* virtual payload bytes after these */
    uint32_t origin;          /* id of the received frame that this frame comes
                               * from (tr_origin) */
    uint64_t time_ps;         /* when the last bit leaves; may be later than
                               * now */
    const uint8_t *data;
    void *slot;
} tr_out;

typedef struct tr_port_stats {
    uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes;
    uint64_t dropped;         /* packets dropped at this port's queues */
    uint64_t pfc_sent, pfc_received;
    uint64_t paused_ps;       /* sum of the queues' finite pauses, each counted
                               * in full when it begins */
    uint64_t pfc_ignored;     /* MAC control frames that are not valid PFC */
} tr_port_stats;

/* What became of all frames and of their virtual payload bytes. At any time
 *
 *   rx_frames + made_frames == tx_frames + dropped_frames + held_frames
 *   rx_virt + made_virt == tx_virt + dropped_virt + cut_virt + held_virt
 *
 * Held frames (in the switch) are counted by traversal of the packet lists, all
 * others by counters. */
typedef struct tr_account {
    uint64_t rx_frames;       /* received frames */
    uint64_t made_frames;     /* clones, multicast copies, pause frames */
    uint64_t tx_frames;       /* taken out by tr_pop */
    uint64_t dropped_frames;  /* dropped, for any reason */
    uint64_t held_frames;     /* in queues, re-entry and the output list */
    uint64_t rx_virt, made_virt, tx_virt, dropped_virt;
    uint64_t cut_virt;        /* cut off by truncate */
    uint64_t held_virt;
    uint64_t held_data;       /* held frames with virtual payload that are not
                               * copies */
} tr_account;

/* A frame that a switch drops or recirculates. */
typedef struct tr_lost {
    const uint8_t *data;      /* NULL: the bytes are no longer available */
    uint32_t len, virt;
    uint8_t copy;             /* 1: the frame is a clone or multicast copy */
    uint8_t cut;              /* 1: truncate would have removed its payload */
} tr_lost;

/* State of a port at one time. */
typedef struct tr_port_state_t {
    uint64_t rate_bps, delay_ps;
    uint64_t queue_packets, queue_bytes;  /* in the queues of all priorities */
    uint64_t tx_bytes;
    uint8_t paused;           /* a bit is set for each priority that PFC has
                               * paused */
} tr_port_state_t;

/* What a table entry refers to. Limbs are 64-bit words, the least significant
 * first; each action parameter has as many limbs as its width needs. */
typedef struct tr_target {
    uint32_t kind;            /* TR_TARGET_* */
    uint32_t id;              /* action index, member handle, group handle */
    const uint64_t *data;     /* action data as limbs */
    uint32_t limbs;
} tr_target;
enum { TR_TARGET_ACTION = 0, TR_TARGET_MEMBER = 1, TR_TARGET_GROUP = 2 };

/* Rates of a meter in units/s and bursts in units (bytes or packets). eburst 0:
 * a two-rate meter (RFC 2698); with equal rates and bursts it marks no packet
 * yellow. Else a single-rate meter (RFC 2697), with pir = cir, pburst = cburst.
 */
typedef struct tr_meter_rates {
    uint64_t cir, cburst, pir, pburst, eburst;
} tr_meter_rates;
enum { TR_COLOURS = 3 };      /* green, yellow, red */

/* A copy of a packet: egress port, and the copy's egress_rid. */
typedef struct tr_replica {
    uint32_t port;
    uint32_t instance;
} tr_replica;

/* Called with a line of log text. level: 1 info, 2 warning, 3 error */
typedef void (*tr_log_fn)(void *arg, int level, const char *text);
/* Called with each frame that is dropped, or recirculated, and the time of the
 * switch's last event. */
typedef void (*tr_lost_fn)(void *arg, uint64_t now_ps, const tr_lost *frame);
/* Returns the current time in ps. */
typedef uint64_t (*tr_clock_fn)(void *arg);

/* Creates a switch; NULL when out of memory, the settings are invalid or the
 * program was made for another TR_ABI. prog NULL: every packet is dropped. */
tr_switch *tr_switch_new(const tr_program *prog, const tr_switch_config *cfg);
void tr_switch_free(tr_switch *s);
/* Replaces the program; clears tables, externs and replication, and drops all
 * packets in flight. Ports keep their settings. prog must outlive the switch.
 */
int tr_switch_load(tr_switch *s, const tr_program *prog);
/* Exchanges the programs and states of s and other; other must not have
 * received a packet. Drops the packets in flight; ports keep their settings.
 * Cannot fail. Other threads may use s meanwhile, but not other. */
void tr_switch_exchange(tr_switch *s, tr_switch *other);
/* Advances the time for entries and meters created from now on. */
void tr_switch_clock(tr_switch *s, uint64_t now_ps);
void tr_switch_lock(tr_switch *s);
void tr_switch_unlock(tr_switch *s);
/* Whether other threads wait for the lock; the I/O loop then yields to them. */
int tr_switch_contended(const tr_switch *s);

/* Data plane (the caller has the lock). */

/* Receives a frame of len bytes and virt virtual payload bytes on a port; its
 * last bit arrives at now_ps. Returns TR_OK, TR_ERANGE or TR_ENOMEM. */
int tr_rx(tr_switch *s, uint32_t port, const uint8_t *data, uint32_t len,
          uint64_t now_ps);
int tr_rx_virtual(tr_switch *s, uint32_t port, const uint8_t *data,
                  uint32_t len, uint32_t virt, uint64_t now_ps);
/* Sets the id of frames received from now on; all frames that result from a
 * received frame have its id (tr_out.origin). Initially 0: no id. */
void tr_origin(tr_switch *s, uint32_t origin);
/* Processes all events up to now_ps in the order of time; at equal times first
 * packets that re-enter ingress, then ports by number. Returns the time of the
 * next event, or TR_NEVER. A returned time <= now_ps means that tr_run stopped
 * early, because packets loop without time passing or many sent frames wait for
 * tr_pop. */
uint64_t tr_run(tr_switch *s, uint64_t now_ps);
/* Time of the next event; if there is work now, not later than the switch's
 * time. */
uint64_t tr_next(const tr_switch *s);
/* State of a port at at_ps; the switch must have run up to then. TR_ERANGE for
 * an invalid port number; zeros for a port that was never used. */
int tr_port_state(const tr_switch *s, uint32_t port, uint64_t at_ps,
                  tr_port_state_t *out);
/* Takes the next sent frame out of the switch: 1, or 0 if there is none. */
int tr_pop(tr_switch *s, tr_out *out);
void tr_release(tr_switch *s, void *slot);
/* Sets whether a port sends nothing, so that packets stay in its queues. */
void tr_port_block(tr_switch *s, uint32_t port, int blocked);
void tr_port_up(tr_switch *s, uint32_t port, int up);
int tr_digest_pending(const tr_switch *s);

/* Ports and queues. */
int tr_port_rate(tr_switch *s, uint32_t port, uint64_t bps);
int tr_port_delay(tr_switch *s, uint32_t port, uint64_t delay_ps);
/* Sets PFC of a port; port TR_MAX_PORTS: of all ports, even unused ports. */
int tr_port_pfc(tr_switch *s, uint32_t port, const tr_pfc_config *cfg);
/* Durations count up to at_ps, or the switch's time if that is later. */
int tr_pfc_read(tr_switch *s, uint32_t port, uint32_t prio, uint64_t at_ps,
                tr_pfc_stats *out);
/* Lists the queues that are paused at at_ps, by port and priority, with an item
 * for each ingress port and priority of their packets. Writes at most `most`
 * items; *count is the number of all items. */
int tr_paused_queues(tr_switch *s, uint64_t at_ps, tr_paused_queue *out,
                     uint32_t most, uint32_t *count);
/* Sets the digests of the program that report the begin and end of PFC storms,
 * with port and priority as fields. Negative: no report, as after loading a
 * program. */
int tr_pfc_storm_digests(tr_switch *s, int begin, int end);
int tr_buffer_set(tr_switch *s, const tr_buffer_config *cfg);
void tr_buffer_state(tr_switch *s, tr_buffer_state_t *out);
/* Sets the depth of a queue in packets and bytes; prio TR_MAX_PRIORITIES: of
 * all queues of the port. */
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
/* Makes the switch call fn for each log_msg and for errors. */
void tr_set_log(tr_switch *s, tr_log_fn fn, void *arg);
/* Sets the clock for the packets' timestamps (ingress, enqueue, egress). The
 * times that the caller passes must be from the same clock, but may be equal
 * for a batch of packets. NULL: timestamps are the time of the switch's last
 * event. */
void tr_set_clock(tr_switch *s, tr_clock_fn fn, void *arg);
/* Makes the switch call fn for every frame that it drops; NULL: no calls. */
void tr_set_lost(tr_switch *s, tr_lost_fn fn, void *arg);
/* The same for every frame that it recirculates. */
void tr_set_recirculated(tr_switch *s, tr_lost_fn fn, void *arg);

/* Tables. Handles are >= 0; handle -1 is the default entry. An insertion uses
 * prefix_bits only in LPM tables, priority only in ternary and range tables. */
int tr_table_insert(tr_switch *s, uint32_t table, const uint8_t *key,
                    const uint8_t *mask, uint32_t prefix_bits,
                    int32_t priority, const tr_target *target,
                    uint64_t timeout_ps, uint64_t now_ps);
int tr_table_modify(tr_switch *s, uint32_t table, int handle,
                    const tr_target *target, uint64_t timeout_ps);
int tr_table_delete(tr_switch *s, uint32_t table, int handle);
/* target NULL: no default action, a miss does nothing. */
int tr_table_default(tr_switch *s, uint32_t table, const tr_target *target);
int tr_table_count(tr_switch *s, uint32_t table);
/* Sets the maximum number of entries, overriding that of the program. */
int tr_table_resize(tr_switch *s, uint32_t table, uint32_t max_size);
int tr_entry_counter(tr_switch *s, uint32_t table, int handle,
                     uint64_t *bytes, uint64_t *packets);
int tr_entry_counter_set(tr_switch *s, uint32_t table, int handle,
                         uint64_t bytes, uint64_t packets);
/* Configures the direct meter of an entry; handle -1 is the default entry.
 * rates NULL: every packet is green. TR_EINVAL: the table has no meters. */
int tr_entry_meter(tr_switch *s, uint32_t table, int handle,
                   const tr_meter_rates *rates);
/* The counts of an entry's direct meter: bytes and packets of each colour. */
int tr_entry_colours(tr_switch *s, uint32_t table, int handle,
                     uint64_t *bytes_packets);
int tr_entry_colours_set(tr_switch *s, uint32_t table, int handle,
                         const uint64_t *bytes_packets);
int tr_entry_last_hit(tr_switch *s, uint32_t table, int handle,
                      uint64_t *time_ps);
/* Checks at most `scan` handles from *next on, and sets *next to the handle to
 * continue with (0 after the last). Lists at most max entries that have had no
 * hit during their idle timeout, nor been listed in that time; returns their
 * number. */
int tr_table_expired(tr_switch *s, uint32_t table, uint64_t now_ps,
                     uint32_t *next, uint32_t scan, int *handles, int max);

/* Action profiles. */
int tr_member_add(tr_switch *s, uint32_t profile, const tr_target *action);
int tr_member_modify(tr_switch *s, uint32_t profile, int handle,
                     const tr_target *action);
int tr_member_delete(tr_switch *s, uint32_t profile, int handle);
/* drawn: a random draw selects the member for each packet, not the hash. first:
 * an action that runs before the member's action, and also if the group is
 * empty; or NULL. */
int tr_group_add(tr_switch *s, uint32_t profile, int drawn,
                 const tr_target *first);
/* Sets the members; the hash selects members[hash % n]. */
int tr_group_set(tr_switch *s, uint32_t profile, int handle,
                 const int *members, uint32_t n);
int tr_group_delete(tr_switch *s, uint32_t profile, int handle);

/* Externs. While a call reads or writes n cells it has the lock: no packet is
 * processed. */
int tr_counter_read(tr_switch *s, uint32_t counter, uint64_t first,
                    uint64_t n, uint64_t *bytes_packets);
int tr_counter_write(tr_switch *s, uint32_t counter, uint64_t first,
                     uint64_t n, const uint64_t *bytes_packets);
/* A cell has (bits + 63) / 64 limbs, the least significant first. */
int tr_register_read(tr_switch *s, uint32_t reg, uint64_t first, uint64_t n,
                     uint64_t *limbs);
int tr_register_write(tr_switch *s, uint32_t reg, uint64_t first, uint64_t n,
                      const uint64_t *limbs);
/* Reads the rates of n cells; configured[i]: whether cell first + i has rates.
 */
int tr_meter_read(tr_switch *s, uint32_t meter, uint64_t first, uint64_t n,
                  tr_meter_rates *rates, uint8_t *configured);
/* Sets the rates of n cells; NULL: none. A cell that has these rates already
 * keeps its token buckets. All cells keep their counts. */
int tr_meter_write(tr_switch *s, uint32_t meter, uint64_t first, uint64_t n,
                   const tr_meter_rates *rates);
/* The counts of n cells, 2 * TR_COLOURS each: bytes and packets of each
 * colour. */
int tr_colours_read(tr_switch *s, uint32_t meter, uint64_t first, uint64_t n,
                    uint64_t *bytes_packets);
int tr_colours_write(tr_switch *s, uint32_t meter, uint64_t first, uint64_t n,
                     const uint64_t *bytes_packets);
/* Replaces a value set. values and masks are n byte strings each, of the length
 * of the set's key. */
int tr_vset_write(tr_switch *s, uint32_t vset, const uint8_t *values,
                  const uint8_t *masks, uint32_t n);

/* Packet replication. */
int tr_mcast_set(tr_switch *s, uint32_t group, const tr_replica *replicas,
                 uint32_t n);
int tr_mcast_delete(tr_switch *s, uint32_t group);
/* Copies get priority class_of_service if it is not 0, and are truncated to
 * `truncate` bytes if it is not 0. */
int tr_clone_set(tr_switch *s, uint32_t session, const tr_replica *replicas,
                 uint32_t n, uint32_t class_of_service, uint32_t truncate);
int tr_clone_delete(tr_switch *s, uint32_t session);

/* Removes the oldest digest message: returns the digest's index, writes its
 * time and at most max limbs of its fields. TR_ENOENT: there is none. */
int tr_digest_pop(tr_switch *s, uint64_t *time_ps, uint64_t *limbs,
                  uint32_t max);

#endif
