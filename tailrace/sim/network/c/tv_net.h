/* Inside of the virtual-time network: wires, nodes, windows.
 * SPDX-License-Identifier: Apache-2.0
 *
 * tv.h says what a window is. Its length is the look-ahead: the least time
 * between the sending of any frame and its arrival, over all wires but those
 * from switches to hosts. For in a window all switches run before all hosts, so
 * hosts see what switches send them within it. Windows end early at whatever
 * must happen before anything else of its time (faults, samples, callbacks, the
 * end of the run). With a look-ahead of 0, and in stepwise mode, a window is one
 * instant, and windows of an instant repeat until nothing is left to do then.
 *
 * The order at one instant: control, then each node in the order of numbers
 * (switches before hosts): its arrivals by number of the wire, then its own
 * work. The core does its own work that is due before it looks at an arrival.
 * Nothing else is exchanged within a window, so no result depends on windows.
 */
#ifndef TV_NET_H
#define TV_NET_H

#include "tv.h"
#include "tr_switch.h"
#include "tv_trace.h"

/* For prefetching only. */
#define TV_CACHE_LINE 64u

/* What became of a frame that did not arrive. */
enum tv_loss {
    TV_LOSS_CUT,       /* the link went down, or was down */
    TV_LOSS_DROP,      /* a fault that takes a share of frames */
    TV_LOSS_COUNT
};

/* Whether a wire is in the log: with the packets that the log is about, or with
 * all that is no IPv4 packet as well. */
enum tv_logged { TV_LOGGED_NOT, TV_LOGGED_FLOW, TV_LOGGED_NON_IP };

/* What a tap is told. */
enum tv_event { TV_SENT, TV_RECEIVED, TV_LOST };

typedef struct tv_node tv_node;
typedef struct tv_capture tv_capture;
typedef struct tv_captured tv_captured;
typedef struct tv_watch tv_watch;
typedef struct tv_sampler tv_sampler;
typedef struct tv_ranks tv_ranks;
typedef struct tv_log tv_log;

/* Frames, and payload bytes that are a length only. */
typedef struct tv_count {
    uint64_t frames, virt;
} tv_count;

/* Of frames that nobody gets those that carry data: whole ones, and those
 * whose payload a switch has cut off. */
typedef struct tv_kinds {
    uint64_t data, trimmed;
} tv_kinds;

/* ---- frames that a fault or a filter is about (tv_match.c) ---- */

/* Frames of the local EtherType match by their subtype, UDP datagrams to one
 * port, all others alike.
 * Headers that are set aside are looked behind. */
typedef struct tv_match {
    uint64_t subtypes;        /* bit per subtype below 64 that matches */
    uint32_t udp_port;        /* IPv4/UDP to this port matches; 0: none */
    uint8_t other_types;      /* frames of other EtherTypes match */
} tv_match;

/* Where the next EtherType of a header behind a subtype lies: the header has
 * `bytes` bytes and `step` more for each of the number in the low four bits of
 * the byte at `count_at`; the EtherType is at `next_at`. bytes 0: nothing of
 * interest follows. Offsets count from the byte after the subtype. */
typedef struct tv_shim {
    uint8_t bytes, count_at, step, next_at;
} tv_shim;

#define TV_SHIMS 16u

/* Packets with sequence numbers: by UDP destination port (0: none), where the
 * number and the flow's own source port are, counted from the UDP header. */
typedef struct tv_bth {
    uint32_t port, psn_at, sport_at;
} tv_bth;

#define TV_BTHS 4u

typedef struct tv_formats {
    uint32_t local_type;      /* the EtherType that a subtype follows */
    uint32_t aside;           /* bit per subtype that tv_match looks behind */
    tv_shim shim[TV_SHIMS];   /* by subtype */
    tv_bth bth[TV_BTHS];
    uint64_t trimmed;         /* bit per DSCP of frames without payload */
} tv_formats;

int tv_match_frame(const tv_formats *f, const tv_match *m,
                   const uint8_t *data, uint32_t len);
/* The IPv4 header of a frame behind Ethernet, VLAN tags and shims; NULL when
 * there is none that is complete. */
const uint8_t *tv_match_ipv4(const tv_formats *f, const uint8_t *data,
                             uint32_t len);
/* Counts a frame, if it carries data. */
void tv_kinds_add(tv_kinds *k, const tv_formats *f, const uint8_t *data,
                  uint32_t len, uint32_t virt);

/* ---- wires (tv_wire.c) ---- */

/* A fault that loses a share of the frames it is about, by its own numbers. */
typedef struct tv_drop {
    struct tv_drop *next;
    uint64_t threshold;       /* lost when the number drawn is below it */
    uint8_t all;              /* every frame is lost: the share is 1 */
    uint64_t random;          /* state of SplitMix64 */
    uint64_t from_ps, until_ps;
    tv_match match;
    PyObject *test;           /* NULL: `match` decides */
} tv_drop;

struct tv_wire {
    /* under way: a ring of bytes, each frame in one piece */
    uint64_t *next_ps;        /* arrival of the first; in its target's array */
    uint8_t *ring;
    uint32_t cap, head, tail; /* bytes; first frame, first free byte */
    uint32_t wrap;            /* end of the upper part when tail < head */
    uint32_t count;           /* frames under way */
    uint8_t wrapped;          /* frames lie in [head, wrap) and [0, tail) */
    uint8_t up;
    uint8_t looked_at;        /* a tap, capture, log, drop or cut to think of */
    uint8_t reports_sends;    /* a tap or log hears of what is sent */
    uint8_t logged;           /* enum tv_logged */
    uint8_t downward;         /* from a switch to a host, which runs after it */
    uint8_t absent;           /* its target is another rank's */
    uint32_t cuts;            /* how often the link went down */
    uint64_t last_ps;         /* arrival of the last that was sent */
    tv_net *net;
    tv_mix mix;
    tv_count sent, received, lost[TV_LOSS_COUNT];
    tv_kinds gone;            /* of all that is lost */
    uint32_t index, target;   /* number of the wire; of the node it leads to */
    uint32_t source, source_port, target_port;
    uint64_t rate_bps, delay_ps;
    tv_drop *drops;
    PyObject *tap;            /* called for each event; NULL: none */
    PyObject *tap_frame;      /* the frame it was called with last */
    tv_captured *captures;
};

/* The exception NetworkError. */
extern PyObject *tv_error_class;

tv_wire *tv_wire_new(tv_net *net);
/* A frame of another rank is under way, and arrives last on its wire; `cuts`
 * are the wire's when it was sent. 0, -1. */
int tv_wire_join(tv_wire *w, const tc_frame *f, uint32_t cuts);
void tv_wire_free(tv_wire *w);
void tv_wire_down(tv_wire *w);
/* The next frame will be looked at soon. */
void tv_wire_prefetch(const tv_wire *w);
/* Adds the frames under way, whatever will become of them. */
void tv_wire_flight(const tv_wire *w, tv_count *under_way,
                    tv_kinds *of_data);
/* Picoseconds that bytes take at a rate, 0: no time; rounded down. */
uint64_t tv_serialise_ps(uint64_t bytes, uint64_t rate_bps);
void tv_drop_free(tv_drop *d);
/* 1: the frame is lost; 0; -1: exception. */
int tv_drop_takes(const tv_wire *w, tv_drop *d, uint64_t now_ps,
                  const uint8_t *data, uint32_t len);
uint64_t tv_random(uint64_t *state);

/* ---- nodes (tv_node.c) ---- */

/* Pairs of addresses whose frames a switch swallows for a time. */
typedef struct tv_blackhole {
    struct tv_blackhole *next;
    uint64_t from_ps, until_ps;
    uint64_t *pairs;          /* src << 32 | dst, open addressing */
    uint8_t *used;
    uint32_t mask;            /* places - 1 */
} tv_blackhole;

/* A frame for the CPU port. */
typedef struct tv_cpu_frame {
    struct tv_cpu_frame *next;
    uint32_t len;
    uint8_t data[];
} tv_cpu_frame;

/* One of the first frames' arrivals in a window. */
typedef struct tv_head {
    uint64_t time_ps;
    uint32_t in;
} tv_head;

struct tv_node {
    tv_net *net;
    char *name;
    uint32_t index;
    uint32_t n_in;
    uint64_t *in_next;        /* arrival of the first frame of each in-wire */
    tv_wire **in;             /* by number of the wire */
    tv_head *heads;           /* a heap, used while the node runs */
    /* a switch */
    tr_switch *core;          /* NULL: a host */
    uint64_t core_next_ps;
    tv_wire **out;            /* by port; TR_MAX_PORTS */
    uint32_t cpu_port;        /* UINT32_MAX: none */
    tv_count entered;         /* handed to the core, packet-outs too */
    tv_count unwired, to_cpu, swallowed, packet_outs;
    tv_kinds dropped, gone;   /* by the switch; at its entry, by a fault */
    tv_cpu_frame *cpu_first, *cpu_last;
    uint32_t cpu_waiting;
    tv_blackhole *blackholes;
    /* a host */
    tv_host *host;
    tv_wire *host_out;
    uint8_t attached;         /* has a NIC */
    uint32_t rank;            /* whose it is; of others nothing else is known */
};

/* Frames kept for readers of the CPU port; beyond it the oldest go. */
#define TV_CPU_WAITING 65536u

tv_node *tv_node_new(tv_net *net, const char *name);
void tv_node_free(tv_node *n);
int tv_node_add_in(tv_node *n, tv_wire *w);
/* Everything before end_ps; 0, -1 with an exception. */
int tv_node_run(tv_node *n, uint64_t end_ps);
/* Takes out what the core sent and asks when it goes on; 0, -1. */
int tv_node_settle(tv_node *n, uint64_t now_ps);
/* A frame enters by a port that has no wire; 0, -1. */
int tv_node_enter(tv_node *n, uint32_t port, const uint8_t *data,
                  uint32_t len, uint64_t now_ps);
uint64_t tv_node_next(const tv_node *n);
/* tr_lost_fn of a switch's core, whose arg is the node. */
void tv_node_lost(void *node, const tr_lost *frame);
/* Whether a fault swallows a frame at the entry of a switch. */
int tv_blackhole_takes(const tv_node *n, const tc_frame *f);
void tv_blackhole_free(tv_blackhole *h);
int tv_blackhole_add(tv_node *n, const uint64_t *pairs, uint32_t count,
                     uint64_t from_ps, uint64_t until_ps);

/* ---- the network (tv_net.c) ---- */

#define TV_BLOCK 64u

/* Next times of all nodes, and the least of each block of 64. */
typedef struct tv_schedule {
    uint64_t *next;
    uint64_t *least;          /* a lower bound where stale */
    uint8_t *stale;
    uint32_t n, blocks, cap;
} tv_schedule;

/* Why tv_net_run has returned. */
enum tv_stop {
    TV_STOP_REST,      /* nothing under way, every NIC idle */
    TV_STOP_LIMIT,     /* everything before the limit is done */
    TV_STOP_MARK,      /* so many events were handled */
    TV_STOP_ERROR      /* an exception is set */
};

struct tv_net {
    tv_schedule schedule;
    tv_node **nodes;
    tv_wire **wires;
    uint32_t n_nodes, n_wires, nodes_cap, wires_cap;
    uint32_t last_busy;       /* host that was not idle when last asked */
    uint32_t rounds;          /* at one instant */
    uint8_t stepwise;         /* asked for */
    uint8_t running, closed;
    uint32_t taps;            /* wires with a Python tap: stepwise, too */
    uint64_t under_way;       /* frames on wires */
    uint32_t awake;           /* switches with an event of their own */
    uint64_t now_ps;          /* start of the window while one runs */
    uint64_t last_ps;         /* of the last event that carried a frame */
    uint64_t events;
    uint64_t seen;            /* numbers what captures and watches record */
    uint64_t limit_ps;        /* the run ends before it */
    uint64_t least_arrival_ps; /* of what is sent now */
    tv_formats formats;
    tv_capture *captures;
    tv_watch *watches;
    tv_sampler *sampler;
    tv_log *log;
    tv_ranks *ranks;          /* NULL: all of the network is here */
};

int tv_net_add_node(tv_net *net, tv_node *n);
int tv_net_add_wire(tv_net *net, tv_wire *w);
/* Runs up to (not including) limit_ps, or until at rest, or until `mark`
 * events have been handled since the start. A tap or NIC may lower
 * net->limit_ps meanwhile. */
enum tv_stop tv_net_run(tv_net *net, uint64_t limit_ps, int stop_at_rest,
                        uint64_t mark);
/* 1, 0, or -1 with an exception. */
int tv_net_at_rest(tv_net *net);
void tv_net_clear(tv_net *net);
/* A node has something to do at time_ps. */
void tv_schedule_lower(tv_schedule *s, uint32_t node, uint64_t time_ps);
/* Raises NetworkError; -1. */
int tv_net_error(const char *format, ...);

/* ---- ranks (tv_ranks.c) ---- */

/* What a rank knows of its own part at the end of a period; of all, when all
 * have met. */
typedef struct tv_state {
    uint64_t first_ps;        /* earliest event */
    uint64_t ahead_ps;        /* least look-ahead of wires between ranks */
    uint64_t last_ps;         /* tv_net's */
    uint32_t busy;            /* not at rest */
    uint32_t mark;            /* what rank 0 says */
} tv_state;

/* How much a rank has had to do with the others since the start. */
typedef struct tv_rank_counts {
    uint64_t meetings;
    uint64_t frames;          /* handed across by this rank */
    uint64_t bytes;           /* of all its messages, heads too */
} tv_rank_counts;

/* One of `count` parts, which speaks to the others by transport's method
 * exchange(list of bytes, by rank) -> list of bytes; NULL with an exception. */
tv_ranks *tv_ranks_new(PyObject *transport, uint32_t rank, uint32_t count);
void tv_ranks_free(tv_ranks *r);
/* The number of this rank, 0 where there are no others (NULL). */
uint32_t tv_ranks_own(const tv_ranks *r);
tv_rank_counts tv_ranks_counts(const tv_ranks *r);
int tv_ranks_traverse(const tv_ranks *r, visitproc visit, void *arg);
/* Nothing that is sent to another rank arrives before period_ps. */
void tv_ranks_period(tv_ranks *r, uint64_t period_ps);
/* Keeps a frame for the next meeting; 0, -1. */
int tv_ranks_send(tv_wire *w, uint64_t arrival_ps, uint32_t cuts,
                  const uint8_t *head, uint32_t head_len, const uint8_t *tail,
                  uint32_t tail_len, uint32_t virt);
/* All ranks exchange frames, captures and what they know; 0, -1. */
int tv_ranks_meet(tv_net *net, tv_state *s);

/* ---- looking on ---- */

/* tv_tap.c: calls a Python tap; 0, -1. */
int tv_tap_call(tv_wire *w, enum tv_event event, const tc_frame *f);
/* What happened to a frame on a wire, and when: it was sent, received, or lost
 * (then TV_LOST and the tv_loss). Behind it its bytes, in whole words, but of
 * what was sent: nothing overtakes on a wire. */
typedef struct tv_logged_frame {
    uint64_t time_ps;
    uint32_t wire, what, len, virt;
    uint32_t ip_at;           /* where IPv4 begins; UINT32_MAX: nowhere */
    uint32_t bytes;           /* that follow */
} tv_logged_frame;
/* What happens to the packets between two IPv4 addresses, either way. */
struct tv_log {
    uint32_t a, b;
    uint8_t *records;
    size_t n, cap;
};
/* Adds what has happened, if the log is about it; 0, -1. */
int tv_log_add(const tv_wire *w, uint32_t what, const tc_frame *f);
void tv_log_free(tv_log *l);
/* tv_capture.c: pcapng files of what arrives on wires. What cannot be written
 * is a NetworkError; NULL, -1. Of several ranks the first has the files. */
tv_capture *tv_capture_new(tv_net *net, const char *path);
int tv_capture_wire(tv_capture *c, tv_wire *w, const char *name);
int tv_capture_add(const tv_wire *w, int lost, const tc_frame *f);
/* Writes what has arrived before the current window, when it is much or when
 * all is asked for; 0, -1. */
int tv_capture_flush(tv_net *net, int all);
/* Closes the files; 0, -1. */
int tv_capture_close(tv_net *net);
/* What has been gathered, for another rank's file: bytes, and writing them. */
size_t tv_capture_size(const tv_net *net);
void tv_capture_take(tv_net *net, uint8_t *to);
/* Gathers what another rank has; 0, -1. */
int tv_capture_join(tv_net *net, const uint8_t *from, size_t size);
void tv_captured_free(tv_captured *c);
/* tv_watch.c: arrivals of a flow's packets at switches. */
typedef struct tv_sight {
    uint64_t time_ps, number;
    uint32_t node, port, psn; /* psn UINT32_MAX: none */
} tv_sight;
struct tv_watch {
    struct tv_watch *next;
    uint32_t src, dst;
    int32_t sport;            /* -1: any */
    tv_sight *sights;
    size_t n, cap;
};
int tv_watch_arrival(const tv_node *n, const tv_wire *w, const tc_frame *f);
void tv_watch_free(tv_watch *w);
/* tv_sample.c: ports looked at again and again. */
struct tv_sampler {
    uint64_t period_ps, next_ps;
    tv_wire **wires;          /* from switches */
    uint64_t *tx_before;      /* tx_bytes of each port at the last sample */
    uint32_t n;
    size_t rows, cap;
    uint64_t *time_ps;        /* by row */
    uint32_t *queue_bytes, *tx_bytes; /* by row, then port */
    uint8_t *paused;
};
/* When the next sample is due, TC_NEVER; takes it; 0, -1. */
uint64_t tv_sample_next(const tv_net *net);
int tv_sample_take(tv_net *net);
void tv_sample_free(tv_sampler *s);

#endif
