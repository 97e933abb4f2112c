/* Internals of the virtual-time network: nodes, wires (a wire is one direction
 * of a link), windows.
 * SPDX-License-Identifier: Apache-2.0
 *
 * tv.h says what a window is. Its length is the look-ahead: the least time
 * between the sending of any frame and its arrival, over all wires except those
 * from switches to hosts. Wires to hosts need no look-ahead: in a window all
 * switches run before all hosts, so a host receives even the frames that
 * switches send to it within the window. A window also ends before an event
 * that must precede all others of its time (a fault, sample, callback, the end
 * of the run). With a look-ahead of 0, and in stepwise mode, a window is one
 * instant, and is repeated until no event of that instant is left.
 *
 * The order at one instant: control events, then each node by index (switches
 * before hosts): its arrivals by wire index, then its other events. The switch
 * core handles its due events before it handles an arrival. Except for frames
 * from switches to hosts, nodes exchange nothing within a window, so results do
 * not depend on its length.
 */
#ifndef TV_NET_H
#define TV_NET_H

#include "tv.h"
#include "tr_switch.h"
#include "tv_trace.h"

/* Bytes of a cache line; used only to prefetch. */
#define TV_CACHE_LINE 64u

/* What became of a frame that did not arrive. */
enum tv_loss {
    TV_LOSS_CUT,       /* the link went down, or was down */
    TV_LOSS_DROP,      /* a fault that loses a share of frames */
    TV_LOSS_COUNT
};

/* What the log records of a wire: nothing, the packets of the logged flow, or
 * these and all non-IPv4 frames. */
enum tv_logged { TV_LOGGED_NOT, TV_LOGGED_FLOW, TV_LOGGED_NON_IP };

/* The event for which a tap (a Python function) is called. */
enum tv_event { TV_SENT, TV_RECEIVED, TV_LOST };

typedef struct tv_node tv_node;
typedef struct tv_capture tv_capture;
typedef struct tv_captured tv_captured;
typedef struct tv_watch tv_watch;
typedef struct tv_sampler tv_sampler;
typedef struct tv_ranks tv_ranks;
typedef struct tv_log tv_log;
typedef struct tv_recorder tv_recorder;

/* Counts of frames, and of their bytes of virtual payload (which is not
 * stored). */
typedef struct tv_count {
    uint64_t frames, virt;
} tv_count;

/* Counts of data frames that no host receives: frames with their payload, and
 * trimmed frames, whose payload a switch has cut off. */
typedef struct tv_kinds {
    uint64_t data, trimmed;
} tv_kinds;

/* ---- matching frames for faults and filters (tv_match.c) ---- */

/* Frames of the project's local EtherType match by their subtype, UDP datagrams
 * by their destination port, all others by `other_types`.
 * Headers of the subtypes in tv_formats.skipped are skipped. */
typedef struct tv_match {
    uint64_t subtypes;        /* a bit is set for each subtype below 64 that
                               * matches */
    uint32_t udp_port;        /* IPv4/UDP to this port matches; 0: none */
    uint8_t other_types;      /* frames of other EtherTypes match */
} tv_match;

/* The format of the header (shim) after a subtype: its length is `bytes`, plus
 * `step` times the low four bits of the byte at `count_at`; the EtherType of
 * the next header is at `next_at`. bytes 0: no header of interest follows.
 * Offsets count from the byte after the subtype. */
typedef struct tv_shim {
    uint8_t bytes, count_at, step, next_at;
} tv_shim;

#define TV_SHIMS 16u

/* Where packets with this UDP destination port (0: unused) have their PSN: its
 * offset in the UDP datagram. */
typedef struct tv_bth {
    uint32_t port, psn_at;
} tv_bth;

#define TV_BTHS 4u

typedef struct tv_formats {
    uint32_t local_type;      /* the EtherType that a subtype follows */
    uint32_t skipped;         /* a bit is set for each subtype that tv_match
                               * skips */
    tv_shim shim[TV_SHIMS];   /* by subtype */
    tv_bth bth[TV_BTHS];
    uint64_t trimmed;         /* a bit is set for each DSCP that switches give
                               * to frames whose payload they cut off */
} tv_formats;

/* Whether a frame matches. */
int tv_match_frame(const tv_formats *f, const tv_match *m,
                   const uint8_t *data, uint32_t len);
/* The IPv4 header of a frame after Ethernet, VLAN tags and shims; NULL if there
 * is none or it is incomplete. */
const uint8_t *tv_match_ipv4(const tv_formats *f, const uint8_t *data,
                             uint32_t len);
/* The 3 bytes of the PSN of an IPv4 packet of len bytes; NULL: it has none. */
const uint8_t *tv_match_psn(const tv_formats *f, const uint8_t *ip,
                            uint32_t len);
/* Counts a frame if it is a data frame. */
void tv_kinds_add(tv_kinds *k, const tv_formats *f, const uint8_t *data,
                  uint32_t len, uint32_t virt);

/* ---- wires (tv_wire.c) ---- */

/* A fault that loses a share of the frames that match; each fault has a
 * separate random number generator. */
typedef struct tv_drop {
    struct tv_drop *next;
    uint64_t threshold;       /* a frame is lost if its random number is below
                               * this */
    uint8_t all;              /* 1: every matching frame is lost */
    uint64_t random;          /* state of SplitMix64 */
    uint64_t from_ps, until_ps;
    tv_match match;
    uint8_t only_data;        /* of the frames that match only data is lost */
    PyObject *test;           /* Python function that decides what matches;
                               * NULL: `match` decides */
} tv_drop;

struct tv_wire {
    /* frames under way: a ring of bytes, each frame contiguous */
    uint64_t *next_ps;        /* time of the first arrival: the element of the
                               * target node's in_next */
    uint8_t *ring;
    uint32_t cap, head, tail; /* size; offsets of first frame, of free space */
    uint32_t wrap;            /* end of the upper part when tail < head */
    uint32_t count;           /* frames under way */
    uint8_t wrapped;          /* frames lie in [head, wrap) and [0, tail) */
    uint8_t up;
    uint8_t inspects_arrivals; /* 1: each arrival is checked for faults, and
                                * reported to taps, captures and the log */
    uint8_t inspects_sends;   /* 1: sent frames are reported to tap and log */
    uint8_t logged;           /* enum tv_logged */
    uint8_t downward;         /* from a switch to a host, which runs later */
    uint8_t absent;           /* the target node belongs to another rank */
    uint32_t cuts;            /* how often the link went down */
    uint64_t last_ps;         /* when the last frame sent arrives */
    tv_net *net;
    tv_mix mix;               /* the trace hash (tv_trace.h) */
    tv_count sent, received, lost[TV_LOSS_COUNT];
    tv_kinds lost_data;       /* data frames that were lost */
    uint32_t index, target;   /* index of the wire; of the node where it ends */
    uint32_t source, source_port, target_port;
    uint64_t rate_bps, delay_ps;
    tv_drop *drops;           /* faults that lose frames */
    PyObject *tap;            /* called for each event; NULL: none */
    PyObject *tap_frame;      /* the frame of its last call */
    tv_captured *captures;
};

/* The exception NetworkError. */
extern PyObject *tv_error_class;

tv_wire *tv_wire_new(tv_net *net);
/* Appends a frame that another rank has sent; `cuts`: the wire's count of cuts
 * when the frame was sent. 0, -1. */
int tv_wire_join(tv_wire *w, const tc_frame *f, uint32_t cuts);
void tv_wire_free(tv_wire *w);
/* Takes a wire down: the frames on it are lost. */
void tv_wire_down(tv_wire *w);
/* Loads the next frame into the cache ahead of its use. */
void tv_wire_prefetch(const tv_wire *w);
/* Adds the wire's frames under way to *under_way, and the data frames among
 * them to *of_data; frames that will be lost are included. */
void tv_wire_flight(const tv_wire *w, tv_count *under_way,
                    tv_kinds *of_data);
/* Picoseconds to send bytes at a rate, rounded down; 0 if the rate is 0. */
uint64_t tv_serialise_ps(uint64_t bytes, uint64_t rate_bps);
void tv_drop_free(tv_drop *d);
/* 1: the frame is lost; 0: it is not; -1: exception. */
int tv_drop_takes(const tv_wire *w, tv_drop *d, uint64_t now_ps,
                  const uint8_t *data, uint32_t len, uint32_t virt);
uint64_t tv_random(uint64_t *state);

/* ---- nodes (tv_node.c) ---- */

/* A fault: a switch discards the packets between pairs of addresses. */
typedef struct tv_blackhole {
    struct tv_blackhole *next;
    uint64_t from_ps, until_ps;
    uint64_t *pairs;          /* hash table of src << 32 | dst, with open
                               * addressing */
    uint8_t *used;
    uint32_t mask;            /* number of slots - 1 */
} tv_blackhole;

/* A frame for the CPU port. */
typedef struct tv_cpu_frame {
    struct tv_cpu_frame *next;
    uint32_t len;
    uint8_t data[];
} tv_cpu_frame;

/* The next arrival on an in-wire, within the current window. */
typedef struct tv_head {
    uint64_t time_ps;
    uint32_t in;              /* index into tv_node.in */
} tv_head;

struct tv_node {
    tv_net *net;
    char *name;
    uint32_t index;
    uint32_t n_in;
    uint64_t *in_next;        /* arrival of the first frame of each in-wire */
    tv_wire **in;             /* wires to this node, by wire index */
    tv_head *heads;           /* a heap, used while the node runs */
    /* a switch */
    tr_switch *core;          /* NULL: a host */
    uint64_t core_next_ps;
    tv_wire **out;            /* wire at each of TR_MAX_PORTS ports, or NULL */
    uint32_t cpu_port;        /* UINT32_MAX: none */
    tv_count entered;         /* handed to the core, packet-outs included */
    tv_count unwired;         /* sent to ports without a wire */
    tv_count to_cpu;          /* sent to the CPU port (packet-ins) */
    tv_count packet_outs;
    tv_count swallowed;       /* discarded by blackholes */
    tv_kinds dropped;         /* data frames that the switch dropped */
    tv_kinds swallowed_data;  /* data frames that blackholes discarded */
    tv_cpu_frame *cpu_first, *cpu_last;
    uint32_t cpu_waiting;
    tv_blackhole *blackholes;
    /* a host */
    tv_host *host;
    tv_wire *host_out;
    uint8_t attached;         /* 1: it has a NIC */
    uint32_t rank;            /* a node of another rank has no other state */
};

/* Most frames queued for readers of the CPU port; then the oldest is
 * dropped. */
#define TV_CPU_WAITING 65536u

tv_node *tv_node_new(tv_net *net, const char *name);
void tv_node_free(tv_node *n);
int tv_node_add_in(tv_node *n, tv_wire *w);
/* Handles all events before end_ps; 0, -1 with an exception. */
int tv_node_run(tv_node *n, uint64_t end_ps);
/* Puts frames that the core sent on wires, and updates the time of the core's
 * next event; 0, -1. */
int tv_node_settle(tv_node *n, uint64_t now_ps);
/* Injects a frame at a port that has no wire; 0, -1. */
int tv_node_inject(tv_node *n, uint32_t port, const uint8_t *data,
                   uint32_t len, uint64_t now_ps);
uint64_t tv_node_next(const tv_node *n);
/* The callbacks tr_lost_fn of a switch's core, called with the node. */
void tv_node_lost(void *node, uint64_t now_ps, const tr_lost *frame);
void tv_node_recirculated(void *node, uint64_t now_ps, const tr_lost *frame);
/* Whether a blackhole discards a frame that enters a switch. */
int tv_blackhole_takes(const tv_node *n, const tc_frame *f);
void tv_blackhole_free(tv_blackhole *h);
int tv_blackhole_add(tv_node *n, const uint64_t *pairs, uint32_t count,
                     uint64_t from_ps, uint64_t until_ps);

/* ---- the network (tv_net.c) ---- */

/* Enlarges the array at *(void **)array to `bytes` bytes, which it may move; on
 * failure it remains valid. 0, -1. */
int tv_resize(void *array, size_t bytes);

#define TV_BLOCK 64u

/* Times of the next events of all nodes, and the least of each block of 64. */
typedef struct tv_schedule {
    uint64_t *next;
    uint64_t *least;          /* by block; a lower bound if stale[block] */
    uint8_t *stale;
    uint32_t n, blocks, cap;
} tv_schedule;

/* Why tv_net_run has returned. */
enum tv_stop {
    TV_STOP_REST,      /* at rest: no frame is under way, every NIC is idle */
    TV_STOP_LIMIT,     /* all events before the limit are handled */
    TV_STOP_MARK,      /* the given number of events was handled */
    TV_STOP_ERROR      /* an exception is set */
};

struct tv_net {
    tv_schedule schedule;
    tv_node **nodes;
    tv_wire **wires;
    uint32_t n_nodes, n_wires;
    uint32_t last_busy;       /* host that was busy at the last check */
    uint32_t rounds;          /* windows at the current instant */
    uint8_t stepwise;         /* the user requested windows of one instant */
    uint8_t running, closed;
    uint32_t taps;            /* wires with taps; any tap implies stepwise */
    uint64_t under_way;       /* frames on wires */
    uint32_t awake;           /* switches whose core has a next event */
    uint64_t now_ps;          /* start of the window while one runs */
    uint64_t last_ps;         /* time of the last event with a frame */
    uint64_t events;          /* number of events handled */
    uint64_t seen;            /* number of the next tv_sight (an arrival of a
                               * watched flow's packet) */
    uint64_t limit_ps;        /* the run ends before it */
    uint64_t least_arrival_ps; /* earliest arrival that is allowed for a frame
                                * sent now */
    tv_formats formats;
    tv_capture *captures;
    tv_watch *watches;
    tv_sampler *sampler;
    tv_log *log;
    tv_recorder *recorder;
    tv_ranks *ranks;          /* NULL: there is a single rank */
};

int tv_net_add_node(tv_net *net, tv_node *n);
int tv_net_add_wire(tv_net *net, tv_wire *w);
/* Runs up to (not including) limit_ps, or until at rest, or until `mark`
 * events have been handled since the start. A tap or NIC may lower
 * net->limit_ps meanwhile. */
enum tv_stop tv_net_run(tv_net *net, uint64_t limit_ps, int stop_at_rest,
                        uint64_t mark);
/* 1: no frame is under way and every NIC is idle; 0: not so; -1: exception. */
int tv_net_at_rest(tv_net *net);
void tv_net_clear(tv_net *net);
/* Makes time_ps the time of a node's next event, unless an earlier event is
 * scheduled. */
void tv_schedule_lower(tv_schedule *s, uint32_t node, uint64_t time_ps);
/* Sets the exception NetworkError; returns -1. */
int tv_net_error(const char *format, ...);

/* ---- ranks (tv_ranks.c) ---- */

/* A rank is a process that runs a part of the network. In a period no frame
 * from another rank can arrive; before each period all ranks meet (tv_ranks.c).
 * tv_state is the state of one rank before a period; after tv_ranks_meet, of
 * all ranks. */
typedef struct tv_state {
    uint64_t first_ps;        /* earliest event */
    uint64_t ahead_ps;        /* least time from sending a frame to its arrival
                               * over wires between ranks */
    uint64_t last_ps;         /* time of the last event with a frame */
    uint32_t busy;            /* 1: the rank is not at rest */
    uint32_t mark;            /* 1: rank 0 has reached the number of events at
                               * which to stop */
} tv_state;

/* Counts of a rank's message exchanges since the start. */
typedef struct tv_rank_counts {
    uint64_t meetings;        /* exchanges with all other ranks */
    uint64_t frames;          /* frames sent to other ranks */
    uint64_t bytes;           /* bytes of all messages sent, with headers */
} tv_rank_counts;

/* Makes rank `rank` of `count`. The ranks exchange messages by the transport's
 * method exchange(messages) -> messages, both lists of bytes objects by rank.
 * NULL with an exception. */
tv_ranks *tv_ranks_new(PyObject *transport, uint32_t rank, uint32_t count);
void tv_ranks_free(tv_ranks *r);
/* The index of this rank; 0 if r is NULL. */
uint32_t tv_ranks_own(const tv_ranks *r);
tv_rank_counts tv_ranks_counts(const tv_ranks *r);
int tv_ranks_traverse(const tv_ranks *r, visitproc visit, void *arg);
/* Sets the end of the period: no frame to another rank may arrive before. */
void tv_ranks_period(tv_ranks *r, uint64_t period_ps);
/* Stores a frame until the next meeting; 0, -1. */
int tv_ranks_send(tv_wire *w, uint64_t arrival_ps, uint32_t cuts,
                  const uint8_t *head, uint32_t head_len, const uint8_t *tail,
                  uint32_t tail_len, uint32_t virt);
/* A meeting: all ranks exchange frames, captures and states; 0, -1. */
int tv_ranks_meet(tv_net *net, tv_state *s);

/* ---- observation ---- */

/* tv_tap.c: calls a Python tap; 0, -1. */
int tv_tap_call(tv_wire *w, enum tv_event event, const tc_frame *f);
/* A record of the log: an event of a frame on a wire. `what` is TV_SENT,
 * TV_RECEIVED, or TV_LOST + the tv_loss. The frame's bytes follow, padded to a
 * multiple of 8, except after TV_SENT: a later record of the wire has them. */
typedef struct tv_logged_frame {
    uint64_t time_ps;
    uint32_t wire, what, len, virt;
    uint32_t ip_at;           /* offset of IPv4; UINT32_MAX: none */
    uint32_t bytes;           /* number of bytes that follow */
} tv_logged_frame;
/* The log of packets between two IPv4 addresses, in both directions. */
struct tv_log {
    uint32_t a, b;            /* the addresses */
    uint8_t *records;
    size_t n, cap;            /* bytes used and allocated */
};
/* Adds an event, if the frame belongs to the log; 0, -1. */
int tv_log_add(const tv_wire *w, uint32_t what, const tc_frame *f);
void tv_log_free(tv_log *l);
/* tv_record.c: the record of a run, for replays. */
enum tv_recorded {
    TV_ARRIVED,               /* at the end of a wire */
    TV_FAILED,                /* lost on a wire, by a fault */
    TV_DROPPED,               /* in a switch */
    TV_RECIRCULATED           /* in a switch */
};
enum tv_protocol { TV_OTHER, TV_ROCE, TV_IP, TV_LOCAL, TV_MAC_CONTROL };
enum { TV_IS_TRIMMED = 1, TV_IS_RETRANSMITTED = 2, TV_IS_MARKED = 4 };
typedef struct tv_entry {
    uint64_t time_ps;
    uint32_t place;           /* index of the wire, or of the switch */
    uint32_t src, dst;        /* IPv4 addresses */
    uint32_t qpn, psn;        /* of the BTH */
    uint32_t bytes;
    uint8_t what, protocol;   /* tv_recorded, tv_protocol */
    uint8_t type;             /* opcode of the BTH; subtype; the priorities
                               * that a PFC frame pauses */
    uint8_t flags;            /* TV_IS_* */
    uint32_t unused;
} tv_entry;
/* The wire on which a flow's data last arrived at a node. */
typedef struct tv_hop {
    uint32_t src, dst, qpn;   /* the flow; src 0: unused */
    uint32_t node, wire;
} tv_hop;
struct tv_recorder {
    uint8_t packets;          /* record every arrival; else only PFC frames,
                               * trimmed packets, and a flow's first packet on
                               * another wire */
    tv_hop *hops;             /* hash table with open addressing */
    size_t n_hops, hop_cap;   /* a power of 2 */
    uint8_t full;             /* entries were left out: there were too many, or
                               * there was no memory */
    tv_entry *entries;
    size_t n, cap;
};
void tv_record_add(tv_net *net, enum tv_recorded what, uint32_t place,
                   const tc_frame *f);
void tv_record_free(tv_recorder *r);
/* tv_capture.c: writes pcapng files of frames that arrive on wires. A failed
 * write raises NetworkError (NULL, -1). Only the first of several ranks writes.
 */
tv_capture *tv_capture_new(tv_net *net, const char *path);
int tv_capture_wire(tv_capture *c, tv_wire *w, const char *name);
int tv_capture_add(const tv_wire *w, int lost, const tc_frame *f);
/* Writes the frames that have arrived before the current window, if there are
 * many or `all` is set; 0, -1. */
int tv_capture_flush(tv_net *net, int all);
/* Closes the files; 0, -1. */
int tv_capture_close(tv_net *net);
/* The size in bytes of the frames gathered for the first rank's files;
 * tv_capture_take moves these frames to `to`. */
size_t tv_capture_size(const tv_net *net);
void tv_capture_take(tv_net *net, uint8_t *to);
/* Adds the frames that another rank has gathered (by tv_capture_take) to the
 * first rank's captures; 0, -1. */
int tv_capture_join(tv_net *net, const uint8_t *from, size_t size);
void tv_captured_free(tv_captured *c);
/* tv_watch.c: records the arrivals of a flow's packets at switches. */
typedef struct tv_sight {
    uint64_t time_ps, number; /* time; number in the order of recording */
    uint32_t node, port, psn; /* psn UINT32_MAX: none */
} tv_sight;
struct tv_watch {
    struct tv_watch *next;
    uint32_t src, dst;
    tv_sight *sights;
    size_t n, cap;
};
int tv_watch_arrival(const tv_node *n, const tv_wire *w, const tc_frame *f);
void tv_watch_free(tv_watch *w);
/* tv_sample.c: takes periodic samples of ports. */
struct tv_sampler {
    uint64_t period_ps, next_ps;
    tv_wire **wires;          /* wires that begin at the sampled ports */
    uint64_t *tx_before;      /* tx_bytes of each port at the last sample */
    uint32_t n;
    size_t rows, cap;
    uint64_t *time_ps;        /* time of each row; a row is one sample */
    /* by row, then port: */
    uint32_t *queue_bytes, *tx_bytes;
    uint8_t *paused;
};
/* When the next sample is due, or TC_NEVER; tv_sample_take takes it: 0, -1. */
uint64_t tv_sample_next(const tv_net *net);
int tv_sample_take(tv_net *net);
void tv_sample_free(tv_sampler *s);

#endif
