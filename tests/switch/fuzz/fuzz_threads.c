/* Fuzz driver for the thread sanitizer: the real-time front end around a
 * program, with frames on its wires while others control, read and reload it.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   fuzz_threads MILLISECONDS SEED [STORY]
 *
 * Wants to be root: it makes itself a network namespace with four ports; all
 * others are ports by hand. The
 * threads are those of tailrace_switch_grpc: the packet loop, the server's
 * thread that calls for clients, one that frees what was replaced; and hosts.
 * On success it prints one line:
 *
 *   frames=N controls=N received=N
 */
#define _GNU_SOURCE 1
#include <arpa/inet.h>
#include <inttypes.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"
#include "tri_loop.h"

extern const tr_program tr_program_entry;

#define PORTS 4u
#define CPU_PORT 510u
#define RELOAD_EVERY 400u
#define FLAP_EVERY 900u

static tr_switch *core;
static tri_loop *loop;
static fuzz_story story;
static atomic_int stopping;
static atomic_ullong sent, received, controls;
static const tr_switch_config settings = {
    .drop_port = 511,
    .priorities = 8,
    .tick_ps = 1000000,
    .queue_packets = 64,
    .port_rate_bps = 1000000000,
    .recirc_rate_bps = 1000000000,
    .seed = 1,
};

static void fail(const char *what)
{
    fprintf(stderr, "fuzz_threads: %s\n", what);
    exit(1);
}

static void shell(const char *command)
{
    if (system(command) != 0)
        fail(command);
}

/* A raw socket on the other end of a port. */
static int wire(uint32_t i)
{
    char name[IFNAMSIZ];
    snprintf(name, sizeof name, "h%u", i);
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
    struct sockaddr_ll at = {
        .sll_family = AF_PACKET,
        .sll_protocol = htons(ETH_P_ALL),
        .sll_ifindex = (int)if_nametoindex(name),
    };
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0)
        fail("no raw socket");
    return fd;
}

/* Hosts: send mutants, and read what comes. */
static void *hosts(void *arg)
{
    static fuzz_frames frames;
    static fuzz_frame frame;
    uint8_t in[2048];
    int fd[PORTS];
    fuzz_rng rng = {.state = (uint64_t)(uintptr_t)arg | 1ULL << 63};
    fuzz_frames_init(&frames, &rng, &story);
    for (uint32_t i = 0; i < PORTS; i++)
        fd[i] = wire(i);
    while (!atomic_load(&stopping)) {
        uint32_t i = (uint32_t)fuzz_below(&rng, PORTS);
        fuzz_frame_make(&frames, &frame);
        uint32_t len = frame.len < 1500 ? frame.len : 1500;
        if (len >= 14 && send(fd[i], frame.data, len, MSG_DONTWAIT) > 0)
            atomic_fetch_add(&sent, 1);
        ssize_t n = recv(fd[(i + 1) % PORTS], in, sizeof in, MSG_DONTWAIT);
        if (n > 0) {
            atomic_fetch_add(&received, 1);
            if (fuzz_below(&rng, 16) == 0)
                fuzz_frame_learn(&frames, in, (uint32_t)n);
        }
    }
    for (uint32_t i = 0; i < PORTS; i++)
        close(fd[i]);
    return NULL;
}

/* The thread that frees what was replaced. */
static void *grave(void *old)
{
    tr_switch_free(old);
    return NULL;
}

/* A pipeline made beside the live one takes its place. */
static void push(void)
{
    pthread_t digger;
    tr_switch *aside = tr_switch_new(&tr_program_entry, &settings);
    if (!aside)
        fail("no memory");
    fuzz_story_control(&story, aside);
    tr_switch_exchange(core, aside);
    if (pthread_create(&digger, NULL, grave, aside) != 0)
        fail("no thread");
    pthread_detach(digger);
}

static void look(fuzz_rng *rng)
{
    tri_port_info info;
    tr_port_stats stats;
    tr_account account;
    tr_buffer_state_t buffer;
    tr_pfc_stats pfc;
    uint64_t drops[TR_DROP_COUNT], limbs[64], time_ps, bytes;
    uint8_t packet[2048];
    uint32_t port = (uint32_t)fuzz_below(rng, PORTS), packets, origin;
    tri_port_read(loop, port, &info);
    tr_port_stats_read(core, port, &stats);
    tr_pfc_read(core, port, port, tri_now(loop) * TR_PS_PER_NS, &pfc);
    tr_queue_level(core, port, 0, &packets, &bytes);
    tr_account_read(core, &account);
    tr_buffer_state(core, &buffer);
    tr_drops_read(core, drops);
    while (tr_digest_pop(core, &time_ps, limbs, 64) >= 0)
        ;
    while (tri_frames_take(loop, TRI_PACKET_INS, packet, sizeof packet, &port,
                           &origin) >= 0)
        ;
    tri_frames_clear(loop, TRI_PACKET_INS);
    (void)tri_packet_in_drops(loop);
    (void)tr_switch_contended(core);
}

/* What a client with packets does. */
static void by_hand(fuzz_rng *rng, fuzz_frames *frames, fuzz_frame *frame)
{
    uint8_t packet[2048];
    uint32_t port = PORTS + (uint32_t)fuzz_below(rng, PORTS);
    uint32_t origin;
    fuzz_frame_make(frames, frame);
    tri_inject(loop, port, frame->data,
               frame->len < TR_MAX_FRAME ? frame->len : 64, port);
    atomic_fetch_add(&sent, 1);
    if (fuzz_below(rng, 4) != 0)
        return;
    tri_frames_clear(loop, TRI_CLIENT_FRAMES);
    while (tri_frames_take(loop, TRI_CLIENT_FRAMES, packet, sizeof packet, &port,
                           &origin) >= 0)
        atomic_fetch_add(&received, 1);
    (void)tri_frames_waiting(loop, TRI_CLIENT_FRAMES);
    (void)tri_client_idle(loop);
    tri_client_set_up(loop, port, fuzz_below(rng, 4) != 0);
    tri_client_listen(loop, fuzz_below(rng, 16) != 0);
}

/* The server's thread: what clients ask for, one call after the other. */
static void serve(fuzz_rng *rng, uint64_t until_ns)
{
    static fuzz_frame frame;
    static fuzz_frames frames;
    fuzz_frames_init(&frames, rng, &story);
    for (uint64_t i = 1; tri_now(loop) < until_ns; i++) {
        /* settings of ports can ask for a pause frame a microsecond and queue,
         * for which there is no real time */
        fuzz_control(core, rng, tri_now(loop) * TR_PS_PER_NS, 0);
        atomic_fetch_add(&controls, 1);
        if (fuzz_below(rng, 8) == 0)
            look(rng);
        if (fuzz_below(rng, 8) == 0) {
            fuzz_frame_make(&frames, &frame);
            tri_inject(loop, CPU_PORT, frame.data,
                       frame.len < TR_MAX_FRAME ? frame.len : 64, 0);
            atomic_fetch_add(&sent, 1);
        }
        if (fuzz_below(rng, 8) == 0)
            by_hand(rng, &frames, &frame);
        if (i % RELOAD_EVERY == 0)
            push();
        if (i % FLAP_EVERY == 0)
            shell(i % (2 * FLAP_EVERY) ? "ip link set h1 down"
                                       : "ip link set h1 up");
        struct timespec pause = {0, 20000};
        nanosleep(&pause, NULL);
    }
}

int main(int argc, char **argv)
{
    char err[TRI_ERROR_BYTES], command[128], name[IFNAMSIZ];
    pthread_t host;
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: fuzz_threads MILLISECONDS SEED [STORY]\n");
        return 2;
    }
    if (unshare(CLONE_NEWNET) < 0) {
        fprintf(stderr, "fuzz_threads: no network namespace: not root\n");
        return 3;
    }
    fuzz_rng rng = {.state = strtoull(argv[2], NULL, 0) | 1ULL << 63};
    story = fuzz_story_read(argc == 4 ? argv[3] : NULL);
    core = tr_switch_new(&tr_program_entry, &settings);
    if (!core)
        fail("the program does not load");
    fuzz_story_control(&story, core);
    loop = tri_new(core, CPU_PORT, NULL, fuzz_below(&rng, 2) ? 0 : 64, err);
    if (!loop)
        fail(err);
    for (uint32_t i = 0; i < PORTS; i++) {
        snprintf(command, sizeof command,
                 "ip link add p%u type veth peer name h%u && ip link set p%u up "
                 "&& ip link set h%u up", i, i, i, i);
        shell(command);
        snprintf(name, sizeof name, "p%u", i);
        if (tri_add_port(loop, i, name, err) < 0)
            fail(err);
    }
    if (tri_add_client_ports(loop, err) < 0)
        fail(err);
    if (tri_start(loop, err) < 0)
        fail(err);
    if (pthread_create(&host, NULL, hosts, (void *)(uintptr_t)rng.state) != 0)
        fail("no thread");
    serve(&rng, tri_now(loop) + strtoull(argv[1], NULL, 0) * 1000000);
    atomic_store(&stopping, 1);
    pthread_join(host, NULL);
    tri_free(loop);
    tr_switch_free(core);
    printf("frames=%llu controls=%llu received=%llu\n", atomic_load(&sent),
           atomic_load(&controls), atomic_load(&received));
    return 0;
}
