/* Meters, value sets, the random extern and digests.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tr_table.h"

#include "tr_mem.h"

#include <stdlib.h>

/* Whole tokens that a bucket receives in `ps` at `rate` tokens/s; *frac carries
 * the fraction of a token to the next call. */
static tr_u128 new_tokens(uint64_t rate, uint64_t ps, uint64_t *frac)
{
    uint64_t narrow;
    if (!__builtin_mul_overflow(rate, ps, &narrow) &&
        !__builtin_add_overflow(narrow, *frac, &narrow)) {
        /* a 64-bit division is several times faster than a 128-bit division */
        *frac = narrow % TR_PS_PER_S;
        return narrow / TR_PS_PER_S;
    }
    tr_u128 grown = (tr_u128)rate * ps + *frac;
    *frac = (uint64_t)(grown % TR_PS_PER_S);
    return grown / TR_PS_PER_S;
}

static uint64_t refill(uint64_t tokens, uint64_t burst, uint64_t rate,
                       uint64_t ps, uint64_t *frac)
{
    tr_u128 sum = new_tokens(rate, ps, frac) + tokens;
    if (sum < burst)
        return (uint64_t)sum;
    *frac = 0; /* tokens for a full bucket are lost */
    return burst;
}

/* Two-rate three-colour marker (RFC 2698, colour-blind) as in simple_switch:
 * tokens are taken from the peak bucket first, and a yellow packet takes none
 * from the committed bucket. Returns 0 (green), 1 (yellow) or 2 (red). */
static uint32_t two_rates(tr_meter *m, uint64_t amount, uint64_t ps)
{
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

/* Single-rate three-colour marker (RFC 2697, colour-blind): tokens that do not
 * fit into the committed bucket go into the bucket of the excess burst, for
 * which p_tokens, pburst and p_frac are used here. */
static uint32_t one_rate(tr_meter *m, uint64_t amount, uint64_t ps)
{
    tr_u128 sum = new_tokens(m->cir, ps, &m->c_frac) + m->c_tokens;
    if (sum < m->cburst) {
        m->c_tokens = (uint64_t)sum;
    } else {
        tr_u128 excess = sum - m->cburst + m->p_tokens;
        m->p_frac += m->c_frac;
        if (m->p_frac >= TR_PS_PER_S) {
            m->p_frac -= TR_PS_PER_S;
            excess++;
        }
        m->c_tokens = m->cburst;
        m->c_frac = 0;
        if (excess < m->pburst) {
            m->p_tokens = (uint64_t)excess;
        } else {
            m->p_tokens = m->pburst;
            m->p_frac = 0;
        }
    }
    if (m->c_tokens >= amount) {
        m->c_tokens -= amount;
        return 0;
    }
    if (m->p_tokens >= amount) {
        m->p_tokens -= amount;
        return 1;
    }
    return 2;
}

uint32_t tr_meter_execute(tr_meter *m, uint32_t in_len, uint64_t amount,
                          uint64_t now_ps)
{
    uint32_t colour = 0;
    if (m->mode != TR_METER_UNSET) {
        uint64_t ps = now_ps > m->last_ps ? now_ps - m->last_ps : 0;
        m->last_ps += ps;
        colour = m->mode == TR_METER_TWO_RATES ? two_rates(m, amount, ps)
                                               : one_rate(m, amount, ps);
    }
    m->counts[colour].bytes += in_len;
    m->counts[colour].packets++;
    return colour;
}

/* The buckets are full afterwards; the counts keep their values. */
int tr_meter_config(tr_meter *m, const tr_meter_rates *rates, uint64_t now_ps)
{
    if (rates && (rates->cir > rates->pir ||
                  (rates->eburst && (rates->pir != rates->cir ||
                                     rates->pburst != rates->cburst))))
        return TR_EINVAL;
    tr_meter new = {.mode = TR_METER_UNSET};
    if (rates) {
        new.mode = rates->eburst ? TR_METER_ONE_RATE : TR_METER_TWO_RATES;
        new.last_ps = now_ps;
        new.cir = rates->cir;
        new.cburst = new.c_tokens = rates->cburst;
        new.pir = rates->pir;
        new.pburst = new.p_tokens =
            rates->eburst ? rates->eburst : rates->pburst;
    }
    memcpy(new.counts, m->counts, sizeof new.counts);
    *m = new;
    return TR_OK;
}

tr_meter_rates tr_meter_rates_of(const tr_meter *m)
{
    int single_rate = m->mode == TR_METER_ONE_RATE;
    return (tr_meter_rates){m->cir, m->cburst, m->pir,
                            single_rate ? m->cburst : m->pburst,
                            single_rate ? m->pburst : 0};
}

int tr_vset_match(const tr_vset *v, const uint8_t *key, const uint8_t *mask)
{
    for (uint32_t i = 0; i < v->n; i++) {
        const uint8_t *value = v->values + i * v->key_bytes;
        const uint8_t *value_mask = v->masks + i * v->key_bytes;
        uint32_t b = 0;
        while (b < v->key_bytes &&
               !((key[b] ^ value[b]) & value_mask[b] & (mask ? mask[b] : 0xff)))
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

/* splitmix64 (Steele et al., OOPSLA 2014): random enough for load balancing. */
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

/* ---- digests: a ring of records {digest, time, limbs ...}; a limb is 64 bits
 * of a value, the lowest first ---- */

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
