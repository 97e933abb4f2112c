/* The data plane, which is compiled into each program. So the program's sizes
 * are constants, and the compiler optimises all packet processing in one unit.
 * Rarely used code, and state shared by all switches of a process, are in the
 * runtime.
 * SPDX-License-Identifier: Apache-2.0
 *
 * tr_v1model.h includes this at its end.
 */
#undef TR_PHV_SIZE
#undef TR_PHV_CARRIED
#undef TR_INGRESS
#undef TR_EGRESS
#define TR_PHV_SIZE(s) ((void)(s), (uint32_t)sizeof(struct tr_phv))
#define TR_PHV_CARRIED(s) ((void)(s), (uint32_t)TRP_CARRIED)
#define TR_INGRESS trm_ingress
#define TR_EGRESS trm_egress

#include "tr_buffer.c"
#include "tr_loop.c"
#include "tr_pack.c"
#include "tr_pkt.c"
#include "tr_rx.c"
#include "tr_tm.c"
