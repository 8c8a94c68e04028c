// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Programs of the benches only: a source and a sink that cost far less than what they measure.
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

struct {
    __uint(type, BPF_MAP_TYPE_DEVMAP);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u32);
} target SEC(".maps");

/* Frames and bytes. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 2);
    __type(key, __u32);
    __type(value, __u64);
} seen SEC(".maps");

static __always_inline void add(__u32 which, __u64 amount)
{
    __u64 *value = bpf_map_lookup_elem(&seen, &which);

    if (value)
        *value += amount;
}

/* Run by BPF_PROG_TEST_RUN with live frames: each goes out by the device in the map. */
SEC("xdp")
int bench_source(struct xdp_md *ctx)
{
    return bpf_redirect_map(&target, 0, XDP_DROP);
}

/* At the far end of a veth: makes the peer's native transmit work, counts and drops. */
SEC("xdp.frags")
int bench_sink(struct xdp_md *ctx)
{
    add(0, 1);
    add(1, bpf_xdp_get_buff_len(ctx));
    return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
