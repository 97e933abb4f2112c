/* Configuration of meters and value sets; the caller has the lock.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TR_EXTERN_H
#define TR_EXTERN_H

#include "tr_core.h"

/* rates NULL: every packet is green. Returns TR_EINVAL if cir > pir, or if
 * there is an excess burst and pir or pburst differ from cir and cburst. */
int tr_meter_config(tr_meter *m, const tr_meter_rates *rates,
                    uint64_t now_ps);
tr_meter_rates tr_meter_rates_of(const tr_meter *m);
int tr_vset_config(tr_vset *v, const uint8_t *values, const uint8_t *masks,
                   uint32_t n);

#endif
