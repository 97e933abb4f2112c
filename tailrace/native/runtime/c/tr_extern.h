/* Configuration of meters and value sets; no locking here.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TR_EXTERN_H
#define TR_EXTERN_H

#include "tr_core.h"

/* rates NULL: unconfigured, every packet green. TR_EINVAL when cir > pir. */
int tr_meter_config(tr_meter *m, const tr_meter_rates *rates,
                    uint64_t now_ps);
int tr_vset_config(tr_vset *v, const uint8_t *values, const uint8_t *masks,
                   uint32_t n);

#endif
