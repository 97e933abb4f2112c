/* Fuzz target of libFuzzer: what the real-time front end does with frames that
 * hosts left to hardware: checksums, segments, tags.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tri_offload.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TAG_BYTES 4u
#define ADDRESSES 12u

static uint64_t frames;

static void tell(void)
{
    const char *path = getenv("FUZZ_COUNTS");
    FILE *f = path ? fopen(path, "w") : NULL;
    if (!f)
        return;
    fprintf(f, "frames=%" PRIu64 " controls=0\n", frames);
    fclose(f);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    atexit(tell);
    return 0;
}

static void *copy_of(const uint8_t *data, size_t len, size_t before)
{
    uint8_t *copy = malloc(before + len + 1);
    if (!copy)
        abort();
    memcpy(copy + before, data, len);
    return realloc(copy, before + len ? before + len : 1);
}

static void must(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz: %s\n", what);
    abort();
}

static void cut(const uint8_t *data, uint32_t len,
                const struct virtio_net_hdr *h, tri_link link)
{
    tri_cut c;
    uint8_t *frame = copy_of(data, len, 0);
    if (tri_cut_begin(&c, frame, len, h, link) == 0) {
        uint8_t *out = malloc((size_t)c.payload + c.step);
        uint32_t all = 0, segment;
        if (!out)
            abort();
        while ((segment = tri_cut_next(&c, out)) != 0) {
            must(segment > c.payload && segment <= c.payload + c.step,
                 "a segment has no room or no payload");
            all += segment - c.payload;
            frames++;
        }
        must(all == len - c.payload, "segments are not the whole frame");
        free(out);
    }
    free(frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct virtio_net_hdr h;
    if (size < sizeof h + 1)
        return 0;
    memcpy(&h, data, sizeof h);
    tri_link link = (tri_link)(data[sizeof h] % 3);
    const uint8_t *frame = data + sizeof h + 1;
    uint32_t len = (uint32_t)(size - sizeof h - 1);
    frames++;
    uint8_t *copy = copy_of(frame, len, 0);
    tri_checksum(copy, len, h.csum_start, h.csum_offset);
    free(copy);
    if (len >= ADDRESSES) {
        copy = copy_of(frame, len, TAG_BYTES);
        uint8_t *tagged = tri_tag(copy + TAG_BYTES, 0x8100, 7);
        must(tagged == copy && !memcmp(tagged, frame, ADDRESSES),
             "a tag stands in the wrong place");
        free(copy);
    }
    cut(frame, len, &h, link);
    return 0;
}
