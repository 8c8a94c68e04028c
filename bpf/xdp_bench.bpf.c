// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Programs of benches and tests only: a source and a sink that cost far less than what they
// measure, and a host's VLAN netdev where the kernel has none.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/types.h>
#include <bpf/bpf_endian.h>
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

/* At the egress of a host: gives the frame a tag beside it, as a VLAN netdev does. Whether it gets
 * into the frame is up to the offloads of the netdev. Priority 6, VLAN 5; 802.1ad if marked. */
SEC("tc")
int bench_tag(struct __sk_buff *skb)
{
    bpf_skb_vlan_push(skb, bpf_htons(skb->mark ? ETH_P_8021AD : ETH_P_8021Q), 0xc005);
    return TC_ACT_OK;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
