/* Meters, value sets, the random extern and digests.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tr_extern.h"
#include "tr_mem.h"

#include <stdlib.h>

/* Tokens that `rate` (a second) brings in `ps`; *frac carries the fraction. */
static uint64_t refill(uint64_t tokens, uint64_t burst, uint64_t rate,
                       uint64_t ps, uint64_t *frac)
{
    uint64_t narrow;
    tr_u128 whole;
    if (!__builtin_mul_overflow(rate, ps, &narrow) &&
        !__builtin_add_overflow(narrow, *frac, &narrow)) {
        /* a division of 64 bits, which is several times as fast */
        whole = narrow / TR_PS_PER_S;
        *frac = narrow % TR_PS_PER_S;
    } else {
        tr_u128 grown = (tr_u128)rate * ps + *frac;
        whole = grown / TR_PS_PER_S;
        *frac = (uint64_t)(grown % TR_PS_PER_S);
    }
    tr_u128 sum = whole + tokens;
    if (sum < burst)
        return (uint64_t)sum;
    *frac = 0; /* what a full bucket gets is lost */
    return burst;
}

/* Two-rate three-colour marker (RFC 2698, colour-blind) as simple_switch runs
 * it: the peak bucket is charged first, and a yellow packet leaves the
 * committed bucket alone. */
uint32_t tr_meter_execute(tr_meter *m, uint64_t amount, uint64_t now_ps)
{
    if (!m || !m->configured)
        return 0;
    uint64_t ps = now_ps > m->last_ps ? now_ps - m->last_ps : 0;
    m->last_ps = now_ps > m->last_ps ? now_ps : m->last_ps;
    m->p_tokens = refill(m->p_tokens, m->pburst, m->pir, ps, &m->p_frac);
    m->c_tokens = refill(m->c_tokens, m->cburst, m->cir, ps, &m->c_frac);
    if (m->p_tokens < amount)
        return 2;
    m->p_tokens -= amount;
    if (m->c_tokens < amount)
        return 1;
    m->c_tokens -= amount;
    return 0;
}

/* Buckets start full. */
int tr_meter_config(tr_meter *m, const tr_meter_rates *rates, uint64_t now_ps)
{
    memset(m, 0, sizeof *m);
    if (!rates)
        return TR_OK;
    if (rates->cir > rates->pir)
        return TR_EINVAL;
    m->configured = 1;
    m->last_ps = now_ps;
    m->cir = rates->cir;
    m->cburst = m->c_tokens = rates->cburst;
    m->pir = rates->pir;
    m->pburst = m->p_tokens = rates->pburst;
    return TR_OK;
}

int tr_vset_match(const tr_vset *v, const uint8_t *key, const uint8_t *mask)
{
    for (uint32_t i = 0; i < v->n; i++) {
        const uint8_t *value = v->values + i * v->key_bytes;
        const uint8_t *care = v->masks + i * v->key_bytes;
        uint32_t b = 0;
        while (b < v->key_bytes &&
               !((key[b] ^ value[b]) & care[b] & (mask ? mask[b] : 0xff)))
            b++;
        if (b == v->key_bytes)
            return 1;
    }
    return 0;
}

int tr_vset_config(tr_vset *v, const uint8_t *values, const uint8_t *masks,
                   uint32_t n)
{
    size_t size = (size_t)n * v->key_bytes;
    uint8_t *both = tr_malloc(2 * size + 1);
    if (!both)
        return TR_ENOMEM;
    memcpy(both, values, size);
    memcpy(both + size, masks, size);
    free(v->values);
    v->values = both;
    v->masks = both + size;
    v->n = n;
    return TR_OK;
}

/* xoshiro would be overkill: splitmix64 passes what a load balancer needs. */
static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

uint64_t tr_random(tr_switch *s, uint64_t lo, uint64_t hi)
{
    uint64_t r = splitmix64(&s->rng);
    uint64_t span = hi - lo;
    if (span == UINT64_MAX)
        return r;
    return lo + (uint64_t)(((tr_u128)r * (span + 1)) >> 64);
}

/* ---- digests: a ring of records {digest, time, limbs ...} ---- */

static uint64_t *digest_at(const tr_switch *s, uint32_t i)
{
    return s->digests +
           (size_t)(i % TR_DIGEST_RING) * (s->prog->digest_limbs + 2u);
}

void tr_digest_push(tr_switch *s, uint32_t digest, uint64_t now_ps,
                    const uint64_t *limbs, uint32_t n)
{
    if (s->digest_count == TR_DIGEST_RING) {
        tr_logf(s, 2, "digest message lost: %u wait already",
                TR_DIGEST_RING);
        return;
    }
    uint64_t *r = digest_at(s, s->digest_head + s->digest_count++);
    r[0] = digest;
    r[1] = now_ps;
    memcpy(r + 2, limbs, n * sizeof *limbs);
}

int tr_digest_pending(const tr_switch *s)
{
    return s->digest_count > 0;
}

int tr_digest_pop(tr_switch *s, uint64_t *time_ps, uint64_t *limbs,
                  uint32_t max)
{
    int digest = TR_ENOENT;
    tr_switch_lock(s);
    if (s->digest_count > 0) {
        const uint64_t *r = digest_at(s, s->digest_head);
        uint32_t n = s->prog->digest_limbs;
        digest = (int)r[0];
        *time_ps = r[1];
        memcpy(limbs, r + 2, (n < max ? n : max) * sizeof *limbs);
        s->digest_head = (s->digest_head + 1) % TR_DIGEST_RING;
        s->digest_count--;
    }
    tr_switch_unlock(s);
    return digest;
}
