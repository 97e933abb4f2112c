/* Capture files in the classic libpcap format.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Timestamps are microseconds of the wall clock, as in BMv2's captures. Files
 * are complete up to the last tri_pcap_flush, so they can be read at any time.
 */
#ifndef TRI_PCAP_H
#define TRI_PCAP_H

#include <stdint.h>

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

#endif
