//! RoCEv2 frames and their invariant CRC.
#![allow(clippy::unwrap_used, clippy::expect_used)] // In the functions that tests share.

mod vectors;

use holdfast_wire::ip::ipv4_checksum_valid;
use holdfast_wire::roce::{
    encode_cnp, encode_data, min_data_len, opcode, Bth, BuildError, DataOp, DataPacket, IpPair,
    Path, RoceView, MAX_FRAME_LEN,
};
use holdfast_wire::{mark_ce, parse, Ecn, MacAddr, Marking, Tag};
use proptest::prelude::*;
use vectors::hex;

const V4: IpPair = IpPair::V4 {
    src: std::net::Ipv4Addr::new(10, 0, 0, 1),
    dst: std::net::Ipv4Addr::new(10, 0, 0, 2),
};
const V6: IpPair = IpPair::V6 {
    src: std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1),
    dst: std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2),
};
const TAGS: [Tag; 3] = [Tag::customer(3, 7), Tag::customer(4, 8), Tag::customer(5, 9)];

fn path(ip: IpPair, tags: &[Tag]) -> Path<'_> {
    Path {
        dst_mac: MacAddr([2, 0, 0, 0, 0, 2]),
        src_mac: MacAddr([2, 0, 0, 0, 0, 1]),
        tags,
        ip,
        dscp: 26,
        ecn: Ecn::Ect0,
        ttl: 64,
        src_port: 49152,
    }
}

#[test]
fn cnp_is_the_golden_bytes() {
    let path = Path { dscp: 48, ecn: Ecn::NotEct, ..path(V4, &[]) };
    let mut buf = [0xaa; 128];
    let layout = encode_cnp(&mut buf, &path, 0x12).unwrap();
    let golden = "45c0003c00004000401125ef0a0000010a000002 c00012b700280000 \
                  8100ffff4000001200000000 00000000000000000000000000000000 7a6fd95d";
    assert_eq!(layout.len, 74);
    assert_eq!(buf[14..74], hex(golden));
    let view = RoceView::find(&buf[..74]).unwrap();
    assert!(view.icrc_valid(&buf[..74]));
    assert_eq!((view.bth.opcode, view.bth.becn, view.bth.dest_qp), (opcode::CNP, true, 0x12));
    assert_eq!((view.dscp, view.ecn, view.src_port), (48, Ecn::NotEct, 49152));
}

/// The bytes are a computation of their own, made from the formats with zlib's CRC-32.
#[test]
fn an_ipv6_data_frame_is_the_golden_bytes() {
    let mut buf = [0xaa; 128];
    let packet =
        DataPacket { path: path(V6, &[]), op: DataOp::RcSend, dest_qp: 0x12, psn: 7, len: 94 };
    assert_eq!(encode_data(&mut buf, &packet).unwrap().payload, 74..90);
    let golden = "66a0000000281140 fd000000000000000000000000000001 \
                  fd000000000000000000000000000002 \
                  c00012b70028baa6 0400ffff0000001200000007 \
                  00000000000000000000000000000000 7193028f";
    assert_eq!(buf[14..94], hex(golden));
}

fn ones_sum(bytes: &[u8]) -> u32 {
    let sum = bytes.chunks(2).fold(0u32, |sum, w| {
        sum + u32::from(w[0]) * 256 + w.get(1).map_or(0, |&low| u32::from(low))
    });
    (sum & 0xffff) + (sum >> 16)
}

#[test]
fn ipv6_packets_carry_a_udp_checksum_that_verifies() {
    let mut buf = [0; 2048];
    for psn in 0..200 {
        let packet =
            DataPacket { path: path(V6, &[]), op: DataOp::RcSend, dest_qp: 17, psn, len: 256 };
        let layout = encode_data(&mut buf, &packet).unwrap();
        let view = RoceView::find(&buf[..layout.len]).unwrap();
        let udp = &buf[view.udp_at..view.body.end + 4];
        let total = ones_sum(&buf[22..54]) + udp.len() as u32 + 17 + ones_sum(udp);
        assert_eq!((total & 0xffff) + (total >> 16), 0xffff);
        assert_ne!(udp[6..8], [0, 0]);
    }
}

#[test]
fn masked_fields_never_change_the_icrc_and_others_do() {
    let mut buf = [0; 256];
    for (ip, tags, masked) in [
        // Offsets from IP: TOS, TTL, checksum | class and label, hop limit; UDP sum; BTH byte 4.
        (V4, 0, vec![1, 8, 10, 11, 26, 27, 32]),
        (V6, 2, vec![1, 2, 3, 7, 46, 47, 52]),
    ] {
        let packet = DataPacket {
            path: path(ip, &TAGS[..tags]),
            op: DataOp::RcSend,
            dest_qp: 0x0012_3456,
            psn: 0x00ab_cdef,
            len: 126 + 4 * tags,
        };
        let len = encode_data(&mut buf, &packet).unwrap().len;
        let frame = &buf[..len];
        let view = RoceView::find(frame).unwrap();
        let good = view.icrc(frame);
        for at in view.ip_at..view.body.end {
            let mut damaged = frame.to_vec();
            damaged[at] ^= 0x40;
            let same = view.icrc(&damaged) == good;
            assert_eq!(same, masked.contains(&(at - view.ip_at)), "byte {}", at - view.ip_at);
        }
    }
}

#[test]
fn every_length_of_every_kind_is_built_exactly() {
    let mut buf = vec![0xaa; MAX_FRAME_LEN];
    for (ip, op) in [(V4, DataOp::RcSend), (V6, DataOp::RcWrite), (V4, DataOp::UdSend)] {
        for tags in 0..=3 {
            let path = path(ip, &TAGS[..tags]);
            let min = min_data_len(&path, op);
            for len in (min..min + 9).chain([1024, 1514, 4110, 9014 + 4 * tags]) {
                let packet = DataPacket { path, op, dest_qp: 17, psn: 5, len };
                let layout = encode_data(&mut buf, &packet).unwrap();
                let frame = &buf[..len];
                assert_eq!(layout.len, len);
                let view = RoceView::find(frame).unwrap();
                assert!(view.icrc_valid(frame));
                assert_eq!(op.payload(view.body.clone()), layout.payload);
                assert_eq!(DataOp::from_opcode(view.bth.opcode), Some(op));
                assert_eq!(usize::from(view.tags), tags);
                assert_eq!((view.bth.dest_qp, view.bth.psn), (17, 5));
                // The packet is a multiple of four bytes; up to three of Ethernet padding follow.
                assert_eq!(view.body.len() % 4, 0);
                assert!(len - (view.body.end + 4) <= 3);
                let l3 = parse(frame).unwrap().l3.ip().unwrap();
                assert_eq!((l3.dscp, l3.ecn), (26, Ecn::Ect0));
                assert!(ip == V6 || ipv4_checksum_valid(&frame[view.ip_at..]));
            }
        }
    }
}

#[test]
fn a_template_is_patched_and_sealed_again() {
    let mut buf = [0; 512];
    let packet =
        DataPacket { path: path(V6, &TAGS), op: DataOp::UdSend, dest_qp: 17, psn: 0, len: 400 };
    let layout = encode_data(&mut buf, &packet).unwrap();
    assert!(layout.set_psn(&mut buf, 0x00ff_fffe));
    buf[layout.payload.clone()].fill(0x77);
    assert!(!RoceView::find(&buf[..400]).unwrap().icrc_valid(&buf[..400]));
    assert!(layout.seal(&mut buf));
    let view = RoceView::find(&buf[..400]).unwrap();
    assert!(view.icrc_valid(&buf[..400]));
    assert_eq!(view.bth.psn, 0x00ff_fffe);
    assert!(!layout.set_psn(&mut buf[..50], 1) && !layout.seal(&mut buf[..50]));
}

#[test]
fn what_can_not_be_built_is_refused_with_the_numbers() {
    let mut buf = vec![0; MAX_FRAME_LEN + 1];
    let packet =
        DataPacket { path: path(V4, &[]), op: DataOp::RcWrite, dest_qp: 17, psn: 0, len: 73 };
    assert_eq!(encode_data(&mut buf, &packet), Err(BuildError::TooShort { len: 73, min: 74 }));
    let long = DataPacket { len: 9027, ..packet };
    assert_eq!(encode_data(&mut buf, &long), Err(BuildError::TooLong { len: 9027, max: 9026 }));
    let fits = DataPacket { len: 100, ..packet };
    let small = &mut buf[..99];
    assert_eq!(encode_data(small, &fits), Err(BuildError::Buffer { need: 100, have: 99 }));
    let tags = [TAGS[0]; 4];
    let four = DataPacket { path: path(V4, &tags), ..fits };
    assert_eq!(encode_data(&mut buf, &four), Err(BuildError::TooManyTags { count: 4 }));
}

#[test]
fn what_is_not_a_whole_roce_packet_is_not_found() {
    let mut buf = [0; 128];
    let packet =
        DataPacket { path: path(V4, &[]), op: DataOp::RcSend, dest_qp: 17, psn: 0, len: 126 };
    encode_data(&mut buf, &packet).unwrap();
    assert!(RoceView::find(&buf[..126]).is_some());
    assert!(RoceView::find(&buf[..125]).is_none(), "cut short");
    for (at, value, why) in [
        (23, 6, "TCP"),
        (20, 0x20, "more fragments"),
        (21, 0x01, "fragment offset"),
        (17, 0x20, "total length shorter than UDP says"),
        (36, 0x13, "another UDP port"),
        (39, 0x10, "UDP length disagrees"),
    ] {
        let mut damaged = buf;
        damaged[at] = value;
        assert!(RoceView::find(&damaged[..126]).is_none(), "{why}");
    }
}

fn any_bth() -> impl Strategy<Value = Bth> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let numbers = (any::<u8>(), 0u8..4, 0u8..16, any::<u16>(), 0u32..1 << 24, 0u32..1 << 24);
    (flags, numbers).prop_map(|(f, n)| Bth {
        opcode: n.0,
        solicited: f.0,
        mig_req: f.1,
        pad: n.1,
        version: n.2,
        pkey: n.3,
        fecn: f.2,
        becn: f.3,
        dest_qp: n.4,
        ack_req: f.4,
        psn: n.5,
    })
}

proptest! {
    #[test]
    fn bth_round_trips(bth in any_bth()) {
        prop_assert_eq!(Bth::from_bytes(&bth.to_bytes()), bth);
    }

    #[test]
    fn ce_marking_keeps_icrc_and_udp_checksum(
        ipv6 in any::<bool>(),
        tags in 0usize..=3,
        len in 128usize..600,
        psn in 0u32..1 << 24,
        dscp in 0u8..64,
        ecn in prop_oneof![Just(Ecn::Ect0), Just(Ecn::Ect1)],
    ) {
        let mut buf = [0; 600];
        let ip = if ipv6 { V6 } else { V4 };
        let path = Path { dscp, ecn, ..path(ip, &TAGS[..tags]) };
        let packet = DataPacket { path, op: DataOp::RcSend, dest_qp: 9, psn, len };
        encode_data(&mut buf, &packet).unwrap();
        let before = buf;
        let kind = parse(&buf[..len]).unwrap().l3.kind();
        prop_assert_eq!(mark_ce(&mut buf[..len], kind, tags as u8), Marking::Marked);
        let view = RoceView::find(&buf[..len]).unwrap();
        prop_assert!(view.icrc_valid(&buf[..len]));
        prop_assert_eq!((view.dscp, view.ecn), (dscp, Ecn::Ce));
        prop_assert_eq!(&buf[view.udp_at..], &before[view.udp_at..]);
    }
}
