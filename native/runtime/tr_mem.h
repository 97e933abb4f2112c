/* Memory for what packets touch: entries, ports, packet buffers.
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

#endif
