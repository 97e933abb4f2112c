/* The stand-in for the switch core, as tests see it; Python reads this, too.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STANDIN_H
#define STANDIN_H

#include "tr_switch.h"

tr_switch *standin_new(uint64_t delay_ns);
/* What the stand-in has seen: 0 frames dropped because a blocked port's queue
 * was full, 1 frames popped, not released, 2 blockings, 3 times the clock ran
 * backwards. */
uint64_t standin_read(tr_switch *s, uint32_t what);
int standin_up(tr_switch *s, uint32_t port);
void standin_take_digests(tr_switch *s);
/* The lock by itself, as a control call takes it. */
void standin_control_call(tr_switch *s);
void standin_free(tr_switch *s);

#endif
