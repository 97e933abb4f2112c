/* Public interface of the real-time front end: sockets around a switch core.
 * SPDX-License-Identifier: Apache-2.0
 *
 * One thread owns all sockets. It moves frames from AF_PACKET sockets into a
 * tr_switch and what the switch sends back into sockets, at the time that the
 * switch says. Frames are taken and given exactly as they are on the wire:
 * VLAN tags that the kernel keeps beside the frame are put back, checksums
 * left to hardware are completed, offloaded super-frames are cut into
 * segments. No link header is assumed: an interface without one works.
 *
 * Sending never drops because something is full: the port is blocked in the
 * core (so that its queues build) until the socket takes frames again.
 *
 * Threads: tri_new, tri_add_port, tri_start, tri_stop and tri_free belong to
 * one owner; the other calls may come from any thread between tri_new and
 * tri_free. Times are nanoseconds of CLOCK_MONOTONIC since tri_new.
 *
 * Functions that can fail return 0 or -1 (NULL) and write one line, without a
 * newline, into err (TRI_ERROR_BYTES long).
 *
 * Python reads this file, too (cbuild/headers.py): nothing but declarations
 * and #define NAME NUMBER.
 */
#ifndef TRI_LOOP_H
#define TRI_LOOP_H

#include <stdint.h>

#include "tr_switch.h"

#define TRI_ERROR_BYTES 256u
#define TRI_NO_CPU_PORT 0xffffffffu
/* Frames that wait for tri_packet_in at most, and for tri_hand_take, and their
 * bytes. */
#define TRI_BOX_FRAMES 4096u
#define TRI_BOX_BYTES 33554432u

typedef struct tri_loop tri_loop;

/* State and counters of one port; every counter only grows. */
typedef struct tri_port_info {
    uint64_t up;              /* 1: administratively up and with carrier */
    uint64_t deleted;         /* 1: the interface no longer exists */
    uint64_t blocked;         /* 1: waiting for the socket to take frames */
    uint64_t rx_packets;      /* frames given to the core */
    uint64_t rx_bytes;
    uint64_t tx_packets;      /* frames the kernel took */
    uint64_t tx_bytes;
    uint64_t rx_kernel_drops; /* socket buffer full: the loop was too slow */
    uint64_t rx_own;          /* frames that left this host, ignored */
    uint64_t rx_too_long;     /* frames longer than TR_MAX_FRAME */
    uint64_t rx_offload;      /* offloads that cannot be undone in software */
    uint64_t rx_refused;      /* frames that the core did not take */
    uint64_t checksums;       /* checksums completed */
    uint64_t super_frames;    /* offloaded frames cut into segments */
    uint64_t tags;            /* VLAN tags put back */
    uint64_t tx_down;         /* dropped: interface down or deleted */
    uint64_t tx_too_long;     /* dropped: longer than the MTU */
    uint64_t tx_invalid;      /* dropped: shorter than the link header */
    uint64_t tx_refused;      /* dropped: driver or peer takes no such frame */
    uint64_t tx_errors;       /* dropped: any other error of the kernel */
    uint64_t tx_waits;        /* times that the port had to wait */
    uint64_t pcap_errors;     /* capture files given up after an error */
} tri_port_info;

/* Makes a loop around core. cpu_port: port whose frames go to
 * tri_packet_in(), or TRI_NO_CPU_PORT. pcap_dir: folder for capture files
 * <interface>_in.pcap and <interface>_out.pcap, or NULL. ring_slots: frames
 * that wait in memory shared with the kernel, for each port; 0: none do. */
tri_loop *tri_new(tr_switch *core, uint32_t cpu_port, const char *pcap_dir,
                  uint32_t ring_slots, char *err);
/* Opens interface ifname as port; only before tri_start. */
int tri_add_port(tri_loop *l, uint32_t port, const char *ifname, char *err);
/* Makes all ports that are left ports by hand (tri_hand_give); only before
 * tri_start. */
int tri_by_hand(tri_loop *l, char *err);
int tri_start(tri_loop *l, char *err);
/* Stops the thread and gives all frames back to the core. Harmless when the
 * loop does not run. */
void tri_stop(tri_loop *l);
/* Stops, closes every socket and file, frees l. The core stays. */
void tri_free(tri_loop *l);

uint64_t tri_now(const tri_loop *l);
/* Hands a frame to the core as received on port now. Returns the core's
 * result (TR_OK or a negative error). */
int tri_inject(tri_loop *l, uint32_t port, const uint8_t *data, uint32_t len);
/* eventfd, readable while packet-ins or digests may wait. */
int tri_events_fd(const tri_loop *l);
/* Makes tri_events_fd unreadable until the next packet-in or digest. */
void tri_events_clear(tri_loop *l);
/* Takes the oldest frame that the core sent to the CPU port: its length, at
 * most cap bytes copied to buf; -1 when there is none. */
int64_t tri_packet_in(tri_loop *l, uint8_t *buf, uint32_t cap);
/* Frames for the CPU port dropped as its queue was full. */
uint64_t tri_packet_in_drops(tri_loop *l);
/* Fills out; -1 when port was not added. */
int tri_port_read(tri_loop *l, uint32_t port, tri_port_info *out);

/* Ports by hand. Hands a frame to one, which while it is down loses it, or to
 * the CPU port; origin is what all frames that come of it are known by (0:
 * nothing). Returns the core's result, TR_ERANGE when there is no such port. */
int tri_hand_give(tri_loop *l, uint32_t port, const uint8_t *data,
                  uint32_t len, uint32_t origin);
/* Whether frames that leave are queued, or dropped. Drops the queued ones. */
void tri_hand_listen(tri_loop *l, int on);
/* eventfd, readable while such frames may wait. */
int tri_hand_fd(const tri_loop *l);
/* Makes tri_hand_fd unreadable until the next frame. */
void tri_hand_clear(tri_loop *l);
/* Takes the oldest one as tri_packet_in does, with its port and origin. */
int64_t tri_hand_take(tri_loop *l, uint8_t *buf, uint32_t cap, uint32_t *port,
                      uint32_t *origin);
/* The number of frames that tri_hand_take has. */
uint32_t tri_hand_waiting(tri_loop *l);
/* 1: there are none, and the switch has none that might be sent. */
int tri_hand_idle(tri_loop *l);
/* Sets the port up or down; -1 when there is no such port. */
int tri_hand_set(tri_loop *l, uint32_t port, int up);

#endif
