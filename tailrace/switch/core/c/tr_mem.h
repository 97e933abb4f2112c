/* Memory of the data plane: entries, ports, packet buffers.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A large network has hundreds of switches whose tables together are far
 * larger than what the processor can address without walking page tables. So
 * these parts come from chunks of huge pages that all switches of the process
 * share. Blocks begin at cache lines; freed ones are used again for blocks of
 * the same size, chunks are never given back. Any thread may call.
 */
#ifndef TR_MEM_H
#define TR_MEM_H

#include <stddef.h>

/* A block of zeros, NULL when out of memory. */
void *tr_mem_new(size_t size);
/* Gives back a block of this size; block may be NULL. */
void tr_mem_free(void *block, size_t size);

/* An array of zeros of this size, NULL when out of memory. Unwritten pages
 * take none. calloc does not promise that: in a process that has freed
 * large blocks it hands them out again, cleared byte by byte. */
void *tr_mem_array(size_t size);
void tr_mem_array_free(void *array, size_t size);

/* malloc, calloc and realloc for all other state of a program. */
void *tr_malloc(size_t size);
void *tr_calloc(size_t n, size_t size);
void *tr_realloc(void *block, size_t size);

/* For tests: after n more blocks of any kind there is no memory; n < 0: there
 * is again. */
void tr_mem_limit(long n);

#endif
