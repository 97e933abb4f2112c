/* Captures of wires as pcapng with nanosecond timestamps; a wire, one direction
 * of a link, is an interface. SPDX-License-Identifier: Apache-2.0
 *
 * Source: IETF draft-ietf-opsawg-pcapng: Section Header, Interface
 * Description and Enhanced Packet Blocks. The timestamp is the virtual time at
 * which the last bit arrives, rounded down; a frame with virtual payload
 * appears truncated; a frame that a fault lost has a comment that says so.
 *
 * Within a window nodes run one after the other, so frames are gathered and
 * sorted by time before they are written. Numbers are little-endian, as the
 * byte-order magic of the section tells readers.
 */
#include "tv_net.h"

#include <errno.h>
#include <stdlib.h>

#define SECTION_HEADER 0x0a0d0d0au
#define INTERFACE 1u
#define PACKET 6u
#define BYTE_ORDER_MAGIC 0x1a2b3c4du
#define ETHERNET 1u
#define OPTION_COMMENT 1u
#define OPTION_IF_NAME 2u
#define OPTION_IF_TSRESOL 9u
#define NANOSECONDS 9u
/* Gathered bytes beyond which frames are written to the file. */
#define FLUSH_BYTES (1u << 20)

static const char lost_comment[16] = "lost on the wire";

/* A packet block in the buffer; `wire` is the index of a wire. */
typedef struct record {
    uint64_t time_ps;
    uint32_t wire;
    uint32_t size;
    size_t offset;            /* in the buffer, whose order is that of adding */
} record;

struct tv_capture {
    struct tv_capture *next;
    char *path;
    FILE *file;               /* NULL: closed after a write has failed */
    uint8_t remote;           /* rank 0, another process of this run, writes the
                               * file */
    uint8_t *buffer;
    size_t used, buffer_cap;
    record *records;
    size_t n, cap;
    uint32_t interfaces;
};

/* A wire in a capture. */
struct tv_captured {
    struct tv_captured *next;
    tv_capture *capture;
    uint32_t interface;
};

/* Stores a little-endian number; returns where the next byte goes. */
static uint8_t *put(uint8_t *p, uint64_t value, unsigned bytes)
{
    while (bytes--) {
        *p++ = (uint8_t)value;
        value >>= 8;
    }
    return p;
}

static uint8_t *put_padded(uint8_t *p, const void *data, size_t len)
{
    memcpy(p, data, len);
    p += len;
    return put(p, 0, (unsigned)(-len & 3));
}

static int write_failed(tv_capture *c)
{
    tv_net_error("cannot write the capture %s: %s", c->path, strerror(errno));
    if (c->file)
        fclose(c->file);
    c->file = NULL;
    return -1;
}

static void capture_free(tv_capture *c)
{
    free(c->path);
    free(c->buffer);
    free(c->records);
    free(c);
}

tv_capture *tv_capture_new(tv_net *net, const char *path)
{
    tv_capture *c = calloc(1, sizeof *c);
    if (!c || !(c->path = strdup(path))) {
        free(c);
        PyErr_NoMemory();
        return NULL;
    }
    c->remote = net->ranks && tv_ranks_own(net->ranks) != 0;
    if (c->remote) {
        c->next = net->captures;
        net->captures = c;
        return c;
    }
    c->file = fopen(path, "wb");
    if (!c->file) {
        write_failed(c);
        capture_free(c);
        return NULL;
    }
    uint8_t block[28], *p = block;
    p = put(p, SECTION_HEADER, 4);
    p = put(p, sizeof block, 4);
    p = put(p, BYTE_ORDER_MAGIC, 4);
    p = put(p, 1, 4);          /* version 1.0 */
    p = put(p, UINT64_MAX, 8); /* length of the section unknown */
    put(p, sizeof block, 4);
    c->next = net->captures;
    net->captures = c;
    if (fwrite(block, sizeof block, 1, c->file) != 1) {
        write_failed(c);
        return NULL;
    }
    return c;
}

int tv_capture_wire(tv_capture *c, tv_wire *w, const char *name)
{
    size_t len = strlen(name), size = 20 + ((4 + len + 3) & ~(size_t)3) + 12;
    tv_captured *link = calloc(1, sizeof *link);
    uint8_t *block = malloc(size), *p = block;
    if (!link || !block) {
        free(link);
        free(block);
        PyErr_NoMemory();
        return -1;
    }
    p = put(p, INTERFACE, 4);
    p = put(p, size, 4);
    p = put(p, ETHERNET, 4);
    p = put(p, 0, 4); /* SnapLen: no limit */
    p = put(p, OPTION_IF_NAME, 2);
    p = put(p, len, 2);
    p = put_padded(p, name, len);
    p = put(p, OPTION_IF_TSRESOL, 2);
    p = put(p, 1, 2);
    p = put(p, NANOSECONDS, 4);
    p = put(p, 0, 4); /* end of options */
    put(p, size, 4);
    int written =
        c->remote || (c->file && fwrite(block, size, 1, c->file) == 1);
    free(block);
    link->capture = c;
    link->interface = c->interfaces++;
    link->next = w->captures;
    w->captures = link;
    w->inspects_arrivals = 1;
    return written ? 0 : write_failed(c);
}

void tv_captured_free(tv_captured *c)
{
    while (c) {
        tv_captured *gone = c;
        c = c->next;
        free(gone);
    }
}

static int reserve(tv_capture *c, size_t bytes)
{
    if (c->used + bytes > c->buffer_cap) {
        size_t cap = c->buffer_cap ? c->buffer_cap * 2 : FLUSH_BYTES;
        while (cap < c->used + bytes)
            cap *= 2;
        if (tv_resize(&c->buffer, cap) < 0)
            return -1;
        c->buffer_cap = cap;
    }
    if (c->n == c->cap) {
        size_t cap = c->cap ? c->cap * 2 : 4096;
        if (tv_resize(&c->records, cap * sizeof *c->records) < 0)
            return -1;
        c->cap = cap;
    }
    return 0;
}

static int add(tv_capture *c, uint32_t interface, const tv_wire *w, int lost,
               const tc_frame *f)
{
    /* an Enhanced Packet Block has 32 bytes besides frame and options */
    uint32_t size = 32 + ((f->len + 3) & ~3u) +
                    (lost ? 4 + (uint32_t)sizeof lost_comment + 4 : 0);
    if (reserve(c, size) < 0)
        return -1;
    uint64_t time_ns = f->time_ps / TV_PS_PER_NS;
    uint8_t *p = c->buffer + c->used;
    p = put(p, PACKET, 4);
    p = put(p, size, 4);
    p = put(p, interface, 4);
    p = put(p, time_ns >> 32, 4);
    p = put(p, time_ns, 4);
    p = put(p, f->len, 4);
    p = put(p, f->len + f->virt, 4);
    p = put_padded(p, f->data, f->len);
    if (lost) {
        p = put(p, OPTION_COMMENT, 2);
        p = put(p, sizeof lost_comment, 2);
        p = put_padded(p, lost_comment, sizeof lost_comment);
        p = put(p, 0, 4);
    }
    put(p, size, 4);
    c->records[c->n++] = (record){f->time_ps, w->index, size, c->used};
    c->used += size;
    return 0;
}

int tv_capture_add(const tv_wire *w, int lost, const tc_frame *f)
{
    for (const tv_captured *c = w->captures; c; c = c->next)
        if ((c->capture->file || c->capture->remote) &&
            add(c->capture, c->interface, w, lost, f) < 0)
            return -1;
    return 0;
}

static int compare(const void *x, const void *y)
{
    const record *a = x, *b = y;
    if (a->time_ps != b->time_ps)
        return a->time_ps < b->time_ps ? -1 : 1;
    if (a->wire != b->wire)
        return a->wire < b->wire ? -1 : 1;
    return a->offset < b->offset ? -1 : 1;
}

int tv_capture_flush(tv_net *net, int all)
{
    for (tv_capture *c = net->captures; c; c = c->next) {
        if (!c->file || !c->n || (!all && c->used < FLUSH_BYTES))
            continue;
        qsort(c->records, c->n, sizeof *c->records, compare);
        size_t n = c->n;
        c->n = c->used = 0;
        for (size_t i = 0; i < n; i++)
            if (fwrite(c->buffer + c->records[i].offset, c->records[i].size, 1,
                       c->file) != 1)
                return write_failed(c);
        if (all && fflush(c->file))
            return write_failed(c);
    }
    return 0;
}

/* ---- captures of other ranks ---- */

/* The header of what a capture has gathered: how many records and bytes (the
 * packet blocks) follow. */
typedef struct gathered {
    uint64_t records, bytes;
} gathered;

size_t tv_capture_size(const tv_net *net)
{
    size_t size = 0;
    for (const tv_capture *c = net->captures; c; c = c->next)
        size += sizeof(gathered) + c->n * sizeof(record) + c->used;
    return size;
}

static uint8_t *copy(uint8_t *to, const void *from, size_t size)
{
    if (size)
        memcpy(to, from, size);
    return to + size;
}

void tv_capture_take(tv_net *net, uint8_t *to)
{
    for (tv_capture *c = net->captures; c; c = c->next) {
        gathered g = {c->n, c->used};
        to = copy(to, &g, sizeof g);
        to = copy(to, c->records, c->n * sizeof *c->records);
        to = copy(to, c->buffer, c->used);
        c->n = c->used = 0;
    }
}

static int captures_differ(void)
{
    return tv_net_error("another rank has different captures");
}

/* All ranks have made the same captures, in the same order. */
int tv_capture_join(tv_net *net, const uint8_t *from, size_t size)
{
    for (tv_capture *c = net->captures; c; c = c->next) {
        gathered g;
        if (size < sizeof g)
            return captures_differ();
        memcpy(&g, from, sizeof g);
        from += sizeof g;
        size -= sizeof g;
        if (g.records > size / sizeof(record) ||
            g.bytes > size - g.records * sizeof(record))
            return captures_differ();
        const uint8_t *records = from;
        from += g.records * sizeof(record);
        size -= g.records * sizeof(record) + g.bytes;
        size_t before = c->used;
        for (uint64_t i = 0; i < g.records; i++, records += sizeof(record)) {
            record r;
            memcpy(&r, records, sizeof r);
            if (r.offset > g.bytes || r.size > g.bytes - r.offset)
                return captures_differ();
            if (reserve(c, r.size) < 0)
                return -1;
            memcpy(c->buffer + c->used, from + r.offset, r.size);
            r.offset += before;
            c->records[c->n++] = r;
            c->used += r.size;
        }
        from += g.bytes;
    }
    return size ? captures_differ() : 0;
}

int tv_capture_close(tv_net *net)
{
    int rc = tv_capture_flush(net, 1);
    while (net->captures) {
        tv_capture *gone = net->captures;
        net->captures = gone->next;
        if (gone->file && fclose(gone->file)) {
            gone->file = NULL;
            rc = rc < 0 ? rc : write_failed(gone);
        }
        capture_free(gone);
    }
    return rc;
}
