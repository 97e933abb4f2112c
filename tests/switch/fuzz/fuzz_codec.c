/* Fuzz target of libFuzzer: the codec of hosts' frames reads whatever comes,
 * and reads what it has written as it was meant.
 * SPDX-License-Identifier: Apache-2.0
 *
 * FUZZ_LAYOUT names a file of numbers of four bytes from tailrace.codec.table:
 * the layout, and then the offsets that the ICRC takes as ones.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tc_bytes.h"

#define MAX_HEADS 128u
#define MAX_PAYLOAD 65536u
#define VALUES (sizeof(tc_layout) / sizeof(uint32_t))

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static tc_codec codec;
static uint64_t frames;
static const tc_layout *const l = &codec.layout;

/* What is left of the input; zeros behind its end. */
typedef struct input {
    const uint8_t *at, *end;
} input;

static void take(input *in, void *out, size_t n)
{
    size_t left = (size_t)(in->end - in->at), given = n < left ? n : left;
    memcpy(out, in->at, given);
    memset((uint8_t *)out + given, 0, n - given);
    in->at += given;
}

static uint64_t number(input *in, size_t bytes)
{
    uint64_t x = 0;
    take(in, &x, bytes);
    return x;
}

static void notify(void)
{
    const char *path = getenv("FUZZ_COUNTS");
    FILE *f = path ? fopen(path, "w") : NULL;
    if (!f)
        return;
    fprintf(f, "frames=%" PRIu64 " controls=0\n", frames);
    fclose(f);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    atexit(notify);
    uint32_t values[VALUES + TC_HEADERS_MAX];
    const char *path = getenv("FUZZ_LAYOUT");
    FILE *f = path ? fopen(path, "rb") : NULL;
    size_t n = f ? fread(values, sizeof *values, sizeof values / sizeof *values, f) : 0;
    if (n < VALUES ||
        tc_codec_init(&codec, values, VALUES, values + VALUES,
                      (uint32_t)(n - VALUES)) < 0) {
        fprintf(stderr, "fuzz: FUZZ_LAYOUT names no layout\n");
        exit(1);
    }
    fclose(f);
    return 0;
}

static void must(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz: %s\n", what);
    abort();
}

/* Reads a copy of the frame's very length, over fields that are zeros and over
 * others. */
static tc_packet parse(const uint8_t *frame, uint32_t len, uint32_t virt)
{
    tc_packet one, other;
    uint8_t *copy = malloc(len ? len : 1);
    if (!copy)
        abort();
    memcpy(copy, frame, len);
    memset(&one, 0, sizeof one);
    memset(&other, 0xff, sizeof other);
    tc_parse(&codec, copy, len, virt, &one);
    tc_parse(&codec, copy, len, virt, &other);
    free(copy);
    frames++;
    must(one.kind == other.kind, "a frame is read in two ways");
    must(one.kind != TC_DISCARD || one.reason == other.reason,
         "a frame is discarded for two reasons");
    return one;
}

/* A head that says what it must, and else what the input says. */
static int template_of(input *in, uint32_t kind, tc_template *t)
{
    uint8_t head[MAX_HEADS], body[MAX_HEADS];
    int shimmed = number(in, 1) & 1 && kind == l->kind_data;
    uint32_t plain = l->udp_end + l->bth_bytes;
    uint32_t bytes = kind == l->kind_nic_ack ? l->nic_ack_bytes
                     : shimmed               ? plain + l->shim_bytes
                                             : plain;
    take(in, head, sizeof head);
    take(in, body, sizeof body);
    tc_put16(head + l->ether_type, l->type_ipv4);
    head[l->ip_version] = (uint8_t)l->ip_no_options;
    head[l->ip_tos] &= 3;
    head[l->ip_proto] = (uint8_t)l->udp_protocol;
    tc_put16(head + l->ip_fragment, 0);
    tc_put16(head + l->udp_dport, kind == l->kind_nic_ack ? l->port_nic_ack
                                  : shimmed               ? l->port_shim
                                                          : l->port_roce);
    if (kind != l->kind_data) { /* the others' lengths stand in their heads */
        uint32_t end = kind == l->kind_nic_ack
                           ? bytes
                           : plain + l->aeth_bytes + TC_ICRC_BYTES;
        head[plain - l->bth_bytes + l->bth_opcode] = (uint8_t)l->op_ack;
        tc_put16(head + l->ip_len, end - l->ip);
        tc_put16(head + l->udp_len, end - l->udp);
        tc_put16(head + l->ip_chksum, 0);
        tc_put16(head + l->ip_chksum,
                 ~tc_inet_sum(head + l->ip, l->udp - l->ip));
    }
    return tc_template_init(&codec, t, kind, head, bytes, body,
                            kind == l->kind_data ? l->reth_bytes : 0);
}

/* A frame that the codec writes, as it reads it, and what it reads once some
 * bytes of it are others. */
static void written(input *in, uint32_t kind)
{
    static const uint32_t opcodes[] = {0, 1, 2, 3};
    uint8_t frame[TC_BUILD_MAX];
    tc_template t;
    uint32_t virt = 0, len = 0;
    must(template_of(in, kind, &t) == 0, "a template is refused");
    uint64_t psn = number(in, 3), sport = number(in, 2);
    uint64_t psn_fields = psn | sport << l->sport_shift;
    uint64_t payload = number(in, 2), pick = opcodes[number(in, 1) % 4];
    uint32_t opcode = pick == 0   ? l->op_first
                      : pick == 1 ? l->op_middle
                      : pick == 2 ? l->op_last
                                  : l->op_only;
    uint64_t fields = payload | (uint64_t)opcode << l->opcode_shift |
                      (number(in, 1) & 1) << l->retransmission_shift |
                      (number(in, 1) & 1) << l->ackreq_shift;
    uint32_t word = (uint32_t)number(in, 4), ticks = (uint32_t)number(in, 4);
    if (kind == l->kind_data)
        len = tc_build_data(&codec, &t, psn_fields, fields, ticks, frame, &virt);
    else if (kind == l->kind_ack)
        len = tc_build_ack(&codec, &t, psn_fields, word, frame);
    else
        len = tc_build_nic_ack(&codec, &t, word, ticks, frame);
    if (len == 0)
        return; /* longer than IPv4 can say */
    must(len <= sizeof frame, "a frame has no room");
    tc_packet p = parse(frame, len, virt);
    if (kind == l->kind_data) {
        must(p.kind == TC_DATA, "data that was written is none");
        must(p.psn == (psn & l->bth_psn_mask) && p.wire_sport == sport,
             "data says another number or port");
        must(tc_payload_bytes(&codec, p.data_fields) == payload,
             "data has another length");
        must(p.ticks == (t.shimmed ? (int64_t)ticks : -1),
             "data has another time");
    } else if (kind == l->kind_ack) {
        must(p.kind == TC_ACK && p.psn == (psn & l->bth_psn_mask) &&
                 p.aeth == word,
             "an ACK says something else");
    } else {
        must(p.kind == TC_NIC_ACK && p.count == word && p.ticks == ticks,
             "a NIC's ACK says something else");
    }
    while (in->at < in->end) {
        uint64_t at = number(in, 1);
        frame[at % len] ^= (uint8_t)number(in, 1);
        parse(frame, len - (uint32_t)(at >> 7) * (uint32_t)(number(in, 1) % len),
              virt);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, data + size};
    uint8_t *payload;
    switch (number(&in, 1) % 5) {
    case 0:
        written(&in, l->kind_data);
        break;
    case 1:
        written(&in, l->kind_ack);
        break;
    case 2:
        written(&in, l->kind_nic_ack);
        break;
    case 3: {
        /* a payload that is there */
        uint8_t frame[TC_BUILD_MAX], tail[TC_TAIL_MAX];
        tc_template t;
        uint32_t tail_bytes = 0;
        must(template_of(&in, l->kind_data, &t) == 0, "a template is refused");
        uint64_t fields = number(&in, 8), psn_fields = number(&in, 8);
        uint32_t bytes = tc_payload_bytes(&codec, fields) % MAX_PAYLOAD;
        fields = (fields >> l->opcode_shift << l->opcode_shift) | bytes;
        payload = calloc(1, bytes + 1);
        if (!payload)
            abort();
        take(&in, payload, bytes);
        uint32_t len =
            tc_build_payload(&codec, &t, psn_fields, fields, 7, payload, frame,
                             tail, &tail_bytes);
        must(len <= sizeof frame && tail_bytes <= sizeof tail,
             "a frame has no room");
        free(payload);
        frames++;
        break;
    }
    default: {
        uint32_t virt = number(&in, 1) & 1 ? (uint32_t)number(&in, 4) : 0;
        parse(in.at, (uint32_t)(in.end - in.at), virt);
        break;
    }
    }
    return 0;
}
