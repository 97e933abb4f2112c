/* Public interface of the real-time front end: sockets around a switch core.
 * SPDX-License-Identifier: Apache-2.0
 *
 * One thread uses all sockets. It passes frames received on AF_PACKET sockets
 * to a tr_switch, and sends the frames of the switch at the times that the
 * switch computes. The switch receives frames exactly as they are on the wire:
 * VLAN tags that the kernel has removed are inserted again, checksums left to
 * hardware are completed, super-frames (of several segments, GSO) are cut.
 * Interfaces without a link header work, too.
 *
 * Sending never drops a frame because a buffer is full: the port is blocked in
 * the core, whose queues then build up, until the socket accepts frames again.
 *
 * Threads: one thread calls tri_new, tri_add_port, tri_start and tri_free; the
 * other calls may come from any thread between tri_new and
 * tri_free. Times are nanoseconds of CLOCK_MONOTONIC since tri_new.
 *
 * Functions that can fail return 0, or -1 (NULL) on failure, and then write one
 * line without a newline to err (TRI_ERROR_BYTES long).
 *
 * Python parses this file, too (cbuild/headers.py): it may have only
 * declarations and #define NAME NUMBER.
 */
#ifndef TRI_LOOP_H
#define TRI_LOOP_H

#include <stdint.h>

#include "tr_switch.h"

#define TRI_ERROR_BYTES 256u
#define TRI_NO_CPU_PORT 0xffffffffu
/* Maximum numbers of frames and of bytes that wait in a box for
 * tri_frames_take. */
#define TRI_BOX_FRAMES 4096u
#define TRI_BOX_BYTES 33554432u

typedef struct tri_loop tri_loop;

/* State and counters of one port; every counter only grows. */
typedef struct tri_port_info {
    uint64_t up;              /* 1: administratively up, and has carrier */
    uint64_t deleted;         /* 1: the interface no longer exists */
    uint64_t blocked;         /* 1: waits until the socket accepts frames */
    uint64_t rx_packets;      /* frames delivered to the core */
    uint64_t rx_bytes;
    uint64_t tx_packets;      /* frames that the kernel accepted */
    uint64_t tx_bytes;
    uint64_t rx_kernel_drops; /* dropped: the socket buffer was full, as the
                               * loop was too slow */
    uint64_t rx_own;          /* ignored: frames that this host sent */
    uint64_t rx_too_long;     /* dropped: longer than TR_MAX_FRAME */
    uint64_t rx_offload;      /* dropped: offload that software cannot undo */
    uint64_t rx_refused;      /* dropped: not accepted by the core */
    uint64_t checksums;       /* received frames whose checksum was completed */
    uint64_t super_frames;    /* offloaded frames cut into segments */
    uint64_t tags;            /* received frames whose VLAN tag was inserted
                               * again */
    uint64_t tx_down;         /* dropped: interface down or deleted */
    uint64_t tx_too_long;     /* dropped: longer than the MTU */
    uint64_t tx_invalid;      /* dropped: shorter than the link header */
    uint64_t tx_refused;      /* dropped: refused by the driver or the peer */
    uint64_t tx_errors;       /* dropped: any other error of the kernel */
    uint64_t tx_waits;        /* how often the port had to wait */
    uint64_t pcap_errors;     /* errors of capture files; a failed write ends
                               * the capture */
} tri_port_info;

/* Creates a loop for `core`. cpu_port: port whose frames are
 * packet-ins, or TRI_NO_CPU_PORT. pcap_dir: folder for capture files
 * <interface>_in.pcap and <interface>_out.pcap, or NULL. ring_slots: slots of
 * each port's receive ring in memory shared with the kernel; 0: no ring. */
tri_loop *tri_new(tr_switch *core, uint32_t cpu_port, const char *pcap_dir,
                  uint32_t ring_slots, char *err);
/* Opens interface ifname for a port, a number below TR_MAX_PORTS; only before
 * tri_start. */
int tri_add_port(tri_loop *l, uint32_t port, const char *ifname, char *err);
/* Creates all remaining ports without interfaces; only before tri_start. A gRPC
 * client (daemon/dataplane.py) sends frames to these ports and receives the
 * frames that they send; the functions tri_client_* pass these frames. */
int tri_add_client_ports(tri_loop *l, char *err);
int tri_start(tri_loop *l, char *err);
/* Stops the thread, closes all sockets and files, and frees l, but not the
 * core. */
void tri_free(tri_loop *l);

/* The current time in ns since tri_new. */
uint64_t tri_now(const tri_loop *l);
/* Delivers a frame to the core as if received on the port now; a port without
 * an interface that is down drops it. origin: id of the frame and of all frames
 * that result from it (0: none). Returns the core's result (TR_OK or a negative
 * error). */
int tri_inject(tri_loop *l, uint32_t port, const uint8_t *data, uint32_t len,
               uint32_t origin);
/* Frames wait for Python in two boxes: packet-ins, which the core sent to the
 * CPU port, and the frames that ports without interfaces sent. */
enum { TRI_PACKET_INS, TRI_CLIENT_FRAMES, TRI_BOXES };
/* An eventfd that is readable while frames may wait in a box; that of
 * TRI_PACKET_INS also while digests may be pending. */
int tri_frames_fd(const tri_loop *l, unsigned box);
/* Makes tri_frames_fd unreadable until the next frame or digest. */
void tri_frames_clear(tri_loop *l, unsigned box);
/* The number of frames in a box. */
uint32_t tri_frames_waiting(tri_loop *l, unsigned box);
/* Removes the oldest frame of a box: copies at most cap bytes to buf, writes the
 * frame's port and origin, and returns its length; -1 when there is none. */
int64_t tri_frames_take(tri_loop *l, unsigned box, uint8_t *buf, uint32_t cap,
                        uint32_t *port, uint32_t *origin);
/* The number of frames for the CPU port that were dropped, because too many
 * frames or bytes waited (TRI_BOX_FRAMES, TRI_BOX_BYTES). */
uint64_t tri_packet_in_drops(tri_loop *l);
/* Reads state and counters of a port; -1 when it was not added. */
int tri_port_read(tri_loop *l, uint32_t port, tri_port_info *out);

/* Ports without interfaces ("such ports" below). */

/* Sets whether the frames that such ports send wait for tri_frames_take (on) or
 * are dropped. Drops the frames that wait now. */
void tri_client_listen(tri_loop *l, int on);
/* Whether no frame of such ports waits for tri_frames_take, and no frame in the
 * core may still be sent. */
int tri_client_idle(tri_loop *l);
/* Sets such a port up or down; -1 when there is no such port. */
int tri_client_set_up(tri_loop *l, uint32_t port, int up);

#endif
