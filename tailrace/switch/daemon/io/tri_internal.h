/* Data shared by the files of the front end; not for others.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Owner of every member, unless said otherwise: the loop thread while it
 * runs, the caller of tri_new before and after.
 */
#ifndef TRI_INTERNAL_H
#define TRI_INTERNAL_H

#include <net/if.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "tri_loop.h"
#include "tri_offload.h"
#include "tri_pcap.h"

/* Frames moved by one system call. */
#define TRI_BATCH 64u
/* Distance of two receive buffers; the odd part keeps the starts of frames
 * from sharing cache sets. */
#define TRI_STRIDE (TR_MAX_FRAME + 240u)
/* Bytes free in front of a received frame, for a VLAN tag. */
#define TRI_HEADROOM 64u

/* Times of the core in ns: the last that lies in the past of a time, and the
 * first that does not. */
static inline uint64_t tr_ns_floor(uint64_t ps)
{
    return ps == TR_NEVER ? TR_NEVER : ps / TR_PS_PER_NS;
}

static inline uint64_t tr_ns_ceil(uint64_t ps)
{
    return ps == TR_NEVER ? TR_NEVER
                          : ps / TR_PS_PER_NS + (ps % TR_PS_PER_NS != 0);
}

/* A counter written by one thread and read by others. */
typedef _Atomic uint64_t tri_counter;

static inline void tri_add(tri_counter *c, uint64_t n)
{
    uint64_t v = atomic_load_explicit(c, memory_order_relaxed);

    atomic_store_explicit(c, v + n, memory_order_relaxed);
}

static inline void tri_set(tri_counter *c, uint64_t v)
{
    atomic_store_explicit(c, v, memory_order_relaxed);
}

static inline uint64_t tri_get(const tri_counter *c)
{
    return atomic_load_explicit(c, memory_order_relaxed);
}

/* Counters by position of the field in tri_port_info. */
#define TRI_FIELDS (sizeof(tri_port_info) / sizeof(uint64_t))
#define TRI_FIELD(name) (offsetof(tri_port_info, name) / sizeof(uint64_t))
#define TRI_COUNT(port, name, n) tri_add(&(port)->info[TRI_FIELD(name)], n)
#define TRI_PUT(port, name, v) tri_set(&(port)->info[TRI_FIELD(name)], v)
#define TRI_READ(port, name) tri_get(&(port)->info[TRI_FIELD(name)])

/* Why a port does not send. */
typedef enum tri_wait {
    TRI_WAIT_NOT,             /* it does */
    TRI_WAIT_SOCKET,          /* send buffer full: until EPOLLOUT */
    TRI_WAIT_RETRY            /* refused below the socket: until retry_ns */
} tri_wait;

/* A received frame, before it is what it would be on a wire. */
typedef struct tri_rx_frame {
    struct virtio_net_hdr vnet;
    uint8_t *data;
    uint32_t len;             /* 0 is a length, too */
    uint16_t tpid, tci;
    bool tagged;              /* a VLAN tag lies beside it */
    bool outgoing;            /* it left this host */
    bool queued;              /* whole in the socket's queue only */
    bool lost, too_long;      /* not whole */
    bool skip;                /* nothing more to be said of it */
    bool cut;                 /* a super-frame */
} tri_rx_frame;

/* Slots shared with the kernel; memory NULL: frames come by system calls. */
typedef struct tri_ring {
    uint8_t *memory;
    uint32_t slots, at;       /* at: the oldest */
} tri_ring;

typedef struct tri_port {
    uint32_t number;
    int ifindex;
    char name[IFNAMSIZ];
    tri_link link;
    int rx_fd, tx_fd;         /* -1: closed */
    tri_ring ring;            /* of rx_fd */
    tri_pcap *rx_pcap, *tx_pcap;
    tri_counter info[TRI_FIELDS];
    /* Frames to send: a ring of power-of-two size, in order. */
    tr_out *fifo;
    uint32_t fifo_size, fifo_head, fifo_count;
    bool active;              /* listed in tri_loop.active */
    bool by_hand;             /* it has no interface (tri_hand.c) */
    tri_wait wait;
    uint64_t retry_ns;        /* when to try again (TRI_WAIT_RETRY) */
    uint32_t retries;         /* of the frame at the head */
    uint32_t refused_bytes;   /* frames this long were refused; 0: none */
    uint64_t refused_ns;      /* when that was last learnt */
} tri_port;

/* Frames on their way to Python. */
typedef struct tri_box_frame {
    uint8_t *data;
    uint32_t len, port, origin;
} tri_box_frame;

typedef struct tri_box {
    pthread_mutex_t lock;     /* guards the ring */
    tri_box_frame ring[TRI_BOX_FRAMES];
    uint32_t head, count;
    uint64_t bytes;
    int fd;                   /* eventfd, readable while there may be frames */
} tri_box;

/* Receive buffers of one system call. */
typedef struct tri_rx {
    uint8_t *memory;          /* TRI_BATCH buffers, TRI_STRIDE apart */
    uint8_t *segment;         /* room for one segment of a super-frame */
    struct mmsghdr *msgs;
    struct tri_rx_slot *slots;
    tri_rx_frame *frames;     /* the batch, in order */
} tri_rx;

struct tri_loop {
    tr_switch *core;
    uint32_t cpu_port;
    uint32_t ring_slots;      /* of each port */
    char *pcap_dir;
    uint64_t epoch_ns;        /* CLOCK_MONOTONIC at tri_new */
    int epoll_fd, timer_fd, wake_fd, link_fd;
    pthread_t thread;
    bool running;
    atomic_bool stop;
    tri_port *ports[TR_MAX_PORTS];    /* by number */
    tri_port *list[TR_MAX_PORTS];     /* all ports, densely */
    uint32_t n_ports;
    tri_port *active[TR_MAX_PORTS];   /* ports with frames to send */
    uint32_t n_active;
    uint64_t core_next_ns;    /* when the core wants to run again */
    uint64_t armed_ns;        /* what the timer is set to; TR_NEVER: off */
    bool spin;                /* sit the next pause out awake */
    bool may_spin;            /* there is a second processor */
    bool again;               /* the core has work without waiting */
    void **done;              /* slots to release */
    uint32_t n_done, done_size;
    tri_rx rx;
    struct mmsghdr tx_msgs[TRI_BATCH];
    struct iovec tx_iov[TRI_BATCH];
    tri_box cpu;              /* its fd tells of digests, too */
    tri_counter cpu_drops;
    tri_box hand;             /* from ports by hand */
    atomic_bool listens;      /* a client takes these */
    atomic_uint in_hand;      /* frames in the rings of such ports */
};

/* What an epoll event belongs to: kind in the upper half of its data, port
 * number in the lower. */
enum { TRI_EV_WAKE, TRI_EV_TIMER, TRI_EV_LINK, TRI_EV_RX, TRI_EV_TX };
#define TRI_EV(kind, number) ((uint64_t)(kind) << 32 | (number))

/* tri_port.c */

/* Opens the sockets of interface ifname; NULL with a line in err. */
tri_port *tri_port_open(tri_loop *l, uint32_t number, const char *ifname,
                        char *err);
/* Opens the sockets of p anew, on another interface of the same kind; -1 where
 * that is not possible, and p is as before. */
int tri_port_reopen(tri_loop *l, tri_port *p, int ifindex);
void tri_port_close(tri_port *p);
/* Writes "<what>: <error of errno>" in words for port p to err. */
void tri_fail(char *err, const char *what, const char *name, int error);

/* tri_rx.c */

int tri_rx_init(tri_rx *rx);
void tri_rx_free(tri_rx *rx);
/* Notes a VLAN tag that the kernel keeps beside a frame of that length. */
void tri_rx_note_tag(tri_rx_frame *f, uint32_t status, uint16_t tci,
                     uint16_t tpid);
/* Reads one batch from p, gives it to the core and lets the core work. */
void tri_rx_port(tri_loop *l, tri_port *p);

/* tri_ring.c */

/* Has the kernel receive frames of fd, not yet bound, into a ring; where it
 * will not, and for 0 slots, r stays without memory. */
void tri_ring_open(tri_ring *r, int fd, uint32_t slots);
void tri_ring_close(tri_ring *r);
/* The oldest frames, at most that many; they stay until they are released. */
uint32_t tri_ring_look(const tri_ring *r, tri_rx_frame *frames, uint32_t most);
void tri_ring_release(tri_ring *r, uint32_t n);

/* tri_tx.c */

/* Takes a frame from the core: it will be sent at o->time_ps. Lock held. */
void tri_tx_put(tri_loop *l, const tr_out *o);
/* Sends what is due on all ports. Takes the lock to release frames. Returns
 * when the next frame is due, TR_NEVER if none waits for the clock. */
uint64_t tri_tx_flush(tri_loop *l);
/* The socket of p takes frames again. */
void tri_tx_ready(tri_loop *l, tri_port *p);
/* Returns all frames of all ports to the core. Lock held. */
void tri_tx_abandon(tri_loop *l);

/* tri_link.c */

/* Opens the socket that reports changes of interfaces; -1 with errno. */
int tri_link_open(void);
/* Asks the kernel for the present state of p's interface; the answer comes
 * through tri_link_read. */
void tri_link_query(tri_loop *l, tri_port *p);
/* Handles everything waiting on the link socket. */
void tri_link_read(tri_loop *l);
/* Records state of p and tells the core, unless nothing changed. */
void tri_link_set(tri_loop *l, tri_port *p, bool up, bool deleted);

/* tri_box.c */

/* -1 with errno; tri_box_free all the same. */
int tri_box_init(tri_box *b);
void tri_box_free(tri_box *b);
/* Throws away what is in it. */
void tri_box_empty(tri_box *b);
/* Keeps a copy of a frame; false when there is no room. */
bool tri_box_put(tri_box *b, const tr_out *o);
uint32_t tri_box_count(tri_box *b);
/* As tri_hand_take. */
int64_t tri_box_take(tri_box *b, uint8_t *buf, uint32_t cap, uint32_t *port,
                     uint32_t *origin);
/* Makes its descriptor readable, or unreadable. */
void tri_box_signal(tri_box *b);
void tri_box_clear(tri_box *b);

/* tri_loop.c */

/* Lock of the core, given up first to control calls that wait for it. */
void tri_enter(tri_loop *l);
/* Lets the core work and collects its frames. Lock held. */
void tri_run_core(tri_loop *l);
/* Has the loop look for work. */
void tri_wake(tri_loop *l);

#endif
