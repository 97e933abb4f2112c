/* Internal declarations shared by the files of this folder.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unless a comment says otherwise, only the loop thread may use the members of
 * a tri_loop while this thread runs; before and after, only the thread that
 * called tri_new.
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

/* Capture files in the classic libpcap format. Timestamps are microseconds of
 * the wall clock, as in BMv2's captures. Files are complete up to the last
 * tri_pcap_flush, so they can be read at any time. */
typedef struct tri_pcap tri_pcap;

/* Link types of the libpcap format. */
enum { TRI_PCAP_ETHERNET = 1, TRI_PCAP_RAW_IP = 101 };

/* Creates or truncates a file; NULL with errno set on failure. */
tri_pcap *tri_pcap_open(const char *path, uint32_t link_type);
/* Appends a frame with the present time. Returns 0 or -1. */
int tri_pcap_write(tri_pcap *p, const uint8_t *data, uint32_t len);
/* Passes all buffered data to the kernel. Returns 0 or -1. */
int tri_pcap_flush(tri_pcap *p);
/* Closes the file; p may be NULL. */
void tri_pcap_close(tri_pcap *p);

/* Maximum number of frames received or sent by one system call. */
#define TRI_BATCH 64u
/* Distance of two receive buffers; not a power of two, so that the starts of
 * frames are not all in the same cache sets. */
#define TRI_STRIDE (TR_MAX_FRAME + 240u)
/* Free bytes in front of a received frame, for a VLAN tag. */
#define TRI_HEADROOM 64u

/* Convert a time of the core from ps to ns, rounded down or up. */
static inline uint64_t tr_ns_floor(uint64_t ps)
{
    return ps == TR_NEVER ? TR_NEVER : ps / TR_PS_PER_NS;
}

static inline uint64_t tr_ns_ceil(uint64_t ps)
{
    return ps == TR_NEVER ? TR_NEVER
                          : ps / TR_PS_PER_NS + (ps % TR_PS_PER_NS != 0);
}

/* A counter that one thread writes and other threads read. */
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

/* tri_port.info: the fields of tri_port_info as atomic counters, by index.
 * TRI_COUNT adds n to a field of a port, TRI_PUT sets the field, TRI_READ reads
 * it. */
#define TRI_FIELDS (sizeof(tri_port_info) / sizeof(uint64_t))
#define TRI_FIELD(name) (offsetof(tri_port_info, name) / sizeof(uint64_t))
#define TRI_COUNT(port, name, n) tri_add(&(port)->info[TRI_FIELD(name)], n)
#define TRI_PUT(port, name, v) tri_set(&(port)->info[TRI_FIELD(name)], v)
#define TRI_READ(port, name) tri_get(&(port)->info[TRI_FIELD(name)])

/* Why a port waits before it sends. */
typedef enum tri_wait {
    TRI_WAIT_NOT,             /* the port does not wait */
    TRI_WAIT_SOCKET,          /* the send buffer is full: waits for EPOLLOUT */
    TRI_WAIT_RETRY            /* the driver or the peer refused a frame: waits
                               * until tri_port.retry_ns */
} tri_wait;

/* A frame from the kernel, before its offloads are completed in software. */
typedef struct tri_rx_frame {
    struct virtio_net_hdr vnet;
    uint8_t *data;
    uint32_t len;             /* may be 0 */
    uint16_t tpid, tci;
    bool tagged;              /* the kernel has removed its VLAN tag */
    bool outgoing;            /* this host sent it */
    bool queued;              /* truncated here; the socket's queue has a
                               * complete copy */
    bool lost, too_long;      /* incomplete and to be dropped, because bytes
                               * were lost or the frame is too long */
    bool skip;                /* to be ignored: the complete copy was lost */
    bool super_frame;         /* has several segments (GSO): to be cut */
} tri_rx_frame;

/* Receive ring shared with the kernel; memory NULL: no ring, frames are read by
 * system calls. */
typedef struct tri_ring {
    uint8_t *memory;
    uint32_t slots, at;       /* number of slots; index of the slot with the
                               * oldest frame */
} tri_ring;

typedef struct tri_port {
    uint32_t number;
    int ifindex;
    char name[IFNAMSIZ];
    tri_link link;
    int rx_fd, tx_fd;         /* -1: closed */
    tri_ring ring;            /* receive ring of rx_fd */
    tri_pcap *rx_pcap, *tx_pcap;
    tri_counter info[TRI_FIELDS];
    /* Frames to send, in order: a ring buffer; its size is a power of two. */
    tr_out *fifo;
    uint32_t fifo_size, fifo_head, fifo_count;
    bool active;              /* the port is listed in tri_loop.active */
    bool for_client;          /* the port has no interface (tri_hand.c) */
    tri_wait wait;
    uint64_t retry_ns;        /* when to try again (TRI_WAIT_RETRY) */
    uint32_t retries;         /* number of retries of the frame at the head */
    uint32_t refused_bytes;   /* frames of this length or more were refused;
                               * 0: no frame was refused */
    uint64_t refused_ns;      /* when a frame was last dropped as refused */
} tri_port;

/* Ring buffer ("box") of frames that Python will take. */
typedef struct tri_box_frame {
    uint8_t *data;
    uint32_t len, port;
    uint32_t origin;          /* as in tr_out */
} tri_box_frame;

typedef struct tri_box {
    pthread_mutex_t lock;     /* guards the ring */
    tri_box_frame ring[TRI_BOX_FRAMES];
    uint32_t head, count;
    uint64_t bytes;
    int fd;                   /* eventfd, readable while the ring may have
                               * frames */
} tri_box;

/* Buffers for a batch of received frames. */
typedef struct tri_rx {
    uint8_t *memory;          /* TRI_BATCH buffers, TRI_STRIDE apart */
    uint8_t *segment;         /* buffer for a segment of a super-frame */
    struct mmsghdr *msgs;
    struct tri_rx_slot *slots;
    tri_rx_frame *frames;     /* the batch, in order */
} tri_rx;

struct tri_loop {
    tr_switch *core;
    uint32_t cpu_port;
    uint32_t ring_slots;      /* slots of each port's receive ring */
    char *pcap_dir;
    uint64_t epoch_ns;        /* CLOCK_MONOTONIC at tri_new */
    int epoll_fd, timer_fd, wake_fd, link_fd;
    pthread_t thread;
    bool running;
    atomic_bool stop;
    tri_port *ports[TR_MAX_PORTS];    /* by port number; NULL: no such port */
    tri_port *list[TR_MAX_PORTS];     /* all ports, without gaps */
    uint32_t n_ports;
    tri_port *active[TR_MAX_PORTS];   /* ports with frames to send */
    uint32_t n_active;
    uint64_t core_next_ns;    /* time of the core's next event */
    uint64_t armed_ns;        /* when the timer expires; TR_NEVER: never */
    bool spin;                /* the loop polls next time and does not sleep */
    bool may_spin;            /* polling is allowed: there is a second
                               * processor */
    bool again;               /* the core has work now: do not sleep */
    void **done;              /* slots (tr_out.slot) to release to the core */
    uint32_t n_done, done_size;
    tri_rx rx;
    struct mmsghdr tx_msgs[TRI_BATCH];
    struct iovec tx_iov[TRI_BATCH];
    tri_box boxes[TRI_BOXES]; /* frames for Python */
    tri_counter cpu_drops;    /* packet-ins dropped as the box was full */
    atomic_bool client_listens; /* a client takes TRI_CLIENT_FRAMES */
    atomic_uint client_frames;  /* frames in tri_port.fifo of these ports */
};

/* The data of an epoll event has its kind in the upper 32 bits, and the port
 * number in the lower. */
enum { TRI_EV_WAKE, TRI_EV_TIMER, TRI_EV_LINK, TRI_EV_RX, TRI_EV_TX };
#define TRI_EV(kind, number) ((uint64_t)(kind) << 32 | (number))

/* tri_port.c */

/* Opens the sockets of interface ifname; NULL, with a message in err, if that
 * fails. */
tri_port *tri_port_open(tri_loop *l, uint32_t number, const char *ifname,
                        char *err);
/* Reopens the sockets of p on another interface with the same kind of link
 * header; -1 if that fails, and p is unchanged. */
int tri_port_reopen(tri_loop *l, tri_port *p, int ifindex);
void tri_port_close(tri_port *p);
/* Writes a frame to a capture file of p; NULL: there is none. An error ends the
 * capture. */
void tri_capture(tri_port *p, tri_pcap **file, const uint8_t *data,
                 uint32_t len);
/* Writes the line "WHAT NAME: MESSAGE" to err, with the message of the errno
 * value `error`. */
void tri_fail(char *err, const char *what, const char *name, int error);

/* tri_rx.c */

int tri_rx_init(tri_rx *rx);
void tri_rx_free(tri_rx *rx);
/* Stores in f the VLAN tag that the kernel has removed from the frame, if any.
 * f->len must be set. */
void tri_rx_note_tag(tri_rx_frame *f, uint32_t status, uint16_t tci,
                     uint16_t tpid);
/* Receives a batch from p, delivers it to the core and runs the core. */
void tri_rx_port(tri_loop *l, tri_port *p);

/* tri_ring.c */

/* Sets up a receive ring for the socket fd, which must not be bound yet. If the
 * kernel refuses, or slots is 0, r->memory is NULL. */
void tri_ring_open(tri_ring *r, int fd, uint32_t slots);
void tri_ring_close(tri_ring *r);
/* Describes the oldest frames, at most `most`, and returns their number. They
 * stay in the ring until tri_ring_release. */
uint32_t tri_ring_look(const tri_ring *r, tri_rx_frame *frames, uint32_t most);
void tri_ring_release(tri_ring *r, uint32_t n);

/* tri_tx.c */

/* "Lock held" at the end of a comment: the caller has the core's lock. */

/* Queues a frame of the core to be sent at o->time_ps. Lock held. */
void tri_tx_put(tri_loop *l, const tr_out *o);
/* Sends the frames that are due on all ports, and takes the lock to release
 * them. Returns the time of the next due frame; TR_NEVER if there is none. */
uint64_t tri_tx_flush(tri_loop *l);
/* To be called when p's socket accepts frames again, or p goes down. */
void tri_tx_ready(tri_loop *l, tri_port *p);
/* Discards the frames of all ports that wait to be sent: the core can reuse
 * their memory. Lock held. */
void tri_tx_abandon(tri_loop *l);

/* tri_link.c */

/* Opens the socket that reports changes of interfaces; -1 with errno. */
int tri_link_open(void);
/* Requests the state of p's interface from the kernel; tri_link_read handles
 * the reply. */
void tri_link_query(tri_loop *l, tri_port *p);
/* Handles all pending messages of the link socket. */
void tri_link_read(tri_loop *l);
/* Sets the state of p, and of the core's port, if the state has changed. */
void tri_link_set(tri_loop *l, tri_port *p, bool up, bool deleted);

/* tri_box.c */

/* Returns -1 with errno on failure; tri_box_free must be called even then. */
int tri_box_init(tri_box *b);
void tri_box_free(tri_box *b);
/* Drops all frames of the box. */
void tri_box_drop_all(tri_box *b);
/* Adds a copy of a frame; false: the box is full or there is no memory. */
bool tri_box_put(tri_box *b, const tr_out *o);
/* Makes an eventfd readable. */
void tri_signal(int fd);
/* Makes an eventfd or timerfd unreadable. */
void tri_unsignal(int fd);

/* tri_loop.c */

/* Takes the core's lock, which tr_switch_unlock releases. Control calls that
 * wait for the lock take it first. */
void tri_lock(tri_loop *l);
/* Runs the core up to now and collects the frames that it sends. Lock held. */
void tri_run_core(tri_loop *l);

#endif
