/* Writer of capture files.
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tri_internal.h"

#define SNAP_BYTES 262144u

struct tri_pcap {
    FILE *file;
    bool dirty;               /* data was written since the last flush */
};

tri_pcap *tri_pcap_open(const char *path, uint32_t link_type)
{
    /* magic, version 2.4, time zone, accuracy, snapshot length, link type */
    const uint16_t version[2] = { 2, 4 };
    const uint32_t magic = 0xa1b2c3d4u;
    const uint32_t rest[4] = { 0, 0, SNAP_BYTES, link_type };
    tri_pcap *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->file = fopen(path, "wbe");
    if (!p->file) {
        free(p);
        return NULL;
    }
    if (fwrite(&magic, sizeof magic, 1, p->file) != 1
        || fwrite(version, sizeof version, 1, p->file) != 1
        || fwrite(rest, sizeof rest, 1, p->file) != 1
        || fflush(p->file) != 0) {
        tri_pcap_close(p);
        return NULL;
    }
    return p;
}

int tri_pcap_write(tri_pcap *p, const uint8_t *data, uint32_t len)
{
    struct timespec t;
    uint32_t head[4];

    clock_gettime(CLOCK_REALTIME, &t);
    head[0] = (uint32_t)t.tv_sec;
    head[1] = (uint32_t)(t.tv_nsec / 1000);
    head[2] = len;
    head[3] = len;
    p->dirty = true;
    if (fwrite(head, sizeof head, 1, p->file) != 1)
        return -1;
    return len == 0 || fwrite(data, len, 1, p->file) == 1 ? 0 : -1;
}

int tri_pcap_flush(tri_pcap *p)
{
    if (!p->dirty)
        return 0;
    p->dirty = false;
    return fflush(p->file) == 0 ? 0 : -1;
}

void tri_pcap_close(tri_pcap *p)
{
    if (!p)
        return;
    fclose(p->file);
    free(p);
}
