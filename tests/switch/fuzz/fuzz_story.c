/* Stories: what a controller wrote, done again; the frames that came.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of a record, and what follows them:
 *
 *   FUZZ_INSERT     table, prefix, priority, target: kind, id, n; n limbs of
 *                   eight bytes; key and mask, each half of the rest
 *   FUZZ_DEFAULT    the same without key and mask; a kind that is none: no target
 *   FUZZ_MEMBER     the same; for table its profile
 *   FUZZ_GROUP      profile, handle, 0; members
 *   FUZZ_MULTICAST  group, 0, 0; port and instance of each replica
 *   FUZZ_CLONE      session, class of service, length; the same
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LIMBS 64u
#define MAX_NUMBERS 256u
#define HEAD_BYTES 3u

static void broken(void)
{
    fprintf(stderr, "fuzz: the story is broken\n");
    abort();
}

fuzz_story fuzz_story_read(const char *path)
{
    fuzz_story none = {NULL, NULL};
    FILE *f = path ? fopen(path, "rb") : NULL;
    if (!path)
        return none;
    if (!f || fseek(f, 0, SEEK_END) < 0)
        broken();
    long size = ftell(f);
    static uint8_t *kept;
    kept = malloc((size_t)size + 1);
    rewind(f);
    if (!kept || fread(kept, 1, (size_t)size, f) != (size_t)size)
        broken();
    fclose(f);
    return (fuzz_story){kept, kept + size};
}

int fuzz_story_next(fuzz_story *story, fuzz_record *out)
{
    if (story->at == story->end)
        return 0;
    if (story->end - story->at < (long)HEAD_BYTES)
        broken();
    out->kind = story->at[0];
    out->len = story->at[1] | (uint32_t)story->at[2] << 8;
    out->data = story->at + HEAD_BYTES;
    if (story->end - out->data < (long)out->len)
        broken();
    story->at = out->data + out->len;
    return 1;
}

static void target_call(const fuzz_record *r, tr_switch *s)
{
    uint32_t head[6];
    uint64_t limbs[MAX_LIMBS];
    if (r->len < sizeof head)
        broken();
    memcpy(head, r->data, sizeof head);
    if (head[5] > MAX_LIMBS || r->len < sizeof head + 8 * head[5])
        broken();
    const uint8_t *key = r->data + sizeof head + 8 * head[5];
    uint32_t half = (uint32_t)(r->data + r->len - key) / 2;
    memcpy(limbs, r->data + sizeof head, 8 * head[5]);
    tr_target target = {head[3], head[4], limbs, head[5]};
    if (r->kind == FUZZ_MEMBER)
        tr_member_add(s, head[0], &target);
    else if (r->kind == FUZZ_DEFAULT)
        tr_table_default(s, head[0], head[3] > TR_TARGET_GROUP ? NULL : &target);
    else if (head[0] < s->prog->n_tables &&
             s->prog->tables[head[0]].key_bytes == half)
        tr_table_insert(s, head[0], key, key + half, head[1], (int32_t)head[2],
                        &target, 0, 0);
    else
        broken();
}

static void numbers_call(const fuzz_record *r, tr_switch *s)
{
    uint32_t numbers[MAX_NUMBERS], n = r->len / 4;
    tr_replica replicas[MAX_NUMBERS / 2];
    if (n > MAX_NUMBERS || n < 3)
        broken();
    memcpy(numbers, r->data, n * 4);
    if (r->kind == FUZZ_GROUP) {
        tr_group_add(s, numbers[0], (int)(numbers[2] & 1), NULL);
        tr_group_set(s, numbers[0], (int)numbers[1], (int *)numbers + 3, n - 3);
        return;
    }
    uint32_t count = (n - 3) / 2;
    for (uint32_t i = 0; i < count; i++)
        replicas[i] = (tr_replica){numbers[3 + 2 * i], numbers[4 + 2 * i]};
    if (r->kind == FUZZ_MULTICAST)
        tr_mcast_set(s, numbers[0], replicas, count);
    else
        tr_clone_set(s, numbers[0], replicas, count, numbers[1], numbers[2]);
}

void fuzz_story_control(const fuzz_story *story, tr_switch *s)
{
    fuzz_story rest = *story;
    fuzz_record r;
    while (fuzz_story_next(&rest, &r)) {
        if (r.kind == FUZZ_INSERT || r.kind == FUZZ_DEFAULT ||
            r.kind == FUZZ_MEMBER)
            target_call(&r, s);
        else if (r.kind != FUZZ_FRAME)
            numbers_call(&r, s);
    }
}
