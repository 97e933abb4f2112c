/* Log messages of the core: errors and log_msg. Levels: 1 info, 2 warning, 3
 * error.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tr_core.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Logs a text. Replaces control characters: names in a program must not end a
 * line or control a terminal. */
static void emit(tr_switch *s, int level, char *text)
{
    if (!s->log)
        return;
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    s->log(s->log_arg, level, text);
}

void tr_logf(tr_switch *s, int level, const char *format, ...)
{
    if (!s->log)
        return;
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    emit(s, level, text);
}

void tr_set_log(tr_switch *s, tr_log_fn fn, void *arg)
{
    tr_switch_lock(s);
    s->log = fn;
    s->log_arg = arg;
    tr_switch_unlock(s);
}

void tr_log_msg(tr_switch *s, const char *format, const char *const *numbers,
                unsigned n)
{
    if (!s->log && !s->tracer)
        return;
    char text[1024];
    size_t length = 0;
    unsigned used = 0;
    for (const char *f = format; *f && length < sizeof text - 1; f++) {
        if (f[0] == '\\' && (f[1] == '{' || f[1] == '}')) {
            text[length++] = *++f;
        } else if (f[0] == '{' && strchr(f, '}') && used < n) {
            f = strchr(f, '}');
            int w = snprintf(text + length, sizeof text - length, "%s",
                             numbers[used++]);
            length += (size_t)w;
            if (length > sizeof text - 1)
                length = sizeof text - 1;
        } else {
            text[length++] = *f;
        }
    }
    text[length] = '\0';
    /* a tracer records the text as a step of its packet */
    if (!s->tracer || !tr_trace_text(s, 1, text))
        emit(s, 1, text);
}

void tr_decimal(const uint64_t *limbs, unsigned n, int is_signed, char *text)
{
    uint64_t v[64];
    char digits[64 * 20];
    unsigned count = 0;
    int negative = 0;
    if (n > 64)
        n = 64;
    memcpy(v, limbs, n * sizeof *v);
    if (is_signed && v[n - 1] >> 63) {
        negative = 1;
        unsigned carry = 1;
        for (unsigned i = 0; i < n; i++) {
            v[i] = ~v[i] + carry;
            carry = carry && v[i] == 0;
        }
    }
    int more = 1;
    while (more && count < sizeof digits) {
        tr_u128 rest = 0;
        more = 0;
        for (unsigned i = n; i-- > 0;) {
            tr_u128 t = rest << 64 | v[i];
            v[i] = (uint64_t)(t / 10);
            rest = t % 10;
            more |= v[i] != 0;
        }
        digits[count++] = (char)('0' + (int)rest);
    }
    if (negative)
        *text++ = '-';
    while (count > 0)
        *text++ = digits[--count];
    *text = '\0';
}
