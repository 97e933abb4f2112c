/* Memory of the data plane: blocks of whole cache lines in huge pages.
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE 1
#include "tr_mem.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LINE 64u
#define HUGE (2u << 20)       /* bytes of a chunk, and of a huge page */
#define LINES_MAX 64u         /* larger blocks are allocated separately */
#define ARRAY_BYTES 65536u    /* arrays from this size on are mapped */

static size_t lines_of(size_t size)
{
    return size ? (size + LINE - 1) / LINE : 1;
}

/* ---- simulated lack of memory, for tests ---- */

/* allocations that still succeed; -1: no limit */
static atomic_long blocks_left = -1;

void tr_mem_limit(long n)
{
    atomic_store(&blocks_left, n < 0 ? -1 : n);
}

static int refused(void)
{
    if (atomic_load_explicit(&blocks_left, memory_order_relaxed) < 0)
        return 0;
    if (atomic_fetch_sub(&blocks_left, 1) > 0)
        return 0;
    atomic_store(&blocks_left, 0);
    return 1;
}

void *tr_malloc(size_t size)
{
    return refused() ? NULL : malloc(size);
}

void *tr_calloc(size_t n, size_t size)
{
    return refused() ? NULL : calloc(n, size);
}

void *tr_realloc(void *block, size_t size)
{
    return refused() ? NULL : realloc(block, size);
}

/* ---- blocks ---- */

static void *allocate_lines(size_t lines)
{
    void *block = aligned_alloc(LINE, lines * LINE);
    if (block)
        memset(block, 0, lines * LINE);
    return block;
}

#ifdef __SANITIZE_ADDRESS__
void *tr_mem_array(size_t size)
{
    return tr_calloc(1, size);
}

void tr_mem_array_free(void *array, size_t size)
{
    (void)size;
    free(array);
}

/* Allocates each block separately, so that overruns are detected. */
void *tr_mem_new(size_t size)
{
    return refused() ? NULL : allocate_lines(lines_of(size));
}

void tr_mem_free(void *block, size_t size)
{
    (void)size;
    free(block);
}
#else

void *tr_mem_array(size_t size)
{
    if (size < ARRAY_BYTES)
        return tr_calloc(1, size);
    void *array = refused() ? MAP_FAILED
                            : mmap(NULL, size, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return array == MAP_FAILED ? NULL : array;
}

void tr_mem_array_free(void *array, size_t size)
{
    if (size < ARRAY_BYTES)
        free(array);
    else if (array)
        munmap(array, size);
}

typedef struct free_block {
    struct free_block *next;
} free_block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static free_block *free_blocks[LINES_MAX + 1];
static uint8_t *chunk;        /* unused rest of the newest chunk */
static size_t chunk_bytes;    /* size of the unused rest */

/* Maps a chunk, aligned to its size; returns 0 if there is no memory. */
static int chunk_new(void)
{
    uint8_t *area = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED)
        return 0;
    uint8_t *aligned =
        (uint8_t *)(((uintptr_t)area + HUGE - 1) / HUGE * HUGE);
    if (aligned > area)
        munmap(area, (size_t)(aligned - area));
    munmap(aligned + HUGE, (size_t)(area + HUGE - aligned));
    madvise(aligned, HUGE, MADV_HUGEPAGE); /* may fail: then normal pages */
    chunk = aligned;
    chunk_bytes = HUGE;
    return 1;
}

void *tr_mem_new(size_t size)
{
    size_t lines = lines_of(size);
    if (refused())
        return NULL;
    if (lines > LINES_MAX)
        return allocate_lines(lines);
    pthread_mutex_lock(&lock);
    free_block *block = free_blocks[lines];
    if (block) {
        free_blocks[lines] = block->next;
        memset(block, 0, lines * LINE);
    } else if (chunk_bytes >= lines * LINE || chunk_new()) {
        block = (free_block *)(void *)chunk;
        chunk += lines * LINE;
        chunk_bytes -= lines * LINE;
    }
    pthread_mutex_unlock(&lock);
    return block;
}

void tr_mem_free(void *block, size_t size)
{
    size_t lines = lines_of(size);
    free_block *freed = block;
    if (!freed)
        return;
    if (lines > LINES_MAX) {
        free(block);
        return;
    }
    pthread_mutex_lock(&lock);
    freed->next = free_blocks[lines];
    free_blocks[lines] = freed;
    pthread_mutex_unlock(&lock);
}
#endif
