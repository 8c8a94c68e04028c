// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The whole kernel side of a port: each frame goes to the socket of its own RX queue (README.md).
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/types.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define MAX_QUEUES 64
#define MAX_TAGS 3
#define ETHERTYPE_MAC_CONTROL 0x8808
#define TPID_9100 0x9100

/* SPEC 2.2: what a port believes. */
enum trust { TRUST_DSCP, TRUST_PCP, TRUST_PORT };

/* Written by userspace only. `dscp` and `pcp` have a bit for each lossless value; `rest` says
 * whether a frame that neither field classifies is lossless. */
struct port_config {
    __u64 dscp;
    __u32 pcp;
    __u32 rest;
    __u32 trust;
    __u32 unused;
};

enum counter { REDIRECTED, PASSED, RX_PRESSURE_LOSSY, RUNT, COUNTERS };

struct {
    __uint(type, BPF_MAP_TYPE_XSKMAP);
    __uint(max_entries, MAX_QUEUES);
    __type(key, __u32);
    __type(value, __u32);
} sockets SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct port_config);
} config SEC(".maps");

/* Not 0 while the worker can't keep up. Apart from `config`: another thread writes it. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u32);
} rx_pressure SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, COUNTERS);
    __type(key, __u32);
    __type(value, __u64);
} counters SEC(".maps");

static __always_inline void count(__u32 which)
{
    __u64 *value = bpf_map_lookup_elem(&counters, &which);

    if (value)
        (*value)++;
}

/* What a lossy frame is, by the same order as the classifier of the core: DSCP if trusted and IP,
 * else PCP if trusted or tagged, else the port's default. True also for what can't be read. */
static __always_inline int is_lossless(const struct port_config *port, void *at, void *end)
{
    struct ethhdr *eth = at;
    __u16 type = eth->h_proto;
    int pcp = -1;

    at += sizeof(*eth);
    for (int i = 0; i < MAX_TAGS; i++) {
        __be16 *tag = at;

        if (type != bpf_htons(ETH_P_8021Q) && type != bpf_htons(ETH_P_8021AD) &&
            type != bpf_htons(TPID_9100))
            break;
        if ((void *)(tag + 2) > end)
            return 1;
        if (pcp < 0)
            pcp = bpf_ntohs(tag[0]) >> 13;
        type = tag[1];
        at += 4;
    }
    if (type == bpf_htons(ETHERTYPE_MAC_CONTROL))
        return 1;
    if (port->trust == TRUST_PORT)
        return port->rest;
    if (port->trust == TRUST_DSCP && at + 2 <= end) {
        __u8 *ip = at;

        if (type == bpf_htons(ETH_P_IP))
            return (port->dscp >> (ip[1] >> 2)) & 1;
        if (type == bpf_htons(ETH_P_IPV6))
            return (port->dscp >> (((ip[0] & 0xf) << 2) | (ip[1] >> 6))) & 1;
    }
    return pcp < 0 ? port->rest : (port->pcp >> pcp) & 1;
}

SEC("xdp.frags")
int holdfast_rx(struct xdp_md *ctx)
{
    void *at = (void *)(long)ctx->data;
    void *end = (void *)(long)ctx->data_end;
    __u32 zero = 0, *pressure;
    int verdict;

    if (at + sizeof(struct ethhdr) > end) {
        count(RUNT);
        return XDP_DROP;
    }
    pressure = bpf_map_lookup_elem(&rx_pressure, &zero);
    if (pressure && *pressure) {
        struct port_config *port = bpf_map_lookup_elem(&config, &zero);

        if (port && !is_lossless(port, at, end)) {
            count(RX_PRESSURE_LOSSY);
            return XDP_DROP;
        }
    }
    verdict = bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);
    count(verdict == XDP_REDIRECT ? REDIRECTED : PASSED);
    return verdict;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
