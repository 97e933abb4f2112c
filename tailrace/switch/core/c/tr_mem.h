/* Memory of the data plane: entries, ports, packet buffers.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A large network has hundreds of switches. With normal pages, their tables are
 * far larger than the memory that the processor's TLB covers. So entries, ports
 * and packet buffers are allocated from chunks of huge pages that all switches
 * of the process share. Blocks are aligned to cache lines. Freed blocks are
 * reused for blocks of the same size; chunks are never freed. The functions are
 * thread-safe.
 */
#ifndef TR_MEM_H
#define TR_MEM_H

#include <stddef.h>

/* Allocates a block of zeros; NULL: no memory. */
void *tr_mem_new(size_t size);
/* Frees a block of this size; block may be NULL. */
void tr_mem_free(void *block, size_t size);

/* Allocates an array of zeros of this size; NULL: no memory. Pages that are
 * never written use no memory. calloc does not guarantee that: it may reuse a
 * large freed block, and then clears the block byte by byte. */
void *tr_mem_array(size_t size);
void tr_mem_array_free(void *array, size_t size);

/* malloc, calloc and realloc for all other state of a program. */
void *tr_malloc(size_t size);
void *tr_calloc(size_t n, size_t size);
void *tr_realloc(void *block, size_t size);

/* For tests: all allocations after the next n fail; n < 0: none fails. */
void tr_mem_limit(long n);

#endif
