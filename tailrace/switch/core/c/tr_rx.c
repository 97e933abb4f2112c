/* Reception of frames.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tr_tm.h"

int tr_data_rx(tr_switch *s, uint32_t port, const uint8_t *data,
               uint32_t len, uint32_t virt, uint64_t now_ps)
{
    tr_port *t = tr_port_get(s, port);
    if (!t)
        return port < TR_MAX_PORTS ? TR_ENOMEM : TR_ERANGE;
    if (s->next_event_ps <= now_ps)
        tr_data_run(s, now_ps);
    if (now_ps > s->now_ps)
        s->now_ps = now_ps;
    t->stats.rx_packets++;
    t->stats.rx_bytes += (uint64_t)len + virt;
    s->account.rx_virt += virt;
    const tr_lost frame = {.data = data, .len = len, .virt = virt};
    enum tr_drop control =
        t->pfc.enabled ? tr_pfc_obey(s, port, data, len, s->now_ps)
                       : TR_DROP_COUNT;
    if (control != TR_DROP_COUNT) {
        tr_lose(s, control, &frame);
        tr_data_run(s, s->now_ps);
        return TR_OK;
    }
    if (!s->prog || (uint64_t)len + virt > TR_MAX_FRAME) {
        tr_lose(s, s->prog ? TR_DROP_TOO_LONG : TR_DROP_NO_PIPELINE, &frame);
        return TR_OK;
    }
    tr_pkt *p = tr_pkt_in(s, port, data, len, virt);
    if (!p) {
        tr_lose(s, TR_DROP_NO_BUFFER, &frame);
        /* with a configured limit of memory, this is a drop and not an error */
        return s->cfg.packet_bytes ? TR_OK : TR_ENOMEM;
    }
    TR_TRACE_MARK(s, p);
    TR_INGRESS(s, p, s->now_ps);
    tr_data_run(s, s->now_ps);
    return TR_OK;
}
